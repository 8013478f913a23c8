// What the dialects of the form "MARK {json}" share. A dialect says how a native program would write a record as a JSON
// object and what it would understand of one; this class makes the pair lossless in both directions, by construction:
//  - writing: the object is read back at once, and whatever of the record did not come through goes into one more
//    member, "assay", which other readers ignore;
//  - reading: the object is written again at once, and whatever did not come out as it was goes into the record's
//    `extra`, so that writing the record gives the line back, byte for byte.
#pragma once

#include "record/dialect.h"

namespace assay {

class JsonDialect : public Dialect {
 public:
  bool recognises(std::string_view line) const override;
  std::unique_ptr<LineReader> reader() const override;
  std::unique_ptr<LineWriter> writer() const override;
  bool lossless() const override { return true; }

  std::string write(const Record& record) const;                       // without a newline
  Record read(std::string_view line, const std::string& where) const;  // throws DataError

 protected:
  // The texts that come before the object, each with its blank: "DLLL ". The first one is the usual one.
  virtual const std::vector<std::string>& marks() const = 0;
  virtual const std::string& mark_of(const Json&) const { return marks().front(); }
  // The object that a native program would write. Must cope with every record.
  virtual Json encode(const Record& record) const = 0;
  // What a native program would understand. Must cope with every object; what it cannot understand, it leaves out.
  virtual Record decode(const Json& object) const = 0;

 private:
  struct Found {
    size_t start = 0;  // of the mark
    size_t json = 0;   // of the object
  };
  std::optional<Found> find(std::string_view line) const;
  Record interpret(const Json& object, std::string_view prefix) const;
  Json build(const Record& record, const Json& extra) const;
};

// Members of foreign objects, with what to do when they are missing or of another kind.
std::string string_member(const Json& object, const char* key);              // ""
std::optional<int64_t> integer_member(const Json& object, const char* key);  // nullopt
std::optional<int> small_integer(const Json& value);                         // nullopt
std::optional<std::vector<int64_t>> integer_list(const Json* value);         // nullopt
const Json* member(const Json& object, const char* key);                     // nullptr
// Of a time in milliseconds; 0 when there is none or it is beyond any calendar.
int64_t microseconds(std::optional<int64_t> milliseconds);

}  // namespace assay
