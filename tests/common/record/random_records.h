// Random records for the property tests: every type, every kind of value, hostile strings. Deterministic by seed.
#pragma once

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "record/record.h"

namespace assay {

class RandomRecords {
 public:
  explicit RandomRecords(uint64_t seed) : random_(seed) {}

  Record record() {
    static const std::vector<Record::Type> kTypes{
        Record::Type::Event,       Record::Type::Parameters, Record::Type::Metadata, Record::Type::Metrics,
        Record::Type::Environment, Record::Type::Result,     Record::Type::Message};
    Record record;
    record.type = kTypes[pick(kTypes.size())];
    // Up to the year 9999; DLLogger's timestamps hold every microsecond of that.
    record.time_us = pick(4) == 0 ? 0 : static_cast<int64_t>(pick(253402300799000000));
    if (pick(20) == 0)
      record.time_us = pick(2) ? std::numeric_limits<int64_t>::min() : -static_cast<int64_t>(pick(9000));
    if (pick(40) == 0) record.time_us = std::numeric_limits<int64_t>::max();
    record.elapsed_us = static_cast<int64_t>(pick(3) == 0 ? pick(100) : pick(1'000'000'000'000));
    record.rank = static_cast<int>(pick(3) == 0 ? pick(10000) : 0);
    if (pick(2)) record.name = text();
    if (pick(2)) {
      record.step.emplace();
      for (size_t i = pick(5); i > 0; --i) record.step->push_back(static_cast<int64_t>(pick(1000)) - 2);
    }
    record.verbosity = static_cast<Record::Verbosity>(static_cast<int>(pick(3)) - 1);
    if (pick(3) == 0) record.file = text();
    if (pick(3) == 0) record.line = static_cast<int>(pick(5000)) - 1;
    record.data = pick(12) == 0 ? value(0) : object(0);
    return record;
  }

  std::string text() {
    static const std::vector<std::string> kTexts{"",
                                                 "loss",
                                                 "train.loss",
                                                 "1",
                                                 "1.0",
                                                 "0x10",
                                                 "1e5",
                                                 "NaN",
                                                 "nan",
                                                 "Infinity",
                                                 "-Infinity",
                                                 "inf",
                                                 "null",
                                                 "None",
                                                 "True",
                                                 "true",
                                                 "PARAMETER",
                                                 "rank",
                                                 "type",
                                                 "data",
                                                 "other",
                                                 "value",
                                                 "key",
                                                 "metadata",
                                                 "assay",
                                                 "_assay",
                                                 "it's",
                                                 "\"quoted\"",
                                                 "both ' and \"",
                                                 "back\\slash",
                                                 "tab\tnew\nline\r",
                                                 "é",
                                                 "漢字",
                                                 "\xF0\x9F\x98\x80",
                                                 std::string("nul\0byte", 8),
                                                 "\x01\x1f\x7f",
                                                 "\xC2\x80\xC2\xA0",
                                                 "\xE2\x80\xA8",
                                                 "{'a': 1}",
                                                 "[1, 2]",
                                                 "'",
                                                 "\"",
                                                 "\\",
                                                 " blank ",
                                                 "a : b",
                                                 "  two  blanks  ",
                                                 "STEP_END",
                                                 "{\"type\":1}"};
    return kTexts[pick(kTexts.size())];
  }

  double number() {
    static const std::vector<double> kNumbers{
        0.0, -0.0, 1.0, -1.5, 0.1, 1e16, 1e-5, 1e300, 5e-324, 1e22, 1e15, 123456, 0.7, 1.0 / 3, 9007199254740993.0};
    if (pick(2)) return kNumbers[pick(kNumbers.size())];
    double value = 0;
    do {
      const uint64_t bits = random_();
      static_assert(sizeof bits == sizeof value);
      std::memcpy(&value, &bits, sizeof value);
    } while (!std::isfinite(value));
    return value;
  }

  Json value(int depth) {
    switch (pick(depth < 3 ? 10 : 8)) {
      case 0: return nullptr;
      case 1: return pick(2) == 0;
      case 2: return static_cast<int64_t>(random_());
      case 3: return random_();
      case 4: return static_cast<int64_t>(pick(100)) - 50;
      case 5: return text();
      case 6: return json_number(pick(2) ? std::nan("") : (pick(2) ? 1 : -1) * std::numeric_limits<double>::infinity());
      case 7: return number();
      case 8: return object(depth + 1);
      default: {
        Json list = Json::array();
        for (size_t i = pick(4); i > 0; --i) list.push_back(value(depth + 1));
        return list;
      }
    }
  }

  Json object(int depth) {
    Json object = Json::object();
    for (size_t i = pick(5); i > 0; --i) object[text()] = value(depth + 1);
    return object;
  }

  size_t pick(size_t count) { return random_() % count; }

 private:
  std::mt19937_64 random_;
};

// Json's == takes 1 and 1.0 for equal; a lossless format must not.
inline bool same_json(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) {
    if (a.is_number_float() != b.is_number_float()) return false;
    if (a.is_number_float())
      return a.get<double>() == b.get<double>() && std::signbit(a.get<double>()) == std::signbit(b.get<double>());
    return a == b;
  }
  if (a.type() != b.type() || a.size() != b.size()) return false;
  if (!a.is_structured()) return a == b;
  if (a.is_array()) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same_json(a[i], b[i])) return false;
    }
    return true;
  }
  for (auto i = a.begin(), j = b.begin(); i != a.end(); ++i, ++j) {
    if (i.key() != j.key() || !same_json(i.value(), j.value())) return false;
  }
  return true;
}

inline bool same_record(const Record& a, const Record& b) { return a == b && same_json(a.data, b.data); }

// One random change to a text: flips, cuts, repeats.
inline std::string mutate(std::string text, RandomRecords& random) {
  for (size_t changes = 1 + random.pick(4); changes > 0 && !text.empty(); --changes) {
    const size_t at = random.pick(text.size());
    switch (random.pick(5)) {
      case 0: text[at] = static_cast<char>(random.pick(256)); break;
      case 1: text.resize(at); break;
      case 2: text.erase(at, 1 + random.pick(4)); break;
      case 3: text.insert(at, text.substr(random.pick(text.size()), random.pick(20))); break;
      default: text.insert(at, 1, "{}[]\",:'\\ 0e-nNI"[random.pick(16)]); break;
    }
  }
  return text;
}

}  // namespace assay
