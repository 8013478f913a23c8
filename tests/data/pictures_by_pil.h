// A folder of pictures that PIL wrote, and what PIL reads from them.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/process.h"

namespace assay {

struct PilPicture {
  int width = 0;
  int height = 0;
  std::string rgb;    // of the whole picture
  std::string small;  // the 32x32 in the centre, after its shorter side was made 40
};

class PicturesByPil {
 public:
  PicturesByPil() {
    const fs::path peer = fs::path(ASSAY_SOURCE_DIR) / "tests/peers/pictures.py";
    const auto done = capture({.argv = {"/usr/bin/python3", peer.string(), path().string()}}, 120);
    if (!done.status.ok()) throw std::runtime_error(done.err);
    const std::string whole = read_file(path() / "expected.bin");
    const std::string small = read_file(path() / "expected32.bin");
    std::istringstream lines(read_file(path() / "expected.txt"));
    size_t at = 0;
    std::string name;
    PilPicture picture;
    while (lines >> name >> picture.width >> picture.height) {
      const auto bytes = static_cast<size_t>(picture.width * picture.height * 3);
      picture.rgb = whole.substr(at, bytes);
      at += bytes;
      picture.small = small.substr(pictures.size() * 32 * 32 * 3, 32 * 32 * 3);
      pictures.emplace_back(name, picture);
    }
  }
  const fs::path& path() const { return folder_.path(); }

  std::vector<std::pair<std::string, PilPicture>> pictures;

 private:
  TempFolder folder_{"assay-pictures"};
};

inline const PicturesByPil& pictures_by_pil() {
  static const PicturesByPil kPictures;
  return kPictures;
}

}  // namespace assay
