#include "execute/executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "execute/step_task.h"
#include "launch/host/job_state.h"
#include "run/evidence.h"

namespace assay {

namespace {

constexpr double kPollSeconds = 0.1;   // between two looks at progress, time limit and stop signal
constexpr double kTurnSeconds = 0.01;  // at one of several steps

// After the end was journalled: a kill before leaves everything, one in between leaves something that nobody reads.
void discard(const RunFolder& run, const Step& step, const StepState& end) {
  if (step.files.discard.empty() || end.outcome != Outcome::Pass) return;
  if (step.kind != StepKind::Verify) {
    const RunEvidence evidence(run);
    for (const Check& check : step.checks) {
      if (check.judge(evidence).outcome != Outcome::Pass) return;
    }
  }
  for (const std::string& name : step.files.discard) {
    std::error_code ignored;
    const auto path = run.path() / name;
    const auto doomed = path.parent_path() / (".discarded-" + path.filename().string());
    std::filesystem::rename(path, doomed, ignored);
    std::filesystem::remove_all(doomed, ignored);
  }
}

// Ended, and not to be repeated.
bool is_final(const StepState* state, bool retry_failed) {
  if (!state || state->running || !state->outcome) return false;
  // A step is skipped for what happened to others, so it is looked at again whenever they are.
  return state->outcome == Outcome::Pass || !retry_failed;
}

// On hosts, left by a controller that was killed.
bool may_still_run(const StepState* state) {
  return state && state->running && !state->stopped && state->places.is_array();
}

const StepState* state_in(const RunFolder& run, const std::string& name) {
  const auto found = run.state().steps.find(name);
  return found == run.state().steps.end() ? nullptr : &found->second;
}

class Execution {
 public:
  Execution(RunFolder& run, Launcher& launcher, Console& console, const ExecuteOptions& options)
      : run_(run), console_(console), options_(options), services_{run, launcher, console, options} {}

  Outcome run() {
    try {
      for (const Step& step : run_.plan().steps) {
        if (!is_finished(step)) continue;
        console_.detail(fmt::format("{} is finished", step.name));
        count_failure(*state_of(step.name));  // also of those before a resume
      }
      while (true) {
        if (stop_signal() != 0) throw InterruptedError("stop");
        start_ready_steps();
        if (tasks_.empty() && !fail_unplaceable_step()) break;
        poll_tasks();
      }
    } catch (const InterruptedError&) {
      interrupt();
      throw;
    }
    std::vector<Outcome> outcomes;
    for (const Step& step : run_.plan().steps) outcomes.push_back(*run_.state().steps.at(step.name).outcome);
    const Outcome outcome = worst(outcomes);
    run_.run_ended(outcome);
    return outcome;
  }

 private:
  struct Running {
    std::unique_ptr<StepTask> task;
    std::vector<NodePlace> places;
  };

  const StepState* state_of(const std::string& name) const { return state_in(run_, name); }

  bool is_finished(const Step& step) const {
    return is_final(state_of(step.name), options_.retry_failed && !done_now_.contains(step.name));
  }

  bool is_running(const Step& step) const {
    return std::any_of(tasks_.begin(), tasks_.end(), [&](const Running& r) { return &r.task->step() == &step; });
  }

  // In the order of the plan: whatever is possible now, as far as there is room.
  void start_ready_steps() {
    const std::vector<Step>& steps = run_.plan().steps;
    while (first_open_ < steps.size() && is_finished(steps[first_open_])) ++first_open_;
    for (size_t i = first_open_; i < steps.size(); ++i) {
      if (static_cast<int>(tasks_.size()) >= options_.concurrency || stop_signal() != 0) return;
      const Step& step = steps[i];
      if (is_finished(step) || is_running(step)) continue;
      const Need need = need_of(step);
      if (need.is_open) {
        if (options_.concurrency == 1) return;
        continue;
      }
      if (!need.unmet.empty() || too_many_failures(step)) {
        StepState end;
        end.outcome = Outcome::Skipped;
        end.reason = need.unmet.empty() ? fmt::format("{} steps before it did not pass", options_.max_failures)
                                        : fmt::format("needs {}, which did not pass", need.unmet);
        conclude(step, end);
        continue;
      }
      if (!begin(step) && !step.ranks.on_hosts) return;
    }
  }

  // Nothing is at work and something is left: the hosts never suffice for it. False: nothing is left.
  bool fail_unplaceable_step() {
    if (stop_signal() != 0) return true;
    for (const Step& step : run_.plan().steps) {
      if (is_finished(step)) continue;
      StepState end;
      end.outcome = Outcome::Error;
      end.reason = fmt::format("needs {} devices on each of {} hosts, and there are not so many", step.ranks.nproc,
                               step.ranks.nnodes);
      end.infrastructure = true;
      conclude(step, end);
      return true;
    }
    return false;
  }

  struct Need {
    bool is_open = false;  // not ended yet
    std::string unmet;     // did not pass
  };
  Need need_of(const Step& step) const {
    for (const std::string& name : step.needs) {
      const StepState* state = state_of(name);
      const bool is_ended = state && !state->running && state->outcome;
      if (is_ended && state->outcome == Outcome::Pass) continue;
      if (!is_ended || (options_.retry_failed && !done_now_.contains(name))) return {.is_open = true, .unmet = {}};
      return {.is_open = false, .unmet = name};
    }
    return {};
  }

  bool too_many_failures(const Step& step) const {
    return options_.max_failures > 0 && num_failures_ >= options_.max_failures && step.kind != StepKind::Verify;
  }

  void count_failure(const StepState& end) {
    num_failures_ += end.outcome == Outcome::Error || end.outcome == Outcome::Fail;
  }

  bool begin(const Step& step) {
    std::vector<NodePlace> places;
    bool attach = false;
    if (step.ranks.on_hosts) {
      ASSAY_CHECK(options_.hosts != nullptr, "a step on hosts, and no hosts");
      std::optional<std::vector<NodePlace>> found;
      const StepState* state = state_of(step.name);
      if (may_still_run(state)) {
        found = options_.hosts->take_again(state->places);
        attach = found.has_value();
      }
      if (!found) found = options_.hosts->take(step.ranks.nnodes, step.ranks.nproc);
      if (!found) return false;
      places = std::move(*found);
    }
    tasks_.push_back({nullptr, places});
    Running& running = tasks_.back();
    try {
      running.task = std::make_unique<StepTask>(services_, step, places, attach);
    } catch (...) {
      give_back(running);
      tasks_.pop_back();
      throw;
    }
    return true;
  }

  void give_back(const Running& running) {
    if (options_.hosts) options_.hosts->give_back(running.places);
  }

  void poll_tasks() {
    const bool is_alone = tasks_.size() == 1;
    for (auto at = tasks_.begin(); at != tasks_.end();) {
      const auto end = at->task->poll(is_alone ? kPollSeconds : kTurnSeconds, is_alone);
      if (!end) {
        ++at;
        continue;
      }
      const Running ended = std::move(*at);
      at = tasks_.erase(at);
      give_back(ended);
      conclude(ended.task->step(), *end);
    }
    if (!is_alone && tasks_.size() > 1) {
      console_.progress(fmt::format("{} steps at work", tasks_.size()), static_cast<double>(num_done()),
                        static_cast<double>(run_.plan().steps.size()), "steps");
    }
  }

  size_t num_done() const {
    size_t done = 0;
    for (const auto& [name, state] : run_.state().steps) done += !state.running && state.outcome;
    return done;
  }

  void conclude(const Step& step, const StepState& end) {
    console_.end_progress();
    run_.step_ended(step, end);
    done_now_.insert(step.name);
    count_failure(end);
    discard(run_, step, end);
    announce(step, end);
  }

  void announce(const Step& step, const StepState& end) {
    const Colour colour = end.outcome == Outcome::Pass      ? Colour::Green
                          : end.outcome == Outcome::Skipped ? Colour::Yellow
                                                            : Colour::Red;
    std::string line = fmt::format(
        "{} {}", console_.paint_message(fmt::format("{:8}", outcome_name(*end.outcome)), colour), step.name);
    if (end.seconds) line += fmt::format("  {}", duration_text(*end.seconds));
    if (!end.reason.empty()) line += fmt::format("  {}", end.reason);
    const std::vector<std::string>& restarts = state_of(step.name)->restarts;
    if (end.outcome == Outcome::Pass && !restarts.empty()) line += fmt::format("  {}", restarts_text(restarts));
    console_.info(line);
    for (const std::string& remark : end.remarks) console_.warn(fmt::format("{}: {}", step.name, remark));
  }

  // All at once: each may need its grace time.
  void interrupt() {
    console_.end_progress();
    std::vector<std::thread> stops;
    for (Running& running : tasks_) {
      console_.info(fmt::format("stopping {} (again to force) ...", running.task->step().name));
      stops.emplace_back([&] {
        try {
          running.task->stop(options_.stop_grace_seconds);
        } catch (const Error&) {  // out of reach: its lease ends it
        }
      });
    }
    for (std::thread& stop : stops) stop.join();
    tasks_.clear();
    run_.run_interrupted();
  }

  RunFolder& run_;
  Console& console_;
  const ExecuteOptions& options_;
  StepTask::Services services_;
  std::list<Running> tasks_;
  std::set<std::string> done_now_;
  size_t first_open_ = 0;
  int num_failures_ = 0;
};

}  // namespace

Outcome execute(RunFolder& run, Launcher& launcher, Console& console, const ExecuteOptions& options) {
  return Execution(run, launcher, console, options).run();
}

namespace {

// One of its nodes has ended for another reason than its ranks: what is left is stopped, and the step begun again.
bool is_lost(LaunchRequest request) {
  for (request.ranks.node_rank = 0; request.ranks.node_rank < request.ranks.nnodes; ++request.ranks.node_rank) {
    const auto state = state_of_attempt(request);
    const bool by_rank = state && state->result && state->result->failed_by_itself;
    if (state && state->ended() && !state->error_kind.empty() && !by_rank) return true;
  }
  return false;
}

// What an earlier controller left of the step and can be gone on with; null: nothing.
std::unique_ptr<RunningStep> attach_orphan(const RunFolder& run, const Step& step, Launcher& launcher,
                                           const ExecuteOptions& options) {
  const StepState* state = state_in(run, step.name);
  if (!may_still_run(state)) return nullptr;
  const auto places = options.hosts->take_again(state->places);
  if (!places) return nullptr;
  const LaunchRequest request = launch_request(run, step, *places, options.site);
  options.hosts->give_back(*places);
  try {
    auto running = launcher.attach(request);
    if (!running || !is_lost(request)) return running;
    running->leave();
  } catch (const Error&) {  // out of reach, or damaged: who looks at the hosts next, or begins it, tells why
  }
  return nullptr;
}

}  // namespace

ResumableSteps::ResumableSteps(const RunFolder& run, Launcher& launcher, const ExecuteOptions& options) {
  std::set<std::string> never;  // skipped, because what they need did not pass and is not repeated
  for (const Step& step : run.plan().steps) {
    const StepState* state = state_in(run, step.name);
    if (is_final(state, options.retry_failed)) {
      if (state->outcome != Outcome::Pass) never.insert(step.name);
      continue;
    }
    if (std::any_of(step.needs.begin(), step.needs.end(), [&](const auto& need) { return never.contains(need); })) {
      never.insert(step.name);
      continue;
    }
    if (!step.ranks.on_hosts || step.kind == StepKind::Verify) continue;
    if (auto running = attach_orphan(run, step, launcher, options)) {
      held_[step.name] = std::move(running);
    } else {
      to_begin_.insert(step.name);
    }
  }
}

ResumableSteps::~ResumableSteps() {
  for (const auto& [name, step] : held_) step->leave();
}

std::set<std::string> ResumableSteps::running() const {
  std::set<std::string> names;
  for (const auto& [name, step] : held_) names.insert(name);
  return names;
}

size_t stop_orphans(RunFolder& run, Launcher& launcher, const ExecuteOptions& options) {
  size_t count = 0;
  for (const Step& step : run.plan().steps) {
    const StepState* state = state_in(run, step.name);
    if (!step.ranks.on_hosts || !may_still_run(state)) continue;
    const auto places = options.hosts->take_again(state->places);
    if (!places) continue;
    const auto running = launcher.attach(launch_request(run, step, *places, options.site));
    if (!running) continue;
    running->stop(options.stop_grace_seconds);
    ++count;
  }
  run.run_interrupted();
  return count;
}

}  // namespace assay
