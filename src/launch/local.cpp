#include "launch/local.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <deque>

#include "base/error.h"
#include "base/files.h"
#include "base/time.h"

namespace assay {

namespace {

constexpr double kPeerGraceSeconds = 3;  // for the ranks that did not fail, once one did

class LocalStep : public RunningStep {
 public:
  void add(Process process) { ranks_.push_back(std::move(process)); }

  std::optional<LaunchResult> wait_for(double seconds, int wake_fd) override {
    const Stopwatch watch;
    while (true) {
      size_t num_running = 0;
      for (size_t r = 0; r < ranks_.size(); ++r) {
        const auto status = ranks_[r].poll();
        if (!status) ++num_running;
        if (status && !status->ok() && decider_ < 0) decider_ = static_cast<int>(r);
      }
      if (num_running == 0) return result();
      if (decider_ >= 0) return stop(kPeerGraceSeconds);
      const double left = seconds - watch.seconds();
      if (left <= 0) return std::nullopt;
      // With one rank its end wakes us at once; several are looked at in turn, often enough for people.
      const double nap = num_running == 1 && ranks_.size() == 1 ? left : std::min(left, 0.02);
      const auto running = std::find_if(ranks_.begin(), ranks_.end(), [](Process& p) { return !p.poll(); });
      if (running != ranks_.end()) running->wait_for(nap, wake_fd);
      pollfd woken{wake_fd, POLLIN, 0};
      if (wake_fd >= 0 && ::poll(&woken, 1, 0) > 0) return std::nullopt;
    }
  }

  LaunchResult stop(double grace_seconds) override {
    const Stopwatch watch;
    for (Process& rank : ranks_) rank.request_stop();
    for (Process& rank : ranks_) rank.stop(std::max(0.0, grace_seconds - watch.seconds()));
    return result();
  }

 private:
  LaunchResult result() {
    LaunchResult out;
    out.deciding_rank = std::max(decider_, 0);
    for (Process& rank : ranks_) {
      out.ranks.push_back(rank.wait());
      out.max_rss_bytes += out.ranks.back().max_rss_bytes;
    }
    out.status = out.ranks[static_cast<size_t>(out.deciding_rank)];
    for (const ExitStatus& status : out.ranks) out.status.seconds = std::max(out.status.seconds, status.seconds);
    return out;
  }

  std::deque<Process> ranks_;
  int decider_ = -1;
};

std::vector<std::string> resolved_argv(std::vector<std::string> argv) {
  if (argv[0] == "assay-worker") argv[0] = (program_folder() / "assay-worker").string();
  return argv;
}

}  // namespace

std::string records_file_name(int rank) {
  return rank == 0 ? "records.jsonl" : fmt::format("records.rank{}.jsonl", rank);
}

int free_port() {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw InfrastructureError("no free TCP port on the loopback interface");
  }
  return ntohs(address.sin_port);
}

std::unique_ptr<RunningStep> LocalLauncher::start(const LaunchRequest& request) {
  auto step = std::make_unique<LocalStep>();
  std::map<std::string, std::string> env = {{"WORLD_SIZE", std::to_string(request.nproc)},
                                            {"NODE_RANK", "0"},
                                            {"LOCAL_WORLD_SIZE", std::to_string(request.nproc)},
                                            {"MASTER_ADDR", "127.0.0.1"}};
  for (const auto& [name, value] : request.env) env[name] = value;
  if (request.nproc > 1 && !env.count("MASTER_PORT")) env["MASTER_PORT"] = std::to_string(free_port());
  for (int rank = 0; rank < request.nproc; ++rank) {
    ProcessOptions options{.argv = resolved_argv(request.argv),
                           .env = env,
                           .cwd = request.cwd,
                           .output_file = request.folder / fmt::format("rank{}.log", rank),
                           .die_with_parent = true,
                           .tree_mark = request.tree_mark + "/" + std::to_string(rank)};
    options.env["RANK"] = std::to_string(rank);
    options.env["LOCAL_RANK"] = std::to_string(rank);
    options.env["ASSAY_RECORDS"] = (request.folder / records_file_name(rank)).string();
    step->add(Process::start(options));
  }
  return step;
}

}  // namespace assay
