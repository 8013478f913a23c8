// Putting the imported files in place: all of them or none.
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "import/flagperf/import.h"

namespace assay {

namespace {

constexpr size_t kMaxNamed = 10;

void refuse_existing(const FlagperfImport& import, const fs::path& output) {
  std::vector<std::string> existing;
  std::error_code error;
  for (const auto& [name, content] : import.files) {
    if (fs::exists(fs::symlink_status(output / name, error))) existing.push_back(name);
  }
  if (existing.empty()) return;
  const size_t more = existing.size() > kMaxNamed ? existing.size() - kMaxNamed : 0;
  existing.resize(existing.size() - more);
  throw UsageError(
      fmt::format("{} has these files already, so nothing was written: {}{}; name another folder with "
                  "--output, or use --force",
                  output.string(), join(existing, ", "), more > 0 ? fmt::format(" and {} more", more) : ""));
}

// Moves files in place and knows how to undo it.
class Placement {
 public:
  Placement(fs::path output, fs::path staging) : output_(std::move(output)), staging_(std::move(staging)) {}

  void place(const std::string& name) {
    const fs::path target = output_ / name, old = staging_ / "old" / name;
    make_folders(target.parent_path());
    std::error_code error;
    if (fs::exists(fs::symlink_status(target, error))) {
      if (fs::is_directory(target, error))
        throw InfrastructureError(fmt::format("{}: a folder is in the way", target.string()));
      make_folder(old.parent_path());
      fs::rename(target, old, error);
      if (error) fail(target, error);
      saved_.push_back(name);
    }
    fs::rename(staging_ / "new" / name, target, error);
    if (error) fail(target, error);
    placed_.push_back(name);
  }

  void undo() noexcept {
    std::error_code ignored;
    for (const std::string& name : placed_) fs::remove(output_ / name, ignored);
    for (const std::string& name : saved_) fs::rename(staging_ / "old" / name, output_ / name, ignored);
    for (auto it = made_.rbegin(); it != made_.rend(); ++it) fs::remove(*it, ignored);  // only when empty
  }

 private:
  [[noreturn]] static void fail(const fs::path& path, const std::error_code& error) {
    throw InfrastructureError(fmt::format("{}: {}", path.string(), error.message()));
  }

  void make_folders(const fs::path& folder) {
    std::error_code error;
    if (folder.empty() || fs::exists(folder, error)) return;
    make_folders(folder.parent_path());
    make_folder(folder);
    made_.push_back(folder);
  }

  fs::path output_, staging_;
  std::vector<std::string> placed_, saved_;
  std::vector<fs::path> made_;
};

}  // namespace

void write_import(const FlagperfImport& import, const fs::path& output, bool force) {
  if (!force) refuse_existing(import, output);
  std::error_code error;
  const bool existed = fs::exists(output, error);
  // Beside the target, so that files are moved and not copied.
  const fs::path staging = output / ".import.tmp";
  fs::remove_all(staging, error);
  Placement placement(output, staging);
  try {
    for (const auto& [name, content] : import.files) {
      make_folder((staging / "new" / name).parent_path());
      write_file_atomic(staging / "new" / name, content);
    }
    for (const auto& [name, content] : import.files) placement.place(name);
  } catch (...) {
    placement.undo();
    fs::remove_all(staging, error);
    if (!existed) fs::remove(output, error);
    throw;
  }
  fs::remove_all(staging, error);
}

}  // namespace assay
