// Configuration files written in Python, read without executing Python: assignments of what python_expression.h can
// evaluate, and imports of files in the same folder. Every other statement is named with its line and the names that it
// would have set; those names then count as not known, whatever was known of them before.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "config/value.h"
#include "import/flagperf/python_expression.h"

namespace assay {

struct PythonName {
  std::string name;
  bool known = false;
  Value value = {};  // when known; its origin is where it was set
  PyShape shape = PyShape::Plain;
  std::string annotation = {};  // "float" of `lr: float = 24`
  std::string why = {};         // when not known
  bool may_be_value = true;     // false: a module, function or class, or deleted: no part of a configuration
  Origin origin = {};           // file (as shown) and line of what set it last
};

// Something that stands in a file and was not read.
struct PythonIssue {
  std::string file;
  int line = 0;
  std::string what;
  std::vector<std::string> sets = {};  // the names it would have set
  bool lost = true;  // false: nothing of a configuration can be lost by it: modules, functions, classes, remarks
};

struct PythonFile {
  std::string file;               // as shown
  std::vector<PythonName> names;  // in the order in which they were first set
  // Lines that import names from elsewhere without saying which: any name may come from there.
  std::vector<Origin> open_imports;
  bool failed = false;  // it could not be read at all: `issues` of the reader says why

  const PythonName* find(std::string_view name) const;
  // The value when the name is known, nullptr otherwise.
  const Value* value(std::string_view name) const;
};

// Reads each file once, so that what is wrong with it is said once.
class PythonReader {
 public:
  // Files are shown relative to `root`.
  explicit PythonReader(fs::path root) : root_(std::move(root)) {}

  // Never throws for what stands in the file: see issues(). The reference stays valid.
  const PythonFile& read(const fs::path& path);
  // The same for a text; imports are looked for in `folder`.
  PythonFile read_text(std::string_view text, const std::string& shown, const fs::path& folder);
  const std::vector<PythonIssue>& issues() const { return issues_; }
  // Was the file read, by itself or by an import?
  bool has_read(const fs::path& path) const { return files_.contains(path.lexically_normal()); }

 private:
  friend class PythonStatements;
  fs::path root_;
  std::map<fs::path, PythonFile> files_;
  std::set<fs::path> reading_;  // files whose imports are being read: a circle ends there
  std::vector<PythonIssue> issues_;
};

}  // namespace assay
