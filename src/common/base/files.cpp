#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include "base/error.h"

namespace assay {

namespace {

std::string reason() { return std::strerror(errno); }

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() {
  int fd = fd_;
  fd_ = -1;
  return fd;
}

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void write_all(int fd, std::string_view content, const fs::path& path) {
  while (!content.empty()) {
    ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      throw InfrastructureError(fmt::format("{}: cannot write: {}", path.string(), reason()));
    }
    content.remove_prefix(static_cast<size_t>(written));
  }
}

std::string read_file(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw DataError(fmt::format("{}: cannot read: {}", path.string(), reason()));
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode)) {
    throw DataError(fmt::format("{}: is a folder, a file is needed", path.string()));
  }
  std::string content;
  content.resize(info.st_size > 0 ? static_cast<size_t>(info.st_size) + 1 : 4096);
  size_t used = 0;
  while (true) {
    if (used == content.size()) content.resize(content.size() * 2);
    ssize_t got = ::read(file.get(), content.data() + used, content.size() - used);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw DataError(fmt::format("{}: cannot read: {}", path.string(), reason()));
    }
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  content.resize(used);
  return content;
}

void sync_folder(const fs::path& path) {
  FileDescriptor folder(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.get());
}

void write_file_atomic(const fs::path& path, std::string_view content, Durability durability) {
  const bool syncs = durability == Durability::PowerCut;
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  try {
    FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) throw InfrastructureError(fmt::format("{}: cannot create: {}", path.string(), reason()));
    write_all(file.get(), content, path);
    if (syncs && ::fsync(file.get()) != 0 && errno != EINVAL) {
      throw InfrastructureError(fmt::format("{}: cannot sync: {}", path.string(), reason()));
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw InfrastructureError(fmt::format("{}: cannot replace: {}", path.string(), reason()));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (syncs) sync_folder(path.parent_path());
}

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error || !fs::is_directory(path)) {
    throw InfrastructureError(fmt::format("{}: cannot create the folder: {}", path.string(),
                                          error ? error.message() : "a file is in the way"));
  }
}

std::vector<std::string> tail_lines(const fs::path& path, size_t max_lines, uintmax_t from) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file || max_lines == 0) return {};
  constexpr off_t kEnd = 64 * 1024;
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const off_t first = static_cast<off_t>(from);
  const off_t start = std::max<off_t>(first, size - kEnd);
  std::string text(static_cast<size_t>(std::max<off_t>(0, size - start)), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), start);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);

  std::deque<std::string> lines;
  size_t at = 0;
  if (start > first) {  // the first line is cut: leave it out, unless it is all there is
    size_t first_end = text.find('\n');
    if (first_end != std::string::npos && first_end + 1 < text.size()) at = first_end + 1;
  }
  while (at < text.size()) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) end = text.size();
    lines.push_back(text.substr(at, end - at));
    if (lines.size() > max_lines) lines.pop_front();
    at = end + 1;
  }
  return {lines.begin(), lines.end()};
}

fs::path program_folder() {
  std::error_code error;
  fs::path self = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::current_path() : self.parent_path();
}

TempFolder::TempFolder(std::string_view name) {
  std::string pattern = (fs::temp_directory_path() / fmt::format("{}.XXXXXX", name)).string();
  if (!::mkdtemp(pattern.data())) {
    throw InfrastructureError(fmt::format("{}: cannot create a temporary folder: {}", pattern, reason()));
  }
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace assay
