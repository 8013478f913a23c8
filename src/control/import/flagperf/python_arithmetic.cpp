// Python's arithmetic: integers that do not overflow silently, true and floor division, text and lists.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "import/flagperf/python_expression.h"
#include "import/flagperf/python_strings.h"

namespace assay {

namespace {

class Operation {
 public:
  Operation(const std::string& op, int line, PyContext& context) : op_(op), line_(line), context_(context) {}

  PyValue run(const PyValue& left, const PyValue& right) {
    const Value& a = left.value;
    const Value& b = right.value;
    if (counts(a) && counts(b)) return {numeric(a, b)};
    if (op_ == "+" && a.is_string() && b.is_string()) return {text(a.as_string() + b.as_string())};
    if (op_ == "*" && a.is_string() && counts_whole(b)) return {repeated_text(a, whole(b))};
    if (op_ == "*" && counts_whole(a) && b.is_string()) return {repeated_text(b, whole(a))};
    if (op_ == "%" && a.is_string()) return {percent(a.as_string(), right)};
    if (a.is_list() && b.is_list() && op_ == "+") return joined(left, right);
    if (op_ == "*" && a.is_list() && counts_whole(b)) return repeated_list(left, whole(b));
    if (op_ == "*" && counts_whole(a) && b.is_list()) return repeated_list(right, whole(a));
    refuse(fmt::format("'{}' between {} and {}", op_, type_text(a.type()), type_text(b.type())));
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw PythonNotRead(line_, why + " is not evaluated"); }
  Origin origin() const { return {"flagperf", context_.file, line_}; }

  static bool counts(const Value& v) { return v.is_number() || v.is_bool(); }
  static bool counts_whole(const Value& v) { return v.is_int() || v.is_bool(); }
  static int64_t whole(const Value& v) { return v.is_bool() ? v.as_bool() : v.as_int(); }
  static double real(const Value& v) { return v.is_bool() ? v.as_bool() : v.as_double(); }

  Value numeric(const Value& a, const Value& b) {
    if (counts_whole(a) && counts_whole(b) && op_ != "/") {
      if (op_ == "**" && whole(b) < 0) return checked(std::pow(real(a), real(b)));
      return Value::integer(integral(whole(a), whole(b)), origin());
    }
    return checked(floating(real(a), real(b)));
  }

  Value checked(double value) const {
    if (!std::isfinite(value)) refuse("a number that is not finite");
    return Value::real(value, origin());
  }

  int64_t integral(int64_t a, int64_t b) const {
    int64_t out = 0;
    bool overflow = false;
    if (op_ == "+") overflow = __builtin_add_overflow(a, b, &out);
    if (op_ == "-") overflow = __builtin_sub_overflow(a, b, &out);
    if (op_ == "*") overflow = __builtin_mul_overflow(a, b, &out);
    if (op_ == "**") return power(a, b);
    if (op_ == "//" || op_ == "%") {
      if (b == 0) refuse("a division by zero");
      if (b == -1) {  // the smallest integer has no opposite
        overflow = op_ == "//" && __builtin_sub_overflow(int64_t{0}, a, &out);
      } else {
        const bool floors = a % b != 0 && (a < 0) != (b < 0);
        out = op_ == "//" ? a / b - floors : a % b + (floors ? b : 0);
      }
    }
    if (op_ == "<<" || op_ == ">>") {
      if (b < 0) refuse("a shift by less than nothing");
      if (op_ == ">>") out = b > 62 ? (a < 0 ? -1 : 0) : a >> b;
      if (op_ == "<<") overflow = b > 62 || __builtin_mul_overflow(a, int64_t{1} << b, &out);
      if (a == 0) return 0;
    }
    if (op_ == "&") out = a & b;
    if (op_ == "|") out = a | b;
    if (op_ == "^") out = a ^ b;
    if (overflow) refuse("an integer of more than 64 bits");
    return out;
  }

  int64_t power(int64_t base, int64_t exponent) const {
    if (base == 1 || exponent == 0) return 1;
    if (base == 0) return 0;
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    int64_t out = 1;
    for (int64_t i = 0; i < exponent; ++i) {  // at most 63 rounds: then it overflows
      if (__builtin_mul_overflow(out, base, &out)) refuse("an integer of more than 64 bits");
    }
    return out;
  }

  double floating(double a, double b) const {
    if ((op_ == "/" || op_ == "//" || op_ == "%") && b == 0) refuse("a division by zero");
    if (op_ == "+") return a + b;
    if (op_ == "-") return a - b;
    if (op_ == "*") return a * b;
    if (op_ == "/") return a / b;
    if (op_ == "**") return std::pow(a, b);
    if (op_ == "//") return std::floor(a / b);
    if (op_ == "%") {
      const double rest = std::fmod(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }
    refuse(fmt::format("'{}' between numbers with a fraction", op_));
  }

  Value text(std::string value) {
    if (value.size() > kMaxPythonString) refuse("a text of more than 64 KiB");
    Value out = Value::string(std::move(value), origin());
    check_python_size(out, line_, context_);
    return out;
  }

  Value repeated_text(const Value& value, int64_t times) {
    const std::string& piece = value.as_string();
    if (times > 0 && piece.size() * static_cast<uint64_t>(std::min<int64_t>(times, 1 << 20)) > kMaxPythonString) {
      refuse("a text of more than 64 KiB");
    }
    std::string out;
    for (int64_t i = 0; i < times && !piece.empty(); ++i) out += piece;
    return text(std::move(out));
  }

  Value percent(const std::string& format, const PyValue& right) {
    if (right.value.is_map() || (right.value.is_list() && right.shape != PyShape::Tuple)) {
      refuse("'%' with something else than a value or a tuple of values");
    }
    const std::vector<Value> arguments = right.value.is_list() ? right.value.items() : std::vector<Value>{right.value};
    const auto out = literal_percent(format, arguments);
    if (!out) refuse(fmt::format("the format '{}'", format.substr(0, 60)));
    return text(*out);
  }

  PyValue joined(const PyValue& left, const PyValue& right) {
    const bool same = left.shape == right.shape && left.shape != PyShape::Set && left.shape != PyShape::Unsure;
    if (!same) refuse("'+' between lists of different kinds");
    PyValue out = left;
    for (const Value& item : right.value.items()) out.value.items().push_back(item);
    return measured(std::move(out));
  }

  PyValue repeated_list(const PyValue& list, int64_t times) {
    if (list.shape == PyShape::Set) refuse("'*' of a set");
    const size_t nodes = python_size(list.value).nodes;
    if (times > 0 && nodes * static_cast<uint64_t>(std::min<int64_t>(times, 1 << 20)) > kMaxPythonNodes) {
      refuse("a list of more than 20000 values");
    }
    PyValue out{Value::list(origin()), list.shape};
    for (int64_t i = 0; i < times && !list.value.items().empty(); ++i) {
      for (const Value& item : list.value.items()) out.value.items().push_back(item);
    }
    return measured(std::move(out));
  }

  PyValue measured(PyValue value) {
    value.value.set_origin(origin());
    check_python_size(value.value, line_, context_);
    return value;
  }

  const std::string& op_;
  int line_;
  PyContext& context_;
};

}  // namespace

PySize python_size(const Value& value) {
  PySize size;
  const auto add = [&](const Value& inner) {
    const PySize part = python_size(inner);
    size.nodes += part.nodes;
    size.depth = std::max(size.depth, part.depth + 1);
  };
  if (value.is_string()) size.nodes += value.as_string().size() / 16;
  if (value.is_list()) {
    for (const Value& item : value.items()) add(item);
  }
  if (value.is_map()) {
    for (const Value::Entry& entry : value.entries()) add(entry.value);
  }
  return size;
}

void check_python_size(const Value& value, int line, PyContext& context) {
  const PySize size = python_size(value);
  if (size.nodes > kMaxPythonNodes) throw PythonNotRead(line, "a value of more than 20000 parts is not kept");
  if (size.depth > kMaxPythonDepth) throw PythonNotRead(line, "a value nested deeper than 60 levels is not kept");
  context.work += size.nodes;
  if (context.work > kMaxPythonWork) throw PythonNotRead(line, "more work than a configuration needs is not done");
}

PyValue python_operation(const std::string& op, const PyValue& left, const PyValue& right, int line,
                         PyContext& context) {
  return Operation(op, line, context).run(left, right);
}

}  // namespace assay
