#include "monitor/disturbance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>

#include "monitor/sample.h"

namespace assay {

namespace {

constexpr size_t kLongestLine = 1 << 18;
constexpr double kMillion = 1e6;
// Energy is power times time; where less of the time has a power the rest would be a guess.
constexpr double kEnergyCoverage = 0.9;

// A mean weighted with the time that each value stands for.
struct Sum {
  double seconds = 0;
  double weighted = 0;
  double max = 0;
  void add(double value, double weight) {
    max = seconds == 0 ? value : std::max(max, value);
    seconds += weight;
    weighted += value * weight;
  }
  bool known() const { return seconds > 0; }
  double mean() const { return weighted / seconds; }
  Json json() const { return known() ? Json{{"mean", mean()}, {"max", max}} : Json(nullptr); }
};

Json energy(const Sum& power, double seconds) {
  if (seconds <= 0 || power.seconds < kEnergyCoverage * seconds) return nullptr;
  return power.mean() * seconds;
}

// Adds up what may be unknown: one null makes the sum null.
struct KnownSum {
  double value = 0;
  bool known = false;
  void add(const Json& part, bool is_first) {
    known = (known || is_first) && part.is_number();
    value += known ? part.get<double>() : 0;
  }
  Json json() const { return known ? Json(value) : Json(nullptr); }
};

// The samples of one node, those in between only.
struct NodeView {
  std::vector<Sample> samples;
  std::vector<double> weights;  // seconds of each that lie in between
  double seconds = 0;
  size_t damaged_lines = 0;
};

// Lines of any length and content; only as much is kept as a sample can be long.
template <typename Use>
void for_each_line(const std::filesystem::path& path, Use use) {
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::vector<char> block(1 << 16);
  bool too_long = false;
  while (file) {
    file.read(block.data(), static_cast<std::streamsize>(block.size()));
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      if (block[i] == '\n') {
        use(too_long ? std::string() : line);
        line.clear();
        too_long = false;
      } else if (line.size() < kLongestLine) {
        line.push_back(block[i]);
      } else {
        too_long = true;
      }
    }
  }
  if (!line.empty()) use("");  // torn, or still being written
}

NodeView read_node(const std::filesystem::path& path, int64_t from_us, int64_t until_us) {
  NodeView out;
  for_each_line(path, [&](const std::string& line) {
    const auto sample = sample_of(Json::parse(line, nullptr, /*allow_exceptions=*/false));
    if (!sample) {
      ++out.damaged_lines;
      return;
    }
    const double end = static_cast<double>(std::min(sample->time_us, until_us));
    const double begin =
        std::max(static_cast<double>(sample->time_us) - sample->interval_s * kMillion, static_cast<double>(from_us));
    if (end <= begin) return;
    out.weights.push_back((end - begin) / kMillion);
    out.seconds += out.weights.back();
    out.samples.push_back(*sample);
  });
  return out;
}

Sum sum_of(const NodeView& node, Sample::Figure Sample::*figure) {
  Sum sum;
  for (size_t i = 0; i < node.samples.size(); ++i) {
    if (const auto& value = node.samples[i].*figure) sum.add(*value, node.weights[i]);
  }
  return sum;
}

// Mean and maximum of each numeric figure of each device; devices are told apart by their place in the list.
std::vector<std::map<std::string, Sum>> sum_devices(const NodeView& node) {
  constexpr size_t kMaxDevices = 1024;
  std::vector<std::map<std::string, Sum>> sums;
  for (size_t i = 0; i < node.samples.size(); ++i) {
    const Json& devices = node.samples[i].devices;
    if (!devices.is_array()) continue;
    for (size_t d = 0; d < std::min(devices.size(), kMaxDevices); ++d) {
      if (!devices[d].is_object()) continue;
      if (sums.size() <= d) sums.resize(d + 1);
      for (const auto& [name, value] : devices[d].items()) {
        if (value.is_number() && std::isfinite(value.get<double>()) && name != "index") {
          sums[d][name].add(value.get<double>(), node.weights[i]);
        }
      }
    }
  }
  return sums;
}

void summarize_devices(Json& out, const NodeView& node) {
  out["devices"] = nullptr;
  out["devices_energy_j"] = nullptr;
  const auto sums = sum_devices(node);
  if (sums.empty()) return;
  Json list = Json::array();
  KnownSum total;
  for (const auto& device : sums) {
    Json figures = Json::object();
    for (const auto& [name, sum] : device) figures[name] = sum.json();
    const auto power = device.find("power_w");
    total.add(power == device.end() ? Json(nullptr) : energy(power->second, node.seconds), list.empty());
    list.push_back(std::move(figures));
  }
  out["devices"] = std::move(list);
  out["devices_energy_j"] = total.json();
}

Json summarize(const std::string& host, const NodeView& node) {
  Json figures = Json::object();
  for (const SampleField& field : sample_fields()) figures[field.name] = sum_of(node, field.figure).json();
  Json out = {{"host", host},
              {"samples", node.samples.size()},
              {"seconds", node.seconds},
              {"damaged_lines", node.damaged_lines},
              {"figures", std::move(figures)},
              {"energy_j", energy(sum_of(node, &Sample::power_w), node.seconds)}};
  summarize_devices(out, node);
  return out;
}

// "0.83", "1.5 MB/s"
std::string share_text(double value) { return fmt::format("{:.2f}", value); }
std::string rate_text(double value) { return fmt::format("{:.1f} MB/s", value / kMillion); }

using FigureText = std::string (*)(double);

// What is above its limits, as "0.83 on average, 37 of 40 samples above 0.25"; nullopt: nothing.
std::optional<std::string> excess(const std::vector<double>& values, const Sum& sum, const DisturbanceLimit& limit,
                                  FigureText text) {
  if (!sum.known()) return std::nullopt;
  const auto above = static_cast<size_t>(
      std::count_if(values.begin(), values.end(), [&](double value) { return value > limit.sample; }));
  const bool often = above > 0 && static_cast<double>(above) >= kDisturbedShare * static_cast<double>(values.size());
  if (!often && sum.mean() <= limit.mean) return std::nullopt;
  return fmt::format("{} on average (limit {}), {} of {} samples above {}", text(sum.mean()), text(limit.mean), above,
                     values.size(), text(limit.sample));
}

struct Rule {
  Sample::Figure Sample::*figure;
  DisturbanceLimit limit;
  FigureText text;
  const char* sentence;
};

void apply_rules(const std::string& host, const NodeView& node, bool uses_network, std::vector<std::string>& out) {
  std::vector<Rule> rules = {
      {&Sample::cpu_foreign, kForeignCpuLimit, share_text, "other processes used a share of the processor of"},
      {&Sample::cpu_steal, kStealLimit, share_text, "the hypervisor withheld a share of the processor of"},
      {&Sample::pressure_memory_some, kMemoryPressureLimit, share_text,
       "tasks waited for memory a share of the time of"},
      {&Sample::swap_bytes_per_s, kSwapLimit, rate_text, "memory was swapped at"}};
  if (!uses_network) {
    rules.push_back({&Sample::net_rx_bytes_per_s, kForeignNetworkLimit, rate_text,
                     "data came over the network, which the job does not use, at"});
    rules.push_back({&Sample::net_tx_bytes_per_s, kForeignNetworkLimit, rate_text,
                     "data went over the network, which the job does not use, at"});
  }
  for (const Rule& rule : rules) {
    std::vector<double> values;
    for (const Sample& sample : node.samples) {
      if (const auto& value = sample.*rule.figure) values.push_back(*value);
    }
    const auto found = excess(values, sum_of(node, rule.figure), rule.limit, rule.text);
    if (!found) continue;
    std::string sentence = fmt::format("{}: {} {}", host, rule.sentence, *found);
    if (rule.figure == &Sample::cpu_foreign) {
      const Sum others = sum_of(node, &Sample::cpu_other_runs);
      if (others.known() && others.mean() > kForeignCpuLimit.mean) {
        sentence += fmt::format("; {} of it other runs of assay", share_text(others.mean()));
      }
    }
    out.push_back(std::move(sentence));
  }
}

// A sample that covers far more than its neighbours: nothing ran, not even the monitor.
void find_gaps(const std::string& host, const NodeView& node, std::vector<std::string>& out) {
  if (node.samples.size() < 2) return;
  std::vector<double> intervals;
  for (const Sample& sample : node.samples) intervals.push_back(sample.interval_s);
  std::nth_element(intervals.begin(), intervals.begin() + static_cast<long>(intervals.size() / 2), intervals.end());
  const double usual = intervals[intervals.size() / 2];
  const double limit = std::max(kMinGap, kGapIntervals * usual);
  size_t count = 0;
  double longest = 0;
  for (const Sample& sample : node.samples) {
    if (sample.interval_s <= limit) continue;
    ++count;
    longest = std::max(longest, sample.interval_s);
  }
  if (count == 0) return;
  out.push_back(fmt::format("{}: the machine stood still {}, for {:.1f} s at most, where samples come every {:.1f} s",
                            host, count == 1 ? "once" : fmt::format("{} times", count), longest, usual));
}

}  // namespace

Disturbance find_disturbance(const std::vector<NodeSamples>& nodes, int64_t from_us, int64_t until_us,
                             DisturbanceOptions options) {
  Disturbance out;
  Json list = Json::array();
  KnownSum total;
  for (const NodeSamples& node : nodes) {
    const NodeView view = read_node(node.file, from_us, until_us);
    Json summary = summarize(node.host, view);
    total.add(summary["energy_j"], list.empty());
    list.push_back(std::move(summary));
    apply_rules(node.host, view, options.uses_network, out.suspect);
    find_gaps(node.host, view, out.suspect);
  }
  out.summary = {{"nodes", std::move(list)}, {"energy_j", total.json()}};
  return out;
}

}  // namespace assay
