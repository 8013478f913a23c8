#include "launch/multi_node/inbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/journal.h"
#include "base/json_fields.h"
#include "base/text.h"
#include "launch/host/job.h"

namespace assay {

namespace {

constexpr size_t kMaxReceivedBytes = 16 << 20;

int64_t size_of_file(const fs::path& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  return none ? 0 : static_cast<int64_t>(size);
}

}  // namespace

Inbox Inbox::begin(const fs::path& folder, const LaunchRequest& job, const Place& place) {
  Inbox out;
  out.folder_ = folder;
  out.place_ = place;
  for (const std::string& name : growing_files(job)) {
    const fs::path path = folder / name;
    if (path.extension() == ".jsonl") drop_torn_line(path);
    out.base_[name] = size_of_file(path);
    out.have_[name] = 0;
  }
  write_file_atomic(folder / job_file_name(JobFile::Received, job.ranks.node_rank),
                    to_pretty({{"run_id", job.run_id},
                               {"attempt", job.attempt},
                               {"host", place.host},
                               {"run", place.run.string()},
                               {"program", place.program.string()},
                               {"base", out.base_}}) +
                        "\n");
  return out;
}

std::optional<Inbox> Inbox::resume(const fs::path& folder, const LaunchRequest& job) {
  const fs::path path = folder / job_file_name(JobFile::Received, job.ranks.node_rank);
  if (!fs::exists(path)) return std::nullopt;
  const Json value = parse_json(read_limited(path, kMaxReceivedBytes), path.string());
  JsonFields fields(value, path.string());
  const bool same = fields.text("run_id") == job.run_id && fields.integer("attempt", 1, 1'000'000) == job.attempt;
  Inbox out;
  out.folder_ = folder;
  out.place_ = {.host = fields.text("host"), .run = fields.text("run"), .program = fields.text("program")};
  const Json& base = fields.object("base");
  for (const std::string& name : growing_files(job)) {
    if (!base.contains(name) || !base[name].is_number_integer() || base[name].get<int64_t>() < 0) {
      if (same) fields.fail("base." + name, "must be a size in bytes");
      continue;
    }
    out.base_[name] = base[name].get<int64_t>();
    out.have_[name] = std::max<int64_t>(0, size_of_file(folder / name) - out.base_[name]);
  }
  fields.end();
  if (!same) return std::nullopt;
  return out;
}

void Inbox::accept(const Frame& frame) {
  const auto found = have_.find(frame.file);
  if (found == have_.end()) throw DataError(fmt::format("'{}' is no file of this job", valid_utf8(frame.file)));
  int64_t& have = found->second;
  if (frame.offset > have) {
    throw DataError(fmt::format("{}: bytes {} to {} are missing", frame.file, have, frame.offset));
  }
  const fs::path path = folder_ / frame.file;
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  if (!file) throw InfrastructureError(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)));
  const int64_t base = base_.at(frame.file);
  if (frame.kind == Frame::Kind::Cut) {
    if (::ftruncate(file.get(), base + frame.offset) != 0) {
      throw InfrastructureError(fmt::format("{}: cannot cut: {}", path.string(), std::strerror(errno)));
    }
    have = frame.offset;
    return;
  }
  const auto known = static_cast<size_t>(have - frame.offset);
  if (known >= frame.bytes.size()) return;
  if (::lseek(file.get(), base + have, SEEK_SET) < 0) {
    throw InfrastructureError(fmt::format("{}: cannot seek: {}", path.string(), std::strerror(errno)));
  }
  const std::string_view fresh = std::string_view(frame.bytes).substr(known);
  write_all(file.get(), fresh, path);
  have += static_cast<int64_t>(fresh.size());
}

}  // namespace assay
