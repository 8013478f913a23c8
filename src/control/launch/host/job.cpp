#include "launch/host/job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "launch/host/device_addresses.h"
#include "layout/run_layout.h"

namespace assay {

namespace {

constexpr int kJobFormat = 1;
constexpr size_t kMaxJobBytes = 16 << 20;
constexpr int kMaxNodes = 100'000;
constexpr int kMaxRanks = 10'000;  // of one node

Json nodes_json(const std::vector<NodePlace>& nodes) {
  Json out = Json::array();
  for (const NodePlace& node : nodes) {
    Json place = {{"name", node.host.name}, {"address", node.host.reached_at()}, {"devices", node.devices}};
    if (!node.device_addresses.empty()) place["device_addresses"] = device_addresses_json(node.device_addresses);
    out.push_back(std::move(place));
  }
  return out;
}

std::vector<NodePlace> nodes_of(const Json& list, const std::string& where) {
  std::vector<NodePlace> out;
  for (const Json& item : list) {
    JsonFields fields(item, fmt::format("{}: nodes[{}]", where, out.size()));
    NodePlace place;
    place.host.name = fields.text("name", 1024);
    place.host.address = fields.text("address", 1024);
    for (const Json& device : fields.list("devices")) {
      if (!device.is_number_integer() || device.get<int64_t>() < 0 || device.get<int64_t>() > 1'000'000) {
        fields.fail("devices", "must be numbers from 0");
      }
      place.devices.push_back(device.get<int>());
    }
    if (fields.has("device_addresses")) {
      place.device_addresses = device_addresses_of(fields.any("device_addresses"), fields.path("device_addresses"));
    }
    fields.end();
    out.push_back(std::move(place));
  }
  return out;
}

std::map<std::string, std::string> environment_map(JsonFields& fields, const char* field) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : fields.object(field).items()) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
      fields.fail(field, fmt::format("has no variable '{}'", valid_utf8(name)));
    }
    if (!value.is_string() || value.get<std::string>().find('\0') != std::string::npos) {
      fields.fail(std::string(field) + "." + name, "must be a text");
    }
    out[name] = value.get<std::string>();
  }
  return out;
}

// Numbers that must fit together, or ranks would be counted wrongly.
void check_job_shape(const LaunchRequest& request, const JsonFields& fields) {
  if (request.command.argv.empty() || request.command.argv[0].empty()) fields.fail("argv", "must name a program");
  if (request.ranks.node_rank >= request.ranks.nnodes) fields.fail("node_rank", "must be less than nnodes");
  if (request.ranks.num_servers > request.ranks.nproc) fields.fail("num_servers", "must not exceed nproc");
  if (!request.placement.nodes.empty() && static_cast<int>(request.placement.nodes.size()) != request.ranks.nnodes) {
    fields.fail("nodes", fmt::format("must be {}, as nnodes says", request.ranks.nnodes));
  }
  for (const NodePlace& node : request.placement.nodes) {
    if (!node.devices.empty() && static_cast<int>(node.devices.size()) != request.ranks.nproc) {
      fields.fail("nodes", fmt::format("must have {} devices each, as nproc says, or none", request.ranks.nproc));
    }
  }
  if (!request.command.cwd.is_absolute()) fields.fail("cwd", "must be an absolute path");
}

}  // namespace

std::string job_file_name(JobFile kind, int node) {
  switch (kind) {
    case JobFile::Job: return fmt::format("job.node{}.json", node);
    case JobFile::State: return layout::node_state(node);
    case JobFile::Lease: return fmt::format("lease.node{}", node);
    case JobFile::Stop: return fmt::format("stop.node{}", node);
    case JobFile::Monitor: return layout::node_monitor(node);
    case JobFile::Log: return fmt::format("supervisor.node{}.log", node);
    case JobFile::Lock: return fmt::format("supervisor.node{}.lock", node);
    case JobFile::Received: return fmt::format("received.node{}.json", node);
  }
  throw InternalError("no such file of a job");
}

std::string read_limited(const fs::path& path, size_t max_bytes) {
  const auto fail = [&](const std::string& what) { throw DataError(fmt::format("{}: {}", path.string(), what)); };
  // Not blocking: what is in the place of the file may be a pipe that nobody writes to.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file)
    fail(errno == ELOOP ? "is a link, a file is needed" : fmt::format("cannot read: {}", std::strerror(errno)));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) fail("is not a regular file");
  // One byte more than it should have: full means too large, or that it grows while it is read.
  std::string content(std::min(static_cast<size_t>(info.st_size), max_bytes) + 1, '\0');
  size_t used = 0;
  while (true) {
    if (used == content.size() && used > max_bytes) break;
    if (used == content.size()) content.resize(std::min(2 * used, max_bytes + 1));
    const ssize_t got = ::read(file.get(), content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(fmt::format("cannot read: {}", std::strerror(errno)));
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  if (used > max_bytes) fail(fmt::format("is larger than {} bytes", max_bytes));
  content.resize(used);
  return content;
}

Json to_json(const LaunchRequest& request) {
  std::vector<std::string> staged;
  for (const fs::path& path : request.staging.staged) staged.push_back(path.string());
  Json out = {{"format", kJobFormat},
              {"run_id", request.run_id},
              {"attempt", request.attempt},
              {"argv", request.command.argv},
              {"env", request.command.env},
              {"cwd", request.command.cwd.string()},
              {"nproc", request.ranks.nproc},
              {"nnodes", request.ranks.nnodes},
              {"node_rank", request.ranks.node_rank},
              {"num_servers", request.ranks.num_servers},
              {"tree_mark", request.tree_mark},
              {"nodes", nodes_json(request.placement.nodes)},
              {"hardware", request.placement.hardware},
              {"visible_devices", request.site.visible_devices},
              {"framework", request.command.framework},
              {"lease_s", request.site.lease_s},
              {"monitor_interval_s", request.site.monitor_interval_s},
              {"monitor_command", request.site.monitor_command},
              {"clear_caches", request.site.clear_caches},
              {"collect", request.staging.collect},
              {"staged", staged}};
  if (request.command.has_work_folder) out["work_folder"] = true;
  if (!request.site.setup.empty()) out["setup"] = {{"argv", request.site.setup}, {"env", request.site.setup_env}};
  return out;
}

LaunchRequest launch_request_of(const Json& value, const std::string& where) {
  JsonFields fields(value, where);
  fields.integer("format", kJobFormat, kJobFormat);
  LaunchRequest out;
  out.run_id = fields.text("run_id", 1024);
  out.attempt = static_cast<int>(fields.integer("attempt", 1, 1'000'000));
  out.command.argv = fields.texts("argv");
  out.command.env = environment_map(fields, "env");
  out.command.cwd = fields.text("cwd", 4096);
  if (fields.has("work_folder")) out.command.has_work_folder = fields.truth("work_folder");
  out.ranks.nproc = static_cast<int>(fields.integer("nproc", 1, kMaxRanks));
  out.ranks.nnodes = static_cast<int>(fields.integer("nnodes", 1, kMaxNodes));
  out.ranks.node_rank = static_cast<int>(fields.integer("node_rank", 0, kMaxNodes));
  out.ranks.num_servers = static_cast<int>(fields.integer("num_servers", 0, kMaxRanks));
  out.tree_mark = fields.text("tree_mark", 4096);
  out.placement.nodes = nodes_of(fields.list("nodes"), where);
  out.placement.hardware = fields.text("hardware", 256);
  out.site.visible_devices = fields.text("visible_devices", 256);
  out.command.framework = fields.text("framework", 256);
  out.site.lease_s = fields.number("lease_s", 0.1, 30 * 86400.0);
  out.site.monitor_interval_s = fields.number("monitor_interval_s", 0, 86400);
  out.site.monitor_command = fields.texts("monitor_command");
  out.site.clear_caches = fields.truth("clear_caches");
  out.staging.collect = fields.texts("collect");
  for (const std::string& path : fields.texts("staged")) out.staging.staged.emplace_back(path);
  if (fields.has("setup")) {
    JsonFields setup(fields.object("setup"), where + ": setup");
    out.site.setup = setup.texts("argv");
    out.site.setup_env = environment_map(setup, "env");
    setup.end();
    if (out.site.setup.empty() || out.site.setup[0].empty()) fields.fail("setup", "must name a program");
  }
  fields.end();
  check_job_shape(out, fields);
  return out;
}

void write_job(const fs::path& folder, const LaunchRequest& request) {
  const fs::path path = folder / job_file_name(JobFile::Job, request.ranks.node_rank);
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  ::unlink(temporary.c_str());
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) throw InfrastructureError(fmt::format("{}: cannot create: {}", path.string(), std::strerror(errno)));
  try {
    write_all(file.get(), to_pretty(to_json(request)) + "\n", path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw InfrastructureError(fmt::format("{}: cannot replace: {}", path.string(), std::strerror(errno)));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

LaunchRequest read_job(const fs::path& folder, int node) {
  const fs::path path = folder / job_file_name(JobFile::Job, node);
  const std::string text = read_limited(path, kMaxJobBytes);
  struct stat info {};
  // It says what to run, so nobody else may have had a hand in it.
  if (::lstat(path.c_str(), &info) != 0 || (info.st_uid != ::geteuid() && info.st_uid != 0) || (info.st_mode & 022)) {
    throw DataError(fmt::format("{}: must belong to this user, and nobody else may write to it", path.string()));
  }
  LaunchRequest request = launch_request_of(parse_json(text, path.string()), path.string());
  if (request.ranks.node_rank != node) {
    throw DataError(
        fmt::format("{}: node_rank is {}, the file is that of node {}", path.string(), request.ranks.node_rank, node));
  }
  request.folder = folder;
  return request;
}

std::string setup_mark(const LaunchRequest& request) {
  return fmt::format("{}/setup.node{}", request.tree_mark, request.ranks.node_rank);
}

std::vector<std::string> growing_files(const LaunchRequest& request) {
  std::vector<std::string> names;
  for (int i = 0; i < request.ranks.nproc; ++i) {
    const int rank = request.ranks.first_rank() + i;
    names.push_back(layout::rank_log(rank));
    names.push_back(layout::records_file(rank));
  }
  names.push_back(job_file_name(JobFile::Monitor, request.ranks.node_rank));
  names.push_back(job_file_name(JobFile::Log, request.ranks.node_rank));
  return names;
}

}  // namespace assay
