#include "launch/host/job_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "base/time.h"
#include "launch/host/job.h"

namespace assay {

namespace {

constexpr size_t kMaxStateBytes = 16 << 20;
// The first state is padded to this, so that the last one fits in its place when the disk has become full.
constexpr size_t kStateRoom = 8 << 10;

std::string_view phase_name(JobState::Phase phase) {
  switch (phase) {
    case JobState::Phase::Starting: return "starting";
    case JobState::Phase::Running: return "running";
    case JobState::Phase::Ended: return "ended";
  }
  return "";
}

JobState::Phase phase_of(JsonFields& fields) {
  const std::string name = fields.text("state", 64);
  for (const auto phase : {JobState::Phase::Starting, JobState::Phase::Running, JobState::Phase::Ended}) {
    if (name == phase_name(phase)) return phase;
  }
  fields.fail("state", fmt::format("must be starting, running or ended, not '{}'", valid_utf8(name)));
}

Json status_json(const ExitStatus& status) {
  return {{"code", status.code ? Json(*status.code) : Json(nullptr)},
          {"signal", status.signal ? Json(*status.signal) : Json(nullptr)},
          {"timed_out", status.timed_out},
          {"seconds", status.seconds},
          {"max_rss_bytes", status.max_rss_bytes}};
}

ExitStatus status_of(const Json& value, const std::string& where) {
  JsonFields fields(value, where);
  ExitStatus out;
  if (fields.has("code")) out.code = static_cast<int>(fields.integer("code", 0, 255));
  if (fields.has("signal")) out.signal = static_cast<int>(fields.integer("signal", 1, 255));
  out.timed_out = fields.truth("timed_out");
  out.seconds = fields.number("seconds", 0, 1e12);
  out.max_rss_bytes = fields.integer("max_rss_bytes", 0, INT64_MAX);
  fields.end();
  if (out.code.has_value() == out.signal.has_value()) throw DataError(where + ": needs a code or a signal");
  return out;
}

FileDescriptor open_file(const fs::path& path, int flags) {
  return FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
}

// Over the old content, which is at least as long: needs no space. A reader may meet half of it, and looks again.
bool write_over(const fs::path& path, std::string text) {
  const FileDescriptor file = open_file(path, O_WRONLY);
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) return false;
  if (text.size() < static_cast<size_t>(info.st_size)) text.resize(static_cast<size_t>(info.st_size), ' ');
  return ::pwrite(file.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size());
}

}  // namespace

Json to_json(const LaunchResult& result) {
  Json ranks = Json::array();
  for (const ExitStatus& rank : result.ranks) ranks.push_back(status_json(rank));
  Json out = {{"status", status_json(result.status)},        {"deciding_rank", result.deciding_rank},
              {"failed_by_itself", result.failed_by_itself}, {"ranks", ranks},
              {"infrastructure", result.infrastructure},     {"max_rss_bytes", result.max_rss_bytes}};
  if (!result.left_behind.empty()) out["left_behind"] = result.left_behind;
  return out;
}

LaunchResult launch_result_of(const Json& value, const std::string& where) {
  JsonFields fields(value, where);
  LaunchResult out;
  out.status = status_of(fields.any("status"), fields.path("status"));
  out.deciding_rank = static_cast<int>(fields.integer("deciding_rank", 0, INT32_MAX));
  out.failed_by_itself = fields.truth("failed_by_itself");
  for (const Json& rank : fields.list("ranks")) out.ranks.push_back(status_of(rank, fields.path("ranks")));
  out.infrastructure = fields.text("infrastructure");
  out.max_rss_bytes = fields.integer("max_rss_bytes", 0, INT64_MAX);
  if (fields.has("left_behind")) out.left_behind = fields.texts("left_behind");
  fields.end();
  return out;
}

Json to_json(const JobState& state) {
  Json out = {{"state", phase_name(state.phase)},
              {"run_id", state.run_id},
              {"attempt", state.attempt},
              {"node", state.node},
              {"host", state.host},
              {"pid", state.pid},
              {"started", utc_text(state.started_us)},
              {"ended", state.ended_us ? Json(utc_text(state.ended_us)) : Json(nullptr)},
              {"base", state.base},
              {"environment", state.environment},
              {"result", nullptr},
              {"error", nullptr}};
  if (state.result) out["result"] = to_json(*state.result);
  if (!state.error_kind.empty()) out["error"] = {{"kind", state.error_kind}, {"message", valid_utf8(state.error)}};
  return out;
}

JobState job_state_of(const Json& value, const std::string& where) {
  JsonFields fields(value, where);
  JobState out;
  out.phase = phase_of(fields);
  out.run_id = fields.text("run_id", 1024);
  out.attempt = static_cast<int>(fields.integer("attempt", 1, 1'000'000));
  out.node = static_cast<int>(fields.integer("node", 0, INT32_MAX));
  out.host = fields.text("host", 1024);
  out.pid = fields.integer("pid", 1, INT32_MAX);
  const auto time = [&](const char* name) {
    const auto parsed = parse_utc(fields.text(name, 64));
    if (!parsed) fields.fail(name, "must be a time");
    return *parsed;
  };
  out.started_us = time("started");
  if (fields.has("ended")) out.ended_us = time("ended");
  for (const auto& [name, size] : fields.object("base").items()) {
    if (!size.is_number_integer() || size.get<int64_t>() < 0) fields.fail("base." + name, "must be a size in bytes");
    out.base[name] = size.get<int64_t>();
  }
  if (fields.has("environment")) out.environment = fields.object("environment");
  if (fields.has("result")) out.result = launch_result_of(fields.any("result"), fields.path("result"));
  if (fields.has("error")) {
    JsonFields error(fields.object("error"), fields.path("error"));
    out.error_kind = error.text("kind", 64);
    out.error = error.text("message");
    error.end();
  }
  fields.end();
  if (out.ended() && !out.result && out.error_kind.empty()) fields.fail("result", "is missing, and there is no error");
  return out;
}

void write_state(const fs::path& folder, const JobState& state) {
  const fs::path path = folder / job_file_name(JobFile::State, state.node);
  std::string text = to_pretty(to_json(state)) + "\n";
  if (text.size() < kStateRoom) text.resize(kStateRoom, ' ');
  try {
    write_file_atomic(path, text);
  } catch (const InfrastructureError&) {
    if (!write_over(path, text)) throw;
  }
}

std::optional<JobState> read_state(const fs::path& folder, int node) {
  const fs::path path = folder / job_file_name(JobFile::State, node);
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  const std::string text = read_limited(path, kMaxStateBytes);
  Json value;
  try {
    value = parse_json(text, path.string());
  } catch (const DataError&) {
    constexpr int64_t kSettleSeconds = 10;  // longer than any write over it takes
    if (now_us() / 1'000'000 - info.st_mtime < kSettleSeconds) return std::nullopt;
    throw;
  }
  JobState state = job_state_of(value, path.string());
  if (state.node != node) throw DataError(fmt::format("{}: is the state of node {}", path.string(), state.node));
  return state;
}

std::optional<JobState> state_of_attempt(const LaunchRequest& job) {
  auto state = read_state(job.folder, job.ranks.node_rank);
  if (state && (state->attempt != job.attempt || state->run_id != job.run_id)) return std::nullopt;
  return state;
}

void renew_lease(const fs::path& folder, int node) {
  const FileDescriptor file = open_file(folder / job_file_name(JobFile::Lease, node), O_WRONLY | O_CREAT);
  // Always of one length, in place: a full disk ends no lease.
  const std::string text = fmt::format("{:020} {:010}\n", now_us(), ::getpid());
  if (file) (void)!::pwrite(file.get(), text.data(), text.size(), 0);
}

std::string read_lease(const fs::path& folder, int node) {
  const FileDescriptor file = open_file(folder / job_file_name(JobFile::Lease, node), O_RDONLY);
  char text[64];
  const ssize_t got = file ? ::pread(file.get(), text, sizeof text, 0) : -1;
  return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
}

void write_stop(const fs::path& folder, int node, double grace_s) {
  const fs::path path = folder / job_file_name(JobFile::Stop, node);
  const FileDescriptor file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (!file) throw InfrastructureError(fmt::format("{}: cannot create: {}", path.string(), std::strerror(errno)));
  const std::string text = fmt::format("{}\n", grace_s);
  (void)!::write(file.get(), text.data(), text.size());  // on a full disk its existence is enough
}

std::optional<double> read_stop(const fs::path& folder, int node) {
  const FileDescriptor file = open_file(folder / job_file_name(JobFile::Stop, node), O_RDONLY);
  if (!file) return std::nullopt;
  char text[64];
  const ssize_t got = ::pread(file.get(), text, sizeof text, 0);
  constexpr double kUsualGrace = 3, kMostGrace = 3600;
  const auto grace = parse_double(trim(std::string_view(text, got > 0 ? static_cast<size_t>(got) : 0)));
  return grace && *grace >= 0 && *grace <= kMostGrace ? *grace : kUsualGrace;
}

FileDescriptor take_supervisor_lock(const fs::path& folder, int node) {
  const fs::path path = folder / job_file_name(JobFile::Lock, node);
  FileDescriptor file = open_file(path, O_RDWR | O_CREAT);
  if (!file) throw InfrastructureError(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno != EWOULDBLOCK) {
    throw InfrastructureError(fmt::format("{}: cannot lock: {}", path.string(), std::strerror(errno)));
  }
  return {};
}

bool supervisor_lives(const fs::path& folder, int node) {
  const FileDescriptor file = open_file(folder / job_file_name(JobFile::Lock, node), O_RDONLY);
  // Shared, so that two who look do not see each other.
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0;
}

size_t end_leftovers(const LaunchRequest& job) {
  size_t count = 0;
  for (int i = 0; i < job.ranks.nproc; ++i) {
    count += kill_tree(fmt::format("{}/{}", job.tree_mark, job.ranks.first_rank() + i));
  }
  if (!job.site.setup.empty()) count += kill_tree(setup_mark(job));
  return count;
}

}  // namespace assay
