// What runs inside an allocation of Slurm: the nodes are known only there. `assay slurm place` completes the job files
// on the first node, `assay slurm supervise` becomes the supervisor of its node.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "launch/launcher.h"

namespace assay {

// Written into the step's folder by place: [{"name", "address"}, ...].
inline constexpr const char* kSlurmNodesFile = "slurm.nodes.json";

// Reads an environment, for tests.
using EnvironmentOf = std::function<std::string(const std::string&)>;  // "" when it is not set
std::string process_environment(const std::string& name);

// Names and addresses of the nodes of this allocation, in Slurm's order. Throws InfrastructureError.
std::vector<Host> slurm_hosts(const EnvironmentOf& environment);

// Fills nodes, MASTER_ADDR and a port that is free here into every job.node<I>.json of the folder. Throws
// InfrastructureError, also when the controller has been gone for longer than its lease: nobody would look after the
// job.
void place_slurm_job(const std::filesystem::path& folder, const EnvironmentOf& environment);

// The devices that Slurm gave this node: SLURM_STEP_GPUS or SLURM_JOB_GPUS, "0-2,5". Without them 0 to nproc-1, and
// none, so no lock, on hardware "cpu": which cores a job gets is Slurm's own affair. Throws InfrastructureError when
// there are fewer than ranks.
std::vector<int> slurm_devices(const LaunchRequest& request, const EnvironmentOf& environment);

// Puts this node's devices into its job file; returns the node's number.
int take_slurm_node(const std::filesystem::path& folder, const EnvironmentOf& environment);

}  // namespace assay
