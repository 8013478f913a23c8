#include "verify/training_comparison.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "layout/run_layout.h"
#include "record/keys.h"

namespace assay {

namespace {

constexpr char kComparisonSchema[] = "assay/training-comparison-v1";
constexpr double kInfinite = std::numeric_limits<double>::infinity();

double relative_difference(double difference, double scale) {
  if (!std::isfinite(difference) || !std::isfinite(scale)) return kInfinite;
  return difference == 0 ? 0 : scale > 0 ? difference / scale : kInfinite;
}

// --- losses

std::optional<double> loss_at(const std::map<int64_t, double>& losses, int64_t step) {
  const auto found = losses.find(step);
  return found == losses.end() ? std::nullopt : std::optional(found->second);
}

// Of rank 0, which logs the loss of all.
std::map<int64_t, double> losses_of(const Evidence& evidence, const std::string& training) {
  return losses_by_step(evidence.records(training + "/" + layout::records_file(0)));
}

Json compare_losses(const Evidence& evidence, const TwoTrainings& trainings) {
  const auto measured = losses_of(evidence, trainings.measured);
  const auto baseline = losses_of(evidence, trainings.baseline);
  Json out = Json::array();
  for (int64_t step = 1; step <= trainings.num_steps; ++step) {
    const auto b = loss_at(baseline, step);
    if (!b) throw InvalidError(fmt::format("the baseline has no loss of step {}", step));
    const auto a = loss_at(measured, step);
    if (!a) {
      out.push_back({{"step", step}, {"missing", fmt::format("no loss of step {}", step)}});
      continue;
    }
    out.push_back({{"step", step},
                   {"measured", json_number(*a)},
                   {"baseline", json_number(*b)},
                   {"relative", json_number(relative_difference(std::fabs(*a - *b), std::fabs(*b)))}});
  }
  if (!measured.empty() && measured.rbegin()->first > trainings.num_steps) {
    const int64_t step = measured.rbegin()->first;
    out.push_back({{"step", step}, {"missing", fmt::format("went on to step {}", step)}});
  }
  return out;
}

// --- weights

// epoch_<e>_step_<s> by s.
std::map<int64_t, fs::path> checkpoints_by_step(const fs::path& training) {
  std::map<int64_t, fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(training / layout::kCheckpoints, ignored)) {
    const std::vector<std::string> parts = split(entry.path().filename().string(), '_');
    if (parts.size() != 4 || parts[0] != "epoch" || parts[2] != "step") continue;
    if (const auto step = parse_int(parts[3])) found[*step] = entry.path();
  }
  return found;
}

// The elements of a tensor as numbers.
class Elements {
 public:
  Elements(const TensorView& tensor, const fs::path& path) : bytes_(tensor.bytes) {
    if (tensor.dtype != "F64" && tensor.dtype != "F32" && tensor.dtype != "I64") {
      throw InvalidError(fmt::format("{}: tensor '{}' is {}; F64, F32 and I64 can be compared", path.string(),
                                     tensor.name, tensor.dtype));
    }
    type_ = tensor.dtype == "F64" ? 0 : tensor.dtype == "F32" ? 1 : 2;
    size_ = tensor.num_bytes / dtype_size(tensor.dtype);
  }
  size_t size() const { return size_; }
  bool is_float() const { return type_ != 2; }
  double operator[](size_t i) const {
    if (type_ == 0) return reinterpret_cast<const double*>(bytes_)[i];
    if (type_ == 1) return reinterpret_cast<const float*>(bytes_)[i];
    return static_cast<double>(reinterpret_cast<const int64_t*>(bytes_)[i]);
  }

 private:
  const std::byte* bytes_;
  int type_;
  size_t size_;
};

double root_mean_square(const SafetensorsFile& file, const fs::path& path) {
  double sum = 0;
  size_t count = 0;
  for (const TensorView& tensor : file.tensors()) {
    const Elements elements(tensor, path);
    if (!elements.is_float()) continue;
    for (size_t i = 0; i < elements.size(); ++i) sum += elements[i] * elements[i];
    count += elements.size();
  }
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

struct Farthest {
  double relative = -1;  // below everything that is compared
  const TensorView* tensor = nullptr;
  size_t element = 0;
  double measured = 0;
  double baseline = 0;
};

Farthest compare_tensor(const TensorView& tensor, const Elements& a, const Elements& b, double noise) {
  Farthest out{.tensor = &tensor};
  double scale = noise;
  double largest = -1;
  for (size_t i = 0; i < b.size(); ++i) {
    if (std::isfinite(b[i])) scale = std::max(scale, std::fabs(b[i]));
    const double difference = std::fabs(a[i] - b[i]);
    const double weight = std::isfinite(difference) ? difference : kInfinite;
    if (weight <= largest) continue;
    largest = weight;
    out.element = i;
  }
  out.relative = b.size() == 0 ? 0 : relative_difference(largest, scale);
  if (b.size() > 0) {
    out.measured = a[out.element];
    out.baseline = b[out.element];
  }
  return out;
}

std::vector<int64_t> position_of(size_t element, const std::vector<int64_t>& shape) {
  std::vector<int64_t> position(shape.size());
  auto rest = static_cast<int64_t>(element);
  for (size_t d = shape.size(); d-- > 0;) {
    position[d] = rest % shape[d];
    rest /= shape[d];
  }
  return position;
}

// Which ranks hold that element, as the checkpoint's meta.json says; [] when it says nothing. A dimension may be
// several things side by side, "groups", each of which is split: "begin" and "end" then count within one of them.
Json ranks_of(const fs::path& checkpoint, const TensorView& tensor, const std::vector<int64_t>& position) {
  Json ranks = Json::array();
  const fs::path meta = checkpoint / "meta.json";
  if (!fs::exists(meta)) return ranks;
  try {
    const Json content = read_json_file(meta);
    const auto placement = content.find("placement");
    if (placement == content.end() || !placement->contains(tensor.name)) return ranks;
    for (const Json& part : placement->at(tensor.name)) {
      const auto dim = part.value("dim", position.size());
      if (dim < position.size()) {
        const int64_t extent = tensor.shape[dim] / std::max<int64_t>(1, part.value("groups", int64_t{1}));
        const int64_t at = position[dim] % std::max<int64_t>(1, extent);
        if (at < part.at("begin").get<int64_t>() || at >= part.at("end").get<int64_t>()) continue;
      }
      for (const Json& rank : part.at("ranks")) ranks.push_back(rank.get<int>());
    }
  } catch (const Json::exception&) {
    return Json::array();  // it helps to find a fault, no more
  }
  return ranks;
}

Json missing_weights(int64_t step, const std::string& what) { return {{"step", step}, {"missing", what}}; }

Json compare_checkpoints(int64_t step, const fs::path& measured_path, const fs::path& baseline_path) {
  const fs::path a_path = measured_path / "model.safetensors";
  const fs::path b_path = baseline_path / "model.safetensors";
  if (!fs::exists(a_path)) return missing_weights(step, fmt::format("no weights in the checkpoint of step {}", step));
  const SafetensorsFile a_file(a_path);
  const SafetensorsFile b_file(b_path);
  if (b_file.tensors().empty()) throw InvalidError(fmt::format("{}: holds no tensors", b_path.string()));
  for (const TensorView& tensor : a_file.tensors()) {
    if (!b_file.has(tensor.name))
      return missing_weights(step, fmt::format("has {}, the baseline has not", tensor.name));
  }
  const double noise = kNoiseShare * root_mean_square(b_file, b_path);
  Farthest farthest;
  for (const TensorView& b : b_file.tensors()) {
    if (!a_file.has(b.name))
      return missing_weights(step, fmt::format("the checkpoint of step {} lacks {}", step, b.name));
    const TensorView& a = a_file.at(b.name);
    if (a.shape != b.shape || a.dtype != b.dtype) {
      return missing_weights(step, fmt::format("{} is {} [{}], {} [{}] in the baseline, at step {}", b.name, a.dtype,
                                               fmt::join(a.shape, ", "), b.dtype, fmt::join(b.shape, ", "), step));
    }
    const Farthest candidate = compare_tensor(b, Elements(a, a_path), Elements(b, b_path), noise);
    if (candidate.relative > farthest.relative) farthest = candidate;
  }
  const std::vector<int64_t> position = position_of(farthest.element, farthest.tensor->shape);
  return {{"step", step},
          {"parameter", farthest.tensor->name},
          {"position", position},
          {"measured", json_number(farthest.measured)},
          {"baseline", json_number(farthest.baseline)},
          {"relative", json_number(farthest.relative)},
          {"ranks", ranks_of(measured_path, *farthest.tensor, position)}};
}

Json compare_weights(const Evidence& evidence, const TwoTrainings& trainings) {
  const auto measured = checkpoints_by_step(evidence.path(trainings.measured));
  const auto baseline = checkpoints_by_step(evidence.path(trainings.baseline));
  Json out = Json::array();
  for (int64_t step = 1; step <= trainings.num_steps; ++step) {
    const auto b = baseline.find(step);
    if (b == baseline.end()) throw InvalidError(fmt::format("the baseline has no checkpoint of step {}", step));
    const auto a = measured.find(step);
    out.push_back(a == measured.end() ? missing_weights(step, fmt::format("no checkpoint of step {}", step))
                                      : compare_checkpoints(step, a->second, b->second));
  }
  return out;
}

// --- replicas

Json replica_events(const Evidence& evidence, const std::string& training) {
  Json out = Json::array();
  for (const std::string& file : evidence.records_files(training)) {
    for (const Record& record : evidence.records(file)) {
      if (record.type != Record::Type::Event || record.name != keys::kReplicaDiffers) continue;
      out.push_back({{"step", record.data.value(keys::kStep, record.data.value(keys::kGlobalStep, int64_t{0}))},
                     {"parameter", record.data.value(keys::kParameter, "")},
                     {"rank", record.data.value(keys::kRank, record.rank)}});
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const Json& a, const Json& b) { return a["step"] < b["step"]; });
  return out;
}

// --- the verdict

std::string rank_text(const Json& ranks) {
  std::vector<std::string> numbers;
  for (const Json& rank : ranks) numbers.push_back(std::to_string(rank.get<int>()));
  if (numbers.empty()) return "rank unknown";
  return fmt::format("rank{} {}", numbers.size() == 1 ? "" : "s", join(numbers, ", "));
}

// The entry is not within the limit, or not there at all.
bool is_off(const Json& entry, double limit) {
  return entry.contains("missing") || !(number_of(entry.at("relative")) <= limit);
}

std::string loss_text(const Json& entry) {
  if (entry.contains("missing")) return entry["missing"].get<std::string>();
  return fmt::format("loss {} against {} ({:.1e} apart)", python_float(number_of(entry.at("measured"))),
                     python_float(number_of(entry.at("baseline"))), number_of(entry.at("relative")));
}

std::string weight_text(const Json& entry, const Json& ranks) {
  if (entry.contains("missing")) return entry["missing"].get<std::string>();
  return fmt::format("{}{} is {} against {} ({:.1e} apart), {}", entry.at("parameter").get<std::string>(),
                     to_line(entry.at("position")), python_float(number_of(entry.at("measured"))),
                     python_float(number_of(entry.at("baseline"))), number_of(entry.at("relative")), rank_text(ranks));
}

// Who differs at that step: as the replicas said until then, or by the place of the element.
Json suspects(const Json& comparison, const Json& entry) {
  for (const Json& event : comparison.at("replicas")) {
    if (event.at("step") <= entry.at("step")) return Json::array({event.at("rank")});
  }
  return entry.value("ranks", Json::array());
}

std::string first_difference(const Json& comparison, double limit) {
  const Json* loss = nullptr;
  const Json* weight = nullptr;
  for (const Json& entry : comparison.at("losses")) {
    if (!loss && is_off(entry, limit)) loss = &entry;
  }
  for (const Json& entry : comparison.at("weights")) {
    if (!weight && is_off(entry, limit)) weight = &entry;
  }
  const auto step_of = [](const Json* entry) {
    return entry ? entry->at("step").get<int64_t>() : std::numeric_limits<int64_t>::max();
  };
  const int64_t step = std::min(step_of(loss), step_of(weight));
  std::vector<std::string> parts;
  if (step_of(loss) == step && loss) parts.push_back(loss_text(*loss));
  if (step_of(weight) == step && weight) parts.push_back(weight_text(*weight, suspects(comparison, *weight)));
  if (parts.empty()) {
    const Json& event = comparison.at("replicas").at(0);
    return fmt::format("first at step {}: {} is another on rank {} than on its replicas",
                       event.at("step").get<int64_t>(), event.at("parameter").get<std::string>(),
                       event.at("rank").get<int>());
  }
  return fmt::format("first at step {}: {}", step, join(parts, "; "));
}

double largest(const Json& entries) {
  double out = 0;
  for (const Json& entry : entries) {
    out = std::max(out, entry.contains("missing") ? kInfinite : number_of(entry.at("relative")));
  }
  return out;
}

}  // namespace

std::map<int64_t, double> losses_by_step(const std::vector<Record>& records) {
  std::map<int64_t, double> by_step;
  for (const Record& record : records) {
    if (record.type != Record::Type::Metrics || !record.data.contains(keys::kTrainLoss)) continue;
    const auto step = static_cast<int64_t>(number_of(record.data.at(keys::kGlobalStep)));
    by_step[step] = number_of(record.data.at(keys::kTrainLoss));
  }
  return by_step;
}

Json compare_trainings(const Evidence& evidence, const TwoTrainings& trainings) {
  if (trainings.num_steps < 1) throw InvalidError("no steps to compare");
  return {{"schema", kComparisonSchema},
          {"steps", trainings.num_steps},
          {"losses", compare_losses(evidence, trainings)},
          {"weights", compare_weights(evidence, trainings)},
          {"replicas", replica_events(evidence, trainings.measured)}};
}

Verdict judge_comparison(const Json& comparison, double max_relative) {
  if (comparison.at("schema") != kComparisonSchema) throw InvalidError("not a comparison of trainings");
  const double loss = largest(comparison.at("losses"));
  const double weights = largest(comparison.at("weights"));
  const auto num_steps = comparison.at("steps").get<size_t>();
  if (num_steps == 0 || comparison.at("losses").size() < num_steps || comparison.at("weights").size() < num_steps) {
    throw InvalidError("the comparison is not complete");
  }
  Verdict verdict;
  verdict.name = "both train the same";
  const bool same = loss <= max_relative && weights <= max_relative && comparison.at("replicas").empty();
  verdict.outcome = same ? Outcome::Pass : Outcome::Fail;
  verdict.reason = same ? fmt::format("{} steps: losses at most {:.1e} apart, weights {:.1e} (limit {:.0e})", num_steps,
                                      loss, weights, max_relative)
                        : first_difference(comparison, max_relative);
  verdict.figures = {{"loss_difference", json_number(loss)},
                     {"weight_difference", json_number(weights)},
                     {"limit", max_relative},
                     {"steps", num_steps}};
  return verdict;
}

}  // namespace assay
