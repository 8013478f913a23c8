#include "run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/text.h"
#include "base/time.h"
#include "layout/run_layout.h"
#include "monitor/environment.h"

namespace assay {

namespace {

std::string slug(std::string_view title) {
  std::string out;
  for (char c : lower(title)) {
    const bool keep = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (keep) {
      out += c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
    if (out.size() >= 30) break;
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "run" : out;
}

// A run is prepared under a hidden name and renamed into place when its journal stands: a kill in between leaves no
// run.
std::filesystem::path starting_folder(const std::filesystem::path& runs) {
  make_folder(runs);
  std::string pattern = (std::filesystem::absolute(runs) / ".starting.XXXXXX").string();
  if (!::mkdtemp(pattern.data())) {
    throw InfrastructureError(fmt::format("{}: cannot create a run folder: {}", runs.string(), std::strerror(errno)));
  }
  std::filesystem::permissions(pattern, std::filesystem::perms(0755));
  return pattern;
}

void copy_into(const std::filesystem::path& source, const std::filesystem::path& target) {
  make_folder(target.parent_path());
  std::error_code error;
  std::filesystem::copy(source, target, std::filesystem::copy_options::recursive, error);
  if (error) throw InfrastructureError(fmt::format("{}: cannot be copied: {}", source.string(), error.message()));
}

// Two runs may start in the same second, so a name ends in something random.
std::string new_id(const std::string& title) {
  std::random_device random;
  return fmt::format("{}-{}-{:04x}", utc_compact(now_us()), slug(title), random() & 0xffff);
}

FileDescriptor take_lock(const std::filesystem::path& run) {
  const auto path = run / layout::kLock;
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!lock) throw InfrastructureError(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  // A controller that was killed while it started a process leaves the lock to that one, until it runs its program.
  const auto held_by_a_living = [&] {
    const auto owner = parse_int(trim(read_file(path)));
    return !owner || ::kill(static_cast<pid_t>(*owner), 0) == 0 || errno != ESRCH;
  };
  constexpr auto kPatience = std::chrono::seconds(5);
  const auto begin = std::chrono::steady_clock::now();
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (!held_by_a_living() && std::chrono::steady_clock::now() - begin < kPatience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      continue;
    }
    const auto owner = std::string(trim(read_file(path)));
    throw InfrastructureError(
        fmt::format("{}: another assay (process {}) is running this", run.string(), owner.empty() ? "?" : owner));
  }
  (void)!::ftruncate(lock.get(), 0);
  const std::string owner = std::to_string(::getpid()) + "\n";
  (void)!::pwrite(lock.get(), owner.data(), owner.size(), 0);
  return lock;
}

template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
std::optional<T> optional_of(const Json& line, const char* key) {
  if (!line.contains(key) || line.at(key).is_null()) return std::nullopt;
  return line.at(key).get<T>();
}

void apply_line(const Json& line, RunState& state) {
  const auto event = line.at("event").get<std::string>();
  const auto time = parse_utc(line.at("time").get<std::string>());
  if (!time) throw DataError("a journal line has a bad time");
  if (event == "run_started") {
    state.started_us = *time;
    state.command = line.at("command").get<std::vector<std::string>>();
    state.title = line.value("title", "");
    state.num_steps = line.value("steps", size_t{0});
  } else if (event == "step_started") {
    StepState& step = state.steps[line.at("step").get<std::string>()];
    // An attempt without an end goes on in the next one, and what it used up stays used up.
    if (!step.running) {
      step.restarts.clear();
      step.retries.clear();
    }
    step.places = line.value("places", Json(nullptr));
    step.log_bytes = line.value("log_bytes", int64_t{0});
    step.attempts = line.at("attempt").get<int>();
    step.running = true;
    step.stopped = false;
    step.started_us = *time;
  } else if (event == "step_restarted") {
    state.steps[line.at("step").get<std::string>()].restarts.push_back(line.at("reason").get<std::string>());
  } else if (event == "step_retried") {
    state.steps[line.at("step").get<std::string>()].retries.push_back(line.at("reason").get<std::string>());
  } else if (event == "step_ended") {
    StepState& step = state.steps[line.at("step").get<std::string>()];
    step.running = false;
    step.outcome = outcome_of(line.at("outcome").get<std::string>());
    step.reason = line.at("reason").get<std::string>();
    step.seconds = optional_of<double>(line, "seconds");
    step.exit_code = optional_of<int>(line, "exit_code");
    step.signal = optional_of<int>(line, "signal");
    step.rank = optional_of<int>(line, "rank");
    step.infrastructure = line.value("infrastructure", false);
    step.max_rss_bytes = optional_of<int64_t>(line, "max_rss_bytes");
    step.remarks = line.value("remarks", std::vector<std::string>());
  } else if (event == "run_ended") {
    state.ended_us = *time;
    state.outcome = outcome_of(line.at("outcome").get<std::string>());
  } else if (event == "run_interrupted") {
    for (auto& [name, step] : state.steps) step.stopped = step.running;
  } else if (event == "run_resumed") {
    state.ended_us.reset();
    state.outcome.reset();
  }
}

}  // namespace

std::string restarts_text(const std::vector<std::string>& reasons) {
  if (reasons.empty()) return "";
  return fmt::format("restarted {} time{}: {}", reasons.size(), reasons.size() == 1 ? "" : "s", join(reasons, "; "));
}

std::vector<std::filesystem::path> list_runs(const std::filesystem::path& runs) {
  std::vector<std::filesystem::path> known;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(runs, ignored)) {
    // A name with a dot is a run that was never ready: its controller was killed while it made the folder.
    const std::string name = entry.path().filename().string();
    if (name[0] != '.' && std::filesystem::exists(entry.path() / layout::kPlan)) known.push_back(entry.path());
  }
  std::sort(known.begin(), known.end());
  return known;
}

std::optional<int> controller_of(const std::filesystem::path& path) {
  const FileDescriptor lock(::open((path / layout::kLock).c_str(), O_RDWR | O_CLOEXEC));
  if (!lock || ::flock(lock.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  const auto owner = parse_int(trim(read_file(path / layout::kLock)));
  return owner ? std::optional<int>(static_cast<int>(*owner)) : std::nullopt;
}

RunState read_run_state(const std::filesystem::path& path) {
  const auto file = path / layout::kJournal;
  RunState state;
  try {
    for (const Json& line : read_journal(file).lines) apply_line(line, state);
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: a journal line lacks a field", file.string()));
  }
  return state;
}

RunRecord read_run(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path / layout::kPlan) || !std::filesystem::exists(path / layout::kJournal)) {
    throw DataError(
        fmt::format("{}: not a run folder (no {} and {} in it)", path.string(), layout::kPlan, layout::kJournal));
  }
  const Json plan = read_json_file(path / layout::kPlan);
  RunRecord run{.path = path, .plan = plan_of(plan, (path / layout::kPlan).string()), .state = {}};
  const JournalContents journal = read_journal(path / layout::kJournal);
  if (journal.lines.empty()) throw DataError(fmt::format("{}: the journal is empty", path.string()));
  try {
    if (journal.lines[0].at("plan") != plan_hash(plan)) {
      throw DataError(fmt::format("{} is not the plan that this run started with", layout::kPlan));
    }
    for (const Json& line : journal.lines) apply_line(line, run.state);
  } catch (const Json::exception&) {
    throw DataError(fmt::format("{}: a journal line lacks a field", (path / layout::kJournal).string()));
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", (path / layout::kJournal).string(), error.what()));
  }
  return run;
}

RunFolder::RunFolder(std::filesystem::path path, Plan plan) : path_(std::move(path)), plan_(std::move(plan)) {}

RunFolder RunFolder::create(const std::filesystem::path& runs, const Plan& plan,
                            const std::vector<std::string>& command,
                            const std::map<std::string, std::filesystem::path>& copies,
                            const std::map<std::string, Json>& files) {
  plan.validate();
  const auto starting = starting_folder(runs);
  const std::string id = new_id(plan.title);
  RunFolder run(std::filesystem::absolute(runs) / id, plan);
  run.lock_ = take_lock(starting);
  write_file_atomic(starting / layout::kEnvironment, to_pretty(describe_environment()) + "\n");
  write_file_atomic(starting / layout::kPlan, to_pretty(to_json(plan)) + "\n");
  for (const auto& [name, source] : copies) copy_into(source, starting / name);
  for (const auto& [name, content] : files) write_file_atomic(starting / name, to_pretty(content) + "\n");
  run.journal_.emplace(starting / layout::kJournal, Journal::Sync::EveryLine);
  run.write({{"event", "run_started"},
             {"run", id},
             {"plan", plan.hash()},
             {"command", command},
             {"title", plan.title},
             {"steps", plan.steps.size()}});
  std::error_code error;
  std::filesystem::rename(starting, run.path_, error);
  if (error) throw InfrastructureError(fmt::format("{}: cannot create: {}", run.path_.string(), error.message()));
  run.journal_.emplace(run.path_ / layout::kJournal, Journal::Sync::EveryLine);
  sync_folder(runs);
  return run;
}

RunFolder RunFolder::open(const std::filesystem::path& path) {
  const auto absolute = std::filesystem::canonical(path);
  if (!std::filesystem::exists(absolute / layout::kPlan)) read_run(absolute);  // throws the right error
  FileDescriptor lock = take_lock(absolute);
  RunRecord record = read_run(absolute);
  RunFolder run(absolute, std::move(record.plan));
  run.lock_ = std::move(lock);
  run.state_ = std::move(record.state);
  run.journal_.emplace(absolute / layout::kJournal, Journal::Sync::EveryLine);
  return run;
}

std::string RunFolder::tree_mark(const Step& step) const { return id() + "/" + step.name; }

void RunFolder::write(Json line) {
  line["time"] = utc_text(now_us());
  journal_->append(line);
  apply_line(line, state_);
}

std::filesystem::path RunFolder::step_folder(const Step& step) const {
  const auto index = &step - plan_.steps.data();
  ASSAY_CHECK(index >= 0 && index < std::ssize(plan_.steps), "a step of another plan");
  return path_ / layout::step_folder(static_cast<size_t>(index) + 1, step.name);
}

void RunFolder::step_started(const Step& step, const Json& places, int64_t log_bytes) {
  Json line = {{"event", "step_started"}, {"step", step.name}, {"attempt", state_.steps[step.name].attempts + 1}};
  if (!places.is_null()) line["places"] = places;
  if (log_bytes > 0) line["log_bytes"] = log_bytes;
  write(std::move(line));
}

void RunFolder::step_retried(const Step& step, const std::string& reason) {
  const StepState& state = state_.steps[step.name];
  write({{"event", "step_retried"},
         {"step", step.name},
         {"attempt", state.attempts},
         {"retry", state.retries.size() + 1},
         {"reason", reason}});
}

void RunFolder::step_restarted(const Step& step, const std::string& reason) {
  const StepState& state = state_.steps[step.name];
  write({{"event", "step_restarted"},
         {"step", step.name},
         {"attempt", state.attempts},
         {"restart", state.restarts.size() + 1},
         {"reason", reason}});
}

void RunFolder::step_ended(const Step& step, const StepState& end) {
  Json line = {{"event", "step_ended"},
               {"step", step.name},
               {"attempt", state_.steps[step.name].attempts},
               {"outcome", outcome_name(end.outcome.value_or(Outcome::Invalid))},
               {"reason", end.reason},
               {"seconds", json_or_null(end.seconds)},
               {"exit_code", json_or_null(end.exit_code)},
               {"signal", json_or_null(end.signal)},
               {"rank", json_or_null(end.rank)},
               {"restarts", state_.steps[step.name].restarts.size()},
               {"max_rss_bytes", json_or_null(end.max_rss_bytes)}};
  if (end.infrastructure) line["infrastructure"] = true;
  if (!end.remarks.empty()) line["remarks"] = end.remarks;
  make_folder(step_folder(step));
  write_file_atomic(step_folder(step) / layout::kStatus, to_pretty(line) + "\n", Durability::Crash);
  write(line);
}

void RunFolder::run_interrupted() { write({{"event", "run_interrupted"}}); }
void RunFolder::run_resumed() { write({{"event", "run_resumed"}}); }
void RunFolder::run_ended(Outcome outcome) { write({{"event", "run_ended"}, {"outcome", outcome_name(outcome)}}); }

std::filesystem::path find_run(const std::filesystem::path& runs, const std::string& name) {
  if (std::filesystem::exists(std::filesystem::path(name) / layout::kPlan)) return name;
  std::vector<std::string> known;
  for (const auto& run : list_runs(runs)) known.push_back(run.filename().string());
  if (name == "last" && !known.empty()) return runs / known.back();
  std::vector<std::string> matching;
  for (const std::string& run : known) {
    if (run.rfind(name, 0) == 0) matching.push_back(run);
  }
  if (!name.empty() && matching.size() == 1) return runs / matching[0];
  if (matching.size() > 1) throw UsageError(fmt::format("run '{}' could be {}", name, join(matching, ", ")));
  throw UsageError(fmt::format("no run '{}' in {}{}", name, runs.string(), did_you_mean(name, known)));
}

}  // namespace assay
