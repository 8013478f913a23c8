#include "record/growing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace assay {

std::string GrowingFile::next() {
  restarted_ = false;
  const FileDescriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return "";
  const off_t size = file ? ::lseek(file.get(), 0, SEEK_END) : -1;
  if (size < 0) throw DataError(fmt::format("{}: cannot read: {}", path_.string(), std::strerror(errno)));
  if (static_cast<size_t>(size) < offset_) {
    offset_ = 0;
    restarted_ = true;
  }

  std::string text(static_cast<size_t>(size) - offset_, '\0');
  size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::pread(file.get(), text.data() + used, text.size() - used, static_cast<off_t>(offset_ + used));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(fmt::format("{}: cannot read: {}", path_.string(), std::strerror(errno)));
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  text.resize(used);
  const size_t last = text.rfind('\n');
  text.resize(last == std::string::npos ? 0 : last + 1);
  offset_ += text.size();
  return text;
}

}  // namespace assay
