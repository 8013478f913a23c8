#include "launch/multi_node/relay.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "base/version.h"
#include "launch/host/job.h"
#include "launch/host/job_state.h"
#include "launch/multi_node/frames.h"

namespace assay {

namespace {

constexpr int kLookMs = 50;           // between two looks at the files
constexpr double kBeatSeconds = 1;    // between two signs of life
constexpr size_t kChunk = 256 << 10;  // of one file, before the others have their turn and the input is looked at
constexpr size_t kMaxInputLine = 1 << 20;

// A file of the job on its way to the controller.
struct SentFile {
  std::string name;
  int64_t base = 0;  // what it held before this attempt
  int64_t sent = 0;  // of this attempt
};

class Relay {
 public:
  Relay(const fs::path& folder, int node, int in_fd, int out_fd)
      : job_(read_job(folder, node)), in_fd_(in_fd), out_fd_(out_fd) {}

  void run() {
    send({.kind = Frame::Kind::Hello, .text = fmt::format("{} ({})", version(), commit())});
    while (true) {
      if (!hear()) return;
      if (!begun_) continue;
      if (look()) continue;  // there may be more at once
      if (beat_.seconds() > kBeatSeconds) send({.kind = Frame::Kind::Beat});
    }
  }

 private:
  // Waits for input and obeys it. False: the input has ended.
  bool hear() {
    pollfd watched{in_fd_, POLLIN, 0};
    const int ready = ::poll(&watched, 1, busy_ ? 0 : kLookMs);
    if (ready < 0 && errno != EINTR) throw InfrastructureError(fmt::format("poll: {}", std::strerror(errno)));
    if (ready <= 0) return true;
    char block[64 << 10];
    const ssize_t got = ::read(in_fd_, block, sizeof block);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    if (got == 0) return false;
    input_.append(block, static_cast<size_t>(got));
    for (size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
      obey(std::string_view(input_).substr(0, end));
      input_.erase(0, end + 1);
    }
    if (input_.size() > kMaxInputLine) throw DataError("a relay's input: a line without end");
    return true;
  }

  void obey(std::string_view line) {
    if (!begun_) {
      begin(decode_have(line));
    } else if (line == "lease") {
      renew_lease(job_.folder, job_.ranks.node_rank);
    } else if (line.substr(0, 5) == "stop ") {
      const auto grace = parse_double(line.substr(5));
      if (!grace || !(*grace >= 0)) throw DataError("a relay's input: 'stop' needs seconds");
      write_stop(job_.folder, job_.ranks.node_rank, *grace);
    } else {
      throw DataError(fmt::format("a relay's input: '{}' is not known", valid_utf8(line.substr(0, 40))));
    }
  }

  // Of this attempt; what an earlier one left says nothing.
  std::optional<JobState> current_state() const { return state_of_attempt(job_); }

  void begin(const std::map<std::string, int64_t>& have) {
    const auto state = current_state();
    for (const std::string& name : growing_files(job_)) {
      SentFile file{.name = name};
      if (state && state->base.count(name)) file.base = state->base.at(name);
      if (have.count(name)) file.sent = have.at(name);
      files_.push_back(std::move(file));
    }
    begun_ = true;
    renew_lease(job_.folder, job_.ranks.node_rank);
  }

  // Sends what is new. The state is read first and sent last, so that who hears of the end has everything before it.
  bool look() {
    const auto state = current_state();
    const bool lives = supervisor_lives(job_.folder, job_.ranks.node_rank);
    busy_ = false;
    for (SentFile& file : files_) busy_ = send_growth(file) || busy_;
    if (busy_) return true;
    std::string text = state ? std::string(trim(to_line(to_json(*state)))) : "";
    if (state && text != state_text_) {
      send({.kind = Frame::Kind::State, .bytes = text});
      state_text_ = std::move(text);
    }
    if (!lives && !(state && state->ended())) tell_gone();
    return false;
  }

  void tell_gone() {
    // Between its last word and its end a supervisor holds the lock no more; so look once more.
    const auto state = current_state();
    if (told_gone_ || (state && state->ended())) return;
    told_gone_ = true;
    const size_t killed = end_leftovers(job_);
    send({.kind = Frame::Kind::Gone,
          .text =
              state ? fmt::format("the supervisor (process {} on {}) was killed; {} processes of it were left and are "
                                  "ended",
                                  state->pid, state->host, killed)
                    : "no supervisor was ever started there"});
  }

  bool send_growth(SentFile& file) {
    const FileDescriptor open(
        ::open((job_.folder / file.name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info {};
    if (!open || ::fstat(open.get(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
    const int64_t size = std::max<int64_t>(0, info.st_size - file.base);
    if (size < file.sent) {
      send({.kind = Frame::Kind::Cut, .file = file.name, .offset = size});
      file.sent = size;
    }
    if (size == file.sent) return false;
    std::string bytes(std::min(kChunk, static_cast<size_t>(size - file.sent)), '\0');
    const ssize_t got = ::pread(open.get(), bytes.data(), bytes.size(), file.base + file.sent);
    if (got <= 0) return false;
    bytes.resize(static_cast<size_t>(got));
    send({.kind = Frame::Kind::Bytes, .file = file.name, .offset = file.sent, .bytes = std::move(bytes)});
    file.sent += got;
    return true;
  }

  void send(const Frame& frame) {
    write_all(out_fd_, encode_frame(frame), "the relay's output");
    beat_.restart();
  }

  LaunchRequest job_;
  int in_fd_;
  int out_fd_;
  std::string input_;
  bool begun_ = false;
  bool busy_ = false;
  bool told_gone_ = false;
  std::vector<SentFile> files_;
  std::string state_text_;
  Stopwatch beat_;
};

}  // namespace

void run_relay(const fs::path& folder, int node, int in_fd, int out_fd) { Relay(folder, node, in_fd, out_fd).run(); }

}  // namespace assay
