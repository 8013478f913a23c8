// Python source text cut into logical lines of tokens: comments gone, continuation lines joined, statements at ';'
// apart. It knows Python's lexical rules and nothing of what statements mean; nothing is ever executed.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

inline constexpr size_t kMaxPythonBytes = 1 << 20;
inline constexpr size_t kMaxPythonTokens = 200000;

// Text that Python itself would refuse, or that is beyond a limit; the message does not name the file.
struct PythonSyntaxError : std::runtime_error {
  PythonSyntaxError(int at, const std::string& message) : std::runtime_error(message), line(at) {}
  int line;
};

struct PyToken {
  enum class Kind { Name, Number, String, Op };
  Kind kind = Kind::Op;
  std::string text;    // of a string: what stands between its quotes, escapes as written
  std::string prefix;  // of a string: "", "r", "f", "rb", ... in lower case
  int line = 0;

  bool is_op(std::string_view op) const { return kind == Kind::Op && text == op; }
  bool is_name(std::string_view name) const { return kind == Kind::Name && text == name; }
};

struct PyLine {
  int line = 0;    // of its first token
  int indent = 0;  // columns before it; a tab reaches to the next multiple of eight
  std::vector<PyToken> tokens;
};

// Lines without tokens are left out. A line that begins a block (`if x: a; b`) is not cut at its ';'.
std::vector<PyLine> python_lines(std::string_view text);  // throws PythonSyntaxError

// if, for, def, ...: the word begins a statement that has a block.
bool begins_block(const PyToken& token);

}  // namespace assay
