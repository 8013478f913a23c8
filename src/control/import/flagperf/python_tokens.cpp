#include "import/flagperf/python_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"

namespace assay {

namespace {

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
bool is_name_part(char c) { return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<PyLine> run() {
    if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
    if (text_.size() > kMaxPythonBytes) throw PythonSyntaxError(1, "the file is larger than 1 MiB");
    check_encoding();
    while (at_ < text_.size()) {
      if (line_start_ && open_.empty()) read_indent();
      step();
    }
    if (!open_.empty()) {
      throw PythonSyntaxError(open_.back().line, fmt::format("'{}' is never closed", open_.back().bracket));
    }
    end_line();
    return std::move(lines_);
  }

 private:
  struct Open {
    char bracket;
    int line;
  };

  // Python's sources are UTF-8.
  void check_encoding() const {
    const std::string valid = valid_utf8(text_);
    if (valid == text_) return;
    const auto at = std::mismatch(text_.begin(), text_.end(), valid.begin(), valid.end()).first;
    throw PythonSyntaxError(1 + static_cast<int>(std::count(text_.begin(), at, '\n')), "the text is not UTF-8");
  }

  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void read_indent() {
    line_start_ = false;
    int columns = 0;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == ' ') {
        ++columns;
      } else if (text_[at_] == '\t') {
        columns = columns / 8 * 8 + 8;
      } else if (text_[at_] == '\f') {
        columns = 0;
      } else {
        break;
      }
    }
    if (current_.tokens.empty()) current_.indent = columns;
  }

  void step() {
    const char c = peek();
    if (c == '\n' || c == '\r') return new_line();
    if (c == '#') return skip_comment();
    if (c == '\\') return join_line();
    if (c == ' ' || c == '\t' || c == '\f') {
      ++at_;
    } else if (size_t length = string_prefix(); length != std::string::npos) {
      read_string(length);
    } else if (is_name_start(c)) {
      size_t length = 1;
      while (is_name_part(peek(length))) ++length;
      add(PyToken::Kind::Name, length);
    } else if (std::isdigit(static_cast<unsigned char>(c)) ||
               (c == '.' && std::isdigit(static_cast<unsigned char>(peek(1))))) {
      read_number();
    } else {
      read_operator();
    }
  }

  void new_line() {
    at_ += peek() == '\r' && peek(1) == '\n' ? 2 : 1;
    ++line_;
    if (!open_.empty()) return;
    end_line();
    line_start_ = true;
  }

  void skip_comment() {
    while (at_ < text_.size() && peek() != '\n' && peek() != '\r') ++at_;
  }

  void join_line() {
    size_t length = peek(1) == '\r' && peek(2) == '\n' ? 3 : 2;
    if (peek(1) != '\n' && peek(1) != '\r') throw PythonSyntaxError(line_, "a backslash inside a line");
    at_ += length;
    ++line_;
  }

  // The length of the prefix when a string begins here.
  size_t string_prefix() const {
    for (size_t length = 0; length <= 2; ++length) {
      const char c = peek(length);
      if (c == '"' || c == '\'') return length;
      if (std::string_view("rRbBuUfF").find(c) == std::string_view::npos || c == '\0') break;
    }
    return std::string::npos;
  }

  void read_string(size_t prefix_length) {
    PyToken token{PyToken::Kind::String, "", std::string(text_.substr(at_, prefix_length)), line_};
    for (char& c : token.prefix) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    at_ += prefix_length;
    const char quote = peek();
    const bool triple = peek(1) == quote && peek(2) == quote;
    at_ += triple ? 3 : 1;
    for (;;) {
      if (at_ >= text_.size()) throw PythonSyntaxError(token.line, "a string is never closed");
      const char c = peek();
      if (c == quote && (!triple || (peek(1) == quote && peek(2) == quote))) break;
      if (c == '\\' && at_ + 1 < text_.size()) {
        token.text += c;
        ++at_;
      } else if ((c == '\n' || c == '\r') && !triple) {
        throw PythonSyntaxError(token.line, "a string is not closed in its line");
      }
      take(token);
    }
    at_ += triple ? 3 : 1;
    push(std::move(token));
  }

  // One character of a string; a line end is '\n' whatever the file has.
  void take(PyToken& token) {
    const bool returns = peek() == '\r';
    const char c = returns ? '\n' : peek();
    at_ += returns && peek(1) == '\n' ? 2 : 1;
    if (c == '\n') ++line_;
    token.text += c;
  }

  void read_number() {
    size_t length = 1;
    while (is_name_part(peek(length)) || peek(length) == '.' ||
           ((peek(length) == '+' || peek(length) == '-') && is_exponent(length))) {
      ++length;
    }
    add(PyToken::Kind::Number, length);
  }

  // Does the sign at this place follow the 'e' of a decimal number?
  bool is_exponent(size_t length) const {
    const char before = peek(length - 1);
    const bool hex = peek() == '0' && (peek(1) == 'x' || peek(1) == 'X');
    return (before == 'e' || before == 'E') && !hex;
  }

  void read_operator() {
    constexpr std::array<std::string_view, 26> kLong = {
        "**=", "//=", ">>=", "<<=", "...", "->", ":=", "==", "!=", "<=", ">=", "**", "//",
        "<<",  ">>",  "+=",  "-=",  "*=",  "/=", "%=", "@=", "&=", "|=", "^=", "<>", "!"};
    for (std::string_view op : kLong) {
      if (text_.substr(at_).starts_with(op)) return add(PyToken::Kind::Op, op.size());
    }
    const char c = peek();
    if (std::string_view("+-*/%@&|^~<>=()[]{},:.;").find(c) == std::string_view::npos) {
      throw PythonSyntaxError(line_, fmt::format("the character {} has no meaning in Python",
                                                 std::isprint(static_cast<unsigned char>(c))
                                                     ? fmt::format("'{}'", c)
                                                     : fmt::format("0x{:02x}", static_cast<unsigned char>(c))));
    }
    bracket(c);
    add(PyToken::Kind::Op, 1);
  }

  void bracket(char c) {
    if (c == '(' || c == '[' || c == '{') open_.push_back({c, line_});
    if (c != ')' && c != ']' && c != '}') return;
    const char wanted = c == ')' ? '(' : c == ']' ? '[' : '{';
    if (open_.empty() || open_.back().bracket != wanted) {
      throw PythonSyntaxError(line_, fmt::format("'{}' closes nothing", c));
    }
    open_.pop_back();
  }

  void add(PyToken::Kind kind, size_t length) {
    push({kind, std::string(text_.substr(at_, length)), "", line_});
    at_ += length;
  }

  void push(PyToken token) {
    if (++num_tokens_ > kMaxPythonTokens) throw PythonSyntaxError(line_, "more than 200000 words in one file");
    if (current_.tokens.empty()) current_.line = token.line;
    const bool cuts =
        token.is_op(";") && open_.empty() && !current_.tokens.empty() && !begins_block(current_.tokens.front());
    if (!cuts) {
      current_.tokens.push_back(std::move(token));
      return;
    }
    const int indent = current_.indent;
    end_line();
    current_.indent = indent;
  }

  void end_line() {
    if (!current_.tokens.empty()) lines_.push_back(std::move(current_));
    current_ = {};
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;
  size_t num_tokens_ = 0;
  std::vector<Open> open_;
  PyLine current_;
  std::vector<PyLine> lines_;
};

}  // namespace

bool begins_block(const PyToken& token) {
  constexpr std::array<std::string_view, 12> kWords = {"if",  "elif", "else",   "for",     "while", "with",
                                                       "try", "def",  "except", "finally", "class", "async"};
  return token.is_op("@") ||
         (token.kind == PyToken::Kind::Name && std::find(kWords.begin(), kWords.end(), token.text) != kWords.end());
}

std::vector<PyLine> python_lines(std::string_view text) { return Lexer(text).run(); }

}  // namespace assay
