// What a Python expression is worth, without Python: literals, names that are known, and arithmetic on them. Anything
// else (calls, conditions, comprehensions, attributes) is refused with the reason; nothing is guessed.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/value.h"
#include "import/flagperf/python_tokens.h"

namespace assay {

inline constexpr int kMaxPythonDepth = 60;
inline constexpr size_t kMaxPythonNodes = 20000;   // of one value; sixteen bytes of a text count as one more
inline constexpr size_t kMaxPythonWork = 1000000;  // nodes and bytes made for one file

// Tuples and sets become lists; % and + must still tell them apart.
enum class PyShape { Plain, Tuple, Set, Unsure };

struct PyValue {
  Value value;
  PyShape shape = PyShape::Plain;
};

// Why an expression was not read; its line is that of the word at fault.
struct PythonNotRead : std::runtime_error {
  PythonNotRead(int at, const std::string& reason) : std::runtime_error(reason), line(at) {}
  int line;
};

struct PyContext {
  std::string file;                                                   // for origins
  std::function<PyValue(const std::string& name, int line)> look_up;  // throws PythonNotRead
  std::function<void(int line, const std::string& what)> remark;      // nothing was lost, but somebody should know
  size_t work = 0;                                                    // done so far, over all expressions of a file
};

struct PySize {
  size_t nodes = 1;
  int depth = 1;
};
PySize python_size(const Value& value);
// Throws PythonNotRead when the value is beyond the limits, and counts the work of making it.
void check_python_size(const Value& value, int line, PyContext& context);

// The whole span as one expression; a list without brackets is a tuple. Throws PythonNotRead.
PyValue evaluate_python(std::span<const PyToken> tokens, PyContext& context);
// left op right, op being one of + - * / // % ** << >> & | ^
PyValue python_operation(const std::string& op, const PyValue& left, const PyValue& right, int line,
                         PyContext& context);

}  // namespace assay
