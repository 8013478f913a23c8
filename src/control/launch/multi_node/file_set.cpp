#include "launch/multi_node/file_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "launch/launcher.h"

namespace assay {

namespace {

// What is written by ranks, supervisors and launchers, and so never goes to a host.
bool is_made_by_job(const std::string& name) {
  for (const char* prefix : {"job.node", "state.node", "lease.node", "stop.node", "monitor.node", "supervisor.node",
                             "received.node", "setup.node", "records.", "rank_table.node"}) {
    if (name.rfind(prefix, 0) == 0) return true;
  }
  return name.rfind("rank", 0) == 0 && name.size() > 4 && name.substr(name.size() - 4) == ".log";
}

bool is_collected(const LaunchRequest& request, const std::string& name) {
  return std::any_of(request.staging.collect.begin(), request.staging.collect.end(), [&](const std::string& collected) {
    const std::string folder = fs::path(collected).lexically_normal().string();
    return name == folder || name.rfind(folder + "/", 0) == 0;
  });
}

std::string inside_run_folder(const LaunchRequest& request, const fs::path& path) {
  const fs::path relative =
      (path.is_absolute() ? path.lexically_relative(request.command.cwd) : path).lexically_normal();
  if (!is_inner_path(relative.string())) {
    throw ConfigError(
        fmt::format("{}: only files of the run folder {} can be staged", path.string(), request.command.cwd.string()));
  }
  return relative.string();
}

}  // namespace

FileSet own_programs() {
  FileSet out{.root = program_folder()};
  out.add("assay");
  for (const char* name : {"assay-worker", "assay_sentencepiece.so", "plugins"}) {
    if (fs::exists(out.root / name)) out.add(name);
  }
  return out;
}

FileSet files_of_step(const LaunchRequest& request) {
  FileSet out{.root = request.command.cwd};
  const std::string folder = inside_run_folder(request, request.folder);
  if (fs::is_directory(request.folder)) {
    for (const auto& entry : fs::directory_iterator(request.folder)) {
      const std::string name = entry.path().filename().string();
      if (!is_made_by_job(name) && !is_collected(request, name)) out.add(fs::path(folder) / name);
    }
  }
  std::erase_if(out.files,
                [&](const auto& file) { return is_collected(request, file.first.substr(folder.size() + 1)); });
  for (const fs::path& path : request.staging.staged) out.add(inside_run_folder(request, path));
  return out;
}

}  // namespace assay
