// The training lines of FleetX, PaddleOCR, PaddleClas and PaddleSeg, for reading only. Their fields get the names of
// keys.h where there is one; the others keep their own. A unit becomes a Metadata record when it is first seen.
#include <fmt/format.h>

#include <array>
#include <functional>

#include "base/text.h"
#include "record/dialects/all.h"
#include "record/dialects/text_values.h"
#include "record/keys.h"
#include "record/log_time.h"

namespace assay {

namespace {

struct Field {
  std::string name;
  std::string text;
};

// One line, taken apart: what stood before the fields, and the fields.
struct TrainingLine {
  bool training = true;
  std::vector<int64_t> step;
  std::vector<Field> fields;
};

using Parser = std::function<TrainingLine(std::string_view rest)>;

// "a: 1, b: 2 s, eta: 2 days, 20:01:28": a part without a name of its own belongs to the one before.
std::vector<Field> split_fields(std::string_view text) {
  std::vector<Field> fields;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(", ", at), text.size());
    const std::string_view part = text.substr(at, end - at);
    const size_t colon = part.find(": ");
    if (colon != std::string_view::npos && colon > 0) {
      fields.push_back({std::string(trim(part.substr(0, colon))), std::string(trim(part.substr(colon + 2)))});
    } else if (!fields.empty()) {
      fields.back().text += fmt::format(", {}", part);
    }
    at = end + 2;
  }
  return fields;
}

// "1/24", "[1/24]" or "7": the first number; the second, when there is one, becomes a field of its own.
std::optional<int64_t> take_count(TrainingLine& line, std::string_view text, const char* total_name) {
  if (text.starts_with('[')) text.remove_prefix(1);
  if (text.ends_with(']')) text.remove_suffix(1);
  const size_t slash = text.find('/');
  const auto index = parse_int(trim(text.substr(0, slash)));
  if (!index) return std::nullopt;
  if (slash != std::string_view::npos) {
    line.fields.push_back({total_name, std::string(trim(text.substr(slash + 1)))});
  }
  return *index;
}

// Moves the fields `epoch` and `iteration` (the first of these names that is there) into the step.
TrainingLine with_step(bool training, std::vector<Field> fields, const std::vector<std::string>& iteration_names) {
  TrainingLine line{.training = training, .step = {}, .fields = {}};
  std::optional<int64_t> epoch;
  std::optional<int64_t> iteration;
  for (Field& field : fields) {
    if (field.name == "epoch" && !epoch) {
      epoch = take_count(line, field.text, "num_epochs");
      if (epoch) continue;
    }
    if (!iteration && std::find(iteration_names.begin(), iteration_names.end(), field.name) != iteration_names.end()) {
      iteration = take_count(line, field.text, field.name == "batch" ? "num_batches" : "num_iters");
      if (iteration && field.name != keys::kGlobalStep) continue;
    }
    line.fields.push_back(std::move(field));
  }
  if (epoch) line.step.push_back(*epoch);
  if (epoch && iteration) line.step.push_back(*iteration);
  return line;
}

TrainingLine parse_fleetx(std::string_view rest) {
  const bool training = rest.starts_with("[train]");
  return with_step(training, split_fields(rest.substr(rest.find(']') + 1)), {"batch"});
}

TrainingLine parse_paddleocr(std::string_view rest) {
  if (!rest.starts_with("epoch: ")) return {.training = false, .step = {}, .fields = split_fields(rest)};
  return with_step(true, split_fields(rest), {keys::kGlobalStep, "iter"});
}

TrainingLine parse_paddleclas(std::string_view rest) {
  TrainingLine line{.training = rest.starts_with("[Train]"), .step = {}, .fields = {}};
  rest.remove_prefix(rest.find(']') + 1);
  while (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos) break;
    const std::string_view part = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
    const bool is_epoch = part.starts_with("Epoch ");
    if (!is_epoch && !part.starts_with("Iter: ")) continue;  // [Avg]
    const auto count = take_count(line, part.substr(6), is_epoch ? "num_epochs" : "num_iters");
    if (count && line.step.size() < 2) line.step.push_back(*count);
  }
  for (Field& field : split_fields(rest)) line.fields.push_back(std::move(field));
  return line;
}

TrainingLine parse_paddleseg(std::string_view rest) {
  if (rest.starts_with("[EVAL] ")) {  // #Images: 200 mIoU: 0.5000 Acc: 1.0000: blanks, no commas
    TrainingLine line{.training = false, .step = {}, .fields = {}};
    const std::vector<std::string> words = split(rest.substr(7), ' ');
    for (size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i].size() > 1 && words[i].ends_with(':')) {
        line.fields.push_back({words[i].substr(0, words[i].size() - 1), words[i + 1]});
      }
    }
    return line;
  }
  const size_t bar = std::min(rest.find(" | ETA "), rest.size());
  TrainingLine line = with_step(true, split_fields(rest.substr(8, bar - 8)), {"iter"});
  if (bar < rest.size()) line.fields.push_back({"eta", std::string(trim(rest.substr(bar + 7)))});
  if (line.step.size() == 2) line.fields.push_back({keys::kGlobalStep, std::to_string(line.step[1])});
  return line;
}

// The name of a field among our keys; "" when it has none.
std::string key_of(const std::string& field, bool training) {
  if (field == "loss") return training ? keys::kTrainLoss : keys::kValLoss;
  if (field == "ips") return training ? keys::kTrainIps : keys::kValIps;
  if (!training) return "";
  if (field == "lr" || field == "learning rate" || field.starts_with("lr(")) return keys::kTrainLr;
  if (field == "reader_cost" || field == "avg_reader_cost") return keys::kTrainDataTime;
  return "";
}

// A time at the start of the line or in its first brackets, as Paddle's loggers write it; 0 when there is none.
int64_t time_of(std::string_view line) {
  if (line.starts_with('[')) line.remove_prefix(1);
  const auto time = parse_time(line, Zone::Local);
  return time ? time->time_us : 0;
}

struct Form {
  std::string_view name;
  std::string_view summary;
  std::vector<std::string> marks;  // where the part of the line begins that the parser gets
  std::vector<std::string> needs;  // and what must follow
  Parser parse;

  std::optional<size_t> find(std::string_view line) const {
    for (const std::string& mark : marks) {
      const size_t at = line.find(mark);
      if (at == std::string_view::npos) continue;
      for (const std::string& need : needs) {
        if (line.find(need, at) != std::string_view::npos) return at;
      }
    }
    return std::nullopt;
  }
};

class TrainingLineReader : public LineReader {
 public:
  explicit TrainingLineReader(const Form& form) : form_(form) {}

  void read(std::string_view text, const std::string&, std::vector<Record>& records) override {
    const TrainingLine line = form_.parse(text.substr(form_.find(text).value_or(0)));
    Record record;
    record.type = Record::Type::Metrics;
    record.time_us = time_of(text);
    if (!line.step.empty()) record.step = line.step;
    for (const Field& field : line.fields) {
      std::string key = key_of(field.name, line.training);
      if (key.empty() || record.data.contains(key)) key = field.name;
      TextValue value = parse_text_value(field.text);
      if (!value.unit.empty()) {
        memory_.learn(key, {.unit = value.unit, .format = ""}, line.training ? "TRAIN" : "VALID", record.time_us,
                      records);
      }
      record.data[key] = std::move(value.value);
    }
    records.push_back(std::move(record));
  }

 private:
  const Form& form_;
  MetricMemory memory_;
};

class TrainingLineDialect : public Dialect {
 public:
  explicit TrainingLineDialect(Form form) : form_(std::move(form)) {}
  std::string_view name() const override { return form_.name; }
  std::string_view summary() const override { return form_.summary; }
  bool recognises(std::string_view line) const override { return form_.find(line).has_value(); }
  std::unique_ptr<LineReader> reader() const override { return std::make_unique<TrainingLineReader>(form_); }

 private:
  Form form_;
};

}  // namespace

const Dialect& fleetx_dialect() {
  static const TrainingLineDialect kDialect({.name = "fleetx",
                                             .summary = "FleetX training lines ([train] epoch: [0/1], batch: ...)",
                                             .marks = {"[train] epoch: ", "[eval] epoch: "},
                                             .needs = {"batch: "},
                                             .parse = parse_fleetx});
  return kDialect;
}

const Dialect& paddleocr_dialect() {
  static const TrainingLineDialect kDialect({.name = "paddleocr",
                                             .summary = "PaddleOCR training lines (epoch: [1/24], global_step: ...)",
                                             .marks = {"epoch: [", "cur metric, "},
                                             .needs = {"global_step: ", "iter: ", "fps: "},
                                             .parse = parse_paddleocr});
  return kDialect;
}

const Dialect& paddleclas_dialect() {
  static const TrainingLineDialect kDialect({.name = "paddleclas",
                                             .summary = "PaddleClas training lines ([Train][Epoch 1/2][Iter: 0/10]...)",
                                             .marks = {"[Train][Epoch ", "[Eval][Epoch "},
                                             .needs = {": "},
                                             .parse = parse_paddleclas});
  return kDialect;
}

const Dialect& paddleseg_dialect() {
  static const TrainingLineDialect kDialect({.name = "paddleseg",
                                             .summary = "PaddleSeg training lines ([TRAIN] epoch: 1, iter: ...)",
                                             .marks = {"[TRAIN] epoch: ", "[EVAL] #Images: "},
                                             .needs = {"iter: ", "#Images: "},
                                             .parse = parse_paddleseg});
  return kDialect;
}

}  // namespace assay
