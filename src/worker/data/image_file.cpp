#include "data/image_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "data/image.h"

namespace assay {

namespace {

using namespace std::string_view_literals;
constexpr std::string_view kJpegBegin = "\xFF\xD8"sv, kJpegEnd = "\xFF\xD9"sv;  // the markers SOI and EOI
constexpr std::string_view kPngBegin = "\x89PNG"sv, kPngEnd = "\0\0\0\0IEND\xAE\x42\x60\x82"sv;  // the last chunk

bool has_bytes(const FileDescriptor& file, int64_t at, std::string_view expected) {
  std::string found(expected.size(), '\0');
  return ::pread(file.get(), found.data(), found.size(), at) == static_cast<ssize_t>(found.size()) && found == expected;
}

}  // namespace

uintmax_t check_image_file(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) {
    throw DataError(fmt::format("{}: {}", path.string(), std::strerror(errno)));
  }
  const int64_t size = info.st_size;
  if (size == 0) throw DataError(fmt::format("{}: is empty", path.string()));
  const auto is_whole = [&](std::string_view begin, std::string_view end) {
    return has_bytes(file, 0, begin) && has_bytes(file, size - static_cast<int64_t>(end.size()), end);
  };
  if (!is_whole(kJpegBegin, kJpegEnd) && !is_whole(kPngBegin, kPngEnd)) {
    // Some cameras write more behind an image, which harms nothing: for these few the decoder decides.
    const std::string bytes = read_file(path);
    Image(bytes, path.string()).read();
  }
  return static_cast<uintmax_t>(size);
}

}  // namespace assay
