// What DLLogger and tcap_dllogger print for people:
//   DLL 2026-11-15 19:43:05.339754 - (0, 5) loss : 0.1  speed : 10.000 img/s
//   TCAPPDLL 2025-05-15 14:20:10.932350 - Epoch: 0 Iteration: 1  rank : 0  train.loss : 0.70  train.ips : 16221.6
//   imgs/s
// These forms lose information: elapsed time, metadata other than units, where a string ends. Read is what is there.
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/text.h"
#include "record/dialects/all.h"
#include "record/dialects/dll_json.h"
#include "record/dialects/text_values.h"
#include "record/python_text.h"

namespace assay {

namespace {

enum class Kind { Dllogger, Tcap };

Zone zone_of(Kind kind) { return kind == Kind::Tcap ? Zone::Local : Zone::Utc; }
std::string_view mark_of(Kind kind) { return kind == Kind::Tcap ? "TCAPPDLL " : "DLL "; }

constexpr std::array<std::string_view, 3> kTcapSteps{"Epoch: ", "Iteration: ", "Validation Iteration: "};

// One record is one line, whatever its strings hold.
std::string one_line(std::string text) {
  for (size_t at = 0; (at = text.find_first_of("\n\r", at)) != std::string::npos; at += 2) {
    text.replace(at, 1, text[at] == '\n' ? "\\n" : "\\r");
  }
  return text;
}

std::string step_text(const Record& record, Kind kind) {
  const Json step = dll_step(record);
  if (step.is_string()) return step.get<std::string>();
  if (!step.is_array()) return kind == Kind::Dllogger ? "None" : "";
  if (kind == Kind::Dllogger) {
    std::string text = python_repr(step);
    text.front() = '(';
    text.back() = ')';
    if (step.size() == 1) text.insert(text.size() - 1, ",");  // a tuple of one
    return text;
  }
  std::string text;
  for (size_t i = 0; i < std::min(step.size(), kTcapSteps.size()); ++i) {
    text += fmt::format("{}{} ", kTcapSteps[i], step[i].get<int64_t>());
  }
  return text;
}

class TextWriter : public LineWriter {
 public:
  explicit TextWriter(Kind kind) : kind_(kind) {}

  void write(const Record& record, std::string& out) override {
    if (record.type == Record::Type::Metadata) {
      if (record.data.is_object()) metadata_[record.name].update(record.data);
      return;
    }
    if (kind_ == Kind::Tcap && record.type == Record::Type::Message) {  // its info() prints the text alone
      const Json* text = member(record.data, "text");
      out += one_line(python_str(text ? *text : record.data)) + "\n";
      return;
    }
    std::string line(mark_of(kind_));
    line += datetime_text(record.time_us, zone_of(kind_)) + " - " + step_text(record, kind_) + " ";
    line += values_text(record);
    out += one_line(std::move(line)) + "\n";
  }

 private:
  std::string values_text(const Record& record) {
    if (!record.data.is_object()) return python_str(record.data);
    std::vector<std::string> parts;
    if (kind_ == Kind::Tcap && !record.data.contains("rank")) parts.push_back(fmt::format("rank : {} ", record.rank));
    for (const auto& [key, value] : record.data.items()) parts.push_back(value_text(key, value));
    return join(parts, " ");
  }

  std::string value_text(const std::string& key, const Json& value) {
    const Json& known = metadata_[key];
    std::string text = python_str(value);
    const std::string format = string_member(known, "format");
    if (kind_ == Kind::Dllogger && format.starts_with(':') && !value.is_null()) {  // tcap ignores the format
      text = python_format(value, std::string_view(format).substr(1)).value_or(text);
    }
    return fmt::format("{} : {} {}", key, text, string_member(known, "unit"));
  }

  Kind kind_;
  std::map<std::string, Json> metadata_;
};

// "a : 1  b : 2 s" as pairs. A key is the word before a colon that stands alone; in hand-written tcap lines also a word
// that ends in one.
std::vector<std::pair<std::string, std::string>> split_values(std::string_view text, Kind kind) {
  struct Word {
    size_t start;
    size_t end;
  };
  std::vector<Word> words;
  for (size_t at = 0; (at = text.find_first_not_of(' ', at)) != std::string_view::npos;) {
    const size_t end = std::min(text.find(' ', at), text.size());
    words.push_back({at, end});
    at = end;
  }
  const auto word = [&](size_t i) { return text.substr(words[i].start, words[i].end - words[i].start); };

  std::vector<std::pair<std::string, std::string>> pairs;
  size_t value_start = 0;
  const auto end_value = [&](size_t end) {
    if (!pairs.empty()) pairs.back().second = std::string(trim(text.substr(value_start, end - value_start)));
  };
  for (size_t i = 0; i < words.size(); ++i) {
    const bool alone = i + 1 < words.size() && word(i + 1) == ":" && word(i) != ":";
    const bool attached = kind == Kind::Tcap && word(i).size() > 1 && word(i).ends_with(':');
    if (!alone && !attached) continue;
    end_value(words[i].start);
    pairs.emplace_back(std::string(attached ? word(i).substr(0, word(i).size() - 1) : word(i)), "");
    value_start = alone ? words[i + 1].end : words[i].end;
    if (alone) ++i;
  }
  end_value(text.size());
  return pairs;
}

class TextReader : public LineReader {
 public:
  explicit TextReader(Kind kind) : kind_(kind) {}

  void read(std::string_view line, const std::string&, std::vector<Record>& records) override {
    std::string_view rest = line.substr(line.find(mark_of(kind_)) + mark_of(kind_).size());
    Record record;
    if (const auto time = parse_time(rest, zone_of(kind_))) {
      record.time_us = time->time_us;
      rest.remove_prefix(time->length);
    }
    if (rest.starts_with(" - ")) rest.remove_prefix(3);
    take_step(record, rest);
    for (const auto& [key, text] : split_values(rest, kind_)) add(record, key, text, records);
    if (record.data.empty() && !trim(rest).empty()) record.data = {{"text", std::string(trim(rest))}};
    records.push_back(std::move(record));
  }

 private:
  void take_step(Record& record, std::string_view& rest) const {
    if (kind_ == Kind::Tcap) {
      std::vector<int64_t> step;
      while (step.size() < kTcapSteps.size() && rest.starts_with(kTcapSteps[step.size()])) {
        rest.remove_prefix(kTcapSteps[step.size()].size());
        int64_t index = 0;
        const auto result = std::from_chars(rest.data(), rest.data() + rest.size(), index);
        rest.remove_prefix(static_cast<size_t>(result.ptr - rest.data()));
        if (rest.starts_with(' ')) rest.remove_prefix(1);
        step.push_back(index);
      }
      record.step = std::move(step);
    } else if (rest.starts_with('(') || rest.starts_with('[')) {
      const size_t end = std::min(rest.find_first_of(")]"), rest.size() - 1) + 1;
      const std::optional<Json> step = parse_python_literal(rest.substr(0, end));
      record.step = integer_list(step ? &*step : nullptr);
      rest.remove_prefix(end);
    }
    record.type = Record::Type::Metrics;
    if (record.step && !record.step->empty()) return;
    // A word that is not the first key is the step: PARAMETER, or an event.
    const std::string_view word = rest.substr(0, rest.find(' '));
    const std::string_view after = rest.substr(word.size());
    if (word.empty() || word.ends_with(':') || trim(after).starts_with(": ")) return;
    if (word != "None") {
      record.step.reset();
      set_dll_step(record, std::string(word));
    }
    rest = after;
  }

  void add(Record& record, const std::string& key, const std::string& text, std::vector<Record>& records) {
    TextValue found = parse_text_value(text);
    if (kind_ == Kind::Tcap && key == "rank" && record.data.empty()) {
      if (const auto rank = small_integer(found.value)) {
        record.rank = *rank;
        return;
      }
    }
    MetricMemory::Facts facts{.unit = found.unit, .format = format_of(key, found)};
    memory_.learn(key, facts, "", record.time_us, records);
    record.data[key] = std::move(found.value);
  }

  // The format that prints the value as it stood: what is known, none, or a number of digits.
  std::string format_of(const std::string& key, const TextValue& found) {
    const std::string& known = memory_.of(key).format;
    if (kind_ == Kind::Tcap || !is_number(found.value)) return known;
    if (known.starts_with(':') && python_format(found.value, std::string_view(known).substr(1)) == found.text) {
      return known;
    }
    if (python_str(found.value) == found.text) return "";
    const size_t point = found.text.find('.');
    const size_t exponent = std::min(found.text.find('e'), found.text.size());
    const size_t digits = point == std::string::npos || point > exponent ? 0 : exponent - point - 1;
    const std::string spec = fmt::format(".{}{}", digits, exponent < found.text.size() ? "e" : "f");
    return python_format(found.value, spec) == found.text ? ":" + spec : known;
  }

  Kind kind_;
  MetricMemory memory_;
};

class TextDialect : public Dialect {
 public:
  explicit TextDialect(Kind kind) : kind_(kind) {}
  std::string_view name() const override { return kind_ == Kind::Tcap ? "tcap-text" : "dllogger-text"; }
  std::string_view summary() const override {
    return kind_ == Kind::Tcap ? "tcap_dllogger, what it prints (TCAPPDLL 2025-05-15 ...)"
                               : "NVIDIA DLLogger, what it prints (DLL 2026-11-15 ...)";
  }
  bool recognises(std::string_view line) const override {
    const size_t at = line.find(mark_of(kind_));
    if (at == std::string_view::npos) return false;
    if (at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1]))) return false;
    return parse_time(line.substr(at + mark_of(kind_).size()), Zone::Utc).has_value();
  }
  std::unique_ptr<LineReader> reader() const override { return std::make_unique<TextReader>(kind_); }
  std::unique_ptr<LineWriter> writer() const override { return std::make_unique<TextWriter>(kind_); }

 private:
  Kind kind_;
};

}  // namespace

const Dialect& dllogger_text_dialect() {
  static const TextDialect kDialect(Kind::Dllogger);
  return kDialect;
}

const Dialect& tcap_text_dialect() {
  static const TextDialect kDialect(Kind::Tcap);
  return kDialect;
}

}  // namespace assay
