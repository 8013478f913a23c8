#include "monitor/sample.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/time.h"
#include "monitor/counters.h"
#include "monitor/processes.h"

namespace assay {

namespace {

// All counters at one moment.
struct Counters {
  int64_t time_us = 0;
  std::chrono::steady_clock::time_point at;
  std::optional<CpuTicks> cpu;
  MarkedTime marked;
  std::optional<double> swapped;
  std::optional<TwoWays> disks;
  std::optional<TwoWays> network;
  PressureTotals cpu_pressure, memory_pressure, io_pressure;
  std::map<std::string, EnergyCounter> energy;
};

std::optional<double> rate(std::optional<double> before, std::optional<double> after, double seconds) {
  if (!before || !after || seconds <= 0) return std::nullopt;
  return std::max(0.0, *after - *before) / seconds;  // a counter that went back began anew: an interface was replaced
}

std::optional<double> share(std::optional<double> before, std::optional<double> after, double seconds) {
  const auto found = rate(before, after, seconds);
  return found ? std::optional(std::min(1.0, *found)) : std::nullopt;
}

template <typename Part>
std::optional<double> part(const std::optional<TwoWays>& ways, Part member) {
  return ways ? std::optional((*ways).*member) : std::nullopt;
}

std::optional<double> watts(const std::map<std::string, EnergyCounter>& before,
                            const std::map<std::string, EnergyCounter>& after, double seconds) {
  if (after.empty() || before.size() != after.size() || seconds <= 0) return std::nullopt;
  double joules = 0;
  for (const auto& [zone, counter] : after) {
    const auto earlier = before.find(zone);
    if (earlier == before.end()) return std::nullopt;
    const double step = counter.joules - earlier->second.joules;
    if (step < 0 && counter.range <= 0) return std::nullopt;
    joules += step < 0 ? step + counter.range : step;
  }
  return joules / seconds;
}

void fill_cpu(Sample& sample, const Counters& before, const Counters& after) {
  if (!before.cpu || !after.cpu) return;
  const double total = after.cpu->total() - before.cpu->total();
  sample.cores = after.cpu->cores;
  sample.runnable = after.cpu->runnable;
  if (total <= 0) return;
  const auto of_total = [&](double CpuTicks::*what) {
    return std::clamp(((*after.cpu).*what - (*before.cpu).*what) / total, 0.0, 1.0);
  };
  static const double ticks_per_second = static_cast<double>(::sysconf(_SC_CLK_TCK));
  const auto marked = [&](double MarkedTime::*what) {
    return std::clamp((after.marked.*what - before.marked.*what) * ticks_per_second / total, 0.0, 1.0);
  };
  const double programs = of_total(&CpuTicks::busy);
  sample.cpu_iowait = of_total(&CpuTicks::iowait);
  sample.cpu_steal = of_total(&CpuTicks::steal);
  sample.cpu_interrupts = of_total(&CpuTicks::interrupts);
  sample.cpu_busy = std::min(1.0, programs + *sample.cpu_interrupts);
  sample.cpu_own = marked(&MarkedTime::own);
  sample.cpu_other_runs = marked(&MarkedTime::other_runs);
  sample.cpu_foreign = std::max(0.0, programs - *sample.cpu_own);
}

void fill_memory(Sample& sample, const std::filesystem::path& proc) {
  const auto memory = read_memory(proc);
  const auto at = [&](const char* name) -> std::optional<double> {
    const auto found = memory.find(name);
    return found == memory.end() ? std::nullopt : std::optional(found->second);
  };
  sample.memory_available_bytes = at("MemAvailable");
  const auto total = at("MemTotal");
  if (total && sample.memory_available_bytes) sample.memory_used_bytes = *total - *sample.memory_available_bytes;
  const auto swap = at("SwapTotal");
  const auto free = at("SwapFree");
  if (swap && free) sample.swap_used_bytes = *swap - *free;
}

}  // namespace

struct Sampler::State {
  explicit State(SamplerOptions given) : options(std::move(given)), processes(options.proc, options.tree_mark) {
    last = read();
  }

  Counters read() {
    const auto& proc = options.proc;
    Counters out;
    out.time_us = now_us();
    out.at = std::chrono::steady_clock::now();
    out.cpu = read_cpu(proc);
    out.marked = processes.read();
    out.swapped = read_swapped_bytes(proc);
    out.disks = read_disks(proc, options.sys);
    out.network = read_network(proc);
    out.cpu_pressure = read_pressure(proc, "cpu");
    out.memory_pressure = read_pressure(proc, "memory");
    out.io_pressure = read_pressure(proc, "io");
    out.energy = read_energy(options.sys);
    return out;
  }

  SamplerOptions options;
  ProcessTimes processes;
  Counters last;
};

const std::array<SampleField, 24>& sample_fields() {
  static const std::array<SampleField, 24> kFields = {{
      {"cpu_busy", &Sample::cpu_busy},
      {"cpu_iowait", &Sample::cpu_iowait},
      {"cpu_steal", &Sample::cpu_steal},
      {"cpu_interrupts", &Sample::cpu_interrupts},
      {"cpu_own", &Sample::cpu_own},
      {"cpu_other_runs", &Sample::cpu_other_runs},
      {"cpu_foreign", &Sample::cpu_foreign},
      {"load_1", &Sample::load_1},
      {"runnable", &Sample::runnable},
      {"memory_used_bytes", &Sample::memory_used_bytes},
      {"memory_available_bytes", &Sample::memory_available_bytes},
      {"swap_used_bytes", &Sample::swap_used_bytes},
      {"swap_bytes_per_s", &Sample::swap_bytes_per_s},
      {"disk_read_bytes_per_s", &Sample::disk_read_bytes_per_s},
      {"disk_write_bytes_per_s", &Sample::disk_write_bytes_per_s},
      {"net_rx_bytes_per_s", &Sample::net_rx_bytes_per_s},
      {"net_tx_bytes_per_s", &Sample::net_tx_bytes_per_s},
      {"pressure_cpu_some", &Sample::pressure_cpu_some},
      {"pressure_cpu_full", &Sample::pressure_cpu_full},
      {"pressure_memory_some", &Sample::pressure_memory_some},
      {"pressure_memory_full", &Sample::pressure_memory_full},
      {"pressure_io_some", &Sample::pressure_io_some},
      {"pressure_io_full", &Sample::pressure_io_full},
      {"power_w", &Sample::power_w},
  }};
  return kFields;
}

Json to_json(const Sample& sample) {
  const auto rounded = [](double value) {  // four digits are more than a sample is worth; bytes stay whole
    return Json(value >= 1000 ? std::round(value) : std::round(value * 1e4) / 1e4);
  };
  Json out = {{"time_us", sample.time_us}, {"interval_s", rounded(sample.interval_s)}, {"cores", sample.cores}};
  for (const SampleField& field : sample_fields()) {
    const Sample::Figure& figure = sample.*field.figure;
    out[field.name] = figure && std::isfinite(*figure) ? rounded(*figure) : Json(nullptr);
  }
  out["devices"] = sample.devices;
  return out;
}

std::optional<Sample> sample_of(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  const auto number = [&](const char* name) -> std::optional<double> {
    const auto found = value.find(name);
    if (found == value.end() || !found->is_number()) return std::nullopt;
    const double figure = found->get<double>();
    return std::isfinite(figure) && figure >= 0 && figure < 1e18 ? std::optional(figure) : std::nullopt;
  };
  const auto time = number("time_us");
  const auto interval = number("interval_s");
  constexpr double kLongestInterval = 1e6;
  if (!time || !interval || *interval > kLongestInterval) return std::nullopt;
  Sample out;
  out.time_us = static_cast<int64_t>(*time);
  out.interval_s = *interval;
  out.cores = static_cast<int>(std::min(number("cores").value_or(0), 1e6));
  for (const SampleField& field : sample_fields()) out.*field.figure = number(field.name);
  if (const auto devices = value.find("devices"); devices != value.end() && devices->is_array()) out.devices = *devices;
  return out;
}

Sampler::Sampler(SamplerOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Sampler::~Sampler() = default;

Sample Sampler::take() {
  const Counters now = state_->read();
  const Counters& before = state_->last;
  const double seconds = std::chrono::duration<double>(now.at - before.at).count();
  Sample sample;
  sample.time_us = now.time_us;
  sample.interval_s = seconds;
  fill_cpu(sample, before, now);
  fill_memory(sample, state_->options.proc);
  sample.load_1 = read_load(state_->options.proc);
  sample.swap_bytes_per_s = rate(before.swapped, now.swapped, seconds);
  sample.disk_read_bytes_per_s = rate(part(before.disks, &TwoWays::in), part(now.disks, &TwoWays::in), seconds);
  sample.disk_write_bytes_per_s = rate(part(before.disks, &TwoWays::out), part(now.disks, &TwoWays::out), seconds);
  sample.net_rx_bytes_per_s = rate(part(before.network, &TwoWays::in), part(now.network, &TwoWays::in), seconds);
  sample.net_tx_bytes_per_s = rate(part(before.network, &TwoWays::out), part(now.network, &TwoWays::out), seconds);
  sample.pressure_cpu_some = share(before.cpu_pressure.some, now.cpu_pressure.some, seconds);
  sample.pressure_cpu_full = share(before.cpu_pressure.full, now.cpu_pressure.full, seconds);
  sample.pressure_memory_some = share(before.memory_pressure.some, now.memory_pressure.some, seconds);
  sample.pressure_memory_full = share(before.memory_pressure.full, now.memory_pressure.full, seconds);
  sample.pressure_io_some = share(before.io_pressure.some, now.io_pressure.some, seconds);
  sample.pressure_io_full = share(before.io_pressure.full, now.io_pressure.full, seconds);
  sample.power_w = watts(before.energy, now.energy, seconds);
  state_->last = now;
  return sample;
}

}  // namespace assay
