// Files and their base files.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "config/merge.h"
#include "config/yaml.h"

namespace assay {

namespace {

constexpr char kBase[] = "_base_";
constexpr char kInherited[] = "_inherited_";

void check_chain(const fs::path& path, const std::vector<fs::path>& chain) {
  std::vector<std::string> names;
  for (const fs::path& file : chain) names.push_back(file.string());
  names.push_back(path.string());
  if (std::find(chain.begin(), chain.end(), path) != chain.end()) {
    throw ConfigError(fmt::format("{}: {} goes in a circle: {}", chain.back().string(), kBase, join(names, " -> ")));
  }
  if (chain.size() >= kMaxBaseFiles) {
    throw ConfigError(
        fmt::format("{}: more than {} base files: {}", chain.front().string(), kMaxBaseFiles, join(names, " -> ")));
  }
}

std::string read_layer(const fs::path& path) {
  std::error_code error;
  // A device or a pipe could block for ever or never end.
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) {
    throw ConfigError(fmt::format("{}: not a regular file", path.string()));
  }
  if (const auto size = fs::file_size(path, error); !error && size > kMaxYamlBytes) {
    throw ConfigError(fmt::format("{}: {} bytes; a configuration has at most {}", path.string(), size, kMaxYamlBytes));
  }
  try {
    return read_file(path);
  } catch (const DataError& failure) {
    throw ConfigError(failure.what());
  }
}

// A case is read several times, and its sizes stand on the same file, while parsing is what takes the time of
// `assay cases`. The text is compared, so a file that has changed is parsed again.
Value parse_once(std::string text, const fs::path& path, const std::string& layer) {
  struct Parsed {
    std::string text;
    Value value;
  };
  static thread_local std::map<std::pair<std::string, std::string>, Parsed> known;
  const std::pair<std::string, std::string> key = {path.string(), layer};
  const auto found = known.find(key);
  if (found != known.end() && found->second.text == text) return found->second.value;
  const Value value = parse_yaml(text, path.string(), layer);
  known[key] = {std::move(text), value};
  return value;
}

Value load(const fs::path& path, const std::string& layer, const Normalise& normalise, std::vector<fs::path>& chain) {
  check_chain(path, chain);
  Value own = parse_once(read_layer(path), path, layer);
  if (own.is_null()) own = Value::map({layer, path.string(), 1});
  if (!own.is_map()) {
    throw ConfigError(fmt::format("{}: a configuration is a map of sections, this is {}", own.origin().text(),
                                  type_text(own.type())));
  }
  const Value* base_name = own.child(kBase);
  if (!base_name) {
    take_inherited(own);
    if (normalise) normalise(own);
    return own;
  }
  const Value name = *base_name;
  own.erase(kBase);
  take_inherited(own);
  if (normalise) normalise(own);
  if (!name.is_string() || name.as_string().empty()) {
    throw ConfigError(
        fmt::format("{}: {} must be the path of a file, found {}", name.origin().text(), kBase, name.text()));
  }
  const fs::path base_path = (path.parent_path() / name.as_string()).lexically_normal();
  std::error_code error;
  if (!fs::exists(base_path, error)) {
    throw ConfigError(
        fmt::format("{}: {} names {}, which does not exist", name.origin().text(), kBase, base_path.string()));
  }
  chain.push_back(path);
  Value merged = load(base_path, layer, normalise, chain);
  chain.pop_back();
  merge_onto(merged, own, true);
  return merged;
}

}  // namespace

void take_inherited(Value& node) {
  if (node.is_list()) {
    for (Value& item : node.items()) take_inherited(item);
  }
  if (!node.is_map()) return;
  if (const Value* inherited = node.child(kInherited)) {
    if (!inherited->is_bool()) {
      throw ConfigError(fmt::format("{}: {} must be true or false, found {}", inherited->origin().text(), kInherited,
                                    inherited->text()));
    }
    node.set_standalone(!inherited->as_bool());
    node.erase(kInherited);
  }
  for (Value::Entry& entry : node.entries()) take_inherited(entry.value);
}

Value load_yaml(const fs::path& path, const std::string& layer, const Normalise& normalise) {
  std::vector<fs::path> chain;
  return load(path.lexically_normal(), layer, normalise, chain);
}

}  // namespace assay
