#include "report/result_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/time.h"
#include "report/decimate.h"
#include "report/figures.h"

namespace assay {

namespace {

template <typename Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json time_or_null(const std::optional<int64_t>& time_us) { return time_us ? Json(utc_text(*time_us)) : Json(nullptr); }

Json step_json(const StepView& step) {
  Json out = {{"number", step.number},
              {"name", step.name},
              {"kind", step.kind},
              {"outcome", outcome_name(step.outcome)},
              {"reason", step.reason},
              {"started", time_or_null(step.started_us)},
              {"seconds", step.seconds ? json_number(*step.seconds) : Json(nullptr)},
              {"exit_code", json_or_null(step.exit_code)},
              {"signal", json_or_null(step.signal)},
              {"attempts", step.attempts},
              {"max_rss_bytes", json_or_null(step.max_rss_bytes)},
              {"folder", step.folder},
              {"last_lines", step.last_lines}};
  if (!step.restarts.empty()) out["restarts"] = step.restarts;
  return out;
}

Json curve_json(const Curve& full) {
  const Curve curve = decimated(full, kMaxResultPoints);
  Json out = {{"name", curve.name},   {"stage", curve.stage},   {"unit", curve.unit},
              {"label", curve.label}, {"source", curve.source}, {"total_points", curve.total_points}};
  Json x = Json::array();
  Json y = Json::array();
  for (double value : curve.x) x.push_back(json_number(value));
  for (double value : curve.y) y.push_back(json_number(value));
  out["x"] = std::move(x);
  out["y"] = std::move(y);
  return out;
}

// --- the way back

// A value and its place in the file, for errors that name it.
class Place {
 public:
  // `file` is "result.json"; places in it add ": steps[2].outcome".
  Place(const Json& value, std::string file) : value_(&value), name_(std::move(file)), is_root_(true) {}

  const Json& json() const { return *value_; }
  [[noreturn]] void fail(std::string_view wanted) const {
    throw DataError(fmt::format("{}: expected {}, found {}", name_, wanted, value_->type_name()));
  }
  // Missing members read as null.
  Place operator[](const std::string& key) const {
    static const Json kNull;
    if (!value_->is_object()) fail("an object");
    const auto found = value_->find(key);
    return {found == value_->end() ? kNull : *found, name_ + (is_root_ ? ": " : ".") + key, false};
  }
  std::vector<Place> items() const {
    std::vector<Place> out;
    if (value_->is_null()) return out;
    if (!value_->is_array()) fail("a list");
    for (size_t i = 0; i < value_->size(); ++i) out.push_back({(*value_)[i], fmt::format("{}[{}]", name_, i), false});
    return out;
  }
  std::string text() const {
    if (value_->is_null()) return "";
    if (!value_->is_string()) fail("text");
    return value_->get<std::string>();
  }
  double number() const {
    if (!is_number(*value_)) fail("a number");
    return number_of(*value_);
  }
  template <typename Integer>
  std::optional<Integer> integer() const {
    if (value_->is_null()) return std::nullopt;
    if (!value_->is_number_integer()) fail("a whole number");
    const bool fits = value_->is_number_unsigned() ? std::in_range<Integer>(value_->get<uint64_t>())
                                                   : std::in_range<Integer>(value_->get<int64_t>());
    if (!fits) fail("a smaller whole number");
    return value_->get<Integer>();
  }
  std::optional<double> optional_number() const {
    return value_->is_null() ? std::nullopt : std::optional<double>(number());
  }
  std::optional<int64_t> time() const {
    if (value_->is_null()) return std::nullopt;
    const auto time_us = parse_utc(text());
    if (!time_us) fail("a time such as 2026-11-15T19:43:05.000000Z");
    return time_us;
  }
  Outcome outcome() const {
    try {
      return outcome_of(text());
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", name_, error.what()));
    }
  }
  Json object() const {
    if (value_->is_null()) return Json::object();
    if (!value_->is_object()) fail("an object");
    return *value_;
  }
  std::vector<double> numbers() const {
    std::vector<double> out;
    if (!value_->is_array()) fail("a list of numbers");
    for (const Json& entry : *value_) {
      if (!is_number(entry)) fail("a list of numbers");
      out.push_back(number_of(entry));
    }
    return out;
  }

 private:
  Place(const Json& value, std::string name, bool is_root)
      : value_(&value), name_(std::move(name)), is_root_(is_root) {}

  const Json* value_;
  std::string name_;
  bool is_root_;
};

StepView step_of(const Place& place) {
  StepView step;
  step.number = place["number"].integer<int>().value_or(0);
  step.name = place["name"].text();
  step.kind = place["kind"].text();
  step.outcome = place["outcome"].outcome();
  step.reason = place["reason"].text();
  step.started_us = place["started"].time();
  step.seconds = place["seconds"].optional_number();
  step.exit_code = place["exit_code"].integer<int>();
  step.signal = place["signal"].integer<int>();
  step.attempts = place["attempts"].integer<int>().value_or(0);
  for (const Place& reason : place["restarts"].items()) step.restarts.push_back(reason.text());
  step.max_rss_bytes = place["max_rss_bytes"].integer<int64_t>();
  step.folder = place["folder"].text();
  for (const Place& line : place["last_lines"].items()) step.last_lines.push_back(line.text());
  return step;
}

Verdict verdict_at(const Place& place) {
  return {.name = place["name"].text(),
          .outcome = place["outcome"].outcome(),
          .reason = place["reason"].text(),
          .figures = place["figures"].object(),
          .row = place["row"].text(),
          .column = place["column"].text()};
}

Curve curve_of(const Place& place) {
  Curve curve;
  curve.name = place["name"].text();
  curve.stage = place["stage"].text();
  curve.unit = place["unit"].text();
  curve.label = place["label"].text();
  curve.source = place["source"].text();
  curve.total_points = static_cast<size_t>(std::max<int64_t>(0, place["total_points"].integer<int64_t>().value_or(0)));
  curve.x = place["x"].numbers();
  curve.y = place["y"].numbers();
  if (curve.x.size() != curve.y.size()) place["y"].fail(fmt::format("as many numbers as in x ({})", curve.x.size()));
  return curve;
}

// --- layout

bool is_short_list(const Json& value) {
  return value.is_array() && std::none_of(value.begin(), value.end(), [](const Json& v) { return v.is_structured(); });
}

void append_pretty(std::string& out, const Json& value, size_t indent) {
  if (!value.is_structured() || value.empty() || is_short_list(value)) {
    out += to_line(value);
    return;
  }
  const std::string inner(indent + 2, ' ');
  out += value.is_array() ? "[\n" : "{\n";
  bool first = true;
  for (const auto& [key, entry] : value.items()) {
    if (!first) out += ",\n";
    first = false;
    out += inner;
    if (value.is_object()) out += to_line(key) + ": ";
    append_pretty(out, entry, indent + 2);
  }
  out += "\n" + std::string(indent, ' ') + (value.is_array() ? "]" : "}");
}

}  // namespace

Json render_result_json(const RunView& run) {
  Json out = {{"schema", kResultSchema},
              {"id", run.id},
              {"title", run.title},
              {"command", run.command},
              {"outcome", outcome_name(run.outcome)},
              {"reason", run.reason},
              {"started", utc_text(run.started_us)},
              {"ended", time_or_null(run.ended_us)},
              {"seconds", json_or_null(run_seconds(run))}};
  for (const char* list : {"steps", "verdicts", "results"}) out[list] = Json::array();
  for (const StepView& step : run.steps) out["steps"].push_back(step_json(step));
  for (const Verdict& verdict : run.verdicts) out["verdicts"].push_back(to_json(verdict));
  for (const Result& result : run.case_results) out["results"].push_back(result.shown);
  out["environment"] = run.environment;
  out["parameters"] = run.parameters;
  out["curves"] = Json::array();
  for (const Curve& curve : run.curves) out["curves"].push_back(curve_json(curve));
  return out;
}

std::string result_json_text(const RunView& run) {
  std::string out;
  append_pretty(out, render_result_json(run), 0);
  return out + "\n";
}

RunView run_view_of(const Json& result, const std::string& where) {
  const Place root(result, where);
  const std::string schema = root["schema"].text();
  if (schema != kResultSchema) {
    throw DataError(fmt::format("{}: schema '{}' is not known; this program reads {}", where, schema, kResultSchema));
  }
  RunView run;
  run.id = root["id"].text();
  run.title = root["title"].text();
  run.command = root["command"].text();
  run.outcome = root["outcome"].outcome();
  run.reason = root["reason"].text();
  run.started_us = root["started"].time().value_or(0);
  run.ended_us = root["ended"].time();
  for (const Place& step : root["steps"].items()) run.steps.push_back(step_of(step));
  for (const Place& verdict : root["verdicts"].items()) run.verdicts.push_back(verdict_at(verdict));
  for (const Place& result : root["results"].items()) run.case_results.push_back(shown_result(result.object()));
  run.environment = root["environment"].object();
  run.parameters = root["parameters"].object();
  for (const Place& curve : root["curves"].items()) run.curves.push_back(curve_of(curve));
  return run;
}

}  // namespace assay
