#include "launch/host/local.h"

#include <fmt/format.h>
#include <poll.h>

#include <deque>
#include <fstream>

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

constexpr std::string_view kCaseVariables = "ASSAY_CASE_";
constexpr double kFollowSeconds = 1;    // what helpers of a rank get to see that it has ended
constexpr double kLeftBehindGrace = 2;  // seconds from SIGTERM to SIGKILL for what did not
constexpr int kFollowNapMs = 20;
constexpr size_t kMostNamed = 5;  // of the processes that a rank left

// "rank 0 left 2 processes running: sleep (4711), python3 (4712)"
std::string left_behind_text(int rank, const std::vector<pid_t>& pids) {
  std::vector<std::string> names;
  for (const pid_t pid : pids) {
    if (names.size() == kMostNamed) break;
    std::ifstream file(fmt::format("/proc/{}/comm", pid));
    std::string name;
    std::getline(file, name);
    names.push_back(fmt::format("{} ({})", name.empty() ? "unknown" : valid_utf8(name), pid));
  }
  if (pids.size() > names.size()) names.push_back(fmt::format("{} more", pids.size() - names.size()));
  return fmt::format("rank {} left {} process{} running, which {} ended: {}", rank, pids.size(),
                     pids.size() == 1 ? "" : "es", pids.size() == 1 ? "was" : "were", join(names, ", "));
}

class LocalStep : public RunningStep {
 public:
  explicit LocalStep(int first_rank) : first_rank_(first_rank) {}
  void add(Process process) { ranks_.push_back({.process = std::move(process)}); }

  std::optional<LaunchResult> wait_for(double seconds, int wake_fd) override {
    const Stopwatch watch;
    while (true) {
      const size_t num_running = poll_ranks();
      if (num_running == 0) {
        end_left_behind();
        return result();
      }
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
    note_left_behind();
    for (Rank& rank : ranks_) rank.process.request_stop();
    for (Rank& rank : ranks_) rank.process.stop(std::max(0.0, grace_seconds - watch.seconds()));
    return result();
  }

 private:
  struct Rank {
    Process process;
    std::optional<ExitStatus> ended = std::nullopt;  // by itself
    bool is_looked_at = false;                       // for what it left behind
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

  // What ranks that ended by themselves had started and did not end. Helpers that see their parent's end follow it at
  // once, and are waited for.
  void note_left_behind() {
    const Stopwatch watch;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].ended || ranks_[r].is_looked_at) continue;
      ranks_[r].is_looked_at = true;
      std::vector<pid_t> left = find_tree(ranks_[r].process.tree_mark());
      while (!left.empty() && watch.seconds() < kFollowSeconds) {
        ::poll(nullptr, 0, kFollowNapMs);
        left = find_tree(ranks_[r].process.tree_mark());
      }
      if (!left.empty()) left_behind_.push_back(left_behind_text(first_rank_ + static_cast<int>(r), left));
    }
  }

  // Before the devices of the ranks are somebody else's.
  void end_left_behind() {
    note_left_behind();
    const Stopwatch watch;
    for (Rank& rank : ranks_) rank.process.request_stop();
    for (Rank& rank : ranks_) rank.process.stop(std::max(0.0, kLeftBehindGrace - watch.seconds()));
  }

  LaunchResult result() {
    LaunchResult out;
    out.left_behind = left_behind_;
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
  std::vector<std::string> left_behind_;
  FailureRule rule_;  // of those that failed by themselves
};

// "{run}" in a text is the run folder on this host.
std::string with_run_folder(std::string text, const fs::path& run_folder) {
  const std::string run = run_folder.has_filename() ? run_folder.string() : run_folder.parent_path().string();
  for (size_t at = 0; (at = text.find(layout::kRunFolder, at)) != std::string::npos; at += run.size()) {
    text.replace(at, layout::kRunFolder.size(), run);
  }
  return text;
}

std::vector<std::string> resolved_argv(const RankCommand& command) {
  std::vector<std::string> argv = command.argv;
  if (argv[0] == "assay-worker") argv[0] = (program_folder() / "assay-worker").string();
  if (!command.has_work_folder) return argv;
  for (std::string& word : argv) word = with_run_folder(word, command.cwd);
  return argv;
}

// Where the rank stands: out of the reach of relative names lies all that the run is judged by. Every attempt has a
// new folder, so that it finds nothing of an earlier one.
fs::path working_folder(const LaunchRequest& request, int rank) {
  if (!request.command.has_work_folder) return request.command.cwd;
  const fs::path folder = request.folder / layout::work_folder(request.attempt, rank);
  make_folder(folder);
  make_folder(request.folder / layout::kOutput);
  return folder;
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
    ProcessOptions options{.argv = resolved_argv(request.command),
                           .env = rank_environment(request, local_rank, node),
                           .cwd = working_folder(request, rank),
                           .output_file = request.folder / layout::rank_log(rank),
                           .die_with_parent = true,
                           .tree_mark = request.tree_mark + "/" + std::to_string(rank)};
    if (request.command.has_work_folder) {
      for (auto& [name, value] : options.env) {
        if (name.starts_with(kCaseVariables)) value = with_run_folder(value, request.command.cwd);
      }
    }
    options.env["ASSAY_RECORDS"] = (request.folder / layout::records_file(rank)).string();
    if (request.ranks.num_servers > 0) {
      for (const auto& [name, value] : ps::role_environment(servers, rank)) options.env[name] = value;
    }
    step->add(Process::start(options));
  }
  return step;
}

}  // namespace assay
