#include "launch/ssh/ssh_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/ssh/ssh_command.h"

namespace assay {

namespace {

// sun_path holds 108 bytes, and ssh puts a random ending behind the name while it makes the socket.
constexpr size_t kMostSocketPath = 80;

// $XDG_RUNTIME_DIR if it is ours alone, or /tmp.
fs::path runtime_folder() {
  const char* given = std::getenv("XDG_RUNTIME_DIR");
  struct stat info {};
  if (given && *given == '/' && std::strlen(given) < 40 && ::stat(given, &info) == 0 && S_ISDIR(info.st_mode) &&
      info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) {
    return given;
  }
  return "/tmp";
}

std::pair<FileDescriptor, FileDescriptor> new_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw InfrastructureError("cannot create a pipe");
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

void do_not_block(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

RemoteProcess start_with_pipes(const std::vector<std::string>& argv) {
  auto [in, to] = new_pipe();
  auto [from, out] = new_pipe();
  FileDescriptor said = nameless_file("");
  // Not tied to the thread that starts it: it ends when the pipe to it does, and that is when this process ends.
  Process process = Process::start(
      {.argv = argv, .input_fd = in.get(), .output_fd = out.get(), .error_fd = said.get(), .die_with_parent = false});
  do_not_block(to.get());
  do_not_block(from.get());
  return {.process = std::move(process), .to = std::move(to), .from = std::move(from), .said = std::move(said)};
}

// Folders of controllers that were killed: their number is in the name.
void remove_abandoned(const fs::path& parent, const std::string& prefix) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(parent, none)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0) continue;
    const auto pid = parse_int(split(name.substr(prefix.size()), '.').at(0));
    if (!pid || *pid <= 0 || ::kill(static_cast<pid_t>(*pid), 0) == 0 || errno != ESRCH) continue;
    struct stat info {};
    if (::lstat(entry.path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) continue;
    fs::remove_all(entry.path(), none);
  }
}

}  // namespace

FileDescriptor nameless_file(const std::string& content) {
  FileDescriptor file(::memfd_create("assay", MFD_CLOEXEC));
  if (!file) throw InfrastructureError(fmt::format("cannot create a file in memory: {}", std::strerror(errno)));
  write_all(file.get(), content, "a file in memory");
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

SocketFolder::SocketFolder() {
  const fs::path parent = runtime_folder();
  const std::string prefix = fmt::format("assay-ssh-{}-", ::geteuid());
  remove_abandoned(parent, prefix);
  std::string pattern = (parent / fmt::format("{}{}.XXXXXX", prefix, ::getpid())).string();
  if (!::mkdtemp(pattern.data())) {
    throw InfrastructureError(fmt::format("{}: cannot create a folder for ssh: {}", pattern, std::strerror(errno)));
  }
  path_ = pattern;
  ASSAY_CHECK(pattern.size() < kMostSocketPath, "a path for sockets must be short");
}

SocketFolder::~SocketFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
}

fs::path SocketFolder::next() { return path_ / fmt::format("c{}", ++count_); }

std::string RemoteProcess::errors() const {
  std::string out(64 << 10, '\0');
  const ssize_t got = ::pread(said.get(), out.data(), out.size(), 0);
  out.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return out;
}

SshConnection::SshConnection(Host host, std::shared_ptr<SocketFolder> sockets)
    : host_(std::move(host)), sockets_(std::move(sockets)), socket_(sockets_->next()) {
  check_ssh_host(host_);
}

SshConnection::~SshConnection() { disconnect(); }

std::vector<std::string> SshConnection::options() const { return ssh_options(host_, socket_); }

std::vector<std::string> SshConnection::ssh_argv() const {
  std::vector<std::string> argv = {"ssh", "-o", "ControlMaster=no"};
  for (std::string& option : options()) argv.push_back(std::move(option));
  return argv;
}

std::vector<std::string> SshConnection::with_destination(std::vector<std::string> argv,
                                                         const std::string& command) const {
  argv.insert(argv.end(), {"--", host_.reached_at(), command});
  return argv;
}

void SshConnection::ensure(const std::atomic<bool>* cancel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (connected()) return;
  disconnect();
  connect(cancel);
}

bool SshConnection::connected() { return master_ && !master_->process.poll(); }

void SshConnection::disconnect() {
  if (!master_) return;
  master_->to.reset();  // cat ends, and ssh with it
  if (!master_->process.wait_for(0.3)) master_->process.stop(1);
  master_.reset();
  std::error_code none;
  fs::remove(socket_, none);
}

// What holds the connection is a `cat` over there: it sends back what shows that the connection stands, and it ends
// when this process does.
void SshConnection::connect(const std::atomic<bool>* cancel) {
  std::vector<std::string> argv = {"ssh", "-o", "ControlMaster=yes", "-o", "ControlPersist=no"};
  for (std::string& option : options()) argv.push_back(std::move(option));
  RemoteProcess master = start_with_pipes(with_destination(std::move(argv), "cat"));
  const std::string word = fmt::format("assay-{}-{}", ::getpid(), now_us());
  (void)!::write(master.to.get(), (word + "\n").data(), word.size() + 1);
  const Stopwatch watch;
  std::string heard;
  while (heard.find(word) == std::string::npos) {
    pollfd watched{master.from.get(), POLLIN, 0};
    ::poll(&watched, 1, 100);
    char block[4096];
    const ssize_t got = ::read(master.from.get(), block, sizeof block);
    if (got > 0) heard.append(block, static_cast<size_t>(got));
    const bool cancelled = cancel && *cancel;
    const bool late = watch.seconds() > 2 * kSshConnectSeconds;
    if (got == 0 || cancelled || late) {
      const auto ended = late || cancelled ? std::nullopt : master.process.wait_for(2);
      if (!ended) master.process.stop(0);
      throw explain_failure(host_, "connecting", ended ? ended->text() : "it timed out",
                            late ? "timed out" : master.errors());
    }
  }
  master_.emplace(std::move(master));
}

CapturedOutput SshConnection::run(const std::vector<std::string>& words, const std::string& doing,
                                  const std::string& input, double time_limit_s) {
  const FileDescriptor in = nameless_file(input);
  const CapturedOutput out =
      capture({.argv = with_destination(ssh_argv(), remote_command(words)), .input_fd = in.get()}, time_limit_s);
  if (out.status.timed_out) {
    throw HostError(HostProblem::Timeout,
                    fmt::format("{}: {} took longer than {}", host_.name, doing, duration_text(time_limit_s)));
  }
  if (out.status.code == 255 || out.status.signal) throw explain_failure(host_, doing, out.status.text(), out.err);
  return out;
}

RemoteProcess SshConnection::start(const std::vector<std::string>& words) {
  return start_with_pipes(with_destination(ssh_argv(), remote_command(words)));
}

}  // namespace assay
