#include "launch/host/local.h"

#include <fmt/format.h>
#include <poll.h>

#include <deque>

#include "base/error.h"
#include "base/files.h"
#include "base/server_role.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/failure_rule.h"
#include "launch/host/port.h"
#include "launch/host/rank_environment.h"
#include "layout/run_layout.h"

namespace assay {

namespace {

class LocalStep : public RunningStep {
 public:
  explicit LocalStep(int first_rank) : first_rank_(first_rank) {}
  void add(Process process) { ranks_.push_back({.process = std::move(process)}); }

  std::optional<LaunchResult> wait_for(double seconds, int wake_fd) override {
    const Stopwatch watch;
    while (true) {
      const size_t num_running = poll_ranks();
      if (num_running == 0) return result();
      if (rule_.is_decided()) return stop(kPeerGraceSeconds);
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
    poll_ranks();  // who has ended until now did so by itself
    for (Rank& rank : ranks_) rank.process.request_stop();
    for (Rank& rank : ranks_) rank.process.stop(std::max(0.0, grace_seconds - watch.seconds()));
    return result();
  }

 private:
  struct Rank {
    Process process;
    std::optional<ExitStatus> ended = std::nullopt;  // by itself
  };

  // Notes who has ended by itself; returns how many still run.
  size_t poll_ranks() {
    size_t num_running = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      Rank& rank = ranks_[r];
      if (!rank.ended) rank.ended = rank.process.poll();
      if (!rank.ended) ++num_running;
      if (rank.ended && !rank.ended->ok()) rule_.note(r, lost_touch(*rank.ended));
    }
    return num_running;
  }

  LaunchResult result() {
    LaunchResult out;
    const size_t decider = rule_.decider().value_or(0);
    out.deciding_rank = first_rank_ + static_cast<int>(decider);
    out.failed_by_itself = rule_.decider().has_value();
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
  FailureRule rule_;  // of those that failed by themselves
};

std::vector<std::string> resolved_argv(std::vector<std::string> argv) {
  if (argv[0] == "assay-worker") argv[0] = (program_folder() / "assay-worker").string();
  return argv;
}

}  // namespace

std::unique_ptr<RunningStep> LocalLauncher::start(const LaunchRequest& request) {
  const int first_rank = request.ranks.first_rank();
  auto step = std::make_unique<LocalStep>(first_rank);
  const std::map<std::string, std::string> node = node_environment(request);
  ps::LocalJob servers{.num_trainers = request.ranks.nproc - request.ranks.num_servers, .server_ports = {}};
  for (int i = 0; i < request.ranks.num_servers; ++i) servers.server_ports.push_back(free_port());
  for (int local_rank = 0; local_rank < request.ranks.nproc; ++local_rank) {
    const int rank = first_rank + local_rank;
    ProcessOptions options{.argv = resolved_argv(request.command.argv),
                           .env = rank_environment(request, local_rank, node),
                           .cwd = request.command.cwd,
                           .output_file = request.folder / layout::rank_log(rank),
                           .die_with_parent = true,
                           .tree_mark = request.tree_mark + "/" + std::to_string(rank)};
    options.env["ASSAY_RECORDS"] = (request.folder / layout::records_file(rank)).string();
    if (request.ranks.num_servers > 0) {
      for (const auto& [name, value] : ps::role_environment(servers, rank)) options.env[name] = value;
    }
    step->add(Process::start(options));
  }
  return step;
}

}  // namespace assay
