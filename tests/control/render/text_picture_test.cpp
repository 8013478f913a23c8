#include "render/text_picture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/json.h"

using namespace assay;

namespace {

const Fonts& test_fonts() {
  static const Fonts kFonts(
      {"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf",
       "/usr/share/fonts/truetype/dejavu/DejaVuSerif.ttf", "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
       "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"});
  return kFonts;
}

std::string pixels_of(const TextPicture& picture) {
  cairo_surface_flush(picture.surface.get());
  const auto* data = reinterpret_cast<const char*>(cairo_image_surface_get_data(picture.surface.get()));
  return {data, static_cast<size_t>(cairo_image_surface_get_stride(picture.surface.get())) * 320};
}

bool is_inside(const PlacedText& text, double x, double y, double margin) {
  for (size_t i = 0; i < 4; ++i) {
    const PicturePoint& a = text.corners[i];
    const PicturePoint& b = text.corners[(i + 1) % 4];
    const double length = std::hypot(b.x - a.x, b.y - a.y);
    if (((b.x - a.x) * (y - a.y) - (b.y - a.y) * (x - a.x)) / length < -margin) return false;
  }
  return true;
}

}  // namespace

TEST(TextPicture, IsAFunctionOfSeedAndNumber) {
  const TextPicture first = draw_text_picture(test_fonts(), {.seed = 1}, 5);
  const TextPicture again = draw_text_picture(test_fonts(), {.seed = 1}, 5);
  EXPECT_EQ(pixels_of(first), pixels_of(again));
  EXPECT_EQ(labels_json(first.texts), labels_json(again.texts));
  EXPECT_NE(pixels_of(first), pixels_of(draw_text_picture(test_fonts(), {.seed = 1}, 6)));
  EXPECT_NE(pixels_of(first), pixels_of(draw_text_picture(test_fonts(), {.seed = 2}, 5)));
}

TEST(TextPicture, OutlinesTheInkAndNothingElse) {
  // Edges of letters are the only places where neighbouring pixels differ much: none outside of the outlines, and on
  // every side of an outline some within two pixels.
  int num_texts = 0;
  for (uint64_t number = 0; number < 40; ++number) {
    const TextPicture picture = draw_text_picture(test_fonts(), {.seed = 9}, number);
    ASSERT_GE(picture.texts.size(), 1u);
    const std::string pixels = pixels_of(picture);
    std::vector<std::array<bool, 4>> touched(picture.texts.size());
    const auto value = [&](int x, int y, int c) {
      return static_cast<int>(static_cast<uint8_t>(pixels[static_cast<size_t>((y * 320 + x) * 4 + c)]));
    };
    for (int y = 0; y < 319; ++y) {
      for (int x = 0; x < 319; ++x) {
        int change = 0;
        for (int c = 0; c < 3; ++c) {
          change = std::max(
              {change, std::abs(value(x + 1, y, c) - value(x, y, c)), std::abs(value(x, y + 1, c) - value(x, y, c))});
        }
        if (change < 70) continue;  // the ground's shapes differ from it by at most 0.24, 62 of 255
        bool held = false;
        for (size_t t = 0; t < picture.texts.size(); ++t) {
          const PlacedText& text = picture.texts[t];
          if (!is_inside(text, x + 1, y + 1, 2)) continue;
          held = true;
          for (size_t i = 0; i < 4; ++i) {
            const PicturePoint& a = text.corners[i];
            const PicturePoint& b = text.corners[(i + 1) % 4];
            const double distance =
                ((b.x - a.x) * (y + 1 - a.y) - (b.y - a.y) * (x + 1 - a.x)) / std::hypot(b.x - a.x, b.y - a.y);
            touched[t][i] = touched[t][i] || distance < 3;
          }
        }
        EXPECT_TRUE(held) << number << ": " << x << " " << y;
      }
    }
    for (const auto& sides : touched) {
      ++num_texts;
      for (const bool side : sides) EXPECT_TRUE(side) << number;
    }
  }
  EXPECT_GT(num_texts, 100);
}

TEST(TextPicture, LabelsInJson) {
  const TextPicture picture = draw_text_picture(test_fonts(), {.seed = 1}, 3);
  const Json labels = parse_json(labels_json(picture.texts), "labels");
  ASSERT_EQ(labels.size(), picture.texts.size());
  EXPECT_EQ(labels[0]["transcription"], picture.texts[0].text);
  EXPECT_EQ(labels[0]["points"].size(), 4u);
}

TEST(TextPicture, NamesAFileThatIsNotAFont) { EXPECT_THROW(Fonts({"/etc/hostname"}), DataError); }
