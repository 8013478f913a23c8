#include "data/image.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "data/resample.h"
#include "images_by_pil.h"

namespace assay {
namespace {

int largest_difference(const std::vector<uint8_t>& a, const std::string& b) {
  if (a.size() != b.size()) return 256;
  int largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - static_cast<uint8_t>(b[i])));
  return largest;
}

// Reads everything that can be read; a DataError is all that may happen.
bool image_is_read(const std::string& bytes) {
  try {
    const Image image(bytes, "file");
    image.read();
    image.read({.left = 0, .top = 0, .right = 10, .bottom = 10}, 2);
    return true;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

TEST(ImageFile, ReadsWhatPilReads) {
  for (const auto& [name, expected] : images_by_pil().images) {
    const std::string bytes = read_file(images_by_pil().path() / name);
    const Image image(bytes, name);
    EXPECT_EQ(image.width(), expected.width) << name;
    EXPECT_EQ(image.height(), expected.height) << name;
    // PIL turns four inks into colours by another rounding.
    EXPECT_LE(largest_difference(image.read().rgb, expected.rgb), name.find("inks") == std::string::npos ? 0 : 2)
        << name;
  }
}

TEST(ImageFile, ResizesAsPilDoes) {
  for (const auto& [name, expected] : images_by_pil().images) {
    const std::string bytes = read_file(images_by_pil().path() / name);
    const int shorter = std::min(expected.width, expected.height);
    const int wide = 40 * expected.width / shorter;
    const int high = 40 * expected.height / shorter;
    const Pixels pixels = Image(bytes, name).read();
    const ImageBox all{.left = 0,
                       .top = 0,
                       .right = static_cast<double>(expected.width),
                       .bottom = static_cast<double>(expected.height)};
    const std::vector<uint8_t> resized = resample(pixels, all, {.width = wide, .height = high});
    std::vector<uint8_t> centre;
    const int left = (wide - 32 + 1) / 2;
    const int top = (high - 32 + 1) / 2;
    for (int y = 0; y < 32; ++y) {
      const auto* row = resized.data() + static_cast<size_t>((top + y) * wide + left) * 3;
      centre.insert(centre.end(), row, row + 32 * 3);
    }
    EXPECT_LE(largest_difference(centre, expected.small), name.find("inks") == std::string::npos ? 1 : 3) << name;
  }
}

TEST(ImageFile, ReadsAPartWithThePixelsOfTheWhole) {
  for (const auto& [name, expected] : images_by_pil().images) {
    const std::string bytes = read_file(images_by_pil().path() / name);
    const Image image(bytes, name);
    const Pixels whole = image.read();
    const ImageBox box{.left = expected.width * 0.3,
                       .top = expected.height * 0.4,
                       .right = expected.width * 0.8,
                       .bottom = expected.height * 0.7};
    const Pixels part = image.read(box, 1);
    ASSERT_EQ(part.reduction, 1) << name;
    ASSERT_LE(part.left, box.left);
    ASSERT_LE(part.top, box.top);
    ASSERT_GE(part.left + part.width, box.right);
    ASSERT_GE(part.top + part.height, box.bottom);
    for (int y = static_cast<int>(box.top); y < box.bottom; ++y) {
      for (int x = static_cast<int>(box.left) * 3; x < static_cast<int>(box.right) * 3; ++x) {
        const int there = whole.rgb[static_cast<size_t>(y * whole.width * 3 + x)];
        const int here = part.rgb[static_cast<size_t>((y - part.top) * part.width * 3 + x - part.left * 3)];
        ASSERT_EQ(there, here) << name << " " << x / 3 << " " << y;
      }
    }
  }
}

TEST(ImageFile, ReducesAJpegToLookTheSame) {
  const std::string bytes = read_file(images_by_pil().path() / "val/dog/large.jpg");
  const Image image(bytes, "large.jpg");
  const ImageBox box{.left = 100, .top = 50, .right = 800, .bottom = 650};
  const auto exact = resample(image.read(), box, {.width = 70, .height = 60});
  for (const int reduction : {2, 4, 8}) {
    const Pixels pixels = image.read(box, reduction);
    EXPECT_EQ(pixels.reduction, reduction);
    const auto fast = resample(pixels, box, {.width = 70, .height = 60});
    double sum = 0;
    for (size_t i = 0; i < exact.size(); ++i) sum += std::abs(exact[i] - fast[i]);
    EXPECT_LT(sum / static_cast<double>(exact.size()), 2.0) << reduction;
  }
}

TEST(ImageFile, RejectsWhatIsDamaged) {
  for (const char* name : {"train/cat/plain.jpg", "train/cat/progressive.jpg", "train/dog/palette.png"}) {
    const std::string good = read_file(images_by_pil().path() / name);
    EXPECT_TRUE(image_is_read(good));
    for (size_t length = 0; length < good.size() - 20; length += 1 + length / 20) {
      EXPECT_FALSE(image_is_read(good.substr(0, length))) << name << " " << length;
    }
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
      std::string bad = good;
      for (int i = 0; i < 3; ++i) bad[random() % (round < 150 ? 200 : bad.size())] = static_cast<char>(random());
      image_is_read(bad);
    }
  }
  EXPECT_FALSE(image_is_read("GIF89a and so on"));
  EXPECT_FALSE(image_is_read(""));
}

TEST(ImageFile, RejectsHugeClaims) {
  std::string png = read_file(images_by_pil().path() / "train/dog/plain.png");
  png[16] = 0x00;  // width: 0x00FFFFFF
  png[17] = png[18] = png[19] = '\xFF';
  EXPECT_FALSE(image_is_read(png));
  std::string jpeg = read_file(images_by_pil().path() / "train/cat/plain.jpg");
  const size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  for (size_t i = 5; i < 9; ++i) jpeg[frame + i] = '\xFF';
  try {
    Image(jpeg, "big.jpg");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("big.jpg"), std::string::npos);
  }
}

}  // namespace assay
