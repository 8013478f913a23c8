#include "data/text_images.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "data/text_labels.h"
#include "data/text_targets.h"

namespace assay {
namespace {

constexpr const char* kLabelLine =
    "a.png\t[{\"transcription\": \"word\", \"points\": [[10, 20], [60, 20], [60, 40], [10, 40]]}]\n";

std::string labels_refused(const std::string& text) {
  try {
    parse_text_labels(text, "train.txt");
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TextOutline rectangle(double left, double top, double right, double bottom) {
  return {.points = {{left, top}, {right, top}, {right, bottom}, {left, bottom}}};
}

float map_at(const std::vector<float>& map, int64_t width, int64_t x, int64_t y) {
  return map[static_cast<size_t>(y * width + x)];
}

// A folder with one image: a white rectangle, 60x24 pixels from (20, 30), on black, in 100x80 pixels; its outline,
// and further texts.
class TextImageFolder : public testing::Test {
 protected:
  TextImageFolder() {
    const auto done = capture(
        {.argv = {"/usr/bin/python3", "-c",
                  "import sys; from PIL import Image\n"
                  "i = Image.new('RGB', (100, 80)); i.paste((255, 255, 255), (20, 30, 80, 54)); i.save(sys.argv[1])\n",
                  (folder_.path() / "a.png").string()}},
        60);
    EXPECT_TRUE(done.status.ok()) << done.err;
    write(text("20,30", "80,30", "80,54", "20,54"));
    options_.folder = folder_.path();
    options_.targets = {.height = 160, .width = 200};
    options_.mean = {0, 0, 0};
    options_.std = {1, 1, 1};
    options_.max_texts = 3;
  }
  static std::string text(const char* a, const char* b, const char* c, const char* d, const char* what = "word") {
    return std::string("{\"transcription\": \"") + what + "\", \"points\": [[" + a + "], [" + b + "], [" + c + "], [" +
           d + "]]}";
  }
  void write(const std::string& texts, int copies = 1) {
    std::ofstream file(folder_.path() / "train.txt", std::ios::trunc);
    for (int i = 0; i < copies; ++i) file << "a.png\t[" << texts << "]\n";
  }
  Batch one(int64_t index = 0, int64_t epoch = 0) const {
    const std::vector<int64_t> indices = {index};
    return TextImages(options_).gather(indices, epoch);
  }
  TempFolder folder_{"assay-text-images"};
  TextImages::Options options_;
};

TEST(TextLabels, ReadsOutlines) {
  const auto labels = parse_text_labels(std::string(kLabelLine) +
                                            "\nb.png\t[]\r\nc.png\t[{\"transcription\": \"###\", \"points\": "
                                            "[[0,0],[1,0],[0,1.5]]}]",
                                        "train.txt");
  ASSERT_EQ(labels.size(), 3u);
  EXPECT_EQ(labels[0].path, "a.png");
  EXPECT_EQ(labels[0].texts[0].points[2].x, 60);
  EXPECT_FALSE(labels[0].texts[0].ignored);
  EXPECT_TRUE(labels[1].texts.empty());
  EXPECT_TRUE(labels[2].texts[0].ignored);
  EXPECT_EQ(labels[2].texts[0].points[2].y, 1.5);
}

TEST(TextLabels, NamesFileAndLine) {
  EXPECT_NE(labels_refused(std::string(kLabelLine) + "no tab").find("train.txt:2: needs a path"), std::string::npos);
  EXPECT_NE(labels_refused("a\t{}").find("not a list"), std::string::npos);
  EXPECT_NE(labels_refused("a\t[{}]").find("no list of points"), std::string::npos);
  EXPECT_NE(labels_refused("a\t[{\"transcription\": \"x\", \"points\": [[1,2],[3,4]]}]").find("2 points"),
            std::string::npos);
  EXPECT_NE(labels_refused("a\t[{\"transcription\": \"x\", \"points\": [[1,2],[3,4],[5]]}]").find("[x, y]"),
            std::string::npos);
  EXPECT_NE(labels_refused("a\t[{\"transcription\": \"x\", \"points\": [[1,2],[3,4],[5,1e99]]}]").find("too large"),
            std::string::npos);
  EXPECT_NE(labels_refused("a\t[{\"transcription\": 3, \"points\": [[1,2],[3,4],[5,6]]}]").find("no transcription"),
            std::string::npos);
  EXPECT_NE(labels_refused("a\t[[[[[").find("train.txt:1"), std::string::npos);
}

TEST(TextLabels, SurvivesGarbage) {
  const std::string good = kLabelLine;
  for (size_t length = 1; length + 1 < good.size(); ++length)
    EXPECT_NE(labels_refused(good.substr(0, length)), "") << length;
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 3; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    labels_refused(bad);
  }
}

TEST(TextTargets, ShrinksARectangleByTheFormula) {
  // 60 x 24: D = 1440 (1 - 0.16) / 168 = 7.2, so what is left is 45.6 x 9.6, from (27.2, 37.2).
  std::vector<TextOutline> texts = {rectangle(20, 30, 80, 54)};
  const TextTargets targets = make_text_targets(texts, {.height = 80, .width = 100});
  EXPECT_FALSE(texts[0].ignored);
  for (int64_t y = 0; y < 80; ++y) {
    for (int64_t x = 0; x < 100; ++x) {
      const double cx = static_cast<double>(x) + 0.5;
      const double cy = static_cast<double>(y) + 0.5;
      const bool shrunk = cx >= 27.2 && cx <= 72.8 && cy >= 37.2 && cy <= 46.8;
      ASSERT_EQ(map_at(targets.shrink_map, 100, x, y), shrunk ? 1 : 0) << x << " " << y;
      ASSERT_EQ(map_at(targets.shrink_mask, 100, x, y), 1);
      const double outside = std::hypot(std::max({20 - cx, 0.0, cx - 80}), std::max({30 - cy, 0.0, cy - 54}));
      ASSERT_EQ(map_at(targets.threshold_mask, 100, x, y), outside <= 7.2 ? 1 : 0) << x << " " << y;
      const double inside = std::min({cx - 20, 80 - cx, cy - 30, 54 - cy});
      const double distance = outside > 0 ? outside : inside;
      const double expected = distance <= 7.2 ? 0.3 + 0.4 * (1 - distance / 7.2) : 0.3;
      ASSERT_NEAR(map_at(targets.threshold_map, 100, x, y), expected, 1e-6) << x << " " << y;
    }
  }
}

TEST(TextTargets, ShrinksATurnedTextTheSame) {
  // The number of pixels does not depend on the angle, but for those on the border.
  std::vector<double> sums;
  for (const double turn : {0.0, 0.2, 0.7, 1.3}) {
    std::vector<TextOutline> texts(1);
    for (const auto& [x, y] : std::vector<std::pair<double, double>>{{-60, -25}, {60, -25}, {60, 25}, {-60, 25}}) {
      texts[0].points.push_back(
          {100 + x * std::cos(turn) - y * std::sin(turn), 100 + x * std::sin(turn) + y * std::cos(turn)});
    }
    const TextTargets targets = make_text_targets(texts, {.height = 200, .width = 200});
    double sum = 0;
    for (const float value : targets.shrink_map) sum += value;
    sums.push_back(sum);
  }
  // D = 6000 * 0.84 / 340 = 14.82: (120 - 2 D) (50 - 2 D) = 1837
  for (const double sum : sums) EXPECT_NEAR(sum, 1837, 40);
}

TEST(TextTargets, IgnoresTextsThatCannotBeFound) {
  std::vector<TextOutline> texts = {rectangle(5, 5, 30, 7), rectangle(40, 10, 60, 30), rectangle(5, 40, 5, 40)};
  texts[1].ignored = true;
  const TextTargets targets = make_text_targets(texts, {.height = 64, .width = 64});
  EXPECT_TRUE(texts[0].ignored && texts[1].ignored && texts[2].ignored);
  EXPECT_EQ(*std::max_element(targets.shrink_map.begin(), targets.shrink_map.end()), 0);
  EXPECT_EQ(map_at(targets.shrink_mask, 64, 10, 6), 0);
  EXPECT_EQ(map_at(targets.shrink_mask, 64, 50, 20), 0);
  EXPECT_EQ(map_at(targets.shrink_mask, 64, 35, 35), 1);
  EXPECT_EQ(*std::max_element(targets.threshold_mask.begin(), targets.threshold_mask.end()), 0);
}

TEST_F(TextImageFolder, GivesImageTargetsAndOutlines) {
  const Batch batch = one();
  ASSERT_EQ(batch.tensors.size(), 7u);
  EXPECT_EQ(batch.tensors[0].sizes(), (std::vector<int64_t>{1, 3, 160, 200}));
  for (size_t i = 1; i < 5; ++i) EXPECT_EQ(batch.tensors[i].sizes(), (std::vector<int64_t>{1, 160, 200}));
  const torch::Tensor corners =
      torch::tensor({40.0F, 60.0F, 160.0F, 60.0F, 160.0F, 108.0F, 40.0F, 108.0F}).view({4, 2});
  EXPECT_TRUE(torch::equal(batch.tensors[5][0][0], corners)) << batch.tensors[5][0];
  EXPECT_TRUE(torch::equal(batch.tensors[6][0], torch::tensor({1, -1, -1}, torch::kLong)));
  // Where the shrunk text is, the image is white.
  const torch::Tensor inside = batch.tensors[1] > 0.5;
  EXPECT_GT(inside.sum().item<int64_t>(), 1000);
  EXPECT_EQ(batch.tensors[0].select(1, 0).masked_select(inside).min().item<float>(), 1.0F);
}

TEST_F(TextImageFolder, KeepsOutlinesOnTheTextInAPart) {
  write(text("20,30", "80,30", "80,54", "20,54"), 20);
  options_.augment = true;
  options_.seed = 3;
  options_.max_jitter = 0;
  int whole = 0;
  for (int64_t i = 0; i < 20; ++i) {
    const Batch batch = one(i, 5);
    EXPECT_TRUE(torch::equal(batch.tensors[0], one(i, 5).tensors[0])) << "a function of seed, epoch and index";
    const torch::Tensor inside = batch.tensors[1] > 0.5;
    if (!inside.any().item<bool>()) continue;
    ++whole;
    EXPECT_GT(batch.tensors[0].select(1, 0).masked_select(inside).min().item<float>(), 0.9F);
  }
  EXPECT_GT(whole, 5);
  EXPECT_FALSE(torch::equal(one(0, 5).tensors[0], one(0, 6).tensors[0]));
}

TEST_F(TextImageFolder, NamesWhatIsWrong) {
  const auto refused = [&] {
    try {
      one();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string word = text("20,30", "80,30", "80,54", "20,54");
  write(word + "," + word + "," + word + "," + word);
  EXPECT_NE(refused().find("a.png has 4 texts; max_texts is 3"), std::string::npos);
  std::ofstream(folder_.path() / "train.txt") << "b.png\t[]\n";
  EXPECT_NE(refused().find("b.png"), std::string::npos);
  std::ofstream(folder_.path() / "b.png") << "not an image";
  EXPECT_NE(refused().find("b.png: neither"), std::string::npos);
  // Before the first batch: an empty image, and one that ends too early.
  std::ofstream(folder_.path() / "b.png", std::ios::trunc) << "";
  EXPECT_THROW(TextImages{options_}, DataError);
  EXPECT_NE(refused().find("b.png: is empty"), std::string::npos);
  const std::string whole = read_file(folder_.path() / "a.png");
  std::ofstream(folder_.path() / "b.png", std::ios::binary) << whole.substr(0, whole.size() - 20);
  EXPECT_THROW(TextImages{options_}, DataError);
  EXPECT_NE(refused().find("b.png: a damaged PNG file"), std::string::npos);
  std::ofstream(folder_.path() / "b.png", std::ios::binary) << whole;
  EXPECT_EQ(refused(), "");
  std::ofstream(folder_.path() / "train.txt", std::ios::trunc) << "";
  EXPECT_NE(refused().find("no images"), std::string::npos);
  fs::remove(folder_.path() / "train.txt");
  EXPECT_NE(refused().find("train.txt"), std::string::npos);
  options_.targets.shrink_ratio = 1;
  EXPECT_NE(refused().find("shrink_ratio"), std::string::npos);
}

}  // namespace
}  // namespace assay
