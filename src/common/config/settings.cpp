#include "config/settings.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "config/yaml.h"

namespace assay {

namespace {

constexpr size_t kMaxParts = 32;

// The part of `path` up to the first list in the tree; empty when it meets none before its last part.
std::string path_to_list(const std::string& path, const Value& effective) {
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    const Value* node = effective.find(path.substr(0, dot));
    if (node && node->is_list()) return path.substr(0, dot);
  }
  return "";
}

void put(Value& node, const std::string& path, const Value& value, const Setting& setting) {
  const size_t dot = path.find('.');
  const std::string part = path.substr(0, dot);
  Value* next = nullptr;
  if (node.is_list()) {
    const auto index = parse_int(part);
    if (!index || *index < 0 || static_cast<size_t>(*index) >= node.items().size()) {
      throw ConfigError(fmt::format("{}: '{}' is not an index of a list of {}; to change its length set the whole list",
                                    setting.source, part, node.items().size()));
    }
    next = &node.items()[static_cast<size_t>(*index)];
  } else if (node.is_map()) {
    if (!node.child(part)) node.set(part, Value::map(value.origin()));
    next = node.child(part);
  } else {
    throw ConfigError(fmt::format("{}: '{}' is inside {}, which is a single value", setting.source, part, node.text()));
  }
  if (dot == std::string::npos) {
    *next = value;
  } else {
    put(*next, path.substr(dot + 1), value, setting);
  }
}

}  // namespace

Value layer_of(const Setting& setting, const Value& effective) {
  const size_t equals = setting.text.find('=');
  const std::string path(trim(setting.text.substr(0, equals)));
  if (equals == std::string::npos || path.empty()) {
    throw UsageError(fmt::format("{}: write key=value, as in Engine.max_steps=10", setting.source));
  }
  const auto parts = split(path, '.');
  for (const std::string& part : parts) {
    if (part.empty()) throw UsageError(fmt::format("{}: '{}' has an empty part", setting.source, path));
  }
  if (parts.size() > kMaxParts) throw UsageError(fmt::format("{}: more than {} parts", setting.source, kMaxParts));
  const std::string text(trim(setting.text.substr(equals + 1)));
  if (text.empty()) {
    throw UsageError(
        fmt::format("{}: no value; write {}=null to set null, {}='' for empty text", setting.source, path, path));
  }
  const Origin origin{kLayerCommandLine, setting.source, 0};
  Value value = parse_yaml(text, setting.source, kLayerCommandLine, 0);
  value.set_origin_deep(origin);
  take_inherited(value);
  Value layer = Value::map(origin);
  const std::string list_path = path_to_list(path, effective);
  if (list_path.empty()) {
    layer.set_path(path, std::move(value));
    return layer;
  }
  Value list = *effective.find(list_path);
  put(list, path.substr(list_path.size() + 1), value, setting);
  list.set_origin_deep(origin);
  layer.set_path(list_path, std::move(list));
  return layer;
}

}  // namespace assay
