// A folder of images that PIL wrote, and what PIL reads from them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/process.h"

namespace assay {

struct PilImage {
  int width = 0;
  int height = 0;
  std::string rgb;    // of the whole image
  std::string small;  // the 32x32 in the centre, after its shorter side was made 40
};

class ImagesByPil {
 public:
  ImagesByPil() {
    const fs::path peer = fs::path(ASSAY_SOURCE_DIR) / "tests/peers/images.py";
    const auto done = capture({.argv = {"/usr/bin/python3", peer.string(), path().string()}}, 120);
    if (!done.status.ok()) throw std::runtime_error(done.err);
    const std::string whole = read_file(path() / "expected.bin");
    const std::string small = read_file(path() / "expected32.bin");
    std::istringstream lines(read_file(path() / "expected.txt"));
    size_t at = 0;
    std::string name;
    PilImage image;
    while (lines >> name >> image.width >> image.height) {
      const auto bytes = static_cast<size_t>(image.width * image.height * 3);
      image.rgb = whole.substr(at, bytes);
      at += bytes;
      image.small = small.substr(images.size() * 32 * 32 * 3, 32 * 32 * 3);
      images.emplace_back(name, image);
    }
  }
  const fs::path& path() const { return folder_.path(); }

  std::vector<std::pair<std::string, PilImage>> images;

 private:
  TempFolder folder_{"assay-images"};
};

inline const ImagesByPil& images_by_pil() {
  static const ImagesByPil kImages;
  return kImages;
}

}  // namespace assay
