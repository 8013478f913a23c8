#include "import/flagperf/python_targets.h"

#include <algorithm>
#include <array>

namespace assay {

namespace {

using Tokens = std::span<const PyToken>;

constexpr size_t kMaxTargets = 2000;  // they are searched one after the other

int depth_change(const PyToken& token) {
  if (token.is_op("(") || token.is_op("[") || token.is_op("{")) return 1;
  if (token.is_op(")") || token.is_op("]") || token.is_op("}")) return -1;
  return 0;
}

// The first place outside of brackets where `fits` holds; the size when there is none.
template <typename Fits>
size_t find_outside(Tokens tokens, Fits fits, size_t from = 0) {
  int depth = 0;
  for (size_t i = from; i < tokens.size(); ++i) {
    if (depth == 0 && fits(tokens[i])) return i;
    depth += depth_change(tokens[i]);
  }
  return tokens.size();
}

bool is_augmented(const PyToken& token) {
  constexpr std::array<std::string_view, 13> kOps = {
      "+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "&=", "|=", "^=", ">>=", "<<="};
  return token.kind == PyToken::Kind::Op && std::find(kOps.begin(), kOps.end(), token.text) != kOps.end();
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  if (names.size() >= kMaxTargets) throw PythonSyntaxError(0, "one statement sets more than 2000 names");
  names.push_back(name);
}

// The name that a target begins with: what `a[0]`, `a.b` and `*a` bind or change.
void add_targets(std::vector<std::string>& names, Tokens target) {
  bool begins = true;
  for (const PyToken& token : target) {
    if (begins && token.kind == PyToken::Kind::Name) {
      add_once(names, token.text);
      begins = false;
    } else if (token.is_op(",") || token.is_op("(") || token.is_op("*")) {
      begins = true;
    } else if (token.is_op("[") && !begins) {
      break;  // an index
    }
  }
}

void add_statement(std::vector<std::string>& names, Tokens tokens);

// What follows the colon of `if x:` in its line, cut at ';'.
void add_inline_block(std::vector<std::string>& names, Tokens tokens) {
  const size_t colon = find_outside(tokens, [](const PyToken& t) { return t.is_op(":"); });
  for (size_t from = colon + 1; from < tokens.size();) {
    const size_t end = find_outside(
        tokens, [](const PyToken& t) { return t.is_op(";"); }, from);
    if (end > from) add_statement(names, tokens.subspan(from, end - from));
    from = end + 1;
  }
}

void add_statement(std::vector<std::string>& names, Tokens tokens) {
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {  // wherever they stand
    if (tokens[i].kind == PyToken::Kind::Name && tokens[i + 1].is_op(":=")) add_once(names, tokens[i].text);
    if (tokens[i].is_name("as") && tokens[i + 1].kind == PyToken::Kind::Name && !tokens[0].is_name("import") &&
        !tokens[0].is_name("from")) {
      add_once(names, tokens[i + 1].text);
    }
  }
  const PyToken& first = tokens.front();
  if (first.is_name("import") || first.is_name("from")) {
    for (const std::string& name : imported_names(tokens)) add_once(names, name);
  } else if ((first.is_name("def") || first.is_name("class")) && tokens.size() > 1) {
    add_once(names, tokens[1].text);
  } else if (first.is_name("del")) {
    add_targets(names, tokens.subspan(1));
  } else if (begins_block(first)) {
    if (first.is_name("for")) {
      const size_t in = find_outside(tokens, [](const PyToken& t) { return t.is_name("in"); });
      add_targets(names, tokens.subspan(1, in - 1));
    }
    add_inline_block(names, tokens);
  } else {
    const AssignmentParts parts = assignment_parts(tokens);
    for (Tokens target : parts.targets) add_targets(names, target);
    const bool may_change = parts.kind == AssignmentParts::Kind::None && tokens.size() > 2 &&
                            first.kind == PyToken::Kind::Name && tokens[1].is_op(".");
    if (may_change) add_once(names, first.text);
  }
}

}  // namespace

AssignmentParts assignment_parts(Tokens tokens) {
  AssignmentParts parts;
  const auto ends_target = [](const PyToken& t) { return t.is_op("=") || t.is_op(":") || is_augmented(t); };
  size_t at = find_outside(tokens, ends_target);
  if (at == 0 || at == tokens.size() || tokens.front().is_name("lambda")) return parts;
  parts.targets.push_back(tokens.subspan(0, at));
  if (is_augmented(tokens[at])) {
    parts.kind = AssignmentParts::Kind::Augmented;
    parts.op = tokens[at].text.substr(0, tokens[at].text.size() - 1);
    parts.value = tokens.subspan(at + 1);
    return parts;
  }
  const auto is_equal = [](const PyToken& t) { return t.is_op("="); };
  if (tokens[at].is_op(":")) {
    const size_t equal = find_outside(tokens, is_equal, at + 1);
    for (size_t i = at + 1; i < equal; ++i) parts.annotation += tokens[i].text;
    if (equal == tokens.size()) {
      parts.kind = AssignmentParts::Kind::Declaration;
      parts.targets.clear();
      return parts;
    }
    at = equal;
  }
  parts.kind = AssignmentParts::Kind::Plain;
  for (;;) {
    const size_t next = find_outside(tokens, is_equal, at + 1);
    if (next == tokens.size()) break;
    parts.targets.push_back(tokens.subspan(at + 1, next - at - 1));
    at = next;
  }
  parts.value = tokens.subspan(at + 1);
  return parts;
}

ImportParts import_parts(Tokens tokens) {
  ImportParts parts;
  size_t at = 1;
  for (; at < tokens.size() && !tokens[at].is_name("import"); ++at) {
    const PyToken& token = tokens[at];
    if (token.is_op(".") && parts.module.empty()) {
      ++parts.dots;
    } else if (token.is_op("...") && parts.module.empty()) {
      parts.dots += 3;
    } else if (token.kind == PyToken::Kind::Name || token.is_op(".")) {
      parts.module += token.text;
    } else {
      return parts;
    }
  }
  if (++at >= tokens.size()) return parts;
  if (tokens[at].is_op("*")) {
    parts.everything = true;
    parts.valid = at + 1 == tokens.size();
    return parts;
  }
  while (at < tokens.size()) {
    if (tokens[at].is_op("(") || tokens[at].is_op(")") || tokens[at].is_op(",")) {
      ++at;
      continue;
    }
    if (tokens[at].kind != PyToken::Kind::Name) return parts;
    const std::string name = tokens[at].text;
    const bool renamed = at + 2 < tokens.size() && tokens[at + 1].is_name("as");
    parts.names.emplace_back(name, renamed ? tokens[at + 2].text : name);
    at += renamed ? 3 : 1;
  }
  parts.valid = !parts.names.empty();
  return parts;
}

std::vector<std::string> unpacked_names(Tokens target) {
  while (target.size() >= 2 && (target.front().is_op("(") || target.front().is_op("[")) &&
         (target.back().is_op(")") || target.back().is_op("]"))) {
    target = target.subspan(1, target.size() - 2);
  }
  std::vector<std::string> names;
  bool wants_name = true;
  for (const PyToken& token : target) {
    const bool fits = wants_name ? token.kind == PyToken::Kind::Name : token.is_op(",");
    if (!fits) return {};
    if (wants_name) names.push_back(token.text);
    wants_name = !wants_name;
  }
  return names;
}

std::vector<std::string> imported_names(Tokens tokens) {
  std::vector<std::string> names;
  if (tokens.front().is_name("from")) {
    for (const auto& [name, as] : import_parts(tokens).names) add_once(names, as);
    return names;
  }
  // import a.b, c as d: the names are a and d.
  for (size_t from = 1; from < tokens.size();) {
    const size_t end = find_outside(
        tokens, [](const PyToken& t) { return t.is_op(","); }, from);
    const bool renamed = end >= from + 3 && tokens[end - 2].is_name("as");
    if (end > from && tokens[from].kind == PyToken::Kind::Name) {
      add_once(names, renamed ? tokens[end - 1].text : tokens[from].text);
    }
    from = end + 1;
  }
  return names;
}

std::vector<std::string> assigned_names(std::span<const PyLine> lines) {
  std::vector<std::string> names;
  for (const PyLine& line : lines) add_statement(names, line.tokens);
  return names;
}

std::vector<std::string> defined_names(std::span<const PyLine> lines) {
  std::vector<std::string> names;
  for (const PyLine& line : lines) {
    if (line.indent != 0) continue;
    for (size_t i = 0; i + 1 < line.tokens.size() && i < 2; ++i) {
      if (line.tokens[i].is_name("def") || line.tokens[i].is_name("class")) add_once(names, line.tokens[i + 1].text);
    }
  }
  return names;
}

std::vector<std::string> global_names(std::span<const PyLine> lines) {
  std::vector<std::string> names;
  for (const PyLine& line : lines) {
    if (!line.tokens.front().is_name("global")) continue;
    for (const PyToken& token : line.tokens) {
      if (token.kind == PyToken::Kind::Name && token.text != "global") add_once(names, token.text);
    }
  }
  return names;
}

bool is_main_guard(const PyLine& line) {
  return line.tokens.size() >= 4 && line.tokens[0].is_name("if") && line.tokens[1].is_name("__name__") &&
         line.tokens[2].is_op("==") && line.tokens[3].text == "__main__";
}

}  // namespace assay
