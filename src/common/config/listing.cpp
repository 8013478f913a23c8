#include "config/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/merge.h"
#include "config/names.h"
#include "config/schema.h"
#include "config/unified_args.h"
#include "config/yaml.h"

namespace assay {

namespace {

constexpr size_t kMaxValueWidth = 34;  // longer values, such as hashes, push their place to the right

std::string pad(const std::string& text, size_t width) {
  const size_t used = display_width(text);
  return used < width ? text + std::string(width - used, ' ') : text;
}

std::string first_part(const std::string& path) { return path.substr(0, path.find('.')); }

// Could this text be taken for something else, or end early?
bool needs_quotes(const std::string& text) {
  if (text.empty() || text.find_first_of("\n\"'#:,[]{}&*!|>%@`\\") != std::string::npos) return true;
  if (text.front() == ' ' || text.back() == ' ' || text.front() == '-' || text.front() == '?') return true;
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), is_control)) return true;  // no YAML text may have them
  const Value read = parse_yaml(text, "", "");
  return !read.is_string() || read.as_string() != text;
}

}  // namespace

std::string yaml_text(const Value& value) {
  if (value.is_string()) {
    // JSON's quoting is YAML's too.
    return needs_quotes(value.as_string()) ? to_line(value.as_string()) : value.as_string();
  }
  if (value.is_list()) {
    std::vector<std::string> parts;
    for (const Value& item : value.items()) parts.push_back(yaml_text(item));
    return "[" + join(parts, ", ") + "]";
  }
  return value.text();
}

namespace {

// A list too long for its column is shown an item a line.
std::vector<Leaf> rows_of(const ResolvedCase& resolved) {
  std::vector<Leaf> rows;
  for (const Value* tree : {&resolved.head, &resolved.config}) {
    for (const Leaf& leaf : leaves_of(*tree)) {
      const bool is_long = leaf.value->is_list() && yaml_text(*leaf.value).size() > kMaxValueWidth;
      for (size_t i = 0; is_long && i < leaf.value->items().size(); ++i) {
        rows.push_back({fmt::format("{}.{}", leaf.path, i), &leaf.value->items()[i]});
      }
      if (!is_long) rows.push_back(leaf);
    }
  }
  return rows;
}

}  // namespace

std::string render_config(const ResolvedCase& resolved, const Paint& paint) {
  std::string out =
      fmt::format("{}  {} division{}  {}\n", paint(resolved.key.text(), Colour::Bold), division_name(resolved.division),
                  resolved.vendor.empty() ? "" : "  vendor " + resolved.vendor,
                  paint("hash " + resolved.hash().substr(0, 16), Colour::Dim));
  const std::vector<Leaf> leaves = rows_of(resolved);
  size_t key_width = 0;
  size_t value_width = 0;
  for (const Leaf& leaf : leaves) {
    key_width = std::max(key_width, display_width(leaf.path));
    const size_t width = display_width(yaml_text(*leaf.value));
    if (width <= kMaxValueWidth) value_width = std::max(value_width, width);
  }
  std::string section = "-";
  for (const Leaf& leaf : leaves) {
    const bool plain = leaf.path.find('.') == std::string::npos;
    const std::string here = plain && is_head_key(leaf.path) ? "" : first_part(leaf.path);
    if (here != section) out += "\n";
    section = here;
    const Origin& origin = leaf.value->origin();
    const Colour colour = origin.layer == kLayerDefault || origin.layer == kLayerDerived ? Colour::Dim
                          : origin.layer == kLayerCase                                   ? Colour::Plain
                                                                                         : Colour::Yellow;
    out += fmt::format("{}  {}  {}\n", pad(leaf.path, key_width), pad(yaml_text(*leaf.value), value_width),
                       paint(resolved.place(origin), colour));
  }
  if (resolved.overrides.empty()) return out;
  out += "\n" + paint("Changed", Colour::Bold) + "\n";
  for (const Override& change : resolved.overrides) {
    out += fmt::format("  {}: {} -> {}  {}{}\n", change.path, yaml_text(change.before), yaml_text(change.after),
                       resolved.place(change.after.origin()),
                       change.is_mutable ? "" : paint("  not mutable: the result is open", Colour::Yellow));
  }
  return out;
}

namespace {

std::string default_text(const KeySpec& key) {
  if (key.required) return "required";
  return key.fallback ? yaml_text(Value::of(*key.fallback)) : "";
}

std::string limits_text(const KeySpec& key) {
  const std::string range = range_text(key);
  return range.empty() ? key.doc : fmt::format("{} ({})", key.doc, range);
}

std::string escape_cell(const std::string& text) {
  std::string out;
  for (char c : text) out += c == '|' ? std::string("\\|") : std::string(1, c);
  return out;
}

// Train, Eval and Test have the same keys; the tables show them once, as FleetX's documents do.
bool is_repeated(const std::string& path) { return path.starts_with("Data.Eval.") || path.starts_with("Data.Test."); }

}  // namespace

std::string render_schema(const Paint& paint) {
  const auto& keys = Schema::native().keys();
  size_t key_width = 0;
  size_t type_width = 0;
  size_t default_width = 0;
  for (const KeySpec& key : keys) {
    key_width = std::max(key_width, key.path.size());
    type_width = std::max(type_width, type_text(key).size());
    default_width = std::max(default_width, default_text(key).size());
  }
  std::string out;
  std::string section;
  for (const KeySpec& key : keys) {
    const std::string here = first_part(key.path);
    const SectionSpec* spec = Schema::native().section(here);
    if (spec && here != section) out += fmt::format("\n{}  {}\n", paint(here, Colour::Bold), spec->doc);
    section = here;
    out += fmt::format("{}  {}  {}  {}\n", pad(key.path, key_width), pad(type_text(key), type_width),
                       pad(default_text(key), default_width), limits_text(key));
  }
  return out;
}

Json schema_json() {
  Json out = Json::array();
  for (const KeySpec& key : Schema::native().keys()) {
    out.push_back({{"key", key.path},
                   {"type", type_text(key)},
                   {"required", key.required},
                   {"default", key.fallback ? *key.fallback : Json()},
                   {"range", range_text(key)},
                   {"location", key.is_location},
                   {"doc", key.doc}});
  }
  return out;
}

std::string schema_markdown() {
  std::string out;
  std::string section = "-";
  for (const KeySpec& key : Schema::native().keys()) {
    if (is_repeated(key.path) && !key.path.ends_with("Eval.loader.batch_size")) continue;
    const bool plain = key.path.find('.') == std::string::npos;
    const std::string here = plain || is_head_key(first_part(key.path)) ? "Head" : first_part(key.path);
    if (here != section) {
      const SectionSpec* spec = Schema::native().section(here);
      out += fmt::format("{}### {}\n{}\n\n| key | type | default | meaning |\n|---|---|---|---|\n",
                         section == "-" ? "" : "\n", here, spec ? spec->doc : "What a case is, above its `config`.");
      section = here;
    }
    const std::string fallback = default_text(key);
    out += fmt::format("| `{}` | {} | {} | {} |\n", key.path, type_text(key),
                       key.required       ? fallback
                       : fallback.empty() ? ""
                                          : "`" + fallback + "`",
                       escape_cell(limits_text(key)));
  }
  return out;
}

std::string names_markdown() {
  std::string out = "| system | its name | ours | note |\n|---|---|---|---|\n";
  for (const KeyName& key : key_names()) {
    std::vector<std::string> paths;
    for (const std::string& path : key.paths) paths.push_back("`" + path + "`");
    out += fmt::format("| {} | `{}` | {} | {} |\n", key.system, key.name, join(paths, ", "), key.note);
  }
  for (const ValueName& value : value_names()) {
    out += fmt::format("| FleetX | `{}: {}` | `{}` | |\n", value.path, value.name, value.ours);
  }
  for (const UnifiedArgument& argument : unified_arguments()) {
    std::string name = "--" + argument.name;
    for (const std::string& alias : argument.aliases) name += ", --" + alias;
    const bool is_key = argument.goes_to.find('.') != std::string::npos;
    out += fmt::format("| unified run | `{}` | {} | {} |\n", name,
                       is_key ? "`" + argument.goes_to + "`" : argument.goes_to, argument.doc);
  }
  return out;
}

}  // namespace assay
