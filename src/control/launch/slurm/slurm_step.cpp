#include "launch/slurm/slurm_step.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/host/job.h"
#include "launch/slurm/slurm.h"
#include "launch/slurm/slurm_place.h"

namespace assay {

namespace {

constexpr double kStatesEvery = 0.1;
// Slurm's controller serves everybody: it is asked often only while it decides something.
constexpr double kAskFirst = 0.2;
constexpr double kAskQueued = 5;
constexpr double kAskRunning = 10;
constexpr int kHopelessAnswers = 2;    // a reason may be left from a moment ago
constexpr double kLateFiles = 5;       // how long files of the nodes may be behind Slurm's news
constexpr double kCompleting = 40;     // longer than Slurm's KillWait; a node that does not answer may never end it
constexpr double kSlurmStopSlack = 5;  // what a supervisor gets beyond the grace before the job is cancelled
constexpr size_t kSlurmLogLines = 5;

bool node_lost_touch(const JobState& state) {
  return state.error_kind.empty() && state.result && state.result->failed_by_itself && lost_touch(state.result->status);
}

bool node_failed(const JobState& state) {
  return !state.error_kind.empty() || !state.result || !state.result->status.ok();
}

// The ends that Slurm itself may have brought about by a signal.
bool ended_by_signal(const JobState& state) {
  return state.error_kind == JobState::kTerminated || (state.result && state.result->status.signal);
}

}  // namespace

SlurmStep::SlurmStep(LaunchRequest request, Json note)
    : request_(std::move(request)),
      note_(std::move(note)),
      job_id_(note_.at("job_id").get<std::string>()),
      states_(static_cast<size_t>(request_.ranks.nnodes)),
      question_interval_(kAskFirst) {
  std::vector<int> nodes;
  for (int node = 0; node < request_.ranks.nnodes; ++node) nodes.push_back(node);
  keeper_ = std::make_unique<LeaseKeeper>(request_.folder, nodes, request_.site.lease_s);
}

SlurmStep::~SlurmStep() {
  if (!result_ && !job_ended_ && !is_left_) cancel_slurm_job(job_id_);
}

std::optional<LaunchResult> SlurmStep::wait_for(double seconds, int wake_fd) {
  const Stopwatch watch;
  while (true) {
    look();
    if (auto result = finished()) return result;
    const double left = seconds - watch.seconds();
    if (left <= 0) return std::nullopt;
    pollfd woken{wake_fd, POLLIN, 0};
    const int nap_ms = static_cast<int>(std::min(left, kStatesEvery) * 1000) + 1;
    if (::poll(&woken, 1, nap_ms) > 0) return std::nullopt;
  }
}

LaunchResult SlurmStep::stop(double grace_seconds) {
  if (result_) return *result_;
  next_states_ = 0;
  look_at_states();  // who has failed until now did so by itself
  stop_requested_ = true;
  ask_to_stop(grace_seconds);
  if (!begun() && (!job_ || job_->pending())) {  // what Slurm said last may be older than what the nodes say
    cancelled_by_us_ = true;
    cancel_slurm_job(job_id_);
  }
  ask_soon();
  while (true) {
    if (auto result = wait_for(0.2, -1)) return *result;
    if (cancelled_by_us_ && stopping_->seconds() > stop_grace_ + kSlurmStopSlack + kCompleting) {
      return conclude(combine());
    }
  }
}

void SlurmStep::look() {
  look_at_states();
  look_at_queue();
  if (rule_.is_decided() && !stopping_) ask_to_stop(kPeerGraceSeconds);
  if (!stopping_ || all_ended()) return;
  if (watch_.seconds() >= next_stop_) {  // again and again: a supervisor that begins just now removes an old one
    next_stop_ = watch_.seconds() + 1;
    for (int node = 0; node < request_.ranks.nnodes; ++node) {
      const auto& state = states_[static_cast<size_t>(node)];
      if (!state || !state->ended()) write_stop(request_.folder, node, stop_grace_);
    }
  }
  if (!cancelled_by_us_ && stopping_->seconds() > stop_grace_ + kSlurmStopSlack) {
    cancelled_by_us_ = true;
    cancel_slurm_job(job_id_);
    ask_soon();
  }
}

void SlurmStep::look_at_states() {
  if (watch_.seconds() < next_states_) return;
  next_states_ = watch_.seconds() + std::max(kStatesEvery, 0.001 * request_.ranks.nnodes);
  for (int node = 0; node < request_.ranks.nnodes; ++node) {
    auto& known = states_[static_cast<size_t>(node)];
    if (known && known->ended()) continue;
    auto state = read_state(request_.folder, node);
    if (!state || state->run_id != request_.run_id || state->attempt != request_.attempt) continue;
    if (!known) ask_soon();  // it begins to run: a good moment to hear where
    known = std::move(state);
    if (known->ended()) note_failure(node);
  }
}

void SlurmStep::note_failure(int node) {
  const JobState& state = *states_[static_cast<size_t>(node)];
  if (!node_failed(state)) return;
  if (ended_by_signal(state)) ask_soon();
  // What ended because we asked it to, or after another, is no cause; nor is a signal of Slurm's when we cancelled it.
  if (stopping_ && !(state.result && state.result->failed_by_itself)) return;
  if (cancelled_by_us_ && ended_by_signal(state)) return;
  rule_.note(static_cast<size_t>(node), node_lost_touch(state));
}

bool SlurmStep::begun() const {
  return std::any_of(states_.begin(), states_.end(), [](const auto& state) { return state.has_value(); });
}

bool SlurmStep::all_ended() const {
  return std::all_of(states_.begin(), states_.end(), [](const auto& state) { return state && state->ended(); });
}

void SlurmStep::ask_to_stop(double grace_seconds) {
  if (!stopping_) stopping_.emplace();
  stop_grace_ = grace_seconds;
  next_stop_ = 0;
}

void SlurmStep::look_at_queue() {
  if (job_ended_) return;
  if (question_) {
    const auto answer = question_->poll();
    if (!answer) return;
    question_.reset();
    note_job(*answer);
    const double slowest = job_ && job_->pending() ? kAskQueued : kAskRunning;
    const bool decides = stopping_ || all_ended_ || (job_ && job_->state == "COMPLETING");
    question_interval_ = decides ? kAskFirst : std::min(slowest, 2 * question_interval_);
    next_question_ = watch_.seconds() + question_interval_;
  } else if (watch_.seconds() >= next_question_) {
    try {
      question_ = std::make_unique<SlurmQuestion>(job_id_);
    } catch (const InfrastructureError&) {  // no process could be started: later, perhaps
      next_question_ = watch_.seconds() + kAskQueued;
    }
  }
}

void SlurmStep::note_job(const SlurmQuestion::Answer& answer) {
  if (!answer.job && !answer.unknown_job) return;  // Slurm's controller is away; the job goes on without it
  const std::string before = job_ ? job_->state + job_->reason : "";
  if (answer.unknown_job) {
    gone_ = true;
    job_ended_.emplace();
    write_note("ended", "");
    return;
  }
  job_ = answer.job;
  hopeless_answers_ = job_->hopeless() ? hopeless_answers_ + 1 : 0;
  if (job_->final()) job_ended_.emplace();
  if (before != job_->state + job_->reason) {
    write_note(job_->pending() ? "queued" : job_->final() ? "ended" : "running", job_->reason);
    question_interval_ = kAskFirst;
  }
}

void SlurmStep::write_note(const std::string& state, const std::string& reason) {
  note_["state"] = state;
  note_["reason"] = reason;
  if (job_ && !job_->nodes.empty()) note_["nodes"] = job_->nodes;
  try {
    write_file_atomic(request_.folder / kSlurmFile, to_pretty(note_) + "\n");
  } catch (const InfrastructureError&) {  // a full disk; it is for people only, and the number stands in it already
  }
}

std::string SlurmStep::queued() {
  if (result_ || begun() || (job_ && !job_->pending())) return "";
  if (!job_) return fmt::format("submitted to Slurm as job {}", job_id_);
  return fmt::format("queued by Slurm as job {}: {}", job_id_, job_->reason);
}

std::optional<LaunchResult> SlurmStep::finished() {
  if (result_) return result_;
  if (hopeless_answers_ >= kHopelessAnswers && !cancelled_by_us_) {
    cancelled_by_us_ = true;
    cancel_slurm_job(job_id_);
    LaunchResult result = combine();
    result.infrastructure =
        fmt::format("Slurm will never run job {}: {} (see scontrol show partition, and the campaign's slurm settings)",
                    job_id_, job_->reason);
    return conclude(std::move(result));
  }
  if (all_ended()) {
    if (!all_ended_) all_ended_.emplace();
    // Killed by a signal: by the kernel, or did Slurm end the whole job? It tells when it has finished with it.
    const bool wait_for_slurm = any_ended_by_signal() && !stop_requested_ && !cancelled_by_us_ && !job_ended_;
    if (wait_for_slurm && all_ended_->seconds() < kCompleting) return std::nullopt;
    return conclude(combine());
  }
  if (job_ended_ && job_ended_->seconds() > kLateFiles) return conclude(combine());
  return std::nullopt;
}

LaunchResult SlurmStep::conclude(LaunchResult result) {
  write_note("ended", job_ && job_->final() ? job_->state : "");
  result_ = std::move(result);
  return *result_;
}

bool SlurmStep::any_ended_by_signal() const {
  return std::any_of(states_.begin(), states_.end(),
                     [](const auto& state) { return state && ended_by_signal(*state); });
}

std::string SlurmStep::node_name(int node) const {
  try {
    const Json nodes = parse_json(read_limited(request_.folder / kSlurmNodesFile, 1 << 24), kSlurmNodesFile);
    return nodes.at(static_cast<size_t>(node)).at("name").get<std::string>();
  } catch (const std::exception&) {  // not placed yet
    return fmt::format("node {}", node);
  }
}

std::string SlurmStep::job_log_tail() const {
  const auto lines = tail_lines(request_.folder / slurm_log_name(request_.attempt), kSlurmLogLines);
  return lines.empty() ? "" : ": " + join(lines, "; ");
}

std::string SlurmStep::why_slurm_ended_it() const {
  if (all_ended() && !any_ended_by_signal()) return "";  // the ranks have said how they ended
  const std::string job = fmt::format("Slurm job {}", job_id_);
  if (gone_ && !all_ended())
    return job + " is not known to Slurm any more, and not all nodes said how their ranks ended";
  if (!job_ || !job_->final() || cancelled_by_us_) return "";
  const std::string& state = job_->state;
  const std::string on = job_->nodes.empty() ? "" : " on " + job_->nodes;
  if (state == "CANCELLED") return fmt::format("{}{} was cancelled from outside (CANCELLED)", job, on);
  if (state == "TIMEOUT" || state == "DEADLINE") {
    return fmt::format("{}{} was ended by Slurm at its limit of time ({}); see the partition's MaxTime", job, on,
                       state);
  }
  if (state == "NODE_FAIL")
    return fmt::format("{}: a node of {} failed (NODE_FAIL); sinfo shows which", job, job_->nodes);
  if (state == "BOOT_FAIL") return fmt::format("{}: a node did not start (BOOT_FAIL)", job);
  if (state == "PREEMPTED" || state == "REVOKED") return fmt::format("{}{} had to make room ({})", job, on, state);
  if (all_ended()) return "";
  if (state == "OUT_OF_MEMORY") {
    return fmt::format(
        "{}{} used more memory than it may (OUT_OF_MEMORY); ask for more with slurm options: [--mem=...]", job, on);
  }
  return fmt::format("{}{} ended ({}) before its ranks said how they ended{}", job, on, state, job_log_tail());
}

LaunchResult SlurmStep::combine() const {
  LaunchResult out;
  const ExitStatus lost{.code = std::nullopt, .signal = SIGKILL};
  for (const auto& state : states_) {
    for (int i = 0; i < request_.ranks.nproc; ++i) {
      const bool known = state && state->result && static_cast<size_t>(i) < state->result->ranks.size();
      out.ranks.push_back(known ? state->result->ranks[static_cast<size_t>(i)] : lost);
    }
    if (!state || !state->result) continue;
    out.max_rss_bytes += state->result->max_rss_bytes;
    for (const std::string& left : state->result->left_behind) out.left_behind.push_back(left);
  }
  out.status = out.ranks.front();
  const auto& decider = states_[rule_.decider().value_or(0)];
  if (decider && decider->result) {
    out.status = decider->result->status;
    out.deciding_rank = decider->result->deciding_rank;
    out.failed_by_itself = rule_.decider() && decider->result->failed_by_itself;
  }
  for (const ExitStatus& status : out.ranks) out.status.seconds = std::max(out.status.seconds, status.seconds);
  out.infrastructure = why_slurm_ended_it();
  const bool our_doing = cancelled_by_us_ && decider && decider->error_kind == JobState::kTerminated;
  if (out.infrastructure.empty() && decider && !decider->error_kind.empty() && !our_doing) {
    out.infrastructure =
        fmt::format("{}: {}", node_name(static_cast<int>(rule_.decider().value_or(0))), decider->error);
  }
  out.status.timed_out = job_ && job_->state == "TIMEOUT" && !out.infrastructure.empty();
  if (!out.infrastructure.empty()) out.failed_by_itself = false;
  return out;
}

}  // namespace assay
