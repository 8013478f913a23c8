#include "launch/multi_node/hosts_step.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr int kNapMs = 20;             // between two looks at the nodes
constexpr double kStopSlack = 10;      // beyond the grace time, until a node that does not answer is left to its lease
constexpr double kUnheardSeconds = 3;  // of a host whose connection is lost, until it counts as gone for a stop

std::string silence_text(const NodeReport& report) {
  return fmt::format("no contact for {}{}", duration_text(report.silent_s),
                     report.trouble.empty() ? "" : ": " + report.trouble);
}

}  // namespace

HostsStep::HostsStep(LaunchRequest request, std::vector<std::unique_ptr<NodeSession>> sessions)
    : request_(std::move(request)) {
  for (auto& session : sessions) nodes_.push_back({.session = std::move(session)});
}

HostsStep::~HostsStep() {
  if (result_ || is_left_) return;
  try {
    stop_nodes(0);
  } catch (const std::exception&) {
    // What cannot be reached ends with its lease.
  }
}

std::optional<LaunchResult> HostsStep::wait_for(double seconds, int wake_fd) {
  if (result_) return result_;
  const Stopwatch watch;
  while (true) {
    const size_t num_running = poll_nodes();
    if (num_running == 0 || is_decided()) {
      if (num_running > 0) stop_nodes(kPeerGraceSeconds);
      return finish();
    }
    const double left = seconds - watch.seconds();
    if (left <= 0) return std::nullopt;
    pollfd woken{wake_fd, POLLIN, 0};
    const int nap = std::max(1, std::min(kNapMs, static_cast<int>(left * 1000)));
    if (::poll(&woken, wake_fd >= 0 ? 1 : 0, nap) > 0) return std::nullopt;
  }
}

LaunchResult HostsStep::stop(double grace_seconds) {
  if (result_) return *result_;
  if (poll_nodes() > 0) stop_nodes(grace_seconds);
  return finish();
}

bool HostsStep::can_go_on() {
  poll_nodes();
  return rule_.decider() || infrastructure_.empty();
}

size_t HostsStep::poll_nodes() {
  std::vector<size_t> fresh;
  size_t num_running = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.ended) continue;
    try {
      node.report = node.session->look();
    } catch (const Error& error) {
      node.report.gone = error.what();
    }
    const NodeReport& report = node.report;
    node.ended = report.state && report.state->ended();
    if (node.ended) {
      fresh.push_back(i);
      continue;
    }
    ++num_running;
    if (!report.gone.empty()) {
      fail(i, report.gone);
    } else if (report.silent_s > std::max(request_.site.lease_s, kUnheardSeconds)) {
      fail(i, silence_text(report));
    }
  }
  // Seen in one look, the earlier one is the cause, as far as the hosts' clocks agree.
  std::sort(fresh.begin(), fresh.end(),
            [&](size_t a, size_t b) { return nodes_[a].report.state->ended_us < nodes_[b].report.state->ended_us; });
  for (const size_t node : fresh) note_end(node);
  return num_running;
}

void HostsStep::note_end(size_t node) {
  const JobState& state = *nodes_[node].report.state;
  const int first_rank = static_cast<int>(node) * request_.ranks.nproc;
  if (state.result &&
      (state.result->ranks.size() != static_cast<size_t>(request_.ranks.nproc) ||
       state.result->deciding_rank < first_rank || state.result->deciding_rank >= first_rank + request_.ranks.nproc)) {
    return fail(node, "tells of ranks that the job does not have there");
  }
  const bool failed = state.result && state.result->failed_by_itself;
  if (!state.error_kind.empty() && !failed) fail(node, state.error);
  if (failed) rule_.note(node, lost_touch(state.result->status));
}

bool HostsStep::is_decided() const { return !infrastructure_.empty() || rule_.is_decided(); }

void HostsStep::fail(size_t node, const std::string& why) {
  if (infrastructure_.empty()) infrastructure_ = fmt::format("{}: {}", request_.placement.nodes[node].host.name, why);
}

void HostsStep::stop_nodes(double grace_seconds) {
  for (Node& node : nodes_) {
    if (!node.ended) node.session->request_stop(grace_seconds);
  }
  const Stopwatch watch;
  // A host that cannot be reached hears of the stop when it can, or its lease ends; that is not waited for.
  const auto waited_for = [&](const Node& node) {
    const bool unreachable = !node.report.trouble.empty() && node.report.silent_s > kUnheardSeconds;
    return !node.ended && node.report.gone.empty() && !unreachable;
  };
  while (watch.seconds() < grace_seconds + kStopSlack) {
    poll_nodes();
    if (std::none_of(nodes_.begin(), nodes_.end(), waited_for)) return;
    ::poll(nullptr, 0, kNapMs);
  }
}

LaunchResult HostsStep::finish() {
  LaunchResult result = combined();
  const bool has_cause = rule_.decider() && !rule_.is_consequence();
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.ended || has_cause) continue;
    const bool answers = node.report.trouble.empty() && node.report.silent_s < kUnheardSeconds;
    fail(i,
         fmt::format("{}; what runs there ends when its lease of {} s does",
                     answers ? "did not end when it was asked to" : silence_text(node.report), request_.site.lease_s));
  }
  // A rank's own failure is the cause of what comes after it, unless it only tells that it lost others.
  if (!has_cause) result.infrastructure = infrastructure_;
  bring_back(result);
  result_ = result;
  return result;
}

LaunchResult HostsStep::combined() const {
  LaunchResult out;
  const size_t decider = rule_.decider().value_or(0);
  double seconds = 0;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const auto& state = nodes_[i].report.state;
    const bool has_result =
        state && state->result && state->result->ranks.size() == static_cast<size_t>(request_.ranks.nproc);
    if (has_result) {
      out.ranks.insert(out.ranks.end(), state->result->ranks.begin(), state->result->ranks.end());
      out.max_rss_bytes += state->result->max_rss_bytes;
      for (const std::string& left : state->result->left_behind) out.left_behind.push_back(left);
      seconds = std::max(seconds, state->result->status.seconds);
    } else {
      out.ranks.resize(out.ranks.size() + static_cast<size_t>(request_.ranks.nproc));
    }
    if (i == decider && has_result) {
      out.status = state->result->status;
      out.deciding_rank = state->result->deciding_rank;
    }
  }
  out.failed_by_itself = rule_.decider().has_value();
  out.status.seconds = seconds;
  return out;
}

void HostsStep::bring_back(LaunchResult& result) {
  if (request_.staging.collect.empty()) return;
  std::vector<std::string> wanted = request_.staging.collect;
  for (size_t i = 0; i < nodes_.size() && !wanted.empty(); ++i) {
    if (!nodes_[i].ended) continue;
    try {
      const auto found = nodes_[i].session->collect(wanted);
      const std::set<std::string> have(found.begin(), found.end());
      std::erase_if(wanted, [&](const std::string& name) { return have.count(name) > 0; });
    } catch (const InfrastructureError& error) {
      // Of a job that failed, its failure is to be told.
      if (result.status.ok() && result.infrastructure.empty()) result.infrastructure = error.what();
    }
  }
}

}  // namespace assay
