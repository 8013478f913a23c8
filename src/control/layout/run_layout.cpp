#include "layout/run_layout.h"

#include <fmt/format.h>

namespace assay::layout {

std::string step_folder(size_t number, std::string_view step_name) {
  return fmt::format("{}/{}-{}", kSteps, number, step_name);
}

std::string code_path(std::string_view name) { return fmt::format("{}/{}", kCode, name); }

bool is_in(std::string_view path, std::string_view folder) {
  return path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/';
}

std::string work_folder(int attempt, int rank) { return fmt::format("{}/attempt{}/rank{}", kWork, attempt, rank); }
std::string in_run_folder(std::string_view path) { return fmt::format("{}/{}", kRunFolder, path); }

std::string rank_log(int rank) { return fmt::format("{}{}.log", kRankLogPrefix, rank); }
std::string setup_log(int node) { return fmt::format("{}.node{}.log", kSetupLogPrefix, node); }

std::string records_file(int rank) {
  return rank == 0 ? fmt::format("{}.jsonl", kRecordsPrefix) : fmt::format("{}.rank{}.jsonl", kRecordsPrefix, rank);
}

bool is_records_file(std::string_view name) { return name.starts_with(kRecordsPrefix) && name.ends_with(".jsonl"); }

std::string node_state(int node) { return fmt::format("state.node{}.json", node); }
std::string node_monitor(int node) { return fmt::format("monitor.node{}.jsonl", node); }

}  // namespace assay::layout
