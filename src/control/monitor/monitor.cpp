#include "monitor/monitor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/journal.h"
#include "monitor/devices.h"

namespace assay {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kMinInterval = 0.01;
// A last sample over less than this says nothing: the counters of the kernel tick every 10 ms.
constexpr double kMinLastSample = 0.1;
constexpr double kMaxDeviceAge = 3;  // intervals; older figures of devices are not those of this sample

Clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Signals are for the thread that knows what to do with them. A thread inherits the mask it is started with.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

Monitor::Monitor(const std::filesystem::path& path, MonitorOptions options)
    : options_(std::move(options)), path_(path) {
  if (!(options_.interval_s >= kMinInterval)) {
    throw UsageError(fmt::format("a monitor's interval of {} s: it must be at least {} s, or 0 in a plan for none",
                                 options_.interval_s, kMinInterval));
  }
  drop_torn_line(path);
  file_ = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) throw InfrastructureError(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw InfrastructureError("cannot create a pipe");
  wake_read_ = FileDescriptor(ends[0]);
  wake_write_ = FileDescriptor(ends[1]);
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { watch(); });
  if (!options_.device_command.empty()) device_thread_ = std::thread([this] { watch_devices(); });
}

Monitor::~Monitor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_write_.reset();  // its other end becomes readable, and the vendor's command is waited for no longer
  changed_.notify_all();
  thread_.join();
  if (device_thread_.joinable()) device_thread_.join();
}

bool Monitor::sleep_until(Clock::time_point when) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_until(lock, when, [this] { return ending_; });
}

void Monitor::write(const Sample& sample) {
  try {
    write_all(file_.get(), to_line(to_json(sample)) + "\n", path_);
  } catch (const Error&) {  // a full disk; readers see the gap, and skip half a line
  }
}

Json Monitor::fresh_devices() {
  const std::lock_guard lock(mutex_);
  const auto oldest = Clock::now() - to_duration(kMaxDeviceAge * std::max(options_.interval_s, 1.0));
  return devices_at_ >= oldest ? devices_ : Json(nullptr);
}

void Monitor::watch() {
  Sampler sampler(options_.sampler);
  const Clock::duration interval = to_duration(options_.interval_s);
  Clock::time_point last = Clock::now();
  Clock::time_point next = last + interval;
  bool going_on = true;
  while (going_on) {
    going_on = sleep_until(next);
    const Clock::time_point now = Clock::now();
    if (!going_on && now - last < to_duration(kMinLastSample)) return;
    Sample sample = sampler.take();
    sample.devices = fresh_devices();
    write(sample);
    last = now;
    next += interval;
    if (next < now) next = now + interval;  // the machine stood still: no burst of samples to catch up
  }
}

void Monitor::watch_devices() {
  Clock::time_point next = Clock::now();
  do {
    Json found = ask_devices(options_.device_command, options_.device_time_limit_s, wake_read_.get());
    {
      const std::lock_guard lock(mutex_);
      devices_ = std::move(found);
      devices_at_ = Clock::now();
    }
    next = std::max(next + to_duration(options_.interval_s), Clock::now());
  } while (sleep_until(next));
}

}  // namespace assay
