// Our own record lines as a dialect among the others.
#include "record/dialects/all.h"
#include "record/stream.h"

namespace assay {

namespace {

class OwnReader : public LineReader {
 public:
  void read(std::string_view line, const std::string& where, std::vector<Record>& records) override {
    records.push_back(record_of(line, where));
  }
};

class OwnWriter : public LineWriter {
 public:
  void write(const Record& record, std::string& out) override {
    append_record_line(out, record);
    out += '\n';
  }
};

class OwnDialect : public Dialect {
 public:
  std::string_view name() const override { return "assay"; }
  std::string_view summary() const override { return "our own record lines (records.jsonl)"; }
  bool recognises(std::string_view line) const override { return line.starts_with("{\"type\":\""); }
  std::unique_ptr<LineReader> reader() const override { return std::make_unique<OwnReader>(); }
  std::unique_ptr<LineWriter> writer() const override { return std::make_unique<OwnWriter>(); }
  bool lossless() const override { return true; }
};

}  // namespace

const Dialect& assay_dialect() {
  static const OwnDialect kDialect;
  return kDialect;
}

}  // namespace assay
