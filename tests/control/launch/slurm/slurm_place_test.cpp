#include "launch/slurm/slurm_place.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "launch/host/job.h"

using namespace assay;

namespace {

EnvironmentOf variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

LaunchRequest job_for(const fs::path& folder, int node) {
  LaunchRequest job;
  job.command.argv = {"true"};
  job.command.cwd = job.folder = folder;
  job.ranks.nproc = job.ranks.nnodes = 2;
  job.ranks.node_rank = node;
  job.run_id = "run";
  job.tree_mark = "run/step";
  job.placement.hardware = "A100";
  job.site.visible_devices = "CUDA_VISIBLE_DEVICES";
  job.placement.nodes = {{.host = {.name = "n1", .address = "10.0.0.1"}},
                         {.host = {.name = "n2", .address = "10.0.0.2"}}};
  return job;
}

}  // namespace

TEST(SlurmPlace, TakesDevicesOfTheAllocation) {
  const LaunchRequest job = job_for("/", 0);
  EXPECT_EQ(slurm_devices(job, variables({{"SLURM_STEP_GPUS", "2-3,6"}, {"SLURM_JOB_GPUS", "0,1"}})),
            (std::vector<int>{2, 3}));
  EXPECT_EQ(slurm_devices(job, variables({{"SLURM_JOB_GPUS", "5,1"}})), (std::vector<int>{5, 1}));
  EXPECT_EQ(slurm_devices(job, variables({})), (std::vector<int>{0, 1}));
  EXPECT_THROW(slurm_devices(job, variables({{"SLURM_JOB_GPUS", "3"}})), InfrastructureError);
  for (const char* text : {"a", "1-", "-1", "3-1", "1,,2", "0-99999999999", "1-2-3"}) {
    EXPECT_THROW(slurm_devices(job, variables({{"SLURM_JOB_GPUS", text}})), InfrastructureError) << text;
  }
  LaunchRequest cores = job;
  cores.placement.hardware = "cpu";
  EXPECT_TRUE(slurm_devices(cores, variables({})).empty()) << "which cores, and whose, is Slurm's affair";
}

TEST(SlurmPlace, AddsTheDevicesOfANodeToItsJob) {
  const TempFolder folder;
  for (int node : {0, 1}) write_job(folder.path(), job_for(folder.path(), node));
  const int node = take_slurm_node(folder.path(), variables({{"SLURM_NODEID", "1"}, {"SLURM_STEP_GPUS", "4,5"}}));
  EXPECT_EQ(node, 1);
  const LaunchRequest job = read_job(folder.path(), 1);
  EXPECT_EQ(job.placement.nodes[1].devices, (std::vector<int>{4, 5}));
  EXPECT_EQ(job.site.visible_devices, "CUDA_VISIBLE_DEVICES");
  EXPECT_TRUE(read_job(folder.path(), 0).placement.nodes[1].devices.empty()) << "that is another node's file";
  take_slurm_node(folder.path(), variables({{"SLURM_NODEID", "1"}, {"CUDA_VISIBLE_DEVICES", "0,1"}}));
  EXPECT_EQ(read_job(folder.path(), 1).site.visible_devices, "") << "Slurm has said it in its own numbers";
  EXPECT_THROW(take_slurm_node(folder.path(), variables({})), InfrastructureError);
  EXPECT_THROW(take_slurm_node(folder.path(), variables({{"SLURM_NODEID", "2"}})), Error);
}

TEST(SlurmPlace, StartsNothingWithoutAController) {
  const TempFolder folder;
  for (int node : {0, 1}) write_job(folder.path(), job_for(folder.path(), node));
  try {
    place_slurm_job(folder.path(), variables({{"SLURM_JOB_NODELIST", "n[1-2]"}}));
    FAIL() << "there is no lease";
  } catch (const InfrastructureError& error) {
    EXPECT_NE(std::string(error.what()).find("lease expired"), std::string::npos) << error.what();
  }
}
