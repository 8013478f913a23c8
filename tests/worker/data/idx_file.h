// Writes idx files for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace assay {

inline std::string idx_text(const std::vector<uint32_t>& shape, const std::string& data, char type = 0x08) {
  std::string text = {'\0', '\0', type, static_cast<char>(shape.size())};
  for (const uint32_t extent : shape) {
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(extent >> shift & 0xff);
  }
  return text + data;
}

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline void write_gzip(const std::filesystem::path& path, const std::string& bytes) {
  gzFile file = ::gzopen(path.c_str(), "wb");
  ::gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  ::gzclose(file);
}

// A small learnable data set: images whose brightest quarter is their label (4 classes), and noise from a fixed
// formula.
inline void write_toy_images(const std::filesystem::path& folder, const std::string& prefix, uint32_t count,
                             uint32_t size) {
  std::string pixels;
  std::string labels;
  uint32_t noise = prefix == "train" ? 1 : 99;
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t label = (i * 7 + i / 4) % 4;
    labels += static_cast<char>(label);
    for (uint32_t y = 0; y < size; ++y) {
      for (uint32_t x = 0; x < size; ++x) {
        noise = noise * 1664525 + 1013904223;
        const uint32_t quarter = (y >= size / 2 ? 2 : 0) + (x >= size / 2 ? 1 : 0);
        pixels += static_cast<char>((noise >> 24) / 2 + (quarter == label ? 90 : 0));
      }
    }
  }
  write_gzip(folder / (prefix + "-images-idx3-ubyte.gz"), idx_text({count, size, size}, pixels));
  write_gzip(folder / (prefix + "-labels-idx1-ubyte.gz"), idx_text({count}, labels));
}

}  // namespace assay
