#include "config/yaml.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Integers and numbers as YAML 1.2's core schema has them; anything else is text.
Value scalar_of(const std::string& text, const Origin& origin) {
  for (const char* word : {"true", "True", "TRUE"}) {
    if (text == word) return Value::boolean(true, origin);
  }
  for (const char* word : {"false", "False", "FALSE"}) {
    if (text == word) return Value::boolean(false, origin);
  }
  std::string_view digits = text;
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
  const double infinity = std::numeric_limits<double>::infinity();
  if (digits == ".inf" || digits == ".Inf" || digits == ".INF")
    return Value::real(negative ? -infinity : infinity, origin);
  if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    return Value::real(std::numeric_limits<double>::quiet_NaN(), origin);
  }
  const bool numeric =
      !digits.empty() && (is_digit(digits[0]) || (digits[0] == '.' && digits.size() > 1 && is_digit(digits[1])));
  if (numeric) {
    if (const auto integer = parse_int(text)) return Value::integer(*integer, origin);
    if (const auto real = parse_double(text)) return Value::real(*real, origin);
  }
  return Value::string(text, origin);
}

// Builds the tree from the parser's events, which carry the line of every node and leave aliases to us: a few lines of
// aliases can stand for billions of nodes, so they are counted as they are expanded.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string file, std::string layer, int first_line)
      : file_(std::move(file)), layer_(std::move(layer)), first_line_(first_line) {}

  Value take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(Value::null(origin(mark)), anchor, mark); }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(mark, "an alias refers to the node that it stands in");
    if (stack_.size() + static_cast<size_t>(found->second.depth) > kMaxYamlDepth) too_deep(mark);
    if (!stack_.empty()) stack_.back().depth = std::max(stack_.back().depth, found->second.depth + 1);
    count(found->second.num_nodes, mark);
    add(found->second.value, YAML::NullAnchor, mark);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (!stack_.empty() && stack_.back().value.is_map() && !stack_.back().key)
      return take_key(mark, tag, anchor, value);
    count(1, mark);
    const bool is_text = tag == "!" || tag == "tag:yaml.org,2002:str";
    if (!is_text) check_tag(mark, tag);
    add(is_text ? Value::string(value, origin(mark)) : scalar_of(value, origin(mark)), anchor, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Value::list(origin(mark)), tag, anchor, mark);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Value::map(origin(mark)), tag, anchor, mark);
  }
  void OnMapEnd() override {
    apply_merge_keys();
    close();
  }

 private:
  struct Open {
    Value value;
    YAML::anchor_t anchor;
    YAML::Mark mark;
    size_t nodes_before;
    int depth = 1;                   // of what it holds
    std::optional<std::string> key;  // maps: the key whose value comes next
    int key_line = 0;
    int key_column = 0;
    std::vector<Value> merged = {};  // values of "<<" keys
  };
  struct Anchored {
    Value value;
    size_t num_nodes;
    int depth;
  };

  int line(const YAML::Mark& mark) const { return first_line_ > 0 ? mark.line + first_line_ : 0; }
  int column(const YAML::Mark& mark) const { return first_line_ > 0 ? mark.column + 1 : 0; }
  Origin origin(const YAML::Mark& mark) const { return {layer_, file_, line(mark), column(mark)}; }
  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message) const {
    throw ConfigError(fmt::format("{}: {}", origin(mark).text(), message));
  }
  [[noreturn]] void too_deep(const YAML::Mark& mark) const {
    fail(mark, fmt::format("nested deeper than {} levels", kMaxYamlDepth));
  }
  // YAML's own tags say nothing new; others would have to build objects.
  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag == "?" || tag.empty()) return;
    for (const char* name : {"str", "int", "float", "bool", "null", "seq", "map"}) {
      if (tag == std::string("tag:yaml.org,2002:") + name) return;
    }
    fail(mark, fmt::format("the tag '{}' is not supported; write plain values", tag));
  }

  void count(size_t nodes, const YAML::Mark& mark) {
    num_nodes_ += nodes;
    if (num_nodes_ > kMaxYamlNodes) fail(mark, fmt::format("more than {} values, aliases expanded", kMaxYamlNodes));
  }

  void take_key(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, const std::string& key) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {Value::string(key, origin(mark)), 1, 0};
    Open& top = stack_.back();
    top.key = key;
    top.key_line = line(mark);
    top.key_column = column(mark);
    if (key == "<<" && tag == "?") return;
    if (const Value* first = top.value.child(key)) {
      fail(mark, fmt::format("the key '{}' is here a second time; the first is in line {}", key, first->origin().line));
    }
  }

  void open(Value value, const std::string& tag, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (tag != "!") check_tag(mark, tag);
    if (stack_.size() >= kMaxYamlDepth) too_deep(mark);
    if (!stack_.empty() && stack_.back().value.is_map() && !stack_.back().key) fail(mark, "a key must be a plain word");
    const size_t before = num_nodes_;
    count(1, mark);
    stack_.push_back({std::move(value), anchor, mark, before, 1, std::nullopt, 0, 0, {}});
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    if (!stack_.empty()) stack_.back().depth = std::max(stack_.back().depth, done.depth + 1);
    if (done.anchor != YAML::NullAnchor) {
      anchors_[done.anchor] = {done.value, num_nodes_ - done.nodes_before, done.depth};
    }
    add(std::move(done.value), YAML::NullAnchor, done.mark);
  }

  void add(Value value, YAML::anchor_t anchor, const YAML::Mark& mark) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = {value, 1, 0};
    if (stack_.empty()) {
      root_ = std::move(value);
      return;
    }
    Open& top = stack_.back();
    if (top.value.is_list()) {
      top.value.items().push_back(std::move(value));
      return;
    }
    if (!top.key) fail(mark, "a key must be a plain word");
    // The place of a value in a map is that of its key, where a person looks for it.
    Origin place = value.origin();
    place.line = top.key_line;
    place.column = top.key_column;
    value.set_origin(place);
    if (*top.key == "<<") {
      top.merged.push_back(std::move(value));
    } else {
      top.value.entries().push_back({std::move(*top.key), std::move(value)});
    }
    top.key.reset();
  }

  // "<<: *other": the keys of another map, or of a list of maps, that this map does not have itself.
  void apply_merge_keys() {
    Open& top = stack_.back();
    for (const Value& merged : top.merged) {
      const Value::List one = {merged};
      for (const Value& source : merged.is_list() ? merged.items() : one) {
        if (!source.is_map()) fail(top.mark, "'<<' takes a map or a list of maps");
        for (const Value::Entry& entry : source.entries()) {
          if (!top.value.child(entry.key)) top.value.set(entry.key, entry.value);
        }
      }
    }
  }

  std::string file_;
  std::string layer_;
  int first_line_;
  size_t num_nodes_ = 0;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  Value root_;
};

// The line, from 0, of the first byte that no YAML text may have; -1 if there is none.
int first_bad_line(std::string_view text) {
  const auto line_at = [&](size_t at) { return static_cast<int>(std::count(text.begin(), text.begin() + at, '\n')); };
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F) return line_at(i);
  }
  const std::string valid = valid_utf8(text);
  if (valid == text) return -1;
  const auto [here, there] = std::mismatch(text.begin(), text.end(), valid.begin(), valid.end());
  (void)there;
  return line_at(static_cast<size_t>(here - text.begin()));
}

std::string tab_hint(std::string_view text, int line) {
  const auto lines = split(text, '\n');
  const size_t last = std::min(lines.size(), static_cast<size_t>(line) + 1);
  for (size_t i = line > 0 ? static_cast<size_t>(line) - 1 : 0; i < last; ++i) {
    const size_t indent = lines[i].find_first_not_of(" \t");
    if (lines[i].substr(0, indent).find('\t') != std::string::npos) return "; indent with blanks, not with tabs";
  }
  return "";
}

}  // namespace

Value parse_yaml(std::string_view text, const std::string& file, const std::string& layer, int first_line) {
  const auto place = [&](int line) {
    return Origin{.layer = layer, .file = file, .line = first_line > 0 ? line + first_line : 0}.text();
  };
  if (text.size() > kMaxYamlBytes) {
    throw ConfigError(fmt::format("{}: {} bytes; a configuration has at most {}", file, text.size(), kMaxYamlBytes));
  }
  if (const int line = first_bad_line(text); line >= 0) {
    throw ConfigError(fmt::format("{}: not UTF-8 text", place(line)));
  }
  TreeBuilder builder(file, layer, first_line);
  try {
    // yaml-cpp takes a quote that is never closed for closed when the text ends in a newline; behind a last line
    // without one, it does not.
    std::istringstream stream{std::string(text) + (text.ends_with('\n') ? "#" : "\n#")};
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) return Value::null({layer, file, first_line});
    Value root = builder.take();
    TreeBuilder rest(file, layer, first_line);
    if (parser.HandleNextDocument(rest)) {
      throw ConfigError(fmt::format("{}: more than one document; remove everything from the second '---' on", file));
    }
    return root;
  } catch (const YAML::Exception& error) {
    const int line = std::max(error.mark.line, 0);
    throw ConfigError(fmt::format("{}: not valid YAML: {}{}", place(line), error.msg, tab_hint(text, line)));
  }
}

}  // namespace assay
