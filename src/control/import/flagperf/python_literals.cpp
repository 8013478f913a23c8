#include "import/flagperf/python_literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"
#include "import/flagperf/python_targets.h"

namespace assay {

namespace {

constexpr size_t kMaxImportChain = 16;
constexpr size_t kMaxNames = 5000;

// Modules that only bring types, functions and other modules.
bool is_harmless_module(const std::string& name) {
  static const std::set<std::string> kModules = {"typing", "os",     "sys",  "math",     "pathlib",
                                                 "enum",   "abc",    "json", "argparse", "dataclasses",
                                                 "time",   "random", "re",   "logging",  "__future__"};
  return kModules.contains(name.substr(0, name.find('.')));
}

}  // namespace

// One file's statements, from the first to the last.
class PythonStatements {
 public:
  PythonStatements(PythonReader& reader, std::string shown, fs::path folder) : reader_(reader), folder_(folder) {
    out_.file = std::move(shown);
    context_.file = out_.file;
    context_.look_up = [this](const std::string& name, int line) { return look_up(name, line); };
    context_.remark = [this](int line, const std::string& what) { issue(line, what, {}, false); };
  }

  PythonFile run(std::string_view text) {
    try {
      const std::vector<PyLine> lines = python_lines(text);
      for (size_t at = 0; at < lines.size();) {
        if (lines[at].indent != 0) throw PythonSyntaxError(lines[at].line, "this line is indented without a block");
        at = statement(lines, at);
      }
    } catch (const PythonSyntaxError& error) {
      // Python would refuse the whole file, so nothing of it counts.
      out_.names.clear();
      out_.failed = true;
      issue(error.line, fmt::format("this is not Python: {}; nothing of the file was read", error.what()), {}, true);
    }
    return std::move(out_);
  }

 private:
  void issue(int line, const std::string& what, std::vector<std::string> sets, bool lost) {
    reader_.issues_.push_back({out_.file, line, valid_utf8(what), std::move(sets), lost});
  }

  PythonName* find(const std::string& name) {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : &out_.names[found->second];
  }

  PythonName& slot(const std::string& name, int line) {
    PythonName* found = find(name);
    if (!found) {
      if (out_.names.size() >= kMaxNames) throw PythonSyntaxError(line, "more than 5000 names in one file");
      index_[name] = out_.names.size();
      out_.names.push_back({.name = name});
      found = &out_.names.back();
    }
    found->origin = {"flagperf", out_.file, line};
    return *found;
  }

  void set(const std::string& name, PyValue value, int line) {
    PythonName& target = slot(name, line);
    target.known = true;
    target.may_be_value = true;
    target.why.clear();
    target.value = std::move(value.value);
    target.value.set_origin(target.origin);
    target.shape = value.shape;
  }

  void forget(const std::string& name, int line, const std::string& why, bool may_be_value) {
    PythonName& target = slot(name, line);
    target.may_be_value = may_be_value;
    target.known = false;
    target.value = Value();
    target.why = why;
  }

  PyValue look_up(const std::string& name, int line) {
    const PythonName* found = find(name);
    if (found && found->known) return {found->value, found->shape};
    // Without the reason, which would grow with every name that depends on another one.
    if (found) {
      throw PythonNotRead(line, fmt::format("'{}' is not known, see {}", name, found->origin.text()));
    }
    throw PythonNotRead(line, fmt::format("the name '{}' is not defined in this file", name));
  }

  // A statement that is not executed, and what it would have set.
  void unread(int line, const std::string& what, const std::vector<std::string>& names, bool lost = true) {
    issue(line, what, names, lost);
    for (const std::string& name : names) forget(name, line, what, lost);
  }

  // Returns the line behind the statement and its blocks.
  size_t statement(const std::vector<PyLine>& lines, size_t at) {
    const PyLine& first = lines[at];
    if (begins_block(first.tokens.front())) return block(lines, at);
    if (at + 1 < lines.size() && lines[at + 1].indent > first.indent && !first.tokens.back().is_op(":")) {
      throw PythonSyntaxError(lines[at + 1].line, "this line is indented without a block");
    }
    simple(first);
    return at + 1;
  }

  static bool continues(const PyLine& line) {
    for (std::string_view word : {"elif", "else", "except", "finally"}) {
      if (line.tokens.front().is_name(word)) return true;
    }
    return false;
  }

  size_t block(const std::vector<PyLine>& lines, size_t at) {
    const PyLine& head = lines[at];
    size_t end = at + 1;
    const bool decorated = head.tokens.front().is_op("@");
    while (end < lines.size() && (lines[end].indent > 0 || continues(lines[end]))) ++end;
    if (decorated) return end;  // the function or class comes next
    const std::span<const PyLine> body(&lines[at], end - at);
    std::string word = head.tokens.front().text;
    if (word == "async" && head.tokens.size() > 1) word = head.tokens[1].text;
    if (word == "def" || word == "class") {
      unread(head.line, fmt::format("'{}' is not executed", word), defined_names(body), false);
      // What a function declares global changes when it is called, and that is not followed.
      const std::vector<std::string> globals = global_names(body);
      if (!globals.empty()) unread(head.line, "a function may change these", globals);
    } else if (is_main_guard(head)) {
      issue(head.line, "the block of a program is not for those who import the file", {}, false);
    } else {
      unread(head.line, fmt::format("'{}' is not executed", word), assigned_names(body));
    }
    return end;
  }

  void simple(const PyLine& line) {
    const PyToken& first = line.tokens.front();
    if (first.is_name("import")) return import_modules(line);
    if (first.is_name("from")) return import_names(line);
    if (first.is_name("pass")) return;
    if (first.is_name("del")) return unread(line.line, "deleted here", assigned_names({&line, 1}), false);
    const std::vector<std::string> targets = assigned_names({&line, 1});
    try {
      assignment(line);
    } catch (const PythonNotRead& reason) {
      unread(reason.line > 0 ? reason.line : line.line, reason.what(), targets);
    }
  }

  void assignment(const PyLine& line) {
    const std::span<const PyToken> tokens = line.tokens;
    const AssignmentParts parts = assignment_parts(tokens);
    switch (parts.kind) {
      case AssignmentParts::Kind::Declaration: return;
      case AssignmentParts::Kind::None: return expression(line);
      case AssignmentParts::Kind::Augmented: {
        const std::string name = single_name(parts.targets[0]);
        const PyValue before = look_up(name, line.line);
        const PyValue by = evaluate_python(parts.value, context_);
        return set(name, python_operation(parts.op, before, by, line.line, context_), line.line);
      }
      case AssignmentParts::Kind::Plain: break;
    }
    const PyValue value = evaluate_python(parts.value, context_);
    for (const std::span<const PyToken> target : parts.targets) assign(target, value, line.line);
    if (!parts.annotation.empty()) slot(single_name(parts.targets[0]), line.line).annotation = parts.annotation;
  }

  void assign(std::span<const PyToken> target, const PyValue& value, int line) {
    const std::vector<std::string> names = unpacked_names(target);
    if (names.empty()) throw PythonNotRead(line, "an assignment to a part of something is not executed");
    const bool unpacks = names.size() > 1 || std::any_of(target.begin(), target.end(),
                                                         [](const PyToken& token) { return token.is_op(","); });
    if (!unpacks) return set(names[0], value, line);
    if (!value.value.is_list() || value.shape == PyShape::Set || value.value.items().size() != names.size()) {
      throw PythonNotRead(line, fmt::format("{} names for something else than {} values", names.size(), names.size()));
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const Value& part = value.value.items()[i];
      set(names[i], {part, part.is_list() ? PyShape::Unsure : PyShape::Plain}, line);
    }
  }

  static std::string single_name(std::span<const PyToken> target) {
    const std::vector<std::string> names = unpacked_names(target);
    if (names.size() != 1) throw PythonNotRead(target.front().line, "an assignment to a part is not executed");
    return names[0];
  }

  // A statement that assigns nothing: a text is a comment, anything else may have effects.
  void expression(const PyLine& line) {
    const bool is_text = std::all_of(line.tokens.begin(), line.tokens.end(),
                                     [](const PyToken& token) { return token.kind == PyToken::Kind::String; });
    if (is_text) return;
    std::string words;
    for (const PyToken& token : line.tokens) {
      if (words.size() < 60) words += (token.kind == PyToken::Kind::String ? "'...'" : token.text);
    }
    // print(...) changes nothing; x.append(...) may change x.
    std::vector<std::string> changed;
    if (line.tokens.front().kind == PyToken::Kind::Name && find(line.tokens.front().text)) {
      changed.push_back(line.tokens.front().text);
    }
    const bool prints = line.tokens.front().is_name("print") && !find("print");
    unread(line.line, fmt::format("'{}' is not executed", words), changed, !prints);
  }

  void import_modules(const PyLine& line) {
    unread(line.line, "a module is not imported", imported_names(line.tokens), false);
  }

  void import_names(const PyLine& line) {
    const ImportParts parts = import_parts(line.tokens);
    const bool same_folder = parts.dots <= 1 && !parts.module.empty() && parts.module.find('.') == std::string::npos;
    const fs::path path = (folder_ / (parts.module + ".py")).lexically_normal();
    std::error_code error;
    if (!parts.valid) return unread(line.line, "an import that cannot be read", imported_names(line.tokens));
    if (!same_folder || !fs::is_regular_file(path, error)) return import_elsewhere(line, parts);
    if (reader_.reading_.contains(path) || reader_.reading_.size() >= kMaxImportChain) {
      out_.open_imports.push_back({"flagperf", out_.file, line.line});
      return unread(line.line, fmt::format("{}.py imports this file, or the chain is too long", parts.module),
                    imported_names(line.tokens));
    }
    take_names(line, parts, reader_.read(path));
  }

  void import_elsewhere(const PyLine& line, const ImportParts& parts) {
    const bool harmless = parts.dots == 0 && is_harmless_module(parts.module);
    const std::string what = fmt::format("{}{} is not a file of this folder and is not imported",
                                         std::string(static_cast<size_t>(parts.dots), '.'), parts.module);
    if (parts.everything && !harmless) out_.open_imports.push_back({"flagperf", out_.file, line.line});
    unread(line.line, what, imported_names(line.tokens), !harmless);
  }

  void take_names(const PyLine& line, const ImportParts& parts, const PythonFile& from) {
    if (from.failed) {
      out_.open_imports.push_back({"flagperf", out_.file, line.line});
      return unread(line.line, fmt::format("{} could not be read", from.file), imported_names(line.tokens));
    }
    if (!parts.everything) {
      for (const auto& [name, as] : parts.names) {
        const PythonName* found = from.find(name);
        if (found) {
          take_name(*found, as);
        } else {
          unread(line.line, fmt::format("{} does not define '{}'", from.file, name), {as});
        }
      }
      return;
    }
    for (const Origin& origin : from.open_imports) out_.open_imports.push_back(origin);
    const PythonName* all = from.find("__all__");
    if (all && (!all->known || !all->value.is_list())) {
      out_.open_imports.push_back({"flagperf", out_.file, line.line});
      return unread(line.line, fmt::format("__all__ of {} is not known", from.file), {});
    }
    for (const PythonName& name : from.names) {
      const auto listed = [&](const Value& item) { return item.is_string() && item.as_string() == name.name; };
      const bool taken =
          all ? std::any_of(all->value.items().begin(), all->value.items().end(), listed) : name.name[0] != '_';
      if (taken) take_name(name, name.name);
    }
  }

  // It keeps the place where it was set.
  void take_name(const PythonName& from, const std::string& as) {
    PythonName& target = slot(as, from.origin.line);
    target = from;
    target.name = as;
    context_.work += python_size(from.value).nodes;
    if (context_.work > kMaxPythonWork) throw PythonSyntaxError(from.origin.line, "more than a configuration needs");
  }

  PythonReader& reader_;
  fs::path folder_;
  PythonFile out_;
  PyContext context_;
  std::unordered_map<std::string, size_t> index_;
};

const PythonName* PythonFile::find(std::string_view name) const {
  const auto found = std::find_if(names.begin(), names.end(), [&](const PythonName& n) { return n.name == name; });
  return found == names.end() ? nullptr : &*found;
}

const Value* PythonFile::value(std::string_view name) const {
  const PythonName* found = find(name);
  return found && found->known ? &found->value : nullptr;
}

const PythonFile& PythonReader::read(const fs::path& path) {
  const fs::path key = path.lexically_normal();
  if (const auto found = files_.find(key); found != files_.end()) return found->second;
  const std::string shown = key.lexically_relative(root_.lexically_normal()).generic_string();
  PythonFile file;
  reading_.insert(key);
  try {
    std::error_code error;
    const auto size = fs::file_size(key, error);
    if (!error && size > kMaxPythonBytes) throw DataError("the file is larger than 1 MiB");
    file = read_text(read_file(key), shown, key.parent_path());
  } catch (const DataError& error) {
    file = {};
    file.file = shown;
    file.failed = true;
    issues_.push_back({shown, 0, valid_utf8(error.what())});
  }
  reading_.erase(key);
  return files_.emplace(key, std::move(file)).first->second;
}

PythonFile PythonReader::read_text(std::string_view text, const std::string& shown, const fs::path& folder) {
  return PythonStatements(*this, shown, folder).run(text);
}

}  // namespace assay
