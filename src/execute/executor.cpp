#include "execute/executor.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "execute/progress.h"
#include "record/keys.h"
#include "record/stream.h"
#include "verify/checks.h"

namespace assay {

namespace {

constexpr double kLookSeconds = 0.1;  // between two looks at progress, time limit and stop signal

std::filesystem::path log_path(const std::filesystem::path& folder, int rank) {
  return folder / fmt::format("rank{}.log", rank);
}

// What the ranks of one launch said; files go on over attempts and restarts, so it knows where they stood before.
class Voices {
 public:
  Voices(const Step& step, std::filesystem::path folder) : folder_(std::move(folder)) {
    for (int rank = step.first_rank(); rank < step.first_rank() + step.nproc; ++rank) {
      std::error_code none;
      const auto size = std::filesystem::file_size(log_path(folder_, rank), none);
      log_sizes_[rank] = none ? 0 : size;
      num_records_[rank] = read_records(folder_ / records_file_name(rank)).size();
    }
  }

  // Of its failure: its last FAILURE record, or else the last log line that begins with "error: ".
  std::string last_words(int rank) const {
    const std::vector<Record> records = read_records(folder_ / records_file_name(rank));
    for (size_t i = records.size(); i > num_records_.at(rank); --i) {
      const Record& record = records[i - 1];
      if (record.type != Record::Type::Event || record.name != keys::kFailure) continue;
      if (record.data.contains("message") && record.data["message"].is_string()) {
        return record.data["message"].get<std::string>();
      }
    }
    std::string said;
    for (const std::string& line : tail_lines(log_path(folder_, rank), 20, log_sizes_.at(rank))) {
      if (line.rfind("error: ", 0) == 0) said = valid_utf8(line.substr(7));
    }
    return said;
  }

 private:
  std::filesystem::path folder_;
  std::map<int, uintmax_t> log_sizes_;
  std::map<int, size_t> num_records_;
};

class StepRunner {
 public:
  StepRunner(RunFolder& run, Launcher& launcher, Console& console, const ExecuteOptions& options)
      : run_(run), launcher_(launcher), console_(console), options_(options) {}

  // The end of the step; throws InterruptedError.
  StepState run_step(const Step& step) {
    make_folder(run_.step_folder(step));
    kill_leftovers(step);
    run_.step_started(step);
    return step.kind == StepKind::Verify ? verify(step) : command(step);
  }

 private:
  // An earlier controller that was killed may have left processes; two writers in one folder would ruin it.
  void kill_leftovers(const Step& step) {
    size_t count = 0;
    for (int rank = step.first_rank(); rank < step.first_rank() + step.nproc; ++rank) {
      count += kill_tree(fmt::format("{}/{}", run_.tree_mark(step), rank));
    }
    if (count > 0)
      console_.warn(fmt::format("{}: stopped {} processes that an earlier attempt left", step.name, count));
  }

  StepState verify(const Step& step) {
    const Stopwatch watch;
    std::vector<Verdict> verdicts;
    std::vector<Outcome> outcomes;
    std::vector<std::string> reasons;
    Json all = Json::array();
    for (const Json& check : step.checks) {
      verdicts.push_back(run_check(check, run_.path()));
      outcomes.push_back(verdicts.back().outcome);
      all.push_back(to_json(verdicts.back()));
      const Verdict& last = verdicts.back();
      if (last.outcome == Outcome::Pass || last.outcome == Outcome::Skipped) continue;
      // A table has many, and shows the reasons itself.
      reasons.push_back(last.row.empty() ? fmt::format("{}: {}", last.name, last.reason)
                                         : fmt::format("{} {}", last.row, last.column));
    }
    write_file_atomic(run_.step_folder(step) / "verdicts.json", to_pretty(all) + "\n");
    StepState end;
    end.outcome = worst(outcomes);
    end.reason = join(reasons, "; ");
    end.seconds = watch.seconds();
    return end;
  }

  StepState command(const Step& step) {
    const auto folder = run_.step_folder(step);
    for (const auto& [name, content] : step.files) {
      make_folder((folder / name).parent_path());
      write_file_atomic(folder / name, to_pretty(content) + "\n");
    }
    write_file_atomic(folder / "command.json", to_pretty({{"argv", step.argv},
                                                          {"env", step.env},
                                                          {"nproc", step.nproc},
                                                          {"nnodes", step.nnodes},
                                                          {"num_servers", step.num_servers},
                                                          {"node_rank", step.node_rank}}) +
                                                   "\n");
    const LaunchRequest request{.argv = step.argv,
                                .env = step.env,
                                .cwd = run_.path(),
                                .folder = folder,
                                .nproc = step.nproc,
                                .nnodes = step.nnodes,
                                .node_rank = step.node_rank,
                                .num_servers = step.num_servers,
                                .tree_mark = run_.tree_mark(step)};
    try {
      const Stopwatch watch;
      while (true) {
        const Voices voices(step, folder);
        LaunchResult result = wait(step, *launcher_.start(request), watch);
        result.status.seconds = watch.seconds();
        const std::string reason = result.status.ok() ? "" : why(step, result, voices);
        if (!may_restart(step, result)) return conclude(step, result, reason);
        announce_restart(step, reason);
      }
    } catch (const InfrastructureError& error) {
      StepState end;
      end.outcome = Outcome::Error;
      end.reason = error.what();
      return end;
    }
  }

  // A rank was lost: by a signal that was not ours, or for the others. What it did itself (a bad configuration, a loss
  // that is not finite) it would do again.
  bool may_restart(const Step& step, const LaunchResult& result) const {
    if (step.world_size() < 2 || !result.failed_by_itself || result.status.timed_out || stop_signal() != 0)
      return false;
    const bool lost =
        result.status.signal.has_value() || result.status.code == worker_exit_code(ErrorKind::Communication);
    return lost && num_restarts(step) < step.max_restarts;
  }

  int num_restarts(const Step& step) const {
    return static_cast<int>(run_.state().steps.at(step.name).restarts.size());
  }

  void announce_restart(const Step& step, const std::string& reason) {
    run_.step_restarted(step, reason);
    console_.end_progress();
    console_.warn(
        fmt::format("{}: {}; restart {} of at most {}", step.name, reason, num_restarts(step), step.max_restarts));
  }

  LaunchResult wait(const Step& step, RunningStep& running, const Stopwatch& watch) {
    StepProgress progress(step, run_.step_folder(step), console_);
    while (true) {
      const auto result = running.wait_for(kLookSeconds, stop_fd());
      progress.update();
      if (result) {
        // A step that ended because Ctrl-C reached it too is interrupted, not failed.
        if (stop_signal() != 0 && !result->status.ok()) throw InterruptedError(step.name);
        return *result;
      }
      if (stop_signal() != 0) {
        console_.end_progress();
        console_.info(fmt::format("stopping {} (again to force) ...", step.name));
        running.stop(options_.stop_grace_seconds);
        throw InterruptedError(step.name);
      }
      if (step.time_limit_s && watch.seconds() > *step.time_limit_s) {
        LaunchResult ended = running.stop(options_.stop_grace_seconds);
        ended.status.timed_out = true;
        return ended;
      }
    }
  }

  StepState conclude(const Step& step, const LaunchResult& result, const std::string& reason) {
    StepState end;
    end.exit_code = result.status.code;
    end.signal = result.status.signal;
    end.seconds = result.status.seconds;
    if (result.max_rss_bytes > 0) end.max_rss_bytes = result.max_rss_bytes;
    if (!result.status.ok()) {
      end.outcome = Outcome::Error;
      end.reason = reason;
      end.rank = result.deciding_rank;
      if (const int restarts = num_restarts(step); restarts > 0) {
        end.reason += fmt::format("; restarted {} time{} before", restarts, restarts == 1 ? "" : "s");
      }
      return end;
    }
    for (const std::string& output : step.outputs) {
      if (!std::filesystem::exists(run_.step_folder(step) / output)) {
        end.outcome = Outcome::Error;
        end.reason = fmt::format("ended with exit code 0 but did not write {}", output);
        return end;
      }
    }
    for (const Json& check : step.checks) keep_evidence(check, run_.path());
    end.outcome = Outcome::Pass;
    return end;
  }

  std::string why(const Step& step, const LaunchResult& result, const Voices& voices) {
    if (result.status.timed_out)
      return fmt::format("stopped at its time limit of {}", duration_text(*step.time_limit_s));
    std::string out = result.status.text();
    if (step.world_size() > 1) out = fmt::format("rank {}: {}", result.deciding_rank, out);
    if (step.argv[0] == "assay-worker" && result.status.code) {
      out += fmt::format(" ({})", failure_kind(*result.status.code));
    }
    const std::string said = voices.last_words(result.deciding_rank);
    if (!said.empty()) out += ": " + said;
    return out;
  }

  RunFolder& run_;
  Launcher& launcher_;
  Console& console_;
  const ExecuteOptions& options_;
};

// After the end was journalled: a kill before leaves everything, one in between leaves something that nobody reads.
void discard(const RunFolder& run, const Step& step, const StepState& end) {
  if (step.discard.empty() || end.outcome != Outcome::Pass) return;
  if (step.kind != StepKind::Verify) {
    for (const Json& check : step.checks) {
      if (run_check(check, run.path()).outcome != Outcome::Pass) return;
    }
  }
  for (const std::string& name : step.discard) {
    std::error_code ignored;
    const auto path = run.path() / name;
    const auto doomed = path.parent_path() / (".discarded-" + path.filename().string());
    std::filesystem::rename(path, doomed, ignored);
    std::filesystem::remove_all(doomed, ignored);
  }
}

bool finished(const RunFolder& run, const Step& step, const ExecuteOptions& options) {
  const auto found = run.state().steps.find(step.name);
  if (found == run.state().steps.end() || found->second.running || !found->second.outcome) return false;
  const Outcome outcome = *found->second.outcome;
  if (outcome == Outcome::Pass) return true;
  // A step is skipped for what happened to others, so it is looked at again whenever they are.
  return !options.retry_failed;
}

std::string unmet_need(const RunFolder& run, const Step& step) {
  for (const std::string& need : step.needs) {
    const auto found = run.state().steps.find(need);
    if (found == run.state().steps.end() || found->second.outcome != Outcome::Pass) return need;
  }
  return "";
}

void announce(Console& console, const Step& step, const StepState& end, const std::vector<std::string>& restarts) {
  const Colour colour = end.outcome == Outcome::Pass      ? Colour::Green
                        : end.outcome == Outcome::Skipped ? Colour::Yellow
                                                          : Colour::Red;
  std::string line =
      fmt::format("{} {}", console.paint_message(fmt::format("{:8}", outcome_name(*end.outcome)), colour), step.name);
  if (end.seconds) line += fmt::format("  {}", duration_text(*end.seconds));
  if (!end.reason.empty()) line += fmt::format("  {}", end.reason);
  if (end.outcome == Outcome::Pass && !restarts.empty()) line += fmt::format("  {}", restarts_text(restarts));
  console.info(line);
}

}  // namespace

Outcome execute(RunFolder& run, Launcher& launcher, Console& console, const ExecuteOptions& options) {
  StepRunner runner(run, launcher, console, options);
  for (const Step& step : run.plan().steps) {
    if (finished(run, step, options)) {
      console.detail(fmt::format("{} is finished", step.name));
      continue;
    }
    StepState end;
    try {
      if (stop_signal() != 0) throw InterruptedError(step.name);
      const std::string need = unmet_need(run, step);
      if (need.empty()) {
        end = runner.run_step(step);
      } else {
        end.outcome = Outcome::Skipped;
        end.reason = fmt::format("needs {}, which did not pass", need);
      }
    } catch (const InterruptedError&) {
      console.end_progress();
      run.run_interrupted();
      throw;
    }
    console.end_progress();
    run.step_ended(step, end);
    discard(run, step, end);
    announce(console, step, end, run.state().steps.at(step.name).restarts);
  }
  std::vector<Outcome> outcomes;
  for (const Step& step : run.plan().steps) outcomes.push_back(*run.state().steps.at(step.name).outcome);
  const Outcome outcome = worst(outcomes);
  run.run_ended(outcome);
  return outcome;
}

}  // namespace assay
