// A whole file in memory, read-only, without reading it first.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>

namespace assay {

class MappedFile {
 public:
  // Throws DataError (missing, a folder) or InfrastructureError, naming the file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(map_), size_}; }

 private:
  void* map_ = nullptr;  // null for an empty file
  size_t size_ = 0;
};

}  // namespace assay
