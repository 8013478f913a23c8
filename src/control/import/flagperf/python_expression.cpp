#include "import/flagperf/python_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "import/flagperf/python_strings.h"

namespace assay {

namespace {

constexpr size_t kMaxEntries = 5000;  // of a dict: they are searched one after the other

// Operators from the loosest to the tightest, each level from left to right; ** is apart.
constexpr std::array<std::array<std::string_view, 4>, 6> kLevels = {
    {{"|"}, {"^"}, {"&"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "//", "%"}}};

class Evaluator {
 public:
  Evaluator(std::span<const PyToken> tokens, PyContext& context) : tokens_(tokens), context_(context) {}

  PyValue run() {
    if (tokens_.empty()) throw PythonNotRead(0, "there is no value");
    PyValue out = tuple_or_value();
    if (!done()) refuse(fmt::format("'{}' here", short_text(peek())));
    return out;
  }

 private:
  bool done() const { return at_ >= tokens_.size(); }
  const PyToken& peek() const { return tokens_[std::min(at_, tokens_.size() - 1)]; }
  bool next_is(std::string_view op) const { return !done() && peek().is_op(op); }
  bool take(std::string_view op) {
    if (!next_is(op)) return false;
    ++at_;
    return true;
  }
  void need(std::string_view op) {
    if (!take(op)) refuse(done() ? "an expression without its end" : fmt::format("'{}' here", short_text(peek())));
  }
  int line() const { return peek().line; }
  Origin origin() const { return {"flagperf", context_.file, line()}; }
  [[noreturn]] void refuse(const std::string& what) const { throw PythonNotRead(line(), what + " is not evaluated"); }

  static std::string short_text(const PyToken& token) {
    return valid_utf8(std::string_view(token.text).substr(0, 40)) + (token.text.size() > 40 ? "..." : "");
  }

  PyValue tuple_or_value() {
    PyValue first = test();
    if (!next_is(",")) return first;
    PyValue out{Value::list(first.value.origin()), PyShape::Tuple};
    out.value.items().push_back(std::move(first.value));
    while (take(",")) {
      if (done() || next_is(")")) break;
      out.value.items().push_back(test().value);
    }
    check_python_size(out.value, line(), context_);
    return out;
  }

  PyValue test() {
    if (++depth_ > kMaxPythonDepth) refuse("an expression nested deeper than 60 levels");
    refuse_words();
    PyValue out = binary(0);
    refuse_words();
    if (!done() && peek().kind == PyToken::Kind::Op) {
      for (std::string_view op : {"<", ">", "<=", ">=", "==", "!=", "<>"}) {
        if (peek().text == op) refuse("a comparison");
      }
      if (peek().text == ":=") refuse("':='");
    }
    --depth_;
    return out;
  }

  // Words that make more than arithmetic of an expression.
  void refuse_words() const {
    if (done() || peek().kind != PyToken::Kind::Name) return;
    const std::string& word = peek().text;
    if (word == "if" || word == "else") refuse("a condition ('... if ... else ...')");
    if (word == "for") refuse("a comprehension ('for')");
    for (std::string_view other : {"or", "and", "not", "in", "is"}) {
      if (word == other) refuse(fmt::format("a condition ('{}')", word));
    }
    for (std::string_view other : {"lambda", "yield", "await"}) {
      if (word == other) refuse(fmt::format("'{}'", word));
    }
  }

  PyValue binary(size_t level) {
    if (level == kLevels.size()) return unary();
    PyValue left = binary(level + 1);
    for (;;) {
      const auto& ops = kLevels[level];
      const bool found = !done() && peek().kind == PyToken::Kind::Op && !peek().text.empty() &&
                         std::find(ops.begin(), ops.end(), peek().text) != ops.end();
      if (!found) return left;
      const PyToken op = peek();
      ++at_;
      left = python_operation(op.text, left, binary(level + 1), op.line, context_);
    }
  }

  PyValue unary() {
    if (++depth_ > kMaxPythonDepth) refuse("an expression nested deeper than 60 levels");
    PyValue out;
    const int where = line();
    if (take("-")) {
      out = python_operation("-", {Value::integer(0, origin())}, negatable(unary()), where, context_);
    } else if (take("+")) {
      out = python_operation("+", {Value::integer(0, origin())}, negatable(unary()), where, context_);
    } else if (take("~")) {
      const PyValue inner = unary();
      if (!inner.value.is_int()) refuse("'~' of this");
      out = {Value::integer(~inner.value.as_int(), origin())};
    } else {
      out = power();
    }
    --depth_;
    return out;
  }

  PyValue negatable(PyValue value) const {
    if (!value.value.is_number() && !value.value.is_bool()) refuse("a sign before this");
    return value;
  }

  PyValue power() {
    PyValue base = postfix();
    if (!next_is("**")) return base;
    const int where = line();
    ++at_;
    return python_operation("**", base, unary(), where, context_);
  }

  PyValue postfix() {
    PyValue out = atom();
    for (;;) {
      if (next_is("[")) {
        out = item(out);
      } else if (next_is(".")) {
        ++at_;
        refuse(done() ? "'.'" : fmt::format("'.{}' of a value", short_text(peek())));
      } else if (next_is("(")) {
        refuse("a call");
      } else {
        return out;
      }
    }
  }

  PyValue item(const PyValue& container) {
    ++at_;
    if (next_is(":")) refuse("a slice");
    const PyValue index = test();
    if (next_is(":")) refuse("a slice");
    need("]");
    if (container.value.is_map() && index.value.is_string()) {
      const Value* found = container.value.child(index.value.as_string());
      if (!found) refuse("a key that the dict does not have");
      return counted(*found);
    }
    if (!container.value.is_list() || container.shape == PyShape::Set || !index.value.is_int())
      refuse("'[...]' of this");
    const auto size = static_cast<int64_t>(container.value.items().size());
    const int64_t at = index.value.as_int() < 0 ? index.value.as_int() + size : index.value.as_int();
    if (at < 0 || at >= size) refuse("an index outside its list");
    return counted(container.value.items()[static_cast<size_t>(at)]);
  }

  PyValue counted(const Value& value) {
    check_python_size(value, line(), context_);
    return {value, value.is_list() ? PyShape::Unsure : PyShape::Plain};
  }

  PyValue atom() {
    if (done()) refuse("an expression without its end");
    const PyToken& token = peek();
    switch (token.kind) {
      case PyToken::Kind::Number: return {number()};
      case PyToken::Kind::String: return {strings()};
      case PyToken::Kind::Name: return name();
      case PyToken::Kind::Op: break;
    }
    if (token.text == "(") return parentheses();
    if (token.text == "[") return list();
    if (token.text == "{") return braces();
    refuse(fmt::format("'{}' here", short_text(token)));
  }

  Value number() {
    const Origin place = origin();
    std::string text = peek().text;
    const bool bad = text.back() == '_' || text.find("__") != std::string::npos;
    std::erase(text, '_');
    const std::string head = lower(text.substr(0, 2));
    const int base = head == "0x" ? 16 : head == "0o" ? 8 : head == "0b" ? 2 : 10;
    const bool whole = base != 10 || text.find_first_not_of("0123456789") == std::string::npos;
    const bool zeros =
        base == 10 && whole && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != std::string::npos;
    const bool empty = base != 10 && text.size() == 2;
    if (bad || zeros || empty) refuse(fmt::format("the number '{}'", short_text(peek())));
    if (whole) {
      uint64_t value = 0;
      for (char c : text.substr(base == 10 ? 0 : 2)) {
        const int digit = c >= 'a' ? c - 'a' + 10 : c >= 'A' ? c - 'A' + 10 : c - '0';
        if (digit < 0 || digit >= base) refuse(fmt::format("the number '{}'", short_text(peek())));
        if (value > (INT64_MAX - static_cast<uint64_t>(digit)) / static_cast<uint64_t>(base)) {
          refuse("an integer of more than 64 bits");
        }
        value = value * static_cast<uint64_t>(base) + static_cast<uint64_t>(digit);
      }
      ++at_;
      return Value::integer(static_cast<int64_t>(value), place);
    }
    // "1." and ".5" are numbers in Python.
    if (text.front() == '.') text = "0" + text;
    if (const size_t dot = text.find('.'); dot != std::string::npos) {
      if (dot + 1 == text.size() || !std::isdigit(static_cast<unsigned char>(text[dot + 1]))) text.insert(dot + 1, "0");
    }
    const auto real = text.find_first_of("nNiIxXpP") == std::string::npos ? parse_double(text) : std::nullopt;
    if (!real || !std::isfinite(*real)) refuse(fmt::format("the number '{}'", short_text(peek())));
    ++at_;
    return Value::real(*real, place);
  }

  // Adjacent strings are one.
  Value strings() {
    const Origin place = origin();
    std::string out;
    for (; !done() && peek().kind == PyToken::Kind::String; ++at_) {
      const PyToken& token = peek();
      if (token.prefix.find('b') != std::string::npos) refuse("a string of bytes");
      const bool raw = token.prefix.find('r') != std::string::npos;
      if (token.prefix.find('f') != std::string::npos) {
        out += formatted(token, raw);
      } else {
        out += unescaped(token.text, raw);
      }
      if (out.size() > kMaxPythonString) refuse("a text of more than 64 KiB");
    }
    Value value = Value::string(std::move(out), place);
    check_python_size(value, place.line, context_);
    return value;
  }

  std::string unescaped(std::string_view text, bool raw) const {
    const auto out = literal_unescape(text, raw);
    if (!out) refuse("a string with an escape that has no plain text");
    return *out;
  }

  // f"...{name}...": text and expressions by turns.
  std::string formatted(const PyToken& token, bool raw) {
    std::string out, plain;
    const std::string& text = token.text;
    for (size_t at = 0; at < text.size();) {
      const char c = text[at];
      if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
        plain += c;
        at += 2;
      } else if (c == '{') {
        const size_t end = text.find('}', at);
        if (end == std::string::npos) refuse("an f-string without the end of an expression");
        out += unescaped(plain, raw) + replacement(text.substr(at + 1, end - at - 1), token.line);
        plain.clear();
        at = end + 1;
      } else {
        plain += c;
        ++at;
      }
    }
    return out + unescaped(plain, raw);
  }

  std::string replacement(std::string field, int where) {
    if (field.find_first_of("{\\'\"=!") != std::string::npos) refuse(fmt::format("'{{{}}}' in an f-string", field));
    std::string spec;
    if (const size_t colon = field.find(':'); colon != std::string::npos) {
      spec = field.substr(colon + 1);
      field.resize(colon);
    }
    std::vector<PyToken> tokens;
    try {
      for (PyLine& piece : python_lines("(" + field + ")")) {
        for (PyToken& token : piece.tokens) tokens.push_back(std::move(token));
      }
    } catch (const PythonSyntaxError&) {
      refuse("an expression in an f-string");
    }
    for (PyToken& token : tokens) token.line = where;
    Evaluator inner(tokens, context_);
    inner.depth_ = depth_ + 1;
    const PyValue value = inner.run();
    const auto text = literal_format(value.value, spec);
    if (!text) refuse(fmt::format("'{{{}:{}}}' in an f-string", field, spec));
    return *text;
  }

  PyValue name() {
    const PyToken first = peek();
    const Origin place = origin();
    ++at_;
    if (first.text == "True" || first.text == "False") return {Value::boolean(first.text == "True", place)};
    if (first.text == "None") return {Value::null(place)};
    std::string path = first.text;
    while (next_is(".") && at_ + 1 < tokens_.size() && tokens_[at_ + 1].kind == PyToken::Kind::Name) {
      path += "." + tokens_[at_ + 1].text;
      at_ += 2;
    }
    if (next_is("(")) return call(path);
    if (path != first.text) refuse(fmt::format("{}, an attribute of something else,", path));
    PyValue found = context_.look_up(first.text, first.line);
    check_python_size(found.value, first.line, context_);
    found.value.set_origin(place);
    return found;
  }

  PyValue call(const std::string& path) {
    if (path == "os.path.join") return {join_path_call()};
    if (path == "dict") return {dict_call()};
    if (path == "list" || path == "tuple" || path == "set") return container_call(path);
    throw PythonNotRead(line(), fmt::format("{}(...) is not called", valid_utf8(path.substr(0, 80))));
  }

  Value join_path_call() {
    const Origin place = origin();
    need("(");
    std::string out;
    bool first = true;
    while (!next_is(")")) {
      const PyValue part = test();
      if (!part.value.is_string()) refuse("os.path.join of something else than text");
      const std::string& text = part.value.as_string();
      if (!text.empty() && text[0] == '/') {
        out = text;
      } else {
        out += (first || out.empty() || out.back() == '/' ? "" : "/") + text;
      }
      first = false;
      if (!take(",")) break;
    }
    need(")");
    if (first || out.size() > kMaxPythonString) refuse("this os.path.join");
    return Value::string(std::move(out), place);
  }

  Value dict_call() {
    Value out = Value::map(origin());
    need("(");
    while (!next_is(")")) {
      const bool keyword =
          at_ + 1 < tokens_.size() && peek().kind == PyToken::Kind::Name && tokens_[at_ + 1].is_op("=");
      if (!keyword) refuse("dict(...) of something else than name=value");
      const std::string key = peek().text;
      at_ += 2;
      out.set(key, test().value);
      if (!take(",")) break;
    }
    need(")");
    check_python_size(out, line(), context_);
    return out;
  }

  PyValue container_call(const std::string& kind) {
    PyValue out{Value::list(origin()), kind == "tuple" ? PyShape::Tuple
                                       : kind == "set" ? PyShape::Set
                                                       : PyShape::Plain};
    need("(");
    if (!next_is(")")) {
      const PyValue inner = test();
      if (!inner.value.is_list()) refuse(fmt::format("{}(...) of something else than a list", kind));
      if (kind == "set" || inner.shape == PyShape::Set) refuse("a set, whose order is Python's,");
      out.value = inner.value;
    }
    need(")");
    return out;
  }

  PyValue parentheses() {
    const Origin place = origin();
    need("(");
    if (take(")")) return {Value::list(place), PyShape::Tuple};
    PyValue out = tuple_or_value();
    need(")");
    return out;
  }

  PyValue list() {
    PyValue out{Value::list(origin()), PyShape::Plain};
    need("[");
    while (!next_is("]")) {
      if (next_is("*")) refuse("'*' in a list");
      out.value.items().push_back(test().value);
      if (!take(",")) break;
    }
    need("]");
    check_python_size(out.value, line(), context_);
    return out;
  }

  PyValue braces() {
    const Origin place = origin();
    need("{");
    PyValue out{Value::map(place)};
    bool is_set = false;
    while (!next_is("}")) {
      if (next_is("**") || next_is("*")) refuse("'*' in braces");
      const int where = line();
      Value first = test().value;
      if (out.value.is_map() && out.value.entries().empty() && !is_set && !next_is(":")) {
        is_set = true;
        out = {Value::list(place), PyShape::Set};
      }
      if (is_set) {
        out.value.items().push_back(std::move(first));
      } else {
        need(":");
        refuse_words();
        add_entry(out.value, first, where);
      }
      if (!take(",")) break;
    }
    need("}");
    check_python_size(out.value, line(), context_);
    return out;
  }

  void add_entry(Value& map, const Value& key, int where) {
    if (!key.is_string() || key.as_string() == "<<" || key.as_string() == "_inherited_") {
      throw PythonNotRead(
          where,
          fmt::format("a dict with the key {} is not kept: keys are texts without a meaning in YAML", key.text()));
    }
    if (map.entries().size() >= kMaxEntries) refuse("a dict of more than 5000 keys");
    Value value = test().value;
    value.set_origin({"flagperf", context_.file, where});
    if (const Value* before = map.child(key.as_string())) {
      context_.remark(where, fmt::format("the key {} stands also in line {}; the last one counts", key.text(),
                                         before->origin().line));
    }
    map.set(key.as_string(), std::move(value));
  }

  std::span<const PyToken> tokens_;
  PyContext& context_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

PyValue evaluate_python(std::span<const PyToken> tokens, PyContext& context) {
  return Evaluator(tokens, context).run();
}

}  // namespace assay
