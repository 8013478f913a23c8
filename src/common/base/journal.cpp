#include "base/journal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace assay {

namespace fs = std::filesystem;

JournalContents read_journal(const fs::path& path) {
  JournalContents contents;
  if (!fs::exists(path)) return contents;
  const std::string text = read_file(path);
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = text.find('\n', start);
    const size_t next = end == std::string::npos ? text.size() : end + 1;
    const std::string_view line = std::string_view(text).substr(start, (end == std::string::npos ? next : end) - start);
    Json value = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    const bool complete = end != std::string::npos && value.is_object();
    if (!complete) {
      if (next != text.size()) {
        throw DataError(fmt::format("{}: line {} is damaged, and it is not the last: the file was changed from outside",
                                    path.string(), contents.lines.size() + 1));
      }
      contents.torn = true;
      return contents;
    }
    contents.lines.push_back(std::move(value));
    contents.good_bytes = next;
    start = next;
  }
  return contents;
}

Journal::Journal(fs::path path, Sync sync) : path_(std::move(path)), sync_(sync) {
  const bool is_new = !fs::exists(path_);
  const JournalContents contents = read_journal(path_);
  if (contents.torn) fs::resize_file(path_, contents.good_bytes);
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) throw InfrastructureError(fmt::format("{}: cannot open: {}", path_.string(), std::strerror(errno)));
  if (is_new && sync_ == Sync::EveryLine) sync_folder(path_.parent_path());
}

void Journal::append(const Json& line) {
  write_all(file_.get(), to_line(line) + "\n", path_);
  if (sync_ == Sync::EveryLine && ::fdatasync(file_.get()) != 0 && errno != EINVAL) {
    throw InfrastructureError(fmt::format("{}: cannot sync: {}", path_.string(), std::strerror(errno)));
  }
}

void drop_torn_line(const fs::path& path) {
  if (!fs::is_regular_file(path)) return;  // absent, or a device or pipe, which may never end
  const std::string text = read_file(path);
  if (text.empty() || text.back() == '\n') return;
  const size_t last = text.rfind('\n');
  fs::resize_file(path, last == std::string::npos ? 0 : last + 1);
}

}  // namespace assay
