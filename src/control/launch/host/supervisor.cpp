#include "launch/host/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/journal.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/failure_rule.h"
#include "launch/host/device_addresses.h"
#include "launch/host/device_lock.h"
#include "launch/host/host_setup.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/host/local.h"
#include "launch/host/rank_environment.h"
#include "monitor/environment.h"
#include "monitor/monitor.h"

namespace assay {

namespace {

constexpr double kPollSeconds = 0.1;     // between two looks at lease, stop and ranks
constexpr double kRetireSeconds = 15;    // what an earlier attempt gets to end
constexpr double kLastWordSeconds = 30;  // how long the end is tried to be written on a full disk

// For people; a full disk must not end the job, so nothing is thrown when it cannot be written.
void say(const std::string& text) {
  const std::string line = fmt::format("{} {}\n", utc_text(now_us()), text);
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

// The lease as this process sees it. Its own clock only: hosts need not agree on the time.
class Lease {
 public:
  Lease(fs::path folder, int node, double seconds)
      : folder_(std::move(folder)), node_(node), seconds_(seconds), seen_(read_lease(folder_, node)) {}
  bool lapsed() {
    std::string now = read_lease(folder_, node_);
    if (now != seen_) {
      seen_ = std::move(now);
      changed_.restart();
    }
    return changed_.seconds() > seconds_;
  }

 private:
  fs::path folder_;
  int node_;
  double seconds_;
  std::string seen_;
  Stopwatch changed_;
};

// A process beside the supervisor that ends what its ranks started when it is killed: the ranks themselves die with it,
// their children would not. It holds the supervisor's locks too, so nobody else begins before it is done.
class OrphanReaper {
 public:
  explicit OrphanReaper(const LaunchRequest& job) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw InfrastructureError("cannot create a pipe");
    FileDescriptor watch(ends[0]);
    tell_ = FileDescriptor(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) throw InfrastructureError(fmt::format("cannot start a process: {}", std::strerror(errno)));
    if (pid > 0) return;
    tell_.reset();
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_IGN);
    char byte = 0;
    ssize_t got;
    do {
      got = ::read(watch.get(), &byte, 1);
    } while (got < 0 && errno == EINTR);
    if (got != 1) end_leftovers(job);
    ::_exit(0);
  }
  // All has ended: nothing to do for it.
  void dismiss() {
    if (tell_) (void)!::write(tell_.get(), "x", 1);
    tell_.reset();
  }
  ~OrphanReaper() { dismiss(); }
  OrphanReaper(const OrphanReaper&) = delete;
  OrphanReaper& operator=(const OrphanReaper&) = delete;

 private:
  FileDescriptor tell_;
};

class Supervisor {
 public:
  Supervisor(const fs::path& folder, int node) : job_(read_job(folder, node)) {
    state_.run_id = job_.run_id;
    state_.attempt = job_.attempt;
    state_.node = node;
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) == 0) state_.host = name;
    state_.pid = ::getpid();
    state_.started_us = now_us();
  }

  int run(const std::function<void()>& started) {
    end_in_peace();  // a batch system may signal twice, and the ranks are to be ended once
    lock_ = take_over();
    std::error_code none;
    fs::remove(job_.folder / job_file_name(JobFile::Stop, state_.node), none);
    note_files();
    write_state(job_.folder, state_);
    Lease lease(job_.folder, state_.node, job_.site.lease_s);
    std::unique_ptr<RunningStep> step;
    try {
      prepare();
      if (const auto code = set_up_host(lease)) return *code;
      if (job_.site.clear_caches) clear_caches();
      if (needs_rank_table(job_)) tell_of_device_addresses();
      step = LocalLauncher().start(job_);
    } catch (const std::exception& error) {
      end_with_error(std::string(kind_name(ErrorKind::Infrastructure)), error.what());
      throw;
    }
    state_.environment = host_environment();  // while the ranks start
    state_.phase = JobState::Phase::Running;
    write_state(job_.folder, state_);
    say(fmt::format("{} ranks of run {} run, attempt {}", job_.ranks.nproc, job_.run_id, job_.attempt));
    started();
    return follow(*step, lease);
  }

 private:
  // Never two in one folder: an earlier attempt is ended first, the same one is not begun again.
  FileDescriptor take_over() {
    const Stopwatch watch;
    while (true) {
      if (FileDescriptor lock = take_supervisor_lock(job_.folder, state_.node)) return lock;
      const auto other = read_state(job_.folder, state_.node);
      const bool earlier = other && (other->attempt < job_.attempt || other->run_id != job_.run_id);
      // The state may still be that of an ended attempt, for a moment.
      if (other && !earlier && watch.seconds() > 1) {
        throw InfrastructureError(fmt::format("node {} of run {} has a supervisor already: process {} on {}",
                                              state_.node, job_.run_id, other->pid, other->host));
      }
      if (earlier) {
        write_stop(job_.folder, state_.node, 1);
        // It holds the lock, so it lives, and the number is still its own.
        if (watch.seconds() > kRetireSeconds) ::kill(static_cast<pid_t>(other->pid), SIGKILL);
      }
      if (watch.seconds() > kRetireSeconds + 5) {
        throw InfrastructureError(fmt::format("{}: the supervisor of an earlier attempt does not end",
                                              (job_.folder / job_file_name(JobFile::Lock, state_.node)).string()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // Where the files of this attempt begin. What an earlier one tore off is no line.
  void note_files() {
    for (const std::string& name : growing_files(job_)) {
      const fs::path path = job_.folder / name;
      if (path.extension() == ".jsonl") drop_torn_line(path);
      std::error_code none;
      const auto size = fs::file_size(path, none);
      state_.base[name] = none ? 0 : static_cast<int64_t>(size);
    }
  }

  void prepare() {
    end_leftovers(job_);
    if (!job_.placement.nodes.empty()) {
      const auto named = job_.command.env.find("ASSAY_LOCKS");
      const fs::path folder = named == job_.command.env.end() ? lock_folder() : fs::path(named->second);
      const std::vector<int>& devices = job_.placement.nodes.at(static_cast<size_t>(state_.node)).devices;
      devices_ = DeviceLocks(folder, {.hardware = job_.placement.hardware, .devices = devices, .run_id = job_.run_id});
    }
    if (!job_.site.setup.empty())
      setup_ = std::make_unique<HostSetup>(job_);  // before the reaper, which keeps its lock
    reaper_ = std::make_unique<OrphanReaper>(job_);
  }

  // Before the ranks: what prepares this host, where no job of the run has done it. An exit code: it was ended.
  std::optional<int> set_up_host(Lease& lease) {
    if (!setup_) return std::nullopt;
    while (true) {
      if (const auto result = setup_->wait_for(kPollSeconds, stop_fd())) {
        setup_.reset();
        if (result->infrastructure.empty()) return std::nullopt;
        state_.result = *result;  // a signal may have been that of a batch system, which knows why
        throw InfrastructureError(result->infrastructure);
      }
      if (const auto code = ended_from_outside(*setup_, lease)) return code;
    }
  }

  // Who started the job has read them: here it is told what that was.
  void tell_of_device_addresses() {
    for (const std::string& line : read_device_addresses().ignored) say("passed over: " + line);
    if (job_.placement.nodes.empty()) return;
    const NodePlace& place = job_.placement.nodes.at(static_cast<size_t>(state_.node));
    for (const int device : place.devices) {
      if (place.device_addresses.empty() || place.device_addresses.count(device)) continue;
      say(fmt::format("device {} has no address in {}: the table of ranks has that of the host", device,
                      kDeviceAddressFile));
    }
  }

  // For the results: what the ranks run on, wherever that is.
  Json host_environment() const {
    Json out = describe_environment();
    if (!job_.placement.nodes.empty()) {
      out["used_devices"] = {{"hardware", job_.placement.hardware},
                             {"indices", job_.placement.nodes.at(static_cast<size_t>(state_.node)).devices}};
    }
    return out;
  }

  // A round that finds its data in memory measures something else than the first one. Only root may do it.
  void clear_caches() {
    ::sync();
    FileDescriptor file(::open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC));
    const bool done = file && ::write(file.get(), "1", 1) == 1;
    say(done ? "dropped the page cache" : fmt::format("the page cache stays: {}", std::strerror(errno)));
  }

  int follow(RunningStep& step, Lease& lease) {
    start_monitor();
    while (true) {
      if (const auto result = step.wait_for(kPollSeconds, stop_fd())) return end_with(*result);
      if (const auto code = ended_from_outside(step, lease)) return *code;
    }
  }

  // Ends it when it is to be ended: an exit code then.
  std::optional<int> ended_from_outside(RunningStep& step, Lease& lease) {
    if (const int number = stop_signal(); number != 0) {
      state_.result = step.stop(kPeerGraceSeconds);
      return end_with_error(JobState::kTerminated, fmt::format("its supervisor got signal {} ({}) on {}", number,
                                                               ::strsignal(number), state_.host));
    }
    if (const auto grace = read_stop(job_.folder, state_.node)) {
      say(fmt::format("asked to stop, with {} s of grace", *grace));
      return end_with(step.stop(*grace));
    }
    if (lease.lapsed()) {
      state_.result = step.stop(kPeerGraceSeconds);
      return end_with_error(JobState::kLeaseLapsed,
                            fmt::format("stopped: lease expired (not renewed for {} s)", job_.site.lease_s));
    }
    return std::nullopt;
  }

  // Without one the job runs as well; its result is then one that nobody watched.
  void start_monitor() {
    if (job_.site.monitor_interval_s <= 0) return;
    try {
      monitor_ = std::make_unique<Monitor>(job_.folder / job_file_name(JobFile::Monitor, state_.node),
                                           MonitorOptions{.interval_s = job_.site.monitor_interval_s,
                                                          .sampler = {.tree_mark = job_.tree_mark},
                                                          .device_command = job_.site.monitor_command});
    } catch (const Error& error) {
      say(fmt::format("the host is not watched: {}", error.what()));
    }
  }

  int end_with(const LaunchResult& result) {
    state_.result = result;
    write_end();
    return result.status.ok() ? kExitPass : result.status.shell_code();
  }

  int end_with_error(const std::string& kind, const std::string& message) {
    say(message);
    state_.error_kind = kind;
    state_.error = message;
    write_end();
    return kExitInfrastructure;
  }

  void write_end() {
    monitor_.reset();
    if (reaper_) reaper_->dismiss();
    devices_ = {};  // who reads of the end may start the next job at once
    state_.phase = JobState::Phase::Ended;
    state_.ended_us = now_us();
    const Stopwatch watch;
    while (true) {
      try {
        write_state(job_.folder, state_);
        return;
      } catch (const InfrastructureError& error) {
        say(error.what());
        if (watch.seconds() > kLastWordSeconds) throw;
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
    }
  }

  LaunchRequest job_;
  JobState state_;
  FileDescriptor lock_;
  DeviceLocks devices_;
  std::unique_ptr<HostSetup> setup_;
  std::unique_ptr<OrphanReaper> reaper_;
  std::unique_ptr<Monitor> monitor_;
};

// Standard streams of a process that nobody listens to any more.
void redirect_to_log(const fs::path& log) {
  const FileDescriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const FileDescriptor file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!null || !file) throw InfrastructureError(fmt::format("{}: cannot open: {}", log.string(), std::strerror(errno)));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(file.get(), STDOUT_FILENO);
  ::dup2(file.get(), STDERR_FILENO);
}

// What the detached process tells the one that waits for it: one byte, 'S' for started or 'D', 'I' for the kind of the
// error, and its text.
[[noreturn]] void detached_life(const fs::path& folder, int node, FileDescriptor tell) {
  int code = kExitInfrastructure;
  const auto report = [&](const std::string& text) {
    if (tell) (void)!::write(tell.get(), text.data(), text.size());
    tell.reset();
  };
  try {
    redirect_to_log(folder / job_file_name(JobFile::Log, node));
    code = supervise(folder, node, [&] { report("S"); });
  } catch (const DataError& error) {
    report(std::string("D") + error.what());
  } catch (const std::exception& error) {
    say(error.what());
    report(std::string("I") + error.what());
  }
  ::_exit(code);
}

// Up to the word that it has started, or the end of an error's text. The reaper has the other end open too, so after
// a start the end does not come.
std::string read_word(int fd) {
  std::string out;
  char block[4096];
  while (true) {
    const ssize_t got = ::read(fd, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(block, static_cast<size_t>(got));
    if (out[0] == 'S') return "S";
  }
}

}  // namespace

int supervise(const fs::path& folder, int node, const std::function<void()>& started) {
  return Supervisor(folder, node).run(started);
}

void supervise_detached(const fs::path& folder, int node) {
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) throw InfrastructureError("cannot create a pipe");
  FileDescriptor hear(pipe_ends[0]);
  FileDescriptor tell(pipe_ends[1]);
  const pid_t child = ::fork();
  if (child < 0) throw InfrastructureError(fmt::format("cannot start a supervisor: {}", std::strerror(errno)));
  if (child == 0) {
    hear.reset();
    ::setsid();
    ::signal(SIGHUP, SIG_IGN);
    const pid_t grandchild = ::fork();
    if (grandchild == 0) detached_life(folder, node, std::move(tell));
    ::_exit(grandchild < 0 ? 1 : 0);
  }
  tell.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  const std::string word = read_word(hear.get());
  if (word == "S") return;
  if (!word.empty() && word[0] == 'D') throw DataError(word.substr(1));
  if (!word.empty()) throw InfrastructureError(word.substr(1));
  throw InfrastructureError(fmt::format("the supervisor of node {} ended before its ranks ran; see {}", node,
                                        (folder / job_file_name(JobFile::Log, node)).string()));
}

}  // namespace assay
