#include "datasets/lazy_load.h"

#include <fmt/format.h>

#include "base/error.h"
#include "datasets/inflate.h"

namespace assay {

namespace {

constexpr size_t kMaxIndexBytes = size_t{64} << 20;
constexpr size_t kMaxValueBytes = size_t{1} << 30;

}  // namespace

LazyLoadData::LazyLoadData(const fs::path& stem)
    : rdb_path_(stem.string() + ".rdb"), rdx_path_(stem.string() + ".rdx"), rdb_(read_file(rdb_path_)) {
  const std::string index = inflate_bytes(read_file(rdx_path_), kMaxIndexBytes, rdx_path_.string());
  const RValue root = parse_r_data(index, rdx_path_.string());
  const RValue* variables = root.item("variables");
  if (!variables || variables->kind != RValue::Kind::List || !variables->attribute("names")) {
    throw DataError(fmt::format("{}: has no list of variables", rdx_path_.string()));
  }
  variables_ = *variables;
}

std::vector<std::string> LazyLoadData::names() const {
  std::vector<std::string> out;
  for (const auto& name : variables_.attribute("names")->strings) out.push_back(name.value_or(""));
  return out;
}

RValue LazyLoadData::value(const std::string& name) const {
  const RValue* entry = variables_.item(name);
  if (!entry) throw DataError(fmt::format("{}: has no variable '{}'", rdx_path_.string(), name));
  const std::string where = fmt::format("{}: variable {}", rdb_path_.string(), name);
  if (entry->integers.size() != 2 || entry->integers[0] < 0 || entry->integers[1] < 5) {
    throw DataError(fmt::format("{}: its place in the index makes no sense", where));
  }
  const auto offset = static_cast<size_t>(entry->integers[0]);
  const auto length = static_cast<size_t>(entry->integers[1]);
  if (offset > rdb_.size() || length > rdb_.size() - offset) {
    throw DataError(
        fmt::format("{}: bytes {} to {} of a file of {} bytes", where, offset, offset + length, rdb_.size()));
  }
  // Four bytes of unpacked length, then zlib data; or a letter for another compression, which data sets rarely have.
  const std::string_view record = std::string_view(rdb_).substr(offset, length);
  size_t unpacked = 0;
  for (const char c : record.substr(0, 4)) unpacked = unpacked << 8 | static_cast<unsigned char>(c);
  const char letter = record[4];
  if (letter == '2' || letter == 'Z') {
    throw DataError(fmt::format("{}: is compressed by {}, only zlib is known", where, letter == '2' ? "bzip2" : "xz"));
  }
  if (unpacked > kMaxValueBytes) throw DataError(fmt::format("{}: claims {} bytes", where, unpacked));
  const std::string bytes = inflate_bytes(record.substr(4), unpacked, where);
  if (bytes.size() != unpacked) {
    throw DataError(fmt::format("{}: unpacks to {} bytes, not {}", where, bytes.size(), unpacked));
  }
  return parse_r_data(bytes, where);
}

}  // namespace assay
