#include "base/hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace assay {

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  ASSAY_CHECK(context_->evp && EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1,
              "SHA-256 is not available");
}
Sha256::~Sha256() = default;

Sha256& Sha256::update(std::string_view bytes) {
  ASSAY_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1, "SHA-256 failed");
  return *this;
}

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  ASSAY_CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), &size) == 1, "SHA-256 failed");
  std::string out;
  for (unsigned int i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

std::string sha256(std::string_view bytes) { return Sha256().update(bytes).hex(); }

std::string sha256_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw DataError(fmt::format("{}: cannot read", path.string()));
  Sha256 hash;
  std::vector<char> buffer(1 << 20);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    hash.update(buffer.data(), static_cast<size_t>(file.gcount()));
  }
  return hash.hex();
}

}  // namespace assay
