// YAML files with comments, line by line, in the form that config/yaml.h reads back as the same values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/value.h"

namespace assay {

class YamlWriter {
 public:
  void comment(std::string_view text);
  // `key: value`, indented by so many levels; the remark becomes a comment behind it.
  void entry(std::string_view key, const Value& value, int level = 0, std::string_view remark = {});
  void section(std::string_view key, int level = 0);  // `key:`
  void item(const Value& value, int level = 0, std::string_view remark = {});
  void blank() { text_ += "\n"; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A value on one line. A standalone map says `_inherited_: False`.
std::string flow_yaml(const Value& value);

}  // namespace assay
