#include "run/node_facts.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "layout/run_layout.h"

namespace assay {

std::optional<NodeFacts> read_node_facts(const std::filesystem::path& step_folder, int node) {
  const auto path = step_folder / layout::node_state(node);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return std::nullopt;
  constexpr uintmax_t kMostBytes = 16 << 20;  // it comes from another machine
  if (std::filesystem::file_size(path, ignored) > kMostBytes) {
    throw DataError(fmt::format("{}: is too large", path.string()));
  }
  const Json state = read_json_file(path);
  if (!state.is_object() || !state.contains("host") || !state.at("host").is_string()) {
    throw DataError(fmt::format("{}: names no host", path.string()));
  }
  NodeFacts facts{.host = valid_utf8(state.at("host").get<std::string>())};
  if (state.contains("environment")) facts.environment = state.at("environment");
  return facts;
}

}  // namespace assay
