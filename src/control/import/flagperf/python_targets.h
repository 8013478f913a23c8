// Which names a Python statement sets: of assignments, imports and whole blocks, from their words alone.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "import/flagperf/python_tokens.h"

namespace assay {

// `a = b = value`, `a: type = value`, `a += value`.
struct AssignmentParts {
  enum class Kind { None, Declaration, Plain, Augmented };
  Kind kind = Kind::None;
  std::vector<std::span<const PyToken>> targets;
  std::span<const PyToken> value;
  std::string annotation;  // of a plain one: the words between ':' and '='
  std::string op;          // of an augmented one: "+" of "+="
};
AssignmentParts assignment_parts(std::span<const PyToken> tokens);

// `from ..module import a, b as c` or `*`.
struct ImportParts {
  bool valid = false;
  int dots = 0;
  std::string module;
  bool everything = false;
  std::vector<std::pair<std::string, std::string>> names;  // theirs, and as what
};
ImportParts import_parts(std::span<const PyToken> tokens);

// `a`, `(a, b)`, `a, b`; empty when the target is anything else, such as `a[0]` or `a.b`.
std::vector<std::string> unpacked_names(std::span<const PyToken> target);
// What an import statement binds; nothing for '*'.
std::vector<std::string> imported_names(std::span<const PyToken> tokens);
// Every name that the lines may bind or change, each once, in their order.
std::vector<std::string> assigned_names(std::span<const PyLine> lines);
// The names of the functions and classes that begin without indent.
std::vector<std::string> defined_names(std::span<const PyLine> lines);
// What the lines declare with `global`.
std::vector<std::string> global_names(std::span<const PyLine> lines);
// if __name__ == "__main__":
bool is_main_guard(const PyLine& line);

}  // namespace assay
