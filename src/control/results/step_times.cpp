#include "results/step_times.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "record/keys.h"
#include "verify/statistics.h"

namespace assay {

namespace {

// Seconds of a step, as programs call it.
constexpr const char* kStepTimeNames[] = {"train.step_time", "step_time",  "train.batch_time", "batch_time",
                                          "iter_time",       "batch_cost", "avg_batch_cost"};
constexpr char kOurSource[] = "train.data_time + train.compute_time";
constexpr char kBetweenSource[] = "time between records";

std::optional<double> positive_number(const Json& data, const char* key) {
  const auto found = data.find(key);
  if (found == data.end() || !found->is_number()) return std::nullopt;
  const auto value = found->get<double>();
  return std::isfinite(value) && value > 0 ? std::optional<double>(value) : std::nullopt;
}

std::optional<int64_t> global_step(const Record& record) {
  if (!record.data.is_object()) return std::nullopt;
  const auto found = record.data.find(keys::kGlobalStep);
  if (found == record.data.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<int64_t>();
}

bool is_evaluation(const Record& record) {
  if (record.type == Record::Type::Event) {
    return record.name == keys::kEvaluate || record.name == keys::kInitEvaluation || record.name == keys::kCheckpoint;
  }
  if (record.type != Record::Type::Metrics || !record.data.is_object()) return false;
  return std::any_of(record.data.items().begin(), record.data.items().end(),
                     [](const auto& item) { return item.key().rfind("val.", 0) == 0; });
}

bool is_training_step(const Record& record) {
  if (record.type == Record::Type::Event) return record.name == keys::kStepEnd;
  if (record.type != Record::Type::Metrics || is_evaluation(record) || !record.step) return false;
  // Programs without epochs count their steps only.
  return record.step->size() >= 2 || (record.step->size() == 1 && global_step(record).has_value());
}

// Follows the records: how many steps lie between this one and the last, and how much time.
class Stepper {
 public:
  struct Entry {
    int64_t steps = 0;  // 0: unknown
    std::optional<double> reported, between;
    std::string reported_by;
  };

  void add(const Record& record) {
    if (record.type == Record::Type::Event && (record.name == keys::kInitStart || record.name == keys::kResumed)) {
      last_.reset();
      return;
    }
    if (is_evaluation(record)) {
      interrupted_ = true;
      return;
    }
    if (!is_training_step(record)) return;
    Entry entry{.steps = steps_since_last(record), .reported = {}, .between = {}, .reported_by = {}};
    read_seconds(record, entry);
    if (last_ && !interrupted_ && entry.steps > 0 && last_->time_us > 0 && record.time_us > last_->time_us) {
      entry.between = static_cast<double>(record.time_us - last_->time_us) / 1e6 / static_cast<double>(entry.steps);
    }
    entries_.push_back(std::move(entry));
    last_ = record;
    interrupted_ = false;
  }

  const std::vector<Entry>& entries() const { return entries_; }

 private:
  int64_t steps_since_last(const Record& record) const {
    if (!last_) return 0;
    const auto before = global_step(*last_);
    const auto now = global_step(record);
    if (before && now) return std::max<int64_t>(0, *now - *before);
    if (record.type == Record::Type::Event) return 1;
    if (!last_->step || last_->step->size() < 2 || record.step->size() < 2) return 0;
    if ((*last_->step)[0] != (*record.step)[0]) return 0;
    return std::max<int64_t>(0, (*record.step)[1] - (*last_->step)[1]);
  }

  static void read_seconds(const Record& record, Entry& entry) {
    if (!record.data.is_object()) return;
    if (const auto compute = positive_number(record.data, keys::kTrainComputeTime)) {
      entry.reported = *compute + positive_number(record.data, keys::kTrainDataTime).value_or(0);
      entry.reported_by = kOurSource;
      return;
    }
    for (const char* name : kStepTimeNames) {
      if (const auto seconds = positive_number(record.data, name)) {
        entry.reported = seconds;
        entry.reported_by = name;
        return;
      }
    }
  }

  std::vector<Entry> entries_;
  std::optional<Record> last_;
  bool interrupted_ = false;
};

Json number_or_null_of(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

StepSeconds step_seconds(const std::vector<Record>& records) {
  Stepper stepper;
  for (const Record& record : records) stepper.add(record);
  StepSeconds out;
  std::map<int64_t, size_t> sizes;
  const bool is_reported = std::any_of(stepper.entries().begin(), stepper.entries().end(),
                                       [](const Stepper::Entry& entry) { return entry.reported.has_value(); });
  for (const Stepper::Entry& entry : stepper.entries()) {
    if (entry.steps > 0) ++sizes[entry.steps];
    const auto& seconds = is_reported ? entry.reported : entry.between;
    if (!seconds) continue;
    out.seconds.push_back(*seconds);
    if (out.source.empty()) out.source = is_reported ? entry.reported_by : kBetweenSource;
  }
  for (const auto& [size, count] : sizes) {
    if (out.steps_each == 0 || count > sizes[out.steps_each]) out.steps_each = size;
  }
  return out;
}

Json step_time_json(const StepSeconds& steps) {
  const StepTimes times = describe_steps(steps.seconds);
  if (times.n == 0) return nullptr;
  return {{"n", times.n},
          {"warmup", times.num_warmup},
          {"mean", number_or_null_of(times.mean)},
          {"p50", number_or_null_of(times.p50)},
          {"p90", number_or_null_of(times.p90)},
          {"p99", number_or_null_of(times.p99)},
          {"max", number_or_null_of(times.largest)},
          {"jitter", number_or_null_of(times.jitter)},
          {"source", steps.source},
          {"steps_each", steps.steps_each > 0 ? Json(steps.steps_each) : Json(nullptr)}};
}

std::optional<double> logged_throughput(const std::vector<Record>& records) {
  std::vector<double> rates;
  for (const Record& record : records) {
    if (!is_training_step(record) || !record.data.is_object()) continue;
    if (const auto rate = positive_number(record.data, keys::kTrainIps)) rates.push_back(*rate);
  }
  const size_t first = num_warmup(rates.size());
  if (rates.size() <= first) return std::nullopt;
  double seconds = 0;
  for (size_t i = first; i < rates.size(); ++i) seconds += 1 / rates[i];
  const double mean = static_cast<double>(rates.size() - first) / seconds;
  return std::isfinite(mean) && mean > 0 ? std::optional<double>(mean) : std::nullopt;
}

}  // namespace assay
