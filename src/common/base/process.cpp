#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"

extern char** environ;

namespace assay {

namespace {

constexpr const char* kTreeVariable = "ASSAY_TREE";

std::string fresh_mark() {
  static std::atomic<uint64_t> count{0};
  return fmt::format("{}.{}.{}", ::getpid(), now_us(), ++count);
}

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text(*entry);
    if (!changes.count(std::string(text.substr(0, text.find('='))))) out.emplace_back(text);
  }
  for (const auto& [name, value] : changes) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& text : strings) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

struct ChildPlan {
  std::vector<char*> argv;
  std::vector<char*> env;
  const char* cwd;  // nullptr: keep
  int in_fd;
  int out_fd;
  int err_fd;
  int report_fd;
  bool die_with_parent;
  pid_t parent;
};

// Runs between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(const ChildPlan& plan) {
  const auto fail = [&] {
    const int error = errno;
    (void)!::write(plan.report_fd, &error, sizeof error);
    ::_exit(127);
  };
  ::setpgid(0, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int number : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::signal(number, SIG_DFL);
  if (plan.die_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != plan.parent) ::_exit(127);
  }
  const int in_fd = plan.in_fd >= 0 ? plan.in_fd : ::open("/dev/null", O_RDONLY);
  if (in_fd >= 0 && ::dup2(in_fd, STDIN_FILENO) < 0) fail();
  if (plan.out_fd >= 0 && ::dup2(plan.out_fd, STDOUT_FILENO) < 0) fail();
  if (plan.err_fd >= 0 && ::dup2(plan.err_fd, STDERR_FILENO) < 0) fail();
  if (plan.cwd && ::chdir(plan.cwd) != 0) fail();
  ::execvpe(plan.argv[0], plan.argv.data(), plan.env.data());
  fail();
  ::_exit(127);
}

struct OutputTargets {
  int out_fd = -1;
  int err_fd = -1;
};

struct Started {
  pid_t pid;
  std::string mark;
};

Started fork_and_exec(const ProcessOptions& options, OutputTargets targets) {
  ASSAY_CHECK(!options.argv.empty(), "a process needs a program");
  const std::string mark = options.tree_mark.empty() ? fresh_mark() : options.tree_mark;
  std::map<std::string, std::string> changes = options.env;
  changes[kTreeVariable] = mark;
  std::vector<std::string> argv = options.argv;
  std::vector<std::string> env = merged_environment(changes);

  int report[2];
  if (::pipe2(report, O_CLOEXEC) != 0) throw InfrastructureError("cannot create a pipe");
  FileDescriptor report_read(report[0]);
  FileDescriptor report_write(report[1]);

  const std::string cwd = options.cwd.string();
  const ChildPlan plan{.argv = pointers(argv),
                       .env = pointers(env),
                       .cwd = cwd.empty() ? nullptr : cwd.c_str(),
                       .in_fd = options.input_fd,
                       .out_fd = targets.out_fd,
                       .err_fd = targets.err_fd,
                       .report_fd = report[1],
                       .die_with_parent = options.die_with_parent,
                       .parent = ::getpid()};
  const pid_t pid = ::fork();
  if (pid < 0) throw InfrastructureError(fmt::format("cannot start {}: {}", argv[0], std::strerror(errno)));
  if (pid == 0) become(plan);
  ::setpgid(pid, pid);  // both sides do it: whoever is first
  report_write.reset();
  int child_errno = 0;
  ssize_t got;
  do {
    got = ::read(report_read.get(), &child_errno, sizeof child_errno);
  } while (got < 0 && errno == EINTR);
  if (got == sizeof child_errno) {
    ::waitpid(pid, nullptr, 0);
    const bool folder_missing = !cwd.empty() && !std::filesystem::is_directory(cwd);
    throw InfrastructureError(folder_missing ? fmt::format("cannot start {}: no folder {}", argv[0], cwd)
                                             : fmt::format("cannot start {}: {}", argv[0], std::strerror(child_errno)));
  }
  return {pid, mark};
}

ExitStatus to_status(int raw, const rusage& usage, double seconds) {
  ExitStatus status;
  if (WIFSIGNALED(raw)) {
    status.signal = WTERMSIG(raw);
  } else {
    status.code = WEXITSTATUS(raw);
  }
  status.seconds = seconds;
  status.max_rss_bytes = static_cast<int64_t>(usage.ru_maxrss) * 1024;
  return status;
}

void signal_tree(const std::string& mark, pid_t group, int number) {
  if (group > 0) ::kill(-group, number);
  for (pid_t pid : find_tree(mark)) {
    if (::getpgid(pid) != group) ::kill(pid, number);  // the group has it already
  }
}

}  // namespace

std::string ExitStatus::text() const {
  if (timed_out) return "stopped at its time limit";
  if (signal) return fmt::format("killed by signal {} ({})", *signal, ::strsignal(*signal));
  return fmt::format("exit code {}", code.value_or(-1));
}

Process Process::start(const ProcessOptions& options) {
  FileDescriptor output;
  if (!options.output_file.empty()) {
    output = FileDescriptor(::open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!output) {
      throw InfrastructureError(fmt::format("{}: cannot open: {}", options.output_file.string(), std::strerror(errno)));
    }
  }
  Process process;
  process.started_ = std::chrono::steady_clock::now();
  const auto target = [&](int given) { return given >= 0 ? given : output.get(); };
  const Started started =
      fork_and_exec(options, {.out_fd = target(options.output_fd), .err_fd = target(options.error_fd)});
  process.pid_ = started.pid;
  process.tree_mark_ = started.mark;
  process.pid_fd_ = FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, started.pid, 0)));
  return process;
}

Process::Process(Process&& other) noexcept
    : pid_(other.pid_),
      tree_mark_(std::move(other.tree_mark_)),
      pid_fd_(std::move(other.pid_fd_)),
      started_(other.started_),
      status_(std::move(other.status_)),
      stop_requested_(other.stop_requested_) {
  other.pid_ = -1;
}

Process::~Process() {
  if (pid_ < 0 || status_) return;
  signal_tree(tree_mark_, pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  kill_tree(tree_mark_);  // returns when the rest of the tree is gone too
}

std::optional<ExitStatus> Process::poll() {
  if (status_) return status_;
  int raw = 0;
  rusage usage{};
  const pid_t got = ::wait4(pid_, &raw, WNOHANG, &usage);
  if (got == pid_) {
    const auto elapsed = std::chrono::steady_clock::now() - started_;
    status_ = to_status(raw, usage, std::chrono::duration<double>(elapsed).count());
  } else if (got < 0 && errno != EINTR) {
    throw InternalError(fmt::format("waiting for process {}: {}", pid_, std::strerror(errno)));
  }
  return status_;
}

std::optional<ExitStatus> Process::wait_for(double seconds, int wake_fd) {
  const Stopwatch watch;
  while (!poll()) {
    const double left = seconds - watch.seconds();
    if (left <= 0) return std::nullopt;
    constexpr double kPollSeconds = 0.01;  // used where the kernel has no pidfd
    const double nap = pid_fd_ ? left : std::min(left, kPollSeconds);
    pollfd watched[2] = {{pid_fd_.get(), POLLIN, 0}, {wake_fd, POLLIN, 0}};
    const int timeout_ms = static_cast<int>(std::min(nap, 3600.0) * 1000) + 1;
    ::poll(watched, 2, timeout_ms);
    if (watched[1].revents != 0) return poll();
  }
  return status_;
}

ExitStatus Process::wait() {
  while (true) {
    if (auto status = wait_for(3600)) return *status;
  }
}

void Process::request_stop() {
  if (!stop_requested_) signal_tree(tree_mark_, status_ ? -1 : pid_, SIGTERM);
  stop_requested_ = true;
}

ExitStatus Process::stop(double grace_seconds) {
  request_stop();
  const Stopwatch watch;
  while (watch.seconds() < grace_seconds) {
    if (wait_for(0.02) && find_tree(tree_mark_).empty()) return *status_;
    if (status_) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  while (true) {
    signal_tree(tree_mark_, status_ ? -1 : pid_, SIGKILL);
    if (wait_for(0.05) && find_tree(tree_mark_).empty()) return *status_;
  }
}

ExitStatus run_process(const ProcessOptions& options, std::optional<double> time_limit_s) {
  Process process = Process::start(options);
  if (!time_limit_s) return process.wait();
  if (auto status = process.wait_for(*time_limit_s)) return *status;
  constexpr double kGraceSeconds = 2;
  ExitStatus status = process.stop(kGraceSeconds);
  status.timed_out = true;
  return status;
}

CapturedOutput capture(const ProcessOptions& options, std::optional<double> time_limit_s) {
  const TempFolder folder("assay-capture");
  const auto open_output = [&](const char* name) {
    return FileDescriptor(::open((folder.path() / name).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  };
  FileDescriptor out = open_output("out");
  FileDescriptor err = open_output("err");
  ProcessOptions caught = options;
  caught.output_fd = out.get();
  caught.error_fd = err.get();
  Process process = Process::start(caught);
  CapturedOutput result;
  if (const auto ended = process.wait_for(time_limit_s.value_or(std::numeric_limits<double>::infinity()))) {
    result.status = *ended;
  } else {
    result.status = process.stop(0);
    result.status.timed_out = true;
  }
  result.out = read_file(folder.path() / "out");
  result.err = read_file(folder.path() / "err");
  return result;
}

namespace {

// Kernel threads and zombies have no environment, and never will.
bool has_memory(const std::filesystem::path& process) {
  std::ifstream file(process / "statm");
  long pages = 0;
  return (file >> pages) && pages > 0;
}

// The environment of a process, entries separated by NUL; empty when we may not read it or it has ended. In the middle
// of an exec the kernel shows an empty one for a moment, and a process must not be overlooked for that.
std::string environment_of(const std::filesystem::path& process) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    std::ifstream file(process / "environ", std::ios::binary);
    if (!file) return "";
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (!text.empty() || !has_memory(process)) return text;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return "";
}

}  // namespace

std::vector<pid_t> find_tree(const std::string& tree_mark) {
  // Between two NULs, so that no other variable ends like it and no other mark begins like it.
  const std::string wanted = std::string(1, '\0') + kTreeVariable + "=" + tree_mark + '\0';
  std::vector<pid_t> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto pid = parse_int(entry.path().filename().string());
    if (!pid || *pid == ::getpid()) continue;
    const std::string environment = '\0' + environment_of(entry.path());
    if (environment.find(wanted) != std::string::npos) found.push_back(static_cast<pid_t>(*pid));
  }
  return found;
}

size_t kill_tree(const std::string& tree_mark) {
  std::vector<pid_t> pids = find_tree(tree_mark);
  const size_t count = pids.size();
  while (!pids.empty()) {
    for (pid_t pid : pids) ::kill(pid, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pids = find_tree(tree_mark);
  }
  return count;
}

}  // namespace assay
