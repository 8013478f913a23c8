// YAML files of others, read into Values with file and line. Base files (`_base_`) are merged here; what the keys mean
// is not known here.
//
// Hostile input is an error, never a crash or a wait: size, depth and the number of nodes after alias expansion are
// limited, and so are base files.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "config/value.h"

namespace assay {

inline constexpr size_t kMaxYamlBytes = 1 << 20;
inline constexpr size_t kMaxYamlNodes = 20000;
inline constexpr int kMaxYamlDepth = 64;
inline constexpr size_t kMaxBaseFiles = 16;

// One document. `file` and `layer` go into the origins; `first_line` is the line number of the first line, and 0 means
// that the text is not from a file, so that origins carry no line. Throws ConfigError. An empty text is null.
// Scalars follow YAML 1.2: true/false, null, integers, numbers with 1e-4 included; yes/no/on/off are text.
Value parse_yaml(std::string_view text, const std::string& file, const std::string& layer, int first_line = 1);

// Called with each file's own map before it is merged onto its base, so that both sides speak the same names.
using Normalise = std::function<void(Value& map)>;

// A file that holds a map, merged onto its base files: `_base_: ../common.yaml` (relative to the file, recursive). A
// list replaces the base's list; `_inherited_: False` in a map replaces the base's map. Throws ConfigError; a cycle
// names the whole chain.
Value load_yaml(const std::filesystem::path& path, const std::string& layer, const Normalise& normalise = {});

// Turns `_inherited_: False` into the mark on its map, throughout the tree. load_yaml does it; text from elsewhere
// needs it.
void take_inherited(Value& node);

}  // namespace assay
