#include "base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"

namespace assay {

MappedFile::MappedFile(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw DataError(fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    throw DataError(fmt::format("{}: not a regular file", path.string()));
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ == 0) return;
  map_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (map_ == MAP_FAILED) {
    map_ = nullptr;
    throw InfrastructureError(fmt::format("{}: cannot map: {}", path.string(), std::strerror(errno)));
  }
}

MappedFile::~MappedFile() {
  if (map_) ::munmap(map_, size_);
}

}  // namespace assay
