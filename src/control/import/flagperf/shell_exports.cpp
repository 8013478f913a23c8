#include "import/flagperf/shell_exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

#include "base/text.h"
#include "vendor/environment_file.h"

namespace assay {

namespace {

struct ShellLine {
  int line;
  std::string text;
};

// Physical lines with those joined that end in a backslash.
std::vector<ShellLine> shell_lines(std::string_view text) {
  std::vector<ShellLine> lines;
  int number = 0;
  bool joins = false;
  for (std::string line : split(text, '\n')) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (joins) {
      lines.back().text += line;
    } else {
      lines.push_back({number, line});
    }
    joins = !lines.back().text.empty() && lines.back().text.back() == '\\';
    if (joins) lines.back().text.pop_back();
  }
  return lines;
}

// The words of a line when no shell is needed to tell them: quotes removed, the comment gone.
std::optional<std::vector<std::string>> plain_words(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = '\0';
  for (size_t at = 0; at < line.size(); ++at) {
    const char c = line[at];
    if (quote == '\'' && c != '\'') {
      word += c;
    } else if (quote == '"' && c != '"') {
      if (c == '$' || c == '`' || c == '\\') return std::nullopt;
      word += c;
    } else if (quote != '\0') {
      quote = '\0';
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (c == '#' && !in_word) {
      break;
    } else if (c == ' ' || c == '\t') {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else if (std::string_view("$`\\;&|<>(){}*?[]~!").find(c) != std::string_view::npos) {
      return std::nullopt;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != '\0') return std::nullopt;
  if (in_word) words.push_back(std::move(word));
  return words;
}

// Every NAME= in the line: what it may set.
std::vector<std::string> names_in(std::string_view line) {
  std::vector<std::string> names;
  for (size_t at = line.find('='); at != std::string_view::npos; at = line.find('=', at + 1)) {
    size_t from = at;
    while (from > 0 && (line[from - 1] == '_' || std::isalnum(static_cast<unsigned char>(line[from - 1])))) --from;
    const std::string name(line.substr(from, at - from));
    if (is_variable_name(name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

class ShellReader {
 public:
  explicit ShellReader(std::string shown) : shown_(std::move(shown)) {}

  ShellExports run(std::string_view text) {
    const std::vector<ShellLine> lines = shell_lines(text);
    for (const ShellLine& line : lines) {
      const std::string_view plain = trim(line.text);
      if (plain.empty() || plain[0] == '#') continue;
      if (here_document_) {
        lost(line.line, "stands behind a here-document and was not read", plain);
      } else {
        statement(line.line, plain);
      }
    }
    return std::move(out_);
  }

 private:
  void lost(int line, const std::string& why, std::string_view text, bool lost = true) {
    const std::string shown = valid_utf8(text.substr(0, 80)) + (text.size() > 80 ? "..." : "");
    std::vector<std::string> names = names_in(text);
    for (const std::string& name : names) out_.variables.erase(name);
    out_.issues.push_back({shown_, line, fmt::format("'{}' {}", shown, why), std::move(names), lost});
  }

  void statement(int line, std::string_view text) {
    const std::string first(text.substr(0, text.find_first_of(" \t;(")));
    const bool opens = first == "if" || first == "for" || first == "while" || first == "until" || first == "case" ||
                       text.back() == '{';
    const bool closes = first == "fi" || first == "done" || first == "esac" || first == "}";
    if (text.find("<<") != std::string_view::npos) here_document_ = true;
    if (opens || closes || depth_ > 0 || here_document_) {
      // A block may end in the line in which it begins.
      const std::string_view last = text.substr(text.find_last_of(" \t;") + 1);
      const bool whole = opens && (last == "fi" || last == "done" || last == "esac");
      if (opens && !whole) ++depth_;
      if (closes && depth_ > 0) --depth_;
      for (std::string_view word : {"fi", "done", "esac", "}", "then", "else", "do"}) {
        if (text == word) return;  // only holds the block together
      }
      return lost(line, "is not executed", text);
    }
    const auto words = plain_words(text);
    if (!words) return lost(line, "needs a shell and was not read", text);
    if (words->empty()) return;
    if ((*words)[0] == "export") return exports(line, *words, text);
    if ((*words)[0] == "set") return lost(line, "is not executed", text, false);
    if ((*words)[0] == "unset") {
      for (const std::string& name : *words) out_.variables.erase(name);
    }
    lost(line, "is not executed", text);
  }

  void exports(int line, const std::vector<std::string>& words, std::string_view text) {
    const auto fits = [](const std::string& word) {
      const size_t equal = word.find('=');
      return equal != std::string::npos && is_variable_name(word.substr(0, equal));
    };
    if (words.size() < 2 || !std::all_of(words.begin() + 1, words.end(), fits)) {
      return lost(line, "is not export KEY=VALUE and was not read", text);
    }
    for (size_t i = 1; i < words.size(); ++i) {
      const size_t equal = words[i].find('=');
      out_.variables[words[i].substr(0, equal)] = {valid_utf8(words[i].substr(equal + 1)), line};
    }
  }

  std::string shown_;
  ShellExports out_;
  int depth_ = 0;
  bool here_document_ = false;
};

}  // namespace

ShellExports read_shell_exports(std::string_view text, const std::string& shown) {
  return ShellReader(shown).run(text);
}

}  // namespace assay
