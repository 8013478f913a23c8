#include "launch/local.h"

#include <fmt/format.h>
#include <poll.h>

#include <deque>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/port.h"
#include "launch/rank_environment.h"
#include "ps/role.h"

namespace assay {

namespace {

// A rank that says only that it lost touch with the others.
bool lost_touch(const ExitStatus& status) { return status.code == worker_exit_code(ErrorKind::Communication); }

class LocalStep : public RunningStep {
 public:
  explicit LocalStep(int first_rank) : first_rank_(first_rank) {}
  void add(Process process) { ranks_.push_back({.process = std::move(process)}); }

  std::optional<LaunchResult> wait_for(double seconds, int wake_fd) override {
    const Stopwatch watch;
    while (true) {
      const size_t num_running = look();
      if (num_running == 0) return result();
      if (is_decided()) return stop(kPeerGraceSeconds);
      const double left = seconds - watch.seconds();
      if (left <= 0) return std::nullopt;
      // With one rank its end wakes us at once; several are looked at in turn, often enough for people.
      const double nap = ranks_.size() == 1 ? left : std::min(left, 0.02);
      for (Rank& rank : ranks_) {
        if (rank.ended) continue;
        rank.process.wait_for(nap, wake_fd);
        break;
      }
      pollfd woken{wake_fd, POLLIN, 0};
      if (wake_fd >= 0 && ::poll(&woken, 1, 0) > 0) return std::nullopt;
    }
  }

  LaunchResult stop(double grace_seconds) override {
    const Stopwatch watch;
    look();  // who has ended until now did so by itself
    for (Rank& rank : ranks_) rank.process.request_stop();
    for (Rank& rank : ranks_) rank.process.stop(std::max(0.0, grace_seconds - watch.seconds()));
    return result();
  }

 private:
  struct Rank {
    Process process;
    std::optional<ExitStatus> ended = std::nullopt;  // by itself
  };

  // Notes who has ended by itself; returns how many still run. A cause replaces what is only its consequence.
  size_t look() {
    size_t num_running = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      if (!rank.ended) rank.ended = rank.process.poll();
      if (!rank.ended) ++num_running;
      if (!rank.ended || rank.ended->ok()) continue;
      if (!first_failure_) first_failure_.emplace();
      if (!decider_ || (lost_touch(*ranks_[*decider_].ended) && !lost_touch(*rank.ended))) decider_ = r;
    }
    return num_running;
  }

  bool is_decided() const {
    if (!decider_) return false;
    return !lost_touch(*ranks_[*decider_].ended) || first_failure_->seconds() >= kPeerGraceSeconds;
  }

  LaunchResult result() {
    LaunchResult out;
    const size_t decider = decider_.value_or(0);
    out.deciding_rank = first_rank_ + static_cast<int>(decider);
    out.failed_by_itself = decider_.has_value();
    for (Rank& rank : ranks_) {
      out.ranks.push_back(rank.process.wait());
      out.max_rss_bytes += out.ranks.back().max_rss_bytes;
    }
    out.status = out.ranks[decider];
    for (const ExitStatus& status : out.ranks) out.status.seconds = std::max(out.status.seconds, status.seconds);
    return out;
  }

  std::deque<Rank> ranks_;
  int first_rank_;
  std::optional<size_t> decider_;  // among those that failed by themselves
  std::optional<Stopwatch> first_failure_;
};

std::vector<std::string> resolved_argv(std::vector<std::string> argv) {
  if (argv[0] == "assay-worker") argv[0] = (program_folder() / "assay-worker").string();
  return argv;
}

}  // namespace

std::string records_file_name(int rank) {
  return rank == 0 ? "records.jsonl" : fmt::format("records.rank{}.jsonl", rank);
}

std::unique_ptr<RunningStep> LocalLauncher::start(const LaunchRequest& request) {
  const int first_rank = request.node_rank * request.nproc;
  auto step = std::make_unique<LocalStep>(first_rank);
  const std::map<std::string, std::string> node = node_environment(request);
  ps::LocalJob servers{.num_trainers = request.nproc - request.num_servers, .server_ports = {}};
  for (int i = 0; i < request.num_servers; ++i) servers.server_ports.push_back(free_port());
  for (int local_rank = 0; local_rank < request.nproc; ++local_rank) {
    const int rank = first_rank + local_rank;
    ProcessOptions options{.argv = resolved_argv(request.argv),
                           .env = rank_environment(request, local_rank, node),
                           .cwd = request.cwd,
                           .output_file = request.folder / fmt::format("rank{}.log", rank),
                           .die_with_parent = true,
                           .tree_mark = request.tree_mark + "/" + std::to_string(rank)};
    options.env["ASSAY_RECORDS"] = (request.folder / records_file_name(rank)).string();
    if (request.num_servers > 0) {
      for (const auto& [name, value] : ps::role_environment(servers, rank)) options.env[name] = value;
    }
    step->add(Process::start(options));
  }
  return step;
}

}  // namespace assay
