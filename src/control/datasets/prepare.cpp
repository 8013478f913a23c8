#include "datasets/prepare.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "datasets/fetch.h"

namespace assay {

namespace {

// One preparation of a data set at a time; who comes second waits.
FileDescriptor lock(const fs::path& path, const ProgressReport& report) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file) throw InfrastructureError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) {
      throw InfrastructureError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
    }
    check_stop();
    report("wait for another preparation", 0, 0, "");
    ::usleep(100'000);
  }
  return file;
}

// A folder for what is unfinished, empty at first and gone at the end. A killed preparation leaves it to the next one.
class WorkFolder {
 public:
  explicit WorkFolder(fs::path path) : path_(std::move(path)) {
    fs::remove_all(path_);
    make_folder(path_);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// The new folder takes the place of the old one in one step; what was there before goes to `work`.
void put_into_place(const fs::path& ready, const fs::path& folder) {
  if (!fs::exists(folder)) {
    fs::rename(ready, folder);
  } else if (::renameat2(AT_FDCWD, ready.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
    // A file system that cannot exchange: for a moment there is none.
    fs::rename(folder, ready.string() + ".old");
    fs::rename(ready, folder);
  }
  sync_folder(folder.parent_path());
}

Manifest make_data(const DataSet& set, const PrepareOptions& options, const fs::path& work, const fs::path& output) {
  const fs::path cache = options.home / ".fetched";
  make_folder(cache);
  make_folder(output);
  Fetcher fetcher(cache, work, options.report);
  Conversion conversion{.inputs = {}, .output = output, .work = work, .report = options.report};
  Manifest manifest;
  for (const Source& source : set.sources) {
    conversion.inputs.push_back(fetcher.fetch(source));
    manifest.sources.push_back(to_json(source));
  }
  manifest.counts = set.convert(conversion);
  check_stop();
  manifest.name = set.name;
  manifest.licence = set.licence;
  manifest.layout = set.layout;
  manifest.revision = set.revision;
  manifest.files = hash_files(output);
  write_file_atomic(output / kManifestFile, to_pretty(to_json(manifest)) + "\n");
  return manifest;
}

}  // namespace

DataCheck check_data_set(const DataSet& set, const fs::path& home) {
  DataCheck check = check_data(home / set.name);
  if (check.state == DataState::Ready && check.manifest.name != set.name) {
    check.state = DataState::Damaged;
    check.problem = fmt::format("{}: holds the data set {}", (home / set.name).string(), check.manifest.name);
  }
  if (check.state == DataState::Ready && check.manifest.revision != set.revision) check.state = DataState::NotPrepared;
  return check;
}

Prepared prepare_data(const DataSet& set, const PrepareOptions& options) {
  const fs::path folder = options.home / set.name;
  const auto ready_already = [&]() -> std::optional<Prepared> {
    if (options.force) return std::nullopt;
    DataCheck check = check_data_set(set, options.home);
    if (check.state == DataState::Damaged) {
      throw DataError(fmt::format("data set {} is damaged: {}. To make it anew: assay data prepare {} --force",
                                  set.name, check.problem, set.name));
    }
    if (check.state == DataState::NotPrepared) return std::nullopt;
    return Prepared{folder, true, std::move(check.manifest)};
  };
  if (auto ready = ready_already()) return *ready;
  make_folder(options.home);
  const FileDescriptor held = lock(options.home / fmt::format(".{}.lock", set.name), options.report);
  if (auto ready = ready_already()) return *ready;  // who held the lock before has made it
  const WorkFolder work(options.home / fmt::format(".{}.unfinished", set.name));
  const fs::path output = work.path() / "output";
  Prepared prepared{folder, false, make_data(set, options, work.path(), output)};
  put_into_place(output, folder);
  check_data(folder);  // remembers that the files are right
  return prepared;
}

}  // namespace assay
