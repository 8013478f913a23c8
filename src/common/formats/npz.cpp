// The zip side of formats/npy.h. Layout of a zip file: entries (local header, data), then the central directory, then
// its end record; PKWARE's APPNOTE.TXT has the fields.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "formats/npy.h"

namespace assay {

namespace {

constexpr uint32_t kLocalMark = 0x04034b50, kCentralMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50, kLocator64Mark = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kLocatorSize = 20;
constexpr size_t kMaxComment = 65535;
constexpr uint16_t kStored = 0, kDeflated = 8;
constexpr uint32_t kIn64 = 0xffffffff;  // the value stands in the extra field
constexpr size_t kChunk = size_t{1} << 20;

uint64_t little(std::string_view bytes, size_t at, size_t num_bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < num_bytes; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[at + i])} << (8 * i);
  return value;
}

void put(std::string& out, uint64_t value, size_t num_bytes) {
  for (size_t i = 0; i < num_bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint32_t crc_of(std::string_view bytes) {
  uint32_t crc = 0;
  while (!bytes.empty()) {
    const auto now = static_cast<uInt>(std::min(bytes.size(), kChunk));
    crc = static_cast<uint32_t>(::crc32(crc, reinterpret_cast<const Bytef*>(bytes.data()), now));
    bytes.remove_prefix(now);
  }
  return crc;
}

// Empty when the data is damaged or not of the size it should have. The buffer grows with what really comes out.
std::string inflated(std::string_view packed, uint64_t size) {
  struct Stream : z_stream {
    Stream() : z_stream{} { ready = ::inflateInit2(this, -MAX_WBITS) == Z_OK; }
    ~Stream() {
      if (ready) ::inflateEnd(this);
    }
    bool ready;
  } stream;
  ASSAY_CHECK(stream.ready, "zlib does not start");
  std::string out;
  int state = Z_OK;
  while (state == Z_OK) {
    const size_t done = out.size();
    if (done > size) return {};
    const size_t want = std::min<uint64_t>(kChunk, size - done + 1);  // one more shows that there is more
    const auto give = static_cast<uInt>(std::min(packed.size(), kChunk));
    out.resize(done + want);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = give;
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(want);
    state = ::inflate(&stream, Z_NO_FLUSH);
    packed.remove_prefix(give - stream.avail_in);
    out.erase(done + (want - stream.avail_out));
    if (state == Z_OK && out.size() == done && packed.empty()) return {};
  }
  if (state != Z_STREAM_END || out.size() != size) return {};
  return out;
}

}  // namespace

void NpzFile::damaged(const std::string& what) const {
  throw DataError(fmt::format("{}: not a usable .npz file: {}", path_.string(), what));
}

uint64_t NpzFile::number(uint64_t at, size_t num_bytes) const {
  const std::string_view bytes = file_.bytes();
  if (at > bytes.size() || num_bytes > bytes.size() - at) damaged("it ends too early");
  return little(bytes, at, num_bytes);
}

NpzFile::NpzFile(const std::filesystem::path& path) : path_(path), file_(path) { read_entries(); }

void NpzFile::read_entries() {
  const std::string_view bytes = file_.bytes();
  if (bytes.size() < kEndSize) damaged(fmt::format("only {} bytes long", bytes.size()));
  size_t end = bytes.size() - kEndSize;
  const size_t lowest = end > kMaxComment ? end - kMaxComment : 0;
  while (number(end, 4) != kEndMark) {
    if (end == lowest) damaged("it has no table of contents; is it cut off?");
    --end;
  }
  uint64_t count = number(end + 10, 2), size = number(end + 12, 4), offset = number(end + 16, 4);
  if (end >= kLocatorSize && number(end - kLocatorSize, 4) == kLocator64Mark) {
    const uint64_t end64 = number(end - kLocatorSize + 8, 8);
    if (number(end64, 4) != kEnd64Mark) damaged("its 64-bit table of contents is not where it should be");
    count = number(end64 + 32, 8);
    size = number(end64 + 40, 8);
    offset = number(end64 + 48, 8);
  }
  if (offset > bytes.size() || size > bytes.size() - offset) damaged("its table of contents lies outside the file");
  const std::string_view directory = bytes.substr(offset, size);
  size_t at = 0;
  for (uint64_t i = 0; i < count; ++i) read_entry(directory, at);
}

void NpzFile::read_entry(std::string_view directory, size_t& at) {
  if (directory.size() - at < kCentralSize || little(directory, at, 4) != kCentralMark) {
    damaged("its table of contents is damaged");
  }
  if ((little(directory, at + 8, 2) & 1) != 0) damaged("it is encrypted");
  Entry entry;
  entry.method = static_cast<uint16_t>(little(directory, at + 10, 2));
  entry.crc = static_cast<uint32_t>(little(directory, at + 16, 4));
  entry.stored_size = little(directory, at + 20, 4);
  entry.size = little(directory, at + 24, 4);
  entry.offset = little(directory, at + 42, 4);
  const size_t name_size = little(directory, at + 28, 2), extra_size = little(directory, at + 30, 2);
  const size_t comment_size = little(directory, at + 32, 2);
  at += kCentralSize;
  if (directory.size() - at < name_size + extra_size + comment_size) damaged("its table of contents ends too early");
  std::string name(directory.substr(at, name_size));
  std::string_view extra = directory.substr(at + name_size, extra_size);
  at += name_size + extra_size + comment_size;
  while (extra.size() >= 4) {
    const size_t field = little(extra, 2, 2);
    if (field > extra.size() - 4) damaged("an extra field is damaged");
    std::string_view values = extra.substr(4, field);
    if (little(extra, 0, 2) == 1) {  // 64-bit values, only those that did not fit, in this order
      for (uint64_t* value : {&entry.size, &entry.stored_size, &entry.offset}) {
        if (*value != kIn64) continue;
        if (values.size() < 8) damaged("a 64-bit extra field is too short");
        *value = little(values, 0, 8);
        values.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + field);
  }
  if (name.ends_with(".npy")) name.resize(name.size() - 4);
  if (!entries_.emplace(name, entry).second) damaged(fmt::format("two arrays are named '{}'", valid_utf8(name)));
}

NpyArray NpzFile::read(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    std::vector<std::string> names;
    for (const auto& [other, entry] : entries_) names.push_back(valid_utf8(other));
    damaged(fmt::format("no array '{}' in it, only: {}", name, join(names, ", ")));
  }
  const Entry& entry = found->second;
  if (number(entry.offset, 4) != kLocalMark) damaged(fmt::format("array '{}' is not where it should be", name));
  const uint64_t skip = kLocalSize + number(entry.offset + 26, 2) + number(entry.offset + 28, 2);
  const std::string_view bytes = file_.bytes();
  if (skip > bytes.size() - entry.offset || entry.stored_size > bytes.size() - entry.offset - skip) {
    damaged(fmt::format("array '{}' reaches beyond the end of the file", name));
  }
  const std::string_view packed = bytes.substr(entry.offset + skip, entry.stored_size);
  NpyArray array;
  if (entry.method == kStored) {
    if (entry.size != entry.stored_size) damaged(fmt::format("array '{}' has two sizes", name));
    array.file = std::string(packed);
  } else if (entry.method == kDeflated) {
    array.file = inflated(packed, entry.size);
  } else {
    damaged(fmt::format("array '{}' is packed by method {}; stored and deflated are known", name, entry.method));
  }
  if (array.file.size() != entry.size || crc_of(array.file) != entry.crc) {
    damaged(fmt::format("array '{}' is damaged: its checksum does not fit", name));
  }
  array.header = parse_npy(array.file, fmt::format("{} ({})", path_.string(), name));
  return array;
}

void write_npz_atomic(const std::filesystem::path& path, const std::vector<NpzItem>& items) {
  constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();
  std::string out, directory;
  for (const NpzItem& item : items) {
    const std::string header = npy_header(item.dtype, item.shape);
    const uint64_t size = header.size() + item.bytes.size();
    const std::string name = item.name + ".npy";
    if (size >= kMax || out.size() >= kMax) {
      throw InfrastructureError(fmt::format("{}: cannot hold more than 4 GiB", path.string()));
    }
    const uint32_t crc = static_cast<uint32_t>(
        ::crc32_combine(crc_of(header), crc_of(item.bytes), static_cast<z_off_t>(item.bytes.size())));
    const auto put_common = [&](std::string& to) {
      put(to, 20, 2);  // version needed: 2.0
      put(to, 0, 2);
      put(to, kStored, 2);
      put(to, 0x00210000, 4);  // time and date: 1 January 1980, so that equal content is an equal file
      put(to, crc, 4);
      put(to, size, 4);
      put(to, size, 4);
      put(to, name.size(), 2);
      put(to, 0, 2);
    };
    put(directory, kCentralMark, 4);
    put(directory, 20, 2);
    put_common(directory);
    put(directory, 0, 6);  // comment, disk, attributes
    put(directory, 0, 4);
    put(directory, out.size(), 4);
    directory += name;
    put(out, kLocalMark, 4);
    put_common(out);
    out += name;
    out += header;
    out += item.bytes;
  }
  const uint64_t offset = out.size();
  if (offset >= kMax) throw InfrastructureError(fmt::format("{}: cannot hold more than 4 GiB", path.string()));
  out += directory;
  put(out, kEndMark, 4);
  put(out, 0, 4);
  put(out, items.size(), 2);
  put(out, items.size(), 2);
  put(out, directory.size(), 4);
  put(out, offset, 4);
  put(out, 0, 2);
  write_file_atomic(path, out);
}

}  // namespace assay
