#include "launch/host/host_setup.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/host/job.h"
#include "layout/run_layout.h"

namespace assay {

namespace {

constexpr size_t kLastLines = 5;
constexpr size_t kLongestName = 200;       // a file's name has at most 255 bytes
constexpr double kSetupPollSeconds = 0.1;  // between two looks at what other jobs and hosts have done
constexpr double kWaitingWord = 1;         // seconds between two signs of life of a job that waits

// Whoever named the hosts: no name leaves the folder, and no two are one.
std::string file_name_of(const std::string& host) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const bool plain =
      host.size() <= kLongestName && !host.starts_with('.') && host.find_first_not_of(kPlain) == std::string::npos;
  return plain && !host.empty() ? host : "host-" + sha256(host);
}

std::string own_host(const LaunchRequest& job) {
  if (job.placement.nodes.empty()) throw InfrastructureError("the job has a setup, and does not say on which hosts");
  return job.placement.nodes.at(static_cast<size_t>(job.ranks.node_rank)).host.name;
}

}  // namespace

HostSetup::HostSetup(const LaunchRequest& job)
    : job_(job),
      host_(own_host(job)),
      folder_(job.command.cwd / "setup"),
      log_(job.folder / layout::setup_log(job.ranks.node_rank)) {
  make_folder(folder_);
  const fs::path path = folder_ / (file_name_of(host_) + ".lock");
  lock_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!lock_) throw InfrastructureError(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
}

HostSetup::~HostSetup() {
  process_.reset();  // first: nobody else begins while it runs
  unlock();
}

bool HostSetup::is_prepared(const std::string& host) const {
  std::error_code none;
  return fs::exists(folder_ / (file_name_of(host) + ".done"), none);
}

bool HostSetup::all_are_prepared() const {
  return std::all_of(job_.placement.nodes.begin(), job_.placement.nodes.end(),
                     [this](const NodePlace& node) { return is_prepared(node.host.name); });
}

std::optional<LaunchResult> HostSetup::wait_for(double seconds, int wake_fd) {
  const Stopwatch watch;
  while (true) {
    if (!process_ && !is_prepared(host_)) begin();
    if (process_) {
      const auto status = process_->wait_for(std::max(0.0, seconds - watch.seconds()), wake_fd);
      if (!status) return std::nullopt;
      if (auto failed = note_end(*status)) return failed;
    }
    if (all_are_prepared()) return result_of({.code = 0, .signal = std::nullopt});
    say_that_it_waits();
    const double left = seconds - watch.seconds();
    if (left <= 0) return std::nullopt;
    pollfd woken{wake_fd, POLLIN, 0};
    if (::poll(&woken, 1, static_cast<int>(std::min(left, kSetupPollSeconds) * 1000) + 1) > 0) return std::nullopt;
  }
}

LaunchResult HostSetup::stop(double grace_seconds) {
  if (process_) process_->stop(grace_seconds);
  process_.reset();
  unlock();
  return result_of({.code = std::nullopt, .signal = SIGTERM});
}

void HostSetup::begin() {
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK || errno == EINTR) return;
    throw InfrastructureError(fmt::format("{}: cannot be locked: {}",
                                          (folder_ / (file_name_of(host_) + ".lock")).string(), std::strerror(errno)));
  }
  is_locked_ = true;
  if (is_prepared(host_)) return unlock();  // by the job that had the lock until now
  run_setup();
}

void HostSetup::run_setup() {
  std::error_code none;
  const auto size = fs::file_size(log_, none);
  log_begin_ = none ? 0 : size;
  process_.emplace(Process::start({.argv = job_.site.setup,
                                   .env = job_.site.setup_env,
                                   .cwd = job_.command.cwd,
                                   .output_file = log_,
                                   .die_with_parent = true,
                                   .tree_mark = setup_mark(job_)}));
}

std::optional<LaunchResult> HostSetup::note_end(const ExitStatus& status) {
  if (!status.ok()) {
    LaunchResult failed = result_of(status);
    const auto lines = tail_lines(log_, kLastLines, log_begin_);
    failed.infrastructure =
        fmt::format("setup: {}{}", status.text(), lines.empty() ? "" : ": " + valid_utf8(join(lines, "; ")));
    process_.reset();
    kill_tree(setup_mark(job_));  // what it started before it failed
    unlock();
    return failed;
  }
  const Json mark = {{"host", host_}, {"time", utc_text(now_us())}, {"seconds", status.seconds}};
  write_file_atomic(folder_ / (file_name_of(host_) + ".done"), to_line(mark) + "\n");
  process_.reset();
  unlock();
  return std::nullopt;
}

void HostSetup::unlock() {
  if (is_locked_) ::flock(lock_.get(), LOCK_UN);  // also for a process that was forked since, and has it open too
  is_locked_ = false;
}

// Who watches for silence must not take a job for dead that waits for another one.
void HostSetup::say_that_it_waits() {
  const bool is_first = !since_word_;
  if (!is_first && since_word_->seconds() < kWaitingWord) return;
  since_word_.emplace();
  const FileDescriptor file(::open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  const std::string word = is_first ? "waiting for the setup of another job, or of another host of this one\n" : ".";
  if (file) (void)!::write(file.get(), word.data(), word.size());
}

LaunchResult HostSetup::result_of(const ExitStatus& status) const {
  LaunchResult out;
  out.status = status;
  out.deciding_rank = job_.ranks.first_rank();
  out.ranks.assign(static_cast<size_t>(job_.ranks.nproc), status);
  return out;
}

}  // namespace assay
