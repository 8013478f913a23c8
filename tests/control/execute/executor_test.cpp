#include "execute/executor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/signals.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "launch/host/job_state.h"
#include "launch/host/local.h"
#include "record/keys.h"
#include "record/stream.h"
#include "run/evidence.h"

using namespace assay;

namespace {

Step command(const std::string& name, const std::string& script, std::vector<std::string> needs = {}) {
  Step step;
  step.name = name;
  step.needs = std::move(needs);
  step.command.argv = {"/bin/sh", "-c", script};
  return step;
}

class ExecutorTest : public ::testing::Test {
 protected:
  RunFolder create(std::vector<Step> steps) {
    return RunFolder::create(folder_.path() / "runs", {.title = "A test!", .case_key = "", .steps = std::move(steps)},
                             {"assay", "test"});
  }
  Outcome run(RunFolder& folder, const ExecuteOptions& options = {}) {
    LocalLauncher launcher;
    Console console(Console::Level::Quiet);
    return execute(folder, launcher, console, options);
  }
  TempFolder folder_;
};

}  // namespace

TEST_F(ExecutorTest, RunsStepsInOrderAndKeepsEvidence) {
  RunFolder folder =
      create({command("one", "echo first; echo x > steps/1-one/out"), command("two", "cat steps/1-one/out", {"one"})});
  EXPECT_EQ(run(folder), Outcome::Pass);
  EXPECT_EQ(read_file(folder.path() / "steps/1-one/rank0.log"), "first\n");
  EXPECT_EQ(read_file(folder.path() / "steps/2-two/rank0.log"), "x\n");
  const RunRecord record = read_run(folder.path());
  EXPECT_EQ(record.state.outcome, Outcome::Pass);
  EXPECT_EQ(record.state.steps.at("two").exit_code, 0);
  EXPECT_EQ(record.state.steps.at("two").attempts, 1);
  EXPECT_GT(record.state.steps.at("two").max_rss_bytes.value_or(0), 0);
  EXPECT_EQ(read_json_file(folder.path() / "steps/1-one/status.json")["outcome"], "Pass");
  EXPECT_EQ(read_json_file(folder.path() / "steps/1-one/command.json")["argv"][0], "/bin/sh");
  EXPECT_TRUE(read_json_file(folder.path() / "environment.json").contains("host"));
  EXPECT_NE(folder.id().find("-a-test-"), std::string::npos);
}

TEST_F(ExecutorTest, CallsAPlanWithoutStepsInvalid) {
  RunFolder folder = create({});
  EXPECT_EQ(run(folder), Outcome::Invalid);
  EXPECT_EQ(exit_code(Outcome::Invalid), 3);
}

TEST_F(ExecutorTest, SkipsStepsThatNeedAFailedOne) {
  RunFolder folder = create(
      {command("bad", "echo 'error: it broke'; exit 3"), command("after", "true", {"bad"}), command("other", "true")});
  EXPECT_EQ(run(folder), Outcome::Error);
  const auto& steps = folder.state().steps;
  EXPECT_EQ(steps.at("bad").outcome, Outcome::Error);
  EXPECT_EQ(steps.at("bad").exit_code, 3);
  EXPECT_EQ(steps.at("bad").reason, "exit code 3: it broke");
  EXPECT_EQ(steps.at("after").outcome, Outcome::Skipped);
  EXPECT_EQ(steps.at("after").reason, "needs bad, which did not pass");
  EXPECT_EQ(steps.at("other").outcome, Outcome::Pass);
}

TEST_F(ExecutorTest, ReportsTheReasonOfAFailureRecord) {
  Record failure;
  failure.type = Record::Type::Event;
  failure.name = keys::kFailure;
  failure.data = {{"kind", "data"}, {"message", "no images"}};
  Step step = command("bad", "cat record >> $ASSAY_RECORDS; echo 'error: other'; exit 10");
  RunFolder folder = create({step});
  write_file_atomic(folder.path() / "record", to_record_line(failure) + "\n");
  EXPECT_EQ(run(folder), Outcome::Error);
  EXPECT_EQ(folder.state().steps.at("bad").reason, "exit code 10: no images");
}

TEST_F(ExecutorTest, SeparatesSignalsFromExitCodes) {
  RunFolder folder = create({command("killed", "kill -9 $$")});
  EXPECT_EQ(run(folder), Outcome::Error);
  EXPECT_EQ(folder.state().steps.at("killed").signal, 9);
  EXPECT_EQ(folder.state().steps.at("killed").exit_code, std::nullopt);
}

TEST_F(ExecutorTest, KeepsTheTimeLimit) {
  Step slow = command("slow", "sleep 100");
  slow.limits.time_limit_s = 0.3;
  RunFolder folder = create({slow});
  EXPECT_EQ(run(folder), Outcome::Error);
  EXPECT_EQ(folder.state().steps.at("slow").reason, "stopped at its time limit of 0.30 s");
}

TEST_F(ExecutorTest, FailsOnAMissingOutput) {
  Step step = command("quiet", "true");
  step.files.outputs = {"output/model"};
  RunFolder folder = create({step});
  EXPECT_EQ(run(folder), Outcome::Error);
  EXPECT_NE(folder.state().steps.at("quiet").reason.find("did not write output/model"), std::string::npos);
}

TEST_F(ExecutorTest, FailsTheStepOfAMissingProgram) {
  Step step = command("none", "");
  step.command.argv = {"no-such-program"};
  RunFolder folder = create({step});
  EXPECT_EQ(run(folder), Outcome::Error);
  EXPECT_NE(folder.state().steps.at("none").reason.find("no-such-program"), std::string::npos);
}

TEST_F(ExecutorTest, RepeatsNothingFinishedOnResume) {
  fs::path path;
  {
    RunFolder folder = create({command("one", "echo run >> log"), command("two", "echo run >> log2; test -e fixed")});
    path = folder.path();
    EXPECT_EQ(run(folder), Outcome::Error);
  }
  {
    RunFolder folder = RunFolder::open(path);
    folder.run_resumed();
    EXPECT_EQ(run(folder), Outcome::Error) << "a failure is an end too";
    EXPECT_EQ(read_file(path / "log2"), "run\n");
  }
  std::ofstream(path / "fixed") << "x";
  {
    RunFolder folder = RunFolder::open(path);
    folder.run_resumed();
    EXPECT_EQ(run(folder, {.retry_failed = true}), Outcome::Pass);
    EXPECT_EQ(folder.state().steps.at("two").attempts, 2);
  }
  EXPECT_EQ(read_file(path / "log"), "run\n");
  EXPECT_EQ(read_file(path / "log2"), "run\nrun\n");
}

TEST_F(ExecutorTest, ResumesAfterAKillAndLeavesNothingRunning) {
  for (int round = 0; round < 8; ++round) {
    const pid_t controller = ::fork();
    const auto runs = folder_.path() / ("kill" + std::to_string(round));
    if (controller == 0) {
      RunFolder folder = RunFolder::create(
          runs,
          {.title = "t",
           .case_key = "",
           .steps = {command("one", "echo one >> done"), command("two", "sleep 0.08; echo two >> done"),
                     command("three", "setsid sleep 0.05; echo three >> done")}},
          {"assay"});
      run(folder);
      ::_exit(0);
    }
    // After each line of the journal, of which there are eight; a controller that is quicker has ended.
    const auto num_lines = [&]() -> long {
      const auto known = list_runs(runs);
      if (known.empty()) return 0;
      const std::string text = read_file(known[0] / "journal.jsonl");
      return std::count(text.begin(), text.end(), '\n');
    };
    for (int i = 0; i < 30000 && num_lines() <= round; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ::kill(controller, SIGKILL);
    ::waitpid(controller, nullptr, 0);
    fs::path path;
    try {
      path = find_run(runs, "last");
    } catch (const UsageError&) {
      continue;  // killed before there was a run
    }
    if (!fs::exists(path / "journal.jsonl")) continue;
    std::vector<std::string> finished;
    for (const auto& [name, step] : read_run(path).state.steps) {
      if (step.outcome == Outcome::Pass) finished.push_back(name);
    }
    RunFolder folder = RunFolder::open(path);
    folder.run_resumed();
    EXPECT_EQ(run(folder), Outcome::Pass);
    for (const std::string& name : finished) EXPECT_EQ(folder.state().steps.at(name).attempts, 1) << name;
    const std::string done = read_file(path / "done");
    for (const std::string& name : finished) {
      EXPECT_EQ(done.find(name + "\n"), done.rfind(name + "\n")) << "finished before the kill, run again: " << name;
    }
  }
}

TEST_F(ExecutorTest, RestartsTheStepOfALostRank) {
  // Rank 1 is killed in the first two launches, after its peer has begun, which loses touch. Each launch has a port of
  // its own.
  Step step = command("train",
                      "echo $RANK >> launches.$RANK; echo $MASTER_PORT >> ports.$RANK; n=$(wc -l < launches.$RANK); "
                      "if [ $n -le 2 ]; then test $RANK = 0 && exit 13; "
                      "until [ \"$(cat ports.0 2>/dev/null | wc -l)\" = $n ]; do sleep 0.01; done; kill -9 $$; fi; "
                      "test $RANK = 0 && echo done > steps/1-train/out; exit 0");
  step.ranks.nproc = 2;
  step.limits.max_restarts = 3;
  step.files.outputs = {"out"};
  RunFolder folder = create({step});
  EXPECT_EQ(run(folder), Outcome::Pass);
  const StepState& state = folder.state().steps.at("train");
  EXPECT_EQ(state.attempts, 1);
  const std::string killed = "rank 1: killed by signal 9 (Killed)";
  EXPECT_EQ(state.restarts, (std::vector<std::string>{killed, killed}));
  EXPECT_EQ(state.reason, "");
  EXPECT_EQ(read_file(folder.path() / "launches.0"), "0\n0\n0\n");
  const auto ports = split(trim(read_file(folder.path() / "ports.0")), '\n');
  ASSERT_EQ(ports.size(), 3u);
  EXPECT_NE(ports[0], ports[1]);
  EXPECT_NE(ports[1], ports[2]);
  EXPECT_EQ(read_run(folder.path()).state.steps.at("train").restarts.size(), 2u);
  EXPECT_EQ(read_json_file(folder.path() / "steps/1-train/status.json")["restarts"], 2);
}

TEST_F(ExecutorTest, LimitsRestartsAndKeepsTheLastReason) {
  Step step = command("train",
                      "echo x >> launches.$RANK; n=$(wc -l < launches.$RANK); "
                      "if [ $RANK = 0 ]; then echo error: launch $n; exit 13; fi; sleep 0.2; "
                      "test $n = 1 || exit 13; kill -9 $$");
  step.ranks.nproc = 2;
  step.limits.max_restarts = 2;
  RunFolder folder = create({step});
  EXPECT_EQ(run(folder), Outcome::Error);
  const StepState& state = folder.state().steps.at("train");
  ASSERT_EQ(state.restarts.size(), 2u);
  EXPECT_EQ(state.restarts[0], "rank 1: killed by signal 9 (Killed)") << "its peers only lost touch";
  EXPECT_EQ(state.restarts[1], "rank 0: exit code 13: launch 2");
  EXPECT_EQ(state.reason, "rank 0: exit code 13: launch 3; restarted 2 times before");
  EXPECT_EQ(state.rank, 0);
  EXPECT_EQ(state.exit_code, 13);
}

TEST_F(ExecutorTest, DoesNotRetryWhatARankDidItself) {
  for (const char* end : {"exit 2", "exit 10", "exit 11", "exit 12", "exit 15", "exit 1"}) {
    Step step =
        command("train", fmt::format("echo x >> launches; test $RANK = 1 || {{ sleep 0.1; exit 13; }}; {}", end));
    step.ranks.nproc = 2;
    step.limits.max_restarts = 3;
    RunFolder folder = create({step});
    EXPECT_EQ(run(folder), Outcome::Error);
    EXPECT_EQ(folder.state().steps.at("train").restarts.size(), 0u) << end;
    EXPECT_EQ(folder.state().steps.at("train").rank, 1) << end;
  }
  Step alone = command("alone", "kill -9 $$");  // one process has nobody to lose
  alone.limits.max_restarts = 3;
  Step never = command("never", "kill -9 $$");
  never.ranks.nproc = 2;
  Step slow = command("slow", "sleep 100");
  slow.ranks.nproc = 2;
  slow.limits.max_restarts = 3;
  slow.limits.time_limit_s = 0.2;
  RunFolder folder = create({alone, never, slow});
  EXPECT_EQ(run(folder, {.stop_grace_seconds = 1}), Outcome::Error);
  for (const auto& [name, state] : folder.state().steps) EXPECT_EQ(state.restarts.size(), 0u) << name;
}

// Ranks that never found each other would not find each other again; those that did and then lost touch may.
TEST_F(ExecutorTest, DoesNotRetryWhenNobodyJoined) {
  for (const bool joined : {false, true}) {
    const std::string record =
        R"({"type": "event", "name": "SUBMIT_INFO", "time_us": 1, "elapsed_us": 1, "rank": 0, "data": {}})";
    Step step = command("train", (joined ? "echo '" + record + "' >> steps/1-train/records.jsonl; " : std::string()) +
                                     "echo 'error: no such interface'; exit 13");
    step.ranks.nproc = 2;
    step.limits.max_restarts = 2;
    RunFolder folder = create({step});
    EXPECT_EQ(run(folder), Outcome::Error);
    const StepState& state = folder.state().steps.at("train");
    EXPECT_EQ(state.restarts.size(), joined ? 2u : 0u);
    EXPECT_EQ(state.exit_code, 13);
    EXPECT_NE(state.reason.find("no such interface"), std::string::npos) << state.reason;
  }
}

TEST_F(ExecutorTest, CountsRestartsOfAKilledController) {
  // Three restarts are allowed. The first controller uses two and is killed in the third launch; the second has one.
  // Rank 0 alone counts and dies: one that is ended for another's death may not have counted yet.
  Step step = command("train",
                      "test -e fixed && exit 0; test $RANK = 0 || exec sleep 100; echo x >> launches; "
                      "if [ $(wc -l < launches) = 3 ]; then touch third; exec sleep 100; fi; kill -9 $$");
  step.ranks.nproc = 2;
  step.limits.max_restarts = 3;
  const auto runs = folder_.path() / "runs";
  const pid_t controller = ::fork();
  if (controller == 0) {
    RunFolder folder = RunFolder::create(runs, {.title = "t", .case_key = "", .steps = {step}}, {"assay"});
    run(folder);
    ::_exit(0);
  }
  const auto third = [&] {
    try {
      return fs::exists(find_run(runs, "last") / "third");
    } catch (const UsageError&) {
      return false;
    }
  };
  for (int i = 0; i < 1000 && !third(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(controller, SIGKILL);
  ::waitpid(controller, nullptr, 0);
  const fs::path path = find_run(runs, "last");
  EXPECT_EQ(read_run(path).state.steps.at("train").restarts.size(), 2u);
  {
    RunFolder folder = RunFolder::open(path);
    folder.run_resumed();
    EXPECT_EQ(run(folder), Outcome::Error);
    EXPECT_EQ(folder.state().steps.at("train").restarts.size(), 3u);
    EXPECT_EQ(folder.state().steps.at("train").attempts, 2);
    EXPECT_TRUE(find_tree(folder.tree_mark(step) + "/0").empty());
  }
  // Whoever asks for failed steps to be repeated gets all restarts anew.
  std::ofstream(path / "fixed") << "x";
  RunFolder folder = RunFolder::open(path);
  folder.run_resumed();
  EXPECT_EQ(run(folder, {.retry_failed = true}), Outcome::Pass);
  EXPECT_EQ(folder.state().steps.at("train").restarts.size(), 0u);
}

TEST_F(ExecutorTest, DoesNotCountAnInterruptionAsRestart) {
  const auto runs = folder_.path() / "runs";
  Step step = command("train", "trap 'kill -9 $$' TERM; touch up.$RANK; while true; do sleep 0.05; done");
  step.ranks.nproc = 2;
  step.limits.max_restarts = 3;
  const pid_t controller = ::fork();
  if (controller == 0) {
    catch_stop_signals();
    RunFolder folder = RunFolder::create(runs, {.title = "t", .case_key = "", .steps = {step}}, {"assay"});
    try {
      run(folder);
    } catch (const InterruptedError&) {
      ::_exit(130);
    }
    ::_exit(0);
  }
  const auto up = [&] {
    try {
      return fs::exists(find_run(runs, "last") / "up.1");
    } catch (const UsageError&) {
      return false;
    }
  };
  for (int i = 0; i < 1000 && !up(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(controller, SIGINT);
  int raw = 0;
  ::waitpid(controller, &raw, 0);
  EXPECT_EQ(WEXITSTATUS(raw), 130);
  EXPECT_EQ(read_run(find_run(runs, "last")).state.steps.at("train").restarts.size(), 0u);
}

TEST_F(ExecutorTest, PassesTheNodeOfAStepToItsRanks) {
  Step step = command("train", "echo $RANK of $WORLD_SIZE");
  step.ranks.nproc = 2;
  step.ranks.nnodes = 2;
  step.ranks.node_rank = 1;
  step.command.env = {{"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29500"}};
  RunFolder folder = create({step});
  EXPECT_EQ(run(folder), Outcome::Pass);
  EXPECT_EQ(read_file(folder.path() / "steps/1-train/rank3.log"), "3 of 4\n");
  EXPECT_EQ(read_json_file(folder.path() / "steps/1-train/command.json")["node_rank"], 1);
}

TEST_F(ExecutorTest, DiscardsFilesOfPassedStepsAndKeepsTheVerdict) {
  // A fake training: one step, one checkpoint; the second writes a loss that is off when it is told to.
  const auto training = [](const std::string& name, const std::string& loss) {
    const std::string folder = "steps/" + name;
    Step step = command(name.substr(2), fmt::format("mkdir -p {0}/output/checkpoints/epoch_1_step_1 && "
                                                    "cp weights {0}/output/checkpoints/epoch_1_step_1/model.safetensors"
                                                    " && cat {1} >> $ASSAY_RECORDS",
                                                    folder, loss));
    step.kind = StepKind::Train;
    return step;
  };
  const auto compared = [&](const std::string& name, const std::string& loss) {
    Step step = training(name, loss);
    step.needs = {"one"};
    step.checks = {Check::parse({{"type", "same_training"},
                                 {"measured", "steps/" + name},
                                 {"baseline", "steps/1-one"},
                                 {"steps", 1},
                                 {"max_relative", 1e-10}})};
    step.files.discard = {"steps/" + name + "/output/checkpoints"};
    return step;
  };
  Step verify;
  verify.name = "verify";
  verify.kind = StepKind::Verify;
  const Step same = compared("2-same", "loss");
  const Step other = compared("3-other", "other-loss");
  verify.checks = {same.checks[0], other.checks[0]};
  verify.files.discard = {"steps/1-one/output/checkpoints"};
  RunFolder folder = create({training("1-one", "loss"), same, other, verify});
  const double value = 1;
  write_safetensors(folder.path() / "weights", {{"w", "F64", {1}, reinterpret_cast<const std::byte*>(&value), 8}});
  for (const auto& [name, loss] : std::map<std::string, double>{{"loss", 2}, {"other-loss", 2.5}}) {
    Record record;
    record.type = Record::Type::Metrics;
    record.step = {{1, 1}};
    record.data = {{keys::kTrainLoss, loss}, {keys::kGlobalStep, 1}};
    write_file_atomic(folder.path() / name, to_record_line(record) + "\n");
  }
  EXPECT_EQ(run(folder), Outcome::Fail);
  const auto& steps = folder.state().steps;
  EXPECT_EQ(steps.at("other").outcome, Outcome::Pass) << "it ran; what it proves is another question";
  EXPECT_EQ(steps.at("verify").outcome, Outcome::Fail);
  EXPECT_TRUE(fs::exists(folder.path() / "steps/2-same/comparison.json"));
  EXPECT_FALSE(fs::exists(folder.path() / "steps/2-same/output/checkpoints"));
  EXPECT_TRUE(fs::is_empty(folder.path() / "steps/2-same/output"));
  EXPECT_TRUE(fs::exists(folder.path() / "steps/3-other/output/checkpoints")) << "what failed is kept to be looked at";
  EXPECT_TRUE(fs::exists(folder.path() / "steps/1-one/output/checkpoints"));
  EXPECT_EQ(same.checks[0].judge(RunEvidence(folder)).outcome, Outcome::Pass) << "from what was kept";
}

TEST_F(ExecutorTest, RejectsASecondControllerOfTheFolder) {
  RunFolder folder = create({command("one", "true")});
  try {
    RunFolder::open(folder.path());
    FAIL();
  } catch (const InfrastructureError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(::getpid())), std::string::npos) << error.what();
  }
}

TEST_F(ExecutorTest, NamesDamage) {
  fs::path path;
  {
    RunFolder folder = create({command("one", "true")});
    path = folder.path();
    run(folder);
  }
  const std::string journal = read_file(path / "journal.jsonl");
  const std::string plan = read_file(path / "plan.json");

  std::ofstream(path / "journal.jsonl") << journal.substr(0, journal.size() - 5);  // torn: the run had not ended
  EXPECT_EQ(read_run(path).state.outcome, std::nullopt);

  std::ofstream(path / "journal.jsonl") << "garbage\n" << journal;
  EXPECT_THROW(read_run(path), DataError);
  EXPECT_THROW(RunFolder::open(path), DataError);

  std::ofstream(path / "journal.jsonl") << journal << "{\"event\":\"step_ended\",\"time\":\"2026-01-01T00:00:00Z\"}\n";
  EXPECT_THROW(read_run(path), DataError);

  std::ofstream(path / "journal.jsonl") << journal;
  std::ofstream(path / "plan.json") << plan.substr(0, plan.size() / 2);
  EXPECT_THROW(read_run(path), DataError);

  Plan other = plan_of(parse_json(plan, "p"), "p");
  other.steps[0].command.argv.push_back("changed");
  std::ofstream(path / "plan.json") << to_line(to_json(other));
  try {
    read_run(path);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("not the plan"), std::string::npos);
  }
  EXPECT_THROW(read_run("/tmp"), DataError);
}

TEST_F(ExecutorTest, StopsAtAnInterruptionAndResumes) {
  const auto runs = folder_.path() / "runs";
  const pid_t controller = ::fork();
  if (controller == 0) {
    catch_stop_signals();
    RunFolder folder =
        RunFolder::create(runs,
                          {.title = "t",
                           .case_key = "",
                           .steps = {command("one",
                                             "trap 'echo stopped >> log; exit 130' TERM; echo up > up; "
                                             "test -e again && exit 0; while true; do sleep 0.05; done")}},
                          {"assay"});
    try {
      run(folder);
    } catch (const InterruptedError&) {
      ::_exit(130);
    }
    ::_exit(0);
  }
  const auto up = [&] {
    try {
      return fs::exists(find_run(runs, "last") / "up");
    } catch (const UsageError&) {
      return false;
    }
  };
  for (int i = 0; i < 500 && !up(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ::kill(controller, SIGINT);
  int raw = 0;
  ::waitpid(controller, &raw, 0);
  EXPECT_EQ(WEXITSTATUS(raw), 130);
  const fs::path path = find_run(runs, "last");
  EXPECT_EQ(read_file(path / "log"), "stopped\n");
  EXPECT_EQ(read_run(path).state.steps.at("one").outcome, std::nullopt);
  std::ofstream(path / "again") << "x";
  RunFolder folder = RunFolder::open(path);
  EXPECT_EQ(run(folder), Outcome::Pass);
}

TEST_F(ExecutorTest, RunsAreFoundByNameBeginningAndLast) {
  RunFolder folder = create({command("one", "true")});
  const auto runs = folder_.path() / "runs";
  EXPECT_EQ(fs::canonical(find_run(runs, "last")), fs::canonical(folder.path()));
  EXPECT_EQ(fs::canonical(find_run(runs, folder.id().substr(0, 20))), fs::canonical(folder.path()));
  EXPECT_EQ(find_run(runs, folder.path().string()), folder.path());
  EXPECT_THROW(find_run(runs, "nothing"), UsageError);
  EXPECT_THROW(find_run(runs, ""), UsageError);
}

namespace {

// Steps that last as long as the test says, on hosts that do not exist.
class ScriptedLauncher : public Launcher {
 public:
  struct Script {
    double seconds = 0;
    int code = 0;
    int beside = 0;                          // it goes on until so many have been at work at once
    double told_seconds = 0;                 // what its supervisors measured
    std::vector<std::string> failures = {};  // of the infrastructure, one an attempt
  };
  std::map<std::string, Script> scripts;  // by the name of the step's folder
  std::atomic<int> at_work = 0, most_at_work = 0;
  std::vector<std::string> started, attached, left;
  bool is_left_running = false;

  std::string name() const override { return "scripted"; }
  std::unique_ptr<RunningStep> start(const LaunchRequest& request) override {
    const std::lock_guard lock(mutex_);
    started.push_back(request.folder.filename().string());
    Script& script = scripts[started.back()];
    if (!script.failures.empty()) {
      const std::string reason = script.failures.front();
      script.failures.erase(script.failures.begin());
      if (reason != "later") throw InfrastructureError(reason);
      return std::make_unique<Running>(*this, script, "host1: no connection for 60 s");
    }
    return std::make_unique<Running>(*this, script, "");
  }
  std::unique_ptr<RunningStep> attach(const LaunchRequest& request) override {
    const std::lock_guard lock(mutex_);
    if (!is_left_running) return nullptr;
    attached.push_back(request.folder.filename().string());
    return std::make_unique<Running>(*this, scripts[attached.back()], "", attached.back());
  }

 private:
  class Running : public RunningStep {
   public:
    Running(ScriptedLauncher& launcher, const Script& script, std::string failure, std::string folder = "")
        : launcher_(launcher), script_(script), failure_(std::move(failure)), folder_(std::move(folder)) {
      // Under the launcher's lock, so nobody else writes the largest.
      launcher_.most_at_work = std::max<int>(launcher_.most_at_work, ++launcher_.at_work);
    }
    ~Running() override { --launcher_.at_work; }
    std::optional<LaunchResult> wait_for(double seconds, int) override {
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, 0.005)));
      if (watch_.seconds() < script_.seconds || launcher_.most_at_work < script_.beside) return std::nullopt;
      return result(script_.code);
    }
    LaunchResult stop(double) override { return result(143); }
    void leave() override { launcher_.left.push_back(folder_); }

   private:
    LaunchResult result(int code) const {
      LaunchResult out;
      out.status.code = code;
      out.status.seconds = script_.told_seconds;
      out.infrastructure = failure_;
      return out;
    }
    ScriptedLauncher& launcher_;
    Script script_;
    std::string failure_;
    std::string folder_;
    Stopwatch watch_;
  };
  std::mutex mutex_;
};

class CampaignExecutorTest : public ExecutorTest {
 protected:
  static Step on_hosts(const std::string& name, int nnodes = 1) {
    Step step = command(name, "true");
    step.ranks.on_hosts = true;
    step.ranks.nnodes = nnodes;
    return step;
  }
  Outcome run_on(RunFolder& folder, int num_hosts, ExecuteOptions options = {}) {
    std::vector<Host> hosts;
    for (int i = 1; i <= num_hosts; ++i) hosts.push_back({.name = fmt::format("host{}", i), .slots = 1});
    HostPool pool(hosts);
    options.hosts = &pool;
    Console console(Console::Level::Quiet);
    return execute(folder, launcher_, console, options);
  }
  ScriptedLauncher launcher_;
};

}  // namespace

TEST_F(CampaignExecutorTest, RunsStepsInParallelAsHostsAllow) {
  std::vector<Step> steps;
  for (int i = 0; i < 6; ++i) {
    steps.push_back(on_hosts(fmt::format("s{}", i)));
    launcher_.scripts[fmt::format("{}-s{}", i + 1, i)].beside = 2;
  }
  steps.push_back(on_hosts("both", 2));
  RunFolder folder = create(steps);
  EXPECT_EQ(run_on(folder, 2, {.concurrency = 4}), Outcome::Pass);
  EXPECT_EQ(launcher_.most_at_work, 2);
  EXPECT_EQ(folder.state().steps.at("both").places,
            Json::parse(R"([{"host": "host1", "devices": [0]}, {"host": "host2", "devices": [0]}])"));
}

TEST_F(CampaignExecutorTest, RetriesOnlyInfrastructureFailures) {
  Step flaky = on_hosts("flaky");
  flaky.limits.retries = 2;
  Step broken = on_hosts("broken");
  broken.limits.retries = 2;
  launcher_.scripts["1-flaky"].failures = {"host1: connection refused", "later"};
  launcher_.scripts["2-broken"].code = 3;
  RunFolder folder = create({flaky, broken});
  EXPECT_EQ(run_on(folder, 1), Outcome::Error);
  const auto& steps = folder.state().steps;
  EXPECT_EQ(steps.at("flaky").outcome, Outcome::Pass);
  EXPECT_EQ(steps.at("flaky").attempts, 3);
  EXPECT_EQ(steps.at("flaky").retries.size(), 2u);
  EXPECT_EQ(steps.at("broken").attempts, 1);
  EXPECT_FALSE(steps.at("broken").infrastructure);
}

TEST_F(CampaignExecutorTest, BlamesTheInfrastructureForAnAbsentHost) {
  launcher_.scripts["1-lost"].failures = {"later"};
  RunFolder folder = create({on_hosts("lost")});
  EXPECT_EQ(run_on(folder, 1), Outcome::Error);
  EXPECT_TRUE(folder.state().steps.at("lost").infrastructure);
  EXPECT_EQ(folder.state().steps.at("lost").reason, "host1: no connection for 60 s");
  EXPECT_TRUE(read_run(folder.path()).state.steps.at("lost").infrastructure);
}

TEST_F(CampaignExecutorTest, LimitsTheWaitForSilentSteps) {
  Step silent = on_hosts("silent");
  silent.limits.stall_limit_s = 0.2;
  launcher_.scripts["1-silent"].seconds = 100;
  RunFolder folder = create({silent});
  EXPECT_EQ(run_on(folder, 1), Outcome::Error);
  EXPECT_EQ(folder.state().steps.at("silent").reason, "stopped: no line and no record for 0.20 s");
}

TEST_F(CampaignExecutorTest, ReportsHostsThatNeverSuffice) {
  Step judge;
  judge.name = "judge";
  judge.kind = StepKind::Verify;
  judge.needs = {"large"};
  judge.checks = {Check::parse({{"type", "loss_falls"}, {"records", "none"}})};
  RunFolder folder = create({on_hosts("large", 3), judge, on_hosts("small")});
  EXPECT_EQ(run_on(folder, 2), Outcome::Error);
  EXPECT_EQ(folder.state().steps.at("large").reason, "needs 1 devices on each of 3 hosts, and there are not so many");
  EXPECT_EQ(folder.state().steps.at("judge").outcome, Outcome::Skipped);
  EXPECT_EQ(folder.state().steps.at("small").outcome, Outcome::Pass);
}

TEST_F(CampaignExecutorTest, EndsAfterTooManyFailures) {
  std::vector<Step> steps;
  for (int i = 0; i < 4; ++i) {
    steps.push_back(on_hosts(fmt::format("s{}", i)));
    launcher_.scripts[fmt::format("{}-s{}", i + 1, i)].code = 1;
  }
  RunFolder folder = create(steps);
  EXPECT_EQ(run_on(folder, 1, {.max_failures = 2}), Outcome::Error);
  EXPECT_EQ(launcher_.started.size(), 2u);
  EXPECT_EQ(folder.state().steps.at("s3").reason, "2 steps before it did not pass");
}

TEST_F(CampaignExecutorTest, CountsFailuresBeforeAResume) {
  RunFolder folder = create({on_hosts("s0"), on_hosts("s1"), on_hosts("s2")});
  StepState failed;
  failed.outcome = Outcome::Error;
  folder.step_started(folder.plan().steps[0]);
  folder.step_ended(folder.plan().steps[0], failed);
  launcher_.scripts["2-s1"].code = 1;
  EXPECT_EQ(run_on(folder, 1, {.max_failures = 2}), Outcome::Error);
  EXPECT_EQ(launcher_.started, std::vector<std::string>{"2-s1"});
  EXPECT_EQ(folder.state().steps.at("s2").outcome, Outcome::Skipped);
}

TEST_F(CampaignExecutorTest, ReattachesToWhatAnEarlierControllerStarted) {
  RunFolder folder = create({on_hosts("one"), on_hosts("two")});
  folder.step_started(folder.plan().steps[0], Json::parse(R"([{"host": "host1", "devices": [0]}])"));
  launcher_.is_left_running = true;
  EXPECT_EQ(run_on(folder, 1), Outcome::Pass);
  EXPECT_EQ(launcher_.attached, std::vector<std::string>{"1-one"});
  EXPECT_EQ(launcher_.started, std::vector<std::string>{"2-two"});
  EXPECT_EQ(folder.state().steps.at("one").attempts, 1);
}

TEST_F(CampaignExecutorTest, TakesTimesFromTheRanks) {
  Step flaky = on_hosts("flaky");
  flaky.limits.retries = 1;
  launcher_.scripts["1-flaky"] = {.told_seconds = 42, .failures = {"later"}};
  RunFolder folder = create({flaky});
  EXPECT_EQ(run_on(folder, 1), Outcome::Pass);
  EXPECT_EQ(folder.state().steps.at("flaky").seconds, 42);
}

TEST_F(CampaignExecutorTest, CountsTheTimeLimitFromTheStartOfTheAttempt) {
  fs::path path;
  Step late = on_hosts("late");
  late.limits.time_limit_s = 100;
  {
    RunFolder folder = create({late});
    path = folder.path();
    folder.step_started(folder.plan().steps[0], Json::parse(R"([{"host": "host1", "devices": [0]}])"));
  }
  // Its controller was killed long ago.
  std::string journal = read_file(path / "journal.jsonl");
  const std::string mark = "\"time\":\"";
  const size_t at = journal.find(mark, journal.find("step_started"));
  ASSERT_NE(at, std::string::npos) << journal;
  journal.replace(at + mark.size(), 4, "2020");
  write_file_atomic(path / "journal.jsonl", journal);
  launcher_.is_left_running = true;
  launcher_.scripts["1-late"].seconds = 1000;
  RunFolder folder = RunFolder::open(path);
  const Stopwatch watch;
  EXPECT_EQ(run_on(folder, 1), Outcome::Error);
  EXPECT_LT(watch.seconds(), 90);
  EXPECT_THAT(folder.state().steps.at("late").reason, testing::HasSubstr("stopped at its time limit"));
}

TEST_F(CampaignExecutorTest, ListsRunningStepsBeforeAResume) {
  Step needs_failed = on_hosts("needs_failed");
  needs_failed.needs = {"failed"};
  RunFolder folder = create(
      {on_hosts("passed"), on_hosts("failed"), needs_failed, on_hosts("running"), on_hosts("open"), on_hosts("lost")});
  const auto step = [&](const char* name) -> const Step& { return folder.plan().step(name); };
  const auto places = [](const char* host) {
    return Json::parse(fmt::format(R"([{{"host": "{}", "devices": [0]}}])", host));
  };
  StepState end;
  for (const auto& [name, outcome] : {std::pair("passed", Outcome::Pass), std::pair("failed", Outcome::Error)}) {
    folder.step_started(step(name), places("host1"));
    end.outcome = outcome;
    folder.step_ended(step(name), end);
  }
  folder.step_started(step("running"), places("host1"));
  folder.step_started(step("lost"), places("host2"));
  JobState lapsed{.phase = JobState::Phase::Ended, .run_id = folder.id(), .attempt = 1};
  lapsed.pid = 1;
  lapsed.started_us = lapsed.ended_us = now_us();
  lapsed.error_kind = JobState::kLeaseLapsed;
  make_folder(folder.step_folder(step("lost")));
  write_state(folder.step_folder(step("lost")), lapsed);
  launcher_.is_left_running = true;
  HostPool pool({{.name = "host1", .slots = 1}, {.name = "host2", .slots = 1}});
  const size_t journal_bytes = fs::file_size(folder.path() / "journal.jsonl");
  {
    const ResumableSteps left(folder, launcher_, {.hosts = &pool});
    EXPECT_EQ(left.to_begin(), (std::set<std::string>{"open", "lost"}));
    EXPECT_EQ(left.running(), (std::set<std::string>{"running"}));
    EXPECT_EQ(launcher_.left, (std::vector<std::string>{"6-lost"}));
    EXPECT_EQ(launcher_.at_work, 1) << "it is held";
  }
  EXPECT_EQ(launcher_.left, (std::vector<std::string>{"6-lost", "4-running"})) << "nothing of it was ended";
  EXPECT_EQ(fs::file_size(folder.path() / "journal.jsonl"), journal_bytes);
  EXPECT_TRUE(pool.take(2, 1)) << "hosts are free again";
  HostPool again({{.name = "host1", .slots = 1}, {.name = "host2", .slots = 1}});
  const ResumableSteps repeated(folder, launcher_, {.retry_failed = true, .hosts = &again});
  EXPECT_EQ(repeated.to_begin(), (std::set<std::string>{"failed", "needs_failed", "open", "lost"}));
}

TEST_F(CampaignExecutorTest, RepeatsWhatItsControllerStopped) {
  fs::path path;
  {
    RunFolder folder = create({on_hosts("one")});
    path = folder.path();
    folder.step_started(folder.plan().steps[0], Json::parse(R"([{"host": "host1", "devices": [0]}])"));
    folder.run_interrupted();
  }
  launcher_.is_left_running = true;  // its last words are still there
  RunFolder folder = RunFolder::open(path);
  folder.run_resumed();
  EXPECT_EQ(run_on(folder, 1), Outcome::Pass);
  EXPECT_TRUE(launcher_.attached.empty());
  EXPECT_EQ(launcher_.started, std::vector<std::string>{"1-one"});
  EXPECT_EQ(folder.state().steps.at("one").attempts, 2);
}

TEST_F(CampaignExecutorTest, RepeatsWhatCannotBeReattached) {
  RunFolder folder = create({on_hosts("one")});
  folder.step_started(folder.plan().steps[0], Json::parse(R"([{"host": "host1", "devices": [0]}])"));
  EXPECT_EQ(run_on(folder, 1), Outcome::Pass);
  EXPECT_EQ(launcher_.started, std::vector<std::string>{"1-one"});
  EXPECT_EQ(folder.state().steps.at("one").attempts, 2);
}
