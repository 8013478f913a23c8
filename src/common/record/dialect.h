// A dialect is a way of writing one record as one line. Each dialect knows its own lines and the record schema, and
// nothing of files, of the other dialects, or of who asks. To add one: a file in dialects/ and a line in
// dialects/all.h, see docs/extend/add-a-log-dialect.md.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"

namespace assay {

// Reads the lines of one file; it may remember what earlier lines said.
class LineReader {
 public:
  virtual ~LineReader() = default;
  // Adds the records of a line that the dialect recognises (a unit seen for the first time is a record of its own).
  // Throws DataError, naming `where`, when the line carries the mark of the dialect but is damaged.
  virtual void read(std::string_view line, const std::string& where, std::vector<Record>& records) = 0;
};

// Writes the lines of one file; it may remember what earlier records said.
class LineWriter {
 public:
  virtual ~LineWriter() = default;
  // Appends the line and its newline; nothing where the dialect has no line for such a record.
  virtual void write(const Record& record, std::string& out) = 0;
};

class Dialect {
 public:
  virtual ~Dialect() = default;
  virtual std::string_view name() const = 0;     // "dllogger", as on the command line
  virtual std::string_view summary() const = 0;  // one line for help texts
  // Whether the line carries the mark of this dialect, damaged or not.
  virtual bool recognises(std::string_view line) const = 0;
  virtual std::unique_ptr<LineReader> reader() const = 0;
  virtual std::unique_ptr<LineWriter> writer() const { return nullptr; }  // nullptr: read only
  // Whether every record that is written reads back equal.
  virtual bool lossless() const { return false; }
};

// Every dialect, in the order in which a line is offered to them.
const std::vector<const Dialect*>& dialects();
// Throws UsageError with the nearest known name.
const Dialect& dialect_named(std::string_view name);

}  // namespace assay
