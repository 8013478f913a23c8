#include "datasets/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <memory>

#include "base/error.h"

namespace assay {

std::string inflate_bytes(std::string_view packed, size_t max_bytes, const std::string& where) {
  constexpr int kZlibOrGzip = 15 + 32;
  constexpr size_t kChunk = size_t{1} << 20;
  const auto fail = [&](const std::string& what) { throw DataError(fmt::format("{}: {}", where, what)); };
  z_stream stream{};
  if (::inflateInit2(&stream, kZlibOrGzip) != Z_OK) fail("zlib does not start");
  const std::unique_ptr<z_stream, decltype(&::inflateEnd)> owner(&stream, &::inflateEnd);
  if (packed.size() > UINT32_MAX) fail("too large");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string bytes;
  while (true) {
    const size_t done = bytes.size();
    if (done > max_bytes) fail(fmt::format("unpacks to more than {} bytes", max_bytes));
    bytes.resize(done + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + done);
    stream.avail_out = kChunk;
    const int result = ::inflate(&stream, Z_NO_FLUSH);
    bytes.resize(done + kChunk - stream.avail_out);
    if (result == Z_STREAM_END) break;
    if (result == Z_BUF_ERROR || (result == Z_OK && stream.avail_in == 0 && stream.avail_out > 0)) {
      fail("the compressed data ends too early");
    }
    if (result != Z_OK) fail(fmt::format("not compressed data: {}", stream.msg ? stream.msg : "zlib refuses it"));
  }
  if (bytes.size() > max_bytes) fail(fmt::format("unpacks to more than {} bytes", max_bytes));
  return bytes;
}

}  // namespace assay
