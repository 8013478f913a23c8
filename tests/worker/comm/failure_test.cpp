// Processes that die, stop, fail or do not come: every other one ends with an error that names them, within the limit.
#include <signal.h>

#include <filesystem>
#include <random>

#include "job.h"

using namespace assay;
using namespace assay::comm_test;

namespace {

// Of a rank that was killed the others know at once, long before this limit; one that is stopped they miss within it.
constexpr double kKilledLimit_s = 200, kStoppedLimit_s = 10;
constexpr double kAtOnce_s = 100;  // on a busy machine

// Ends with the exit code of a communication error and names this rank.
void expect_names(const Job::End& end, int lost) {
  EXPECT_EQ(end.status.code, 13) << end.status.text() << "\n" << end.output;
  EXPECT_NE(end.output.find("error after"), std::string::npos) << end.output;
  EXPECT_NE(end.output.find("rank " + std::to_string(lost)), std::string::npos) << end.output;
}

size_t shared_files() {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    count += entry.path().filename().string().find("assay") != std::string::npos;
  }
  return count;
}

void lose_one(const std::vector<std::string>& scenario, const std::string& transport, int victim, int signal) {
  SCOPED_TRACE(scenario.back() + " over " + transport + ", rank " + std::to_string(victim));
  const size_t before = shared_files();
  const double limit_s = signal == SIGKILL ? kKilledLimit_s : kStoppedLimit_s;
  Job job(3, {{"TRANSPORT", transport}, {"TIME_LIMIT", std::to_string(limit_s)}});
  job.start_all(scenario);
  job.await("looping");
  std::this_thread::sleep_for(std::chrono::milliseconds(20 + std::random_device()() % 80));
  job.kill(victim, signal);
  const Stopwatch watch;
  for (int rank = 0; rank < 3; ++rank) {
    if (rank != victim) expect_names(job.end(rank), victim);
  }
  EXPECT_LT(watch.seconds(), signal == SIGKILL ? kAtOnce_s : 5 * limit_s);
  if (signal != SIGKILL) job.kill(victim, SIGKILL);
  EXPECT_EQ(job.end(victim).status.signal, SIGKILL);
  EXPECT_EQ(shared_files(), before);
}

class LostRank : public testing::TestWithParam<std::string> {};

}  // namespace

TEST_P(LostRank, IsNamedWhenKilledOverSharedMemory) { lose_one({"loop", GetParam()}, "shared_memory", 1, SIGKILL); }
TEST_P(LostRank, IsNamedWhenKilledOverGloo) { lose_one({"loop", GetParam()}, "gloo", 2, SIGKILL); }
INSTANTIATE_TEST_SUITE_P(, LostRank,
                         testing::Values("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all",
                                         "barrier", "future", "messages", "small"),
                         [](const auto& info) { return info.param; });

TEST(LostRankMore, IsNamedWhenKilledWhileBuffersAreReducedInPlace) {
  lose_one({"loop", "all_reduce", "buffer"}, "shared_memory", 2, SIGKILL);
}
TEST(LostRankMore, IsNamedWhenRankZeroIsKilled) {
  lose_one({"loop", "all_reduce"}, "shared_memory", 0, SIGKILL);
  lose_one({"loop", "messages"}, "gloo", 0, SIGKILL);
}
TEST(LostRankMore, IsNamedWhenStoppedOverSharedMemory) {
  lose_one({"loop", "all_reduce"}, "shared_memory", 2, SIGSTOP);
}
TEST(LostRankMore, IsNamedWhenStoppedOverGloo) { lose_one({"loop", "all_gather"}, "gloo", 1, SIGSTOP); }
TEST(LostRankMore, IsNamedWhenRankZeroIsStopped) { lose_one({"loop", "messages"}, "shared_memory", 0, SIGSTOP); }

TEST(FailedRank, TellsItsReason) {
  for (const char* transport : {"shared_memory", "gloo"}) {
    Job job(3, {{"TRANSPORT", transport}});
    job.start_all({"fail"});
    for (const int rank : {0, 2}) {
      const Job::End end = job.end(rank);
      expect_names(end, 1);
      EXPECT_NE(end.output.find("rank 1 failed: the disk is full"), std::string::npos) << end.output;
    }
    EXPECT_EQ(job.end(1).status.code, 1);
  }
}

TEST(FailedRank, MakesAllRefuseTheConfigurationThatItRefuses) {
  for (const char* transport : {"shared_memory", "gloo"}) {
    Job job(3, {{"TRANSPORT", transport}});
    job.start_all({"refuse"});
    for (const int rank : {0, 1, 2}) {
      const Job::End end = job.end(rank);
      EXPECT_EQ(end.status.code, kExitUsage) << end.output;
      EXPECT_NE(end.output.find("heads do not divide"), std::string::npos) << end.output;
    }
  }
}

TEST(Watchdog, NamesMissingRanksAndWhereTheOthersAre) {
  for (const char* transport : {"shared_memory", "gloo"}) {
    Job job(3, {{"TRANSPORT", transport}, {"TIME_LIMIT", "5"}});
    job.start_all({"stuck"});
    for (const int rank : {0, 1}) {
      const Job::End end = job.end(rank);
      expect_names(end, 2);
      for (const char* part : {"all_reduce #2 of dp (gradients of step 12) took longer than ", "rank 2 did not come",
                               "rank 0 waits in all_reduce #2 of dp (gradients of step 12), 400000 bytes, for",
                               "rank 1 waits in all_reduce #2 of dp (gradients of step 12), 400000 bytes, for",
                               "rank 2 has not come, its last was all_reduce #1 of dp"}) {
        EXPECT_NE(end.output.find(part), std::string::npos) << part << "\n" << end.output;
      }
    }
    job.kill(2, SIGKILL);
  }
}

TEST(Watchdog, NamesASenderThatDoesNotSend) {
  Job job(2, {{"TIME_LIMIT", "5"}});
  job.start_all({"stuck", "receive"});
  const Job::End end = job.end(0);
  expect_names(end, 1);
  EXPECT_NE(end.output.find("receive from rank 1 with tag 5 of dp took longer than"), std::string::npos) << end.output;
  job.kill(1, SIGKILL);
}

TEST(Disagreement, IsAnErrorForSizes) {
  Job job(2, {{"TRANSPORT", "shared_memory"}});
  job.start_all({"disagree"});
  for (const int rank : {0, 1}) {
    const Job::End end = job.end(rank);
    EXPECT_EQ(end.status.code, 13) << end.output;
    EXPECT_NE(end.output.find("disagree"), std::string::npos) << end.output;
  }
  Job over_gloo(2, {{"TRANSPORT", "gloo"}, {"TIME_LIMIT", "5"}});
  over_gloo.start_all({"disagree"});
  for (const int rank : {0, 1}) {
    const Job::End end = over_gloo.end(rank);
    EXPECT_EQ(end.status.code, 13) << end.output;
    EXPECT_NE(end.output.find("rank 1 waits in all_reduce #1 of dp, 396 bytes"), std::string::npos) << end.output;
  }
}
