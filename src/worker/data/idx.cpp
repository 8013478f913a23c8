#include "data/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace assay {

namespace fs = std::filesystem;

namespace {

constexpr int kUnsignedByte = 0x08;
constexpr int kMaxRank = 4;
constexpr size_t kMaxBytes = size_t{4} << 30;  // far above any file of this family
constexpr size_t kChunk = size_t{1} << 20;     // grows with what is really there, not with what the header claims

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw DataError(fmt::format("{}: not a usable idx file: {}", path.string(), what));
}

// gzread that fails with a reason; reads plain files too.
class GzipReader {
 public:
  explicit GzipReader(const fs::path& path) : path_(path) {
    if (!fs::exists(path)) throw DataError(fmt::format("{}: no such file", path.string()));
    if (fs::is_directory(path)) damaged(path, "it is a folder");
    file_.reset(::gzopen(path.c_str(), "rb"));
    if (!file_) throw DataError(fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)));
  }

  // Fewer bytes than asked for only at the end of the file.
  size_t read(void* out, size_t num_bytes) {
    size_t done = 0;
    while (done < num_bytes) {
      const auto want = static_cast<unsigned>(std::min(num_bytes - done, kChunk));
      const int got = ::gzread(file_.get(), static_cast<char*>(out) + done, want);
      if (got < 0) fail();
      if (got == 0) {
        int error = Z_OK;
        ::gzerror(file_.get(), &error);
        if (error == Z_BUF_ERROR) damaged(path_, "the compressed data ends too early");
        if (error != Z_OK) fail();
        break;
      }
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  [[noreturn]] void fail() {
    int error = Z_OK;
    const char* text = ::gzerror(file_.get(), &error);
    damaged(path_, error == Z_ERRNO ? std::strerror(errno) : text);
  }

  struct Close {
    void operator()(gzFile file) const { ::gzclose_r(file); }
  };
  fs::path path_;
  std::unique_ptr<gzFile_s, Close> file_;
};

std::vector<int64_t> read_shape(GzipReader& file, const fs::path& path) {
  std::array<uint8_t, 4> magic{};
  if (file.read(magic.data(), magic.size()) != magic.size()) damaged(path, "shorter than its magic number");
  if (magic[0] != 0 || magic[1] != 0) damaged(path, "the magic number does not begin with two zero bytes");
  if (magic[2] != kUnsignedByte) {
    damaged(path, fmt::format("element type 0x{:02x}, only unsigned bytes (0x08) are known", magic[2]));
  }
  if (magic[3] < 1 || magic[3] > kMaxRank) damaged(path, fmt::format("{} dimensions", magic[3]));
  std::vector<int64_t> shape;
  size_t total = 1;
  for (int i = 0; i < magic[3]; ++i) {
    std::array<uint8_t, 4> e{};
    if (file.read(e.data(), e.size()) != e.size()) damaged(path, "the header ends too early");
    const uint32_t extent = uint32_t{e[0]} << 24 | uint32_t{e[1]} << 16 | uint32_t{e[2]} << 8 | e[3];
    if (extent == 0 || extent > kMaxBytes / total) damaged(path, fmt::format("dimension {} has extent {}", i, extent));
    total *= extent;
    shape.push_back(extent);
  }
  return shape;
}

}  // namespace

IdxArray read_idx(const fs::path& path) {
  GzipReader file(path);
  IdxArray array;
  array.shape = read_shape(file, path);
  size_t total = 1;
  for (const int64_t extent : array.shape) total *= static_cast<size_t>(extent);

  while (array.bytes.size() < total) {
    const size_t old_size = array.bytes.size();
    const size_t want = std::min(kChunk, total - old_size);
    array.bytes.resize(old_size + want);
    const size_t got = file.read(array.bytes.data() + old_size, want);
    if (got != want) damaged(path, fmt::format("has {} of {} bytes of data", old_size + got, total));
  }
  char extra = 0;  // reading on to the end also checks gzip's checksum
  if (file.read(&extra, 1) != 0) damaged(path, "bytes after the last element");
  return array;
}

}  // namespace assay
