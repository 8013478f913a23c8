#include "launch/slurm/slurm_queue.h"

#include <gtest/gtest.h>

using namespace assay;

TEST(SlurmQueue, ReadsAJobFromALineOfSqueue) {
  const auto job = slurm_job_of_line(" 12|RUNNING|None|n[1-2]\n");
  ASSERT_TRUE(job.has_value());
  EXPECT_EQ(job->id, "12");
  EXPECT_EQ(job->state, "RUNNING");
  EXPECT_EQ(job->nodes, "n[1-2]");
  for (const char* line :
       {"", "slurm_load_jobs error: Invalid job id specified", "x|RUNNING|None|n1", "12|RUNNING", "1||a|b"}) {
    EXPECT_FALSE(slurm_job_of_line(line).has_value()) << line;
  }
}

TEST(SlurmQueue, MapsStatesToWhatComesNext) {
  const auto job = [](const char* state, const char* reason) { return SlurmJob{"1", state, reason, ""}; };
  for (const char* state : {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY"}) {
    EXPECT_TRUE(job(state, "None").final()) << state;
    EXPECT_FALSE(job(state, "None").pending()) << state;
  }
  for (const char* state : {"RUNNING", "COMPLETING", "SUSPENDED", "CONFIGURING", "PENDING", "something new"}) {
    EXPECT_FALSE(job(state, "None").final()) << state;
  }
  EXPECT_TRUE(job("PENDING", "PartitionConfig").hopeless());
  EXPECT_TRUE(job("PENDING", "InvalidAccount").hopeless());
  EXPECT_FALSE(job("PENDING", "Resources").hopeless()) << "they will be free some day";
  EXPECT_FALSE(job("PENDING", "JobHeldUser").hopeless()) << "somebody may release it";
  EXPECT_FALSE(job("RUNNING", "PartitionConfig").hopeless());
}
