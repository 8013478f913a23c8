#include <fmt/format.h>

#include <array>

#include "base/error.h"
#include "datasets/inflate.h"
#include "render/image_sets.h"
#include "render/picture_file.h"

namespace assay {

namespace {

constexpr std::array kClasses = {"ankle-boot-9", "bag-8",   "coat-4",    "dress-3",   "pullover-2",
                                 "sandal-5",     "shirt-6", "sneaker-7", "t-shirt-0", "trouser-1"};
constexpr int kSide = 28;
constexpr size_t kImageHeader = 16;
constexpr size_t kLabelHeader = 8;
constexpr int kJpegQuality = 95;

// The folder of a class: its name ends with its number in Fashion-MNIST.
std::string class_folder(uint8_t label) {
  for (const std::string_view name : kClasses) {
    if (name.back() == '0' + label) return std::string(name);
  }
  throw DataError(fmt::format("Fashion-MNIST has no class {}", label));
}

struct IdxPair {
  std::string images;
  std::string labels;
};

IdxPair read_pair(const fs::path& folder, const std::string& prefix) {
  constexpr size_t kMaxBytes = size_t{256} << 20;
  const auto read = [&](const std::string& stem) {
    const fs::path path = folder / (prefix + stem + ".gz");
    return inflate_bytes(read_file(path), kMaxBytes, path.string());
  };
  IdxPair pair{read("-images-idx3-ubyte"), read("-labels-idx1-ubyte")};
  const size_t count = pair.labels.size() < kLabelHeader ? 0 : pair.labels.size() - kLabelHeader;
  if (count == 0 || pair.images.size() != kImageHeader + count * kSide * kSide) {
    throw DataError(fmt::format("{}: {} images and labels do not fit together", folder.string(), prefix));
  }
  return pair;
}

}  // namespace

void write_fashion_images(const FashionImageSet& set, const fs::path& folder, const PictureCount& count) {
  const auto num_classes = static_cast<int64_t>(kClasses.size());
  const int64_t total = (set.num_train + set.num_test) * num_classes;
  int64_t done = 0;
  for (const std::string part : {"train", "test"}) {
    const IdxPair pair = read_pair(set.idx_folder, part == "train" ? "train" : "t10k");
    for (const char* name : kClasses) make_folder(folder / part / name);
    const int64_t wanted = part == "train" ? set.num_train : set.num_test;
    std::array<int64_t, kClasses.size()> written{};
    for (size_t i = 0; i + kLabelHeader < pair.labels.size(); ++i) {
      const auto label = static_cast<uint8_t>(pair.labels[kLabelHeader + i]);
      const std::string name = class_folder(label);
      if (written[label] >= wanted) continue;
      const auto* pixels = reinterpret_cast<const uint8_t*>(pair.images.data()) + kImageHeader + i * kSide * kSide;
      const GreyPicture picture{.width = kSide, .height = kSide, .pixels = {pixels, kSide * kSide}};
      const fs::path stem = folder / part / name / fmt::format("{:05}", i);
      if (written[label]++ % 2 == 0) {
        write_png(stem.string() + ".png", picture);
      } else {
        write_jpeg(stem.string() + ".jpg", picture, kJpegQuality);
      }
      count(++done, total);
    }
  }
}

}  // namespace assay
