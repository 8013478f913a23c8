// SHA-256 of bytes and files, as lower-case hexadecimal.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace assay {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  Sha256& update(std::string_view bytes);
  Sha256& update(const void* bytes, size_t size) { return update({static_cast<const char*>(bytes), size}); }
  std::string hex();  // ends the computation

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

std::string sha256(std::string_view bytes);
std::string sha256_file(const std::filesystem::path& path);  // throws DataError

}  // namespace assay
