#include "execute/step_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "config/case_key.h"
#include "execute/log_extract.h"
#include "launch/host/job_state.h"
#include "layout/run_layout.h"
#include "monitor/disturbance.h"
#include "record/keys.h"
#include "run/evidence.h"

namespace assay {

namespace {

constexpr double kRetryPauseSeconds = 2;  // a host that has just gone is seldom back at once

// What all ranks of a step have written, in files whose names begin so.
int64_t bytes_in(const std::filesystem::path& folder, std::string_view prefix) {
  int64_t total = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const auto size = entry.file_size(ignored);
    if (!ignored) total += static_cast<int64_t>(size);
  }
  return total;
}

}  // namespace

LaunchRequest launch_request(const RunFolder& run, const Step& step, const std::vector<NodePlace>& places,
                             const SiteSettings& site) {
  LaunchRequest request{.command = {.argv = step.command.argv,
                                    .env = step.command.env,
                                    .cwd = run.path(),
                                    .has_work_folder = step.command.has_work_folder,
                                    .framework = step.ranks.framework},
                        .folder = run.step_folder(step),
                        .ranks = {.nproc = step.ranks.nproc,
                                  .nnodes = step.ranks.nnodes,
                                  .node_rank = step.ranks.node_rank,
                                  .num_servers = step.ranks.num_servers},
                        .tree_mark = run.tree_mark(step)};
  if (!step.ranks.on_hosts) return request;
  const std::string& key = step.measures.key;
  request.run_id = run.id();
  request.attempt = run.state().steps.at(step.name).attempts;
  request.placement = {.nodes = places, .hardware = key.empty() ? "host" : CaseKey::parse(key).hardware};
  request.site = site;
  if (key.empty()) {
    request.site.monitor_interval_s = 0;
    request.site.clear_caches = false;
  }
  request.time_limit_s = step.limits.time_limit_s.value_or(0);
  request.staging.collect = step.files.collect;
  for (const std::string& folder : step.command.code_folders()) request.staging.staged.emplace_back(folder);
  return request;
}

StepTask::StepTask(const Services& services, const Step& step, std::vector<NodePlace> places, bool attach)
    : services_(services), step_(step), folder_(services.run.step_folder(step)), places_(std::move(places)) {
  make_folder(folder_);
  if (attach) {
    try {
      running_ = services_.launcher.attach(request());
    } catch (const InfrastructureError& error) {
      services_.console.warn(fmt::format("{}: what runs of it cannot be reached: {}", step_.name, error.what()));
    }
    if (running_) {
      services_.console.info(fmt::format("{} was begun before; going on with it", step_.name));
      output_.emplace(step_.ranks, folder_);
      progress_.emplace(step_, folder_, services_.console);
      before_watch_s_ = seconds_before_attach();
      return;
    }
  }
  const auto before = services_.run.state().steps.find(step_.name);
  const bool was_begun = before != services_.run.state().steps.end() && before->second.attempts > 0;
  if (was_begun && !step_.ranks.on_hosts) kill_leftovers();
  note_start();
  if (step_.kind == StepKind::Verify) {
    early_end_ = verify();
    return;
  }
  prepare();
  launch();
}

void StepTask::note_start() {
  if (!step_.ranks.on_hosts) return services_.run.step_started(step_);
  restart_watch();  // of this attempt, and not of those before it
  std::error_code none;
  const auto size = std::filesystem::file_size(folder_ / extracted_log(), none);
  services_.run.step_started(step_, to_json(places_), none ? 0 : static_cast<int64_t>(size));
}

// How long it has run by now. A scheduler may have let it wait; its supervisor knows since when it did not.
double StepTask::seconds_before_attach() const {
  int64_t begun_us = state().started_us.value_or(now_us());
  if (const auto job = state_of_attempt(request()); job && job->started_us > begun_us) begun_us = job->started_us;
  return std::max(0.0, static_cast<double>(now_us() - begun_us) * 1e-6);
}

// An earlier controller that was killed may have left processes; two writers in one folder would ruin it.
void StepTask::kill_leftovers() {
  size_t count = 0;
  for (int rank = step_.ranks.first_rank(); rank < step_.ranks.first_rank() + step_.ranks.nproc; ++rank) {
    count += kill_tree(fmt::format("{}/{}", services_.run.tree_mark(step_), rank));
  }
  if (count > 0) {
    services_.console.warn(fmt::format("{}: stopped {} processes that an earlier attempt left", step_.name, count));
  }
}

void StepTask::prepare() {
  for (const auto& [name, content] : step_.files.inputs) {
    make_folder((folder_ / name).parent_path());
    write_file_atomic(folder_ / name, to_pretty(content) + "\n");
  }
  Json command = {{"argv", step_.command.argv},
                  {"env", step_.command.env},
                  {"nproc", step_.ranks.nproc},
                  {"nnodes", step_.ranks.nnodes},
                  {"num_servers", step_.ranks.num_servers},
                  {"node_rank", step_.ranks.node_rank}};
  if (step_.ranks.on_hosts) command["places"] = to_json(places_);
  write_file_atomic(folder_ / layout::kCommand, to_pretty(command) + "\n", Durability::Crash);  // the plan has it too
}

void StepTask::launch() {
  output_.emplace(step_.ranks, folder_);
  progress_.emplace(step_, folder_, services_.console);
  since_news_ = Stopwatch();
  bytes_ = -1;
  first_records_ = bytes_in(folder_, layout::kRecordsPrefix);
  if (step_.ranks.on_hosts) {
    discard_extracted(folder_);
    starting_ = std::async(std::launch::async,
                           [&launcher = services_.launcher, request = request()] { return launcher.start(request); });
    return;
  }
  // A process of this host dies with the thread that started it, so that is this one.
  try {
    running_ = services_.launcher.start(request());
  } catch (const InfrastructureError& error) {
    early_end_ = failed(error.what());
  }
}

std::optional<StepState> StepTask::wait_for_start(double seconds) {
  if (starting_.wait_for(std::chrono::duration<double>(seconds)) != std::future_status::ready) return std::nullopt;
  try {
    running_ = starting_.get();
    return std::nullopt;
  } catch (const InfrastructureError& error) {
    return failed(error.what());
  }
}

std::optional<StepState> StepTask::poll(double seconds, bool shows_progress) {
  if (early_end_) return std::exchange(early_end_, std::nullopt);
  if (pause_) {
    if (pause_->seconds() < kRetryPauseSeconds) return std::nullopt;
    pause_.reset();
    note_start();
    launch();
    return std::nullopt;
  }
  if (starting_.valid()) return wait_for_start(seconds);
  return poll_running(seconds, shows_progress);
}

std::optional<StepState> StepTask::poll_running(double seconds, bool shows_progress) {
  auto result = running_->wait_for(seconds, stop_fd());
  if (shows_progress) progress_->update();
  if (result) {
    // A step that ended because Ctrl-C reached it too is interrupted, not failed.
    if (stop_signal() != 0 && !result->status.ok()) throw InterruptedError(step_.name);
    return ended(std::move(*result));
  }
  if (stop_signal() != 0) return std::nullopt;
  const double grace = services_.options.stop_grace_seconds;
  if (!running_->queued().empty()) {  // limits are for what runs
    restart_watch();
    since_news_ = Stopwatch();
    return std::nullopt;
  }
  if (step_.limits.time_limit_s && before_watch_s_ + watch_.seconds() > *step_.limits.time_limit_s) {
    LaunchResult late = running_->stop(grace);
    late.status.timed_out = true;
    late.infrastructure.clear();
    return conclude(late, why(late));
  }
  if (step_.limits.stall_limit_s && is_silent()) {
    LaunchResult stalled = running_->stop(grace);
    stalled.status.timed_out = true;
    return conclude(stalled,
                    fmt::format("stopped: no line and no record for {}", duration_text(*step_.limits.stall_limit_s)));
  }
  return std::nullopt;
}

bool StepTask::is_silent() {
  const int64_t records = bytes_in(folder_, layout::kRecordsPrefix);
  // A rank that hangs may go on to say that it waits. So records count where there are any, and lines of logs
  // elsewhere, those of a setup before the ranks too.
  const int64_t now = records > first_records_
                          ? records
                          : bytes_in(folder_, layout::kRankLogPrefix) + bytes_in(folder_, layout::kSetupLogPrefix);
  if (now != bytes_) since_news_ = Stopwatch();
  bytes_ = now;
  return since_news_.seconds() > *step_.limits.stall_limit_s;
}

std::optional<StepState> StepTask::ended(LaunchResult result) {
  if (!result.infrastructure.empty() && !result.status.timed_out) return failed(result.infrastructure);
  // Supervisors have measured their ranks; a controller may have come late.
  if (!step_.ranks.on_hosts) result.status.seconds = watch_.seconds();
  const std::string reason = result.status.ok() ? "" : why(result);
  if (!may_restart(result)) return conclude(result, reason);
  services_.run.step_restarted(step_, reason);
  services_.console.end_progress();
  services_.console.warn(fmt::format("{}: {}; restart {} of at most {}", step_.name, reason, state().restarts.size(),
                                     step_.limits.max_restarts));
  launch();
  return std::nullopt;
}

// Not a rank failed but what is around it. That may be better next time.
std::optional<StepState> StepTask::failed(const std::string& reason) {
  running_.reset();
  if (static_cast<int>(state().retries.size()) < step_.limits.retries && stop_signal() == 0) {
    services_.run.step_retried(step_, reason);
    services_.console.end_progress();
    services_.console.warn(fmt::format("{}: {}; retry {} of at most {}", step_.name, reason, state().retries.size(),
                                       step_.limits.retries));
    pause_.emplace();
    return std::nullopt;
  }
  StepState end;
  end.outcome = Outcome::Error;
  end.reason = reason;
  end.infrastructure = true;
  end.seconds = before_watch_s_ + watch_.seconds();
  return end;
}

StepState StepTask::verify() {
  const Stopwatch watch;
  std::vector<Outcome> outcomes;
  std::vector<std::string> reasons;
  Json all = Json::array();
  const RunEvidence evidence(services_.run);
  for (const Check& check : step_.checks) {
    const Verdict verdict = check.judge(evidence);
    outcomes.push_back(verdict.outcome);
    all.push_back(to_json(verdict));
    if (verdict.outcome == Outcome::Pass || verdict.outcome == Outcome::Skipped) continue;
    // A table has many, and shows the reasons itself.
    reasons.push_back(verdict.row.empty() ? fmt::format("{}: {}", verdict.name, verdict.reason)
                                          : fmt::format("{} {}", verdict.row, verdict.column));
  }
  write_file_atomic(folder_ / layout::kVerdicts, to_pretty(all) + "\n");
  StepState end;
  end.outcome = worst(outcomes);
  end.reason = join(reasons, "; ");
  end.seconds = watch.seconds();
  return end;
}

// A rank was lost: by a signal that was not ours, or for the others. What it did itself (a bad configuration, a loss
// that is not finite) it would do again, and so would ranks that never found each other: a wrong interface, a port in
// use, a rank that nobody started.
bool StepTask::may_restart(const LaunchResult& result) const {
  if (step_.ranks.world_size() < 2 || !result.failed_by_itself || result.status.timed_out || stop_signal() != 0)
    return false;
  const bool out_of_touch = result.status.code == worker_exit_code(ErrorKind::Communication);
  if (!result.status.signal && !out_of_touch) return false;
  if (out_of_touch && state().restarts.empty() && !output_->has_event(keys::kSubmitInfo)) return false;
  return static_cast<int>(state().restarts.size()) < step_.limits.max_restarts;
}

StepState StepTask::conclude(const LaunchResult& result, const std::string& reason) {
  running_.reset();
  StepState end;
  end.exit_code = result.status.code;
  end.signal = result.status.signal;
  end.seconds = result.status.seconds;
  end.remarks = result.left_behind;
  if (result.max_rss_bytes > 0) end.max_rss_bytes = result.max_rss_bytes;
  if (step_.ranks.on_hosts) extract_records(folder_, step_.patterns, state().log_bytes);
  if (step_.ranks.on_hosts && !step_.measures.key.empty()) write_disturbance();
  if (!result.status.ok()) {
    end.outcome = Outcome::Error;
    end.reason = reason;
    end.rank = result.deciding_rank;
    if (const size_t restarts = state().restarts.size(); restarts > 0) {
      end.reason += fmt::format("; restarted {} time{} before", restarts, restarts == 1 ? "" : "s");
    }
    return end;
  }
  for (const std::string& output : step_.files.outputs) {
    if (!std::filesystem::exists(folder_ / output)) {
      end.outcome = Outcome::Error;
      end.reason = fmt::format("ended with exit code 0 but did not write {}", output);
      return end;
    }
  }
  const RunEvidence evidence(services_.run);
  for (const Check& check : step_.checks) check.keep_evidence(evidence);
  end.outcome = Outcome::Pass;
  return end;
}

// What else went on while the case was measured: the results read it.
void StepTask::write_disturbance() const {
  std::vector<NodeSamples> nodes;
  for (size_t node = 0; node < places_.size(); ++node) {
    const auto file = folder_ / layout::node_monitor(static_cast<int>(node));
    if (!std::filesystem::exists(file)) continue;
    const std::string& name = places_[node].host.name;
    nodes.push_back({name.empty() ? fmt::format("node {}", node) : name, file});
  }
  if (nodes.empty()) return;
  const Disturbance found =
      find_disturbance(nodes, state().started_us.value_or(0), now_us(), {.uses_network = step_.ranks.nnodes > 1});
  const Json content = {{"suspect", found.suspect}, {"summary", found.summary}};
  write_file_atomic(folder_ / layout::kDisturbance, to_pretty(content) + "\n", Durability::Crash);
}

std::string StepTask::why(const LaunchResult& result) const {
  if (result.status.timed_out && !result.infrastructure.empty()) return result.infrastructure;
  if (result.status.timed_out)
    return fmt::format("stopped at its time limit of {}", duration_text(*step_.limits.time_limit_s));
  std::string out = result.status.text();
  if (step_.ranks.world_size() > 1) out = fmt::format("rank {}: {}", result.deciding_rank, out);
  if (step_.ranks.on_hosts && !places_.empty() && !places_[0].host.name.empty() && step_.ranks.nnodes > 1) {
    const auto node = static_cast<size_t>(result.deciding_rank / step_.ranks.nproc);
    if (node < places_.size()) out = fmt::format("{}, {}", places_[node].host.name, out);
  }
  if (step_.command.argv[0] == "assay-worker" && result.status.code) {
    out += fmt::format(" ({})", failure_kind(*result.status.code));
  }
  const std::string message = output_->failure_message(result.deciding_rank);
  if (!message.empty()) out += ": " + message;
  return out;
}

void StepTask::stop(double grace_seconds) {
  if (starting_.valid()) running_ = starting_.get();
  if (running_) running_->stop(grace_seconds);
  running_.reset();
}

}  // namespace assay
