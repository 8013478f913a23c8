#include "formats/safetensors.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxSafetensorsHeader = 100'000'000;  // the format's own limit

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw DataError(fmt::format("{}: not a valid safetensors file: {}", path.string(), what));
}

}  // namespace

size_t dtype_size(const std::string& dtype) {
  static const std::map<std::string, size_t> kSizes = {{"F64", 8}, {"I64", 8}, {"U64", 8},  {"F32", 4}, {"I32", 4},
                                                       {"U32", 4}, {"F16", 2}, {"BF16", 2}, {"I16", 2}, {"U16", 2},
                                                       {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  const auto found = kSizes.find(dtype);
  if (found == kSizes.end()) throw DataError(fmt::format("unknown tensor type '{}'", dtype));
  return found->second;
}

SafetensorsFile::SafetensorsFile(const fs::path& path) : path_(path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) throw DataError(fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) damaged(path, "not a regular file");
  size_ = static_cast<size_t>(info.st_size);
  if (size_ < kLengthBytes) damaged(path, fmt::format("only {} bytes long", size_));
  map_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (map_ == MAP_FAILED) {
    map_ = nullptr;
    throw InfrastructureError(fmt::format("{}: cannot map: {}", path.string(), std::strerror(errno)));
  }
  try {
    parse(path);
  } catch (const Json::exception&) {
    ::munmap(map_, size_);
    damaged(path, "the header has entries of the wrong type");
  } catch (...) {
    ::munmap(map_, size_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() {
  if (map_) ::munmap(map_, size_);
}

void SafetensorsFile::parse(const fs::path& path) {
  const auto* base = static_cast<const std::byte*>(map_);
  uint64_t header_size = 0;
  std::memcpy(&header_size, base, kLengthBytes);
  if (header_size > kMaxSafetensorsHeader || header_size > size_ - kLengthBytes) {
    damaged(path, fmt::format("its header claims {} bytes, the file has {}", header_size, size_));
  }
  const std::string_view text(reinterpret_cast<const char*>(base) + kLengthBytes, header_size);
  const Json header = parse_json(text, path.string() + " (header)");
  if (!header.is_object()) damaged(path, "the header is not an object");
  const std::byte* data = base + kLengthBytes + header_size;
  const size_t data_size = size_ - kLengthBytes - header_size;

  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) metadata_[key] = value.get<std::string>();
      continue;
    }
    TensorView tensor{.name = name, .dtype = entry.at("dtype").get<std::string>(), .shape = {}};
    size_t expected = dtype_size(tensor.dtype);
    for (const Json& extent : entry.at("shape")) {
      const auto value = extent.get<int64_t>();
      if (value < 0 || (value > 0 && expected > SIZE_MAX / static_cast<size_t>(value))) {
        damaged(path, fmt::format("tensor '{}' has an impossible shape", name));
      }
      expected *= static_cast<size_t>(value);
      tensor.shape.push_back(value);
    }
    const auto begin = entry.at("data_offsets").at(0).get<uint64_t>();
    const auto end = entry.at("data_offsets").at(1).get<uint64_t>();
    if (begin > end || end > data_size) damaged(path, fmt::format("tensor '{}' lies outside the file", name));
    if (end - begin != expected) {
      damaged(path, fmt::format("tensor '{}' has {} bytes, its shape needs {}", name, end - begin, expected));
    }
    tensor.bytes = data + begin;
    tensor.num_bytes = expected;
    tensors_.push_back(std::move(tensor));
  }
  std::stable_sort(tensors_.begin(), tensors_.end(),
                   [](const TensorView& a, const TensorView& b) { return a.bytes < b.bytes; });
  const std::byte* previous_end = data;
  for (const TensorView& tensor : tensors_) {
    if (tensor.bytes != previous_end) damaged(path, fmt::format("tensor '{}' overlaps or leaves a hole", tensor.name));
    previous_end = tensor.bytes + tensor.num_bytes;
  }
  if (previous_end != data + data_size) damaged(path, "bytes after the last tensor");
}

bool SafetensorsFile::has(const std::string& name) const {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const TensorView& t) { return t.name == name; });
}

const TensorView& SafetensorsFile::at(const std::string& name) const {
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) {
    if (tensor.name == name) return tensor;
    names.push_back(tensor.name);
  }
  throw DataError(fmt::format("{}: no tensor '{}'{}", path_.string(), name, did_you_mean(name, names)));
}

std::string write_safetensors(const fs::path& path, const std::vector<TensorView>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  size_t offset = 0;
  for (const TensorView& tensor : tensors) {
    ASSAY_CHECK(!header.contains(tensor.name), "two tensors named " + tensor.name);
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + tensor.num_bytes}}};
    offset += tensor.num_bytes;
  }
  std::string text = to_line(header);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // aligned data
  const uint64_t header_size = text.size();

  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  Sha256 hash;
  try {
    FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) throw InfrastructureError(fmt::format("{}: cannot create: {}", path.string(), std::strerror(errno)));
    const auto put = [&](std::string_view bytes) {
      write_all(file.get(), bytes, path);
      hash.update(bytes);
    };
    put({reinterpret_cast<const char*>(&header_size), kLengthBytes});
    put(text);
    for (const TensorView& tensor : tensors) put({reinterpret_cast<const char*>(tensor.bytes), tensor.num_bytes});
    if (::fsync(file.get()) != 0 && errno != EINVAL) {
      throw InfrastructureError(fmt::format("{}: cannot sync: {}", path.string(), std::strerror(errno)));
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw InfrastructureError(fmt::format("{}: cannot replace: {}", path.string(), std::strerror(errno)));
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder(path.parent_path());
  return hash.hex();
}

}  // namespace assay
