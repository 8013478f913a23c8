#include "launch/slurm/slurm_place.h"

#include <fmt/format.h>

#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/text.h"
#include "launch/host/device_addresses.h"
#include "launch/host/job.h"
#include "launch/host/port.h"
#include "launch/host/rank_environment.h"

namespace assay {

namespace {

constexpr double kScontrolLimit = 60;  // seconds

std::string scontrol(const std::vector<std::string>& words) {
  std::vector<std::string> argv = {"scontrol"};
  argv.insert(argv.end(), words.begin(), words.end());
  const CapturedOutput output = capture({.argv = argv}, kScontrolLimit);
  if (!output.status.ok()) {
    throw InfrastructureError(fmt::format("{}: {}: {}", shell_line(argv), output.status.text(), trim(output.err)));
  }
  return output.out;
}

int node_number(const EnvironmentOf& environment) {
  const auto node = parse_int(environment("SLURM_NODEID"));
  if (!node) throw InfrastructureError("SLURM_NODEID is not set: this command is for tasks that srun starts");
  return static_cast<int>(*node);
}

// Whether the lease was last renewed longer ago than it lasts. Both times are those of the shared file system.
bool lease_is_old(const fs::path& folder, double lease_s) {
  const fs::path fresh = folder / "slurm.placing";
  write_file_atomic(fresh, "");
  std::error_code error;
  const auto now = fs::last_write_time(fresh);
  const auto renewed = fs::last_write_time(folder / job_file_name(JobFile::Lease, 0), error);
  fs::remove(fresh);
  return error || std::chrono::duration<double>(now - renewed).count() > lease_s;
}

// Ports that are free on each node for each of its ranks: every node is asked.
std::vector<std::vector<int>> ports_of_nodes(const LaunchRequest& job) {
  const std::string self = (program_folder() / "assay").string();
  const CapturedOutput output =
      capture({.argv = {"srun", "--ntasks-per-node=1", fmt::format("--ntasks={}", job.ranks.nnodes), self, "slurm",
                        "ports", std::to_string(job.ranks.nproc)}},
              kScontrolLimit);
  std::vector<std::vector<int>> ports(static_cast<size_t>(job.ranks.nnodes));
  for (const std::string& line : split(output.out, '\n')) {
    const auto words = split(trim(line), ' ');  // "0 40123 40125"
    const auto node = parse_int(words[0]);
    if (!node || *node < 0 || *node >= job.ranks.nnodes) continue;
    for (size_t i = 1; i < words.size(); ++i) {
      if (const auto port = parse_int(words[i])) ports[static_cast<size_t>(*node)].push_back(static_cast<int>(*port));
    }
  }
  for (const auto& found : ports) {
    if (static_cast<int>(found.size()) == job.ranks.nproc) continue;
    throw InfrastructureError(fmt::format("no free ports were found on every node: {}", trim(output.err)));
  }
  return ports;
}

// Of the devices of each node: every node is asked for its own.
std::vector<std::map<int, std::string>> device_addresses_of_nodes(const LaunchRequest& job) {
  std::vector<std::map<int, std::string>> out(static_cast<size_t>(job.ranks.nnodes));
  if (job.ranks.nnodes == 1) {  // this is the node
    out[0] = read_device_addresses().addresses;
    return out;
  }
  const std::string self = (program_folder() / "assay").string();
  const CapturedOutput output =
      capture({.argv = {"srun", "--ntasks-per-node=1", fmt::format("--ntasks={}", job.ranks.nnodes), self, "slurm",
                        "addresses"}},
              kScontrolLimit);
  std::set<long long> told;
  for (const std::string& line : split(output.out, '\n')) {
    const size_t space = line.find(' ');  // 0 {"0":"192.168.100.101"}
    const auto node = parse_int(line.substr(0, space));
    if (space == std::string::npos || !node || *node < 0 || *node >= job.ranks.nnodes) continue;
    const std::string where = fmt::format("addresses of devices of node {}", *node);
    out[static_cast<size_t>(*node)] = device_addresses_of(parse_json(line.substr(space), where), where);
    told.insert(*node);
  }
  if (static_cast<int>(told.size()) == job.ranks.nnodes) return out;
  throw InfrastructureError(fmt::format("not every node told the addresses of its devices: {}", trim(output.err)));
}

std::vector<int> numbers_of_ranges(const std::string& text) {
  std::vector<int> out;
  for (const std::string& range : split(text, ',')) {
    const auto ends = split(range, '-');
    const auto first = parse_int(ends[0]);
    const auto last = parse_int(ends.back());
    constexpr long long kMaxDevice = 4096;
    if (ends.size() > 2 || !first || !last || *first < 0 || *last < *first || *last > kMaxDevice) {
      throw InfrastructureError(fmt::format("Slurm gave devices '{}', which is no list of numbers", valid_utf8(text)));
    }
    for (long long i = *first; i <= *last; ++i) out.push_back(static_cast<int>(i));
  }
  return out;
}

}  // namespace

std::string process_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? value : "";
}

std::vector<Host> slurm_hosts(const EnvironmentOf& environment) {
  const std::string list = environment("SLURM_JOB_NODELIST");
  if (list.empty()) throw InfrastructureError("SLURM_JOB_NODELIST is not set: this command is for a job of Slurm");
  std::vector<Host> hosts;
  for (const std::string& line : split(scontrol({"show", "hostnames", list}), '\n')) {
    if (!trim(line).empty()) hosts.push_back({.name = std::string(trim(line))});
  }
  // A node's name need not be one that the network knows.
  std::map<std::string, std::string> addresses;
  for (const std::string& line : split(scontrol({"--oneliner", "show", "node", list}), '\n')) {
    std::string name;
    for (const std::string& word : split(line, ' ')) {
      if (word.rfind("NodeName=", 0) == 0) name = word.substr(9);
      if (word.rfind("NodeAddr=", 0) == 0 && !name.empty()) addresses[name] = word.substr(9);
    }
  }
  for (Host& host : hosts) {
    const auto found = addresses.find(host.name);
    if (found != addresses.end() && !found->second.empty()) host.address = found->second;
  }
  return hosts;
}

void place_slurm_job(const fs::path& folder, const EnvironmentOf& environment) {
  LaunchRequest first = read_job(folder, 0);
  if (lease_is_old(folder, first.site.lease_s)) {
    throw InfrastructureError(fmt::format("run {}: lease expired (not renewed for {} s), so it is not started",
                                          first.run_id, first.site.lease_s));
  }
  const std::vector<Host> hosts = slurm_hosts(environment);
  if (static_cast<int>(hosts.size()) != first.ranks.nnodes) {
    throw InfrastructureError(fmt::format("Slurm gave {} nodes, the job needs {}", hosts.size(), first.ranks.nnodes));
  }
  Json list = Json::array();
  first.placement.nodes.clear();
  for (const Host& host : hosts) {
    first.placement.nodes.push_back({.host = host});
    list.push_back({{"name", host.name}, {"address", host.reached_at()}});
  }
  if (needs_rank_table(first)) {
    auto addresses = device_addresses_of_nodes(first);
    for (size_t i = 0; i < addresses.size(); ++i) first.placement.nodes[i].device_addresses = std::move(addresses[i]);
  }
  std::map<std::string, std::string> shared;
  if (first.ranks.nnodes > 1) {
    shared["MASTER_ADDR"] = hosts[0].reached_at();
    if (!first.command.env.count("MASTER_PORT")) shared["MASTER_PORT"] = std::to_string(free_port());
    if (needs_port_per_rank(first)) shared[kPaddleEndpoints] = paddle_endpoints(first, ports_of_nodes(first));
  }
  for (int node = 0; node < first.ranks.nnodes; ++node) {
    LaunchRequest job = read_job(folder, node);
    job.placement.nodes = first.placement.nodes;
    for (const auto& [name, value] : shared) job.command.env[name] = value;
    write_job(folder, job);
  }
  write_file_atomic(folder / kSlurmNodesFile, to_pretty(list) + "\n");
}

std::vector<int> slurm_devices(const LaunchRequest& request, const EnvironmentOf& environment) {
  for (const char* name : {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"}) {
    const std::string text = environment(name);
    if (text.empty()) continue;
    std::vector<int> devices = numbers_of_ranges(text);
    if (static_cast<int>(devices.size()) < request.ranks.nproc) {
      throw InfrastructureError(fmt::format(
          "Slurm gave this node {} devices ({}={}) for {} ranks; ask for more with slurm options: [--gpus-per-node={}]",
          devices.size(), name, text, request.ranks.nproc, request.ranks.nproc));
    }
    devices.resize(static_cast<size_t>(request.ranks.nproc));
    return devices;
  }
  std::vector<int> devices;
  if (request.placement.hardware.empty() || lower(request.placement.hardware) == "cpu") return devices;
  for (int i = 0; i < request.ranks.nproc; ++i) devices.push_back(i);
  return devices;
}

int take_slurm_node(const fs::path& folder, const EnvironmentOf& environment) {
  const int node = node_number(environment);
  LaunchRequest job = read_job(folder, node);
  if (static_cast<int>(job.placement.nodes.size()) != job.ranks.nnodes || node >= job.ranks.nnodes) {
    throw InfrastructureError(fmt::format("the job of node {} was not placed", node));
  }
  job.placement.nodes[static_cast<size_t>(node)].devices = slurm_devices(job, environment);
  // Where Slurm itself says which devices are to be seen, its numbers hold: inside of a control group they begin at 0.
  if (!job.site.visible_devices.empty() && !environment(job.site.visible_devices).empty())
    job.site.visible_devices.clear();
  write_job(folder, job);
  return node;
}

}  // namespace assay
