#include "data/idx.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "data/image_dataset.h"
#include "data/random.h"
#include "idx_file.h"

namespace assay {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no DataError";
}

TEST(Idx, ReadsPlainAndCompressed) {
  const TempFolder folder("idx");
  const std::string text = idx_text({2, 3}, "abcdef");
  write_bytes(folder.path() / "plain", text);
  write_gzip(folder.path() / "packed.gz", text);
  for (const char* name : {"plain", "packed.gz"}) {
    const IdxArray array = read_idx(folder.path() / name);
    EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(std::string(array.bytes.begin(), array.bytes.end()), "abcdef");
  }
}

TEST(Idx, NamesFaults) {
  const TempFolder folder("idx");
  const fs::path path = folder.path() / "broken.gz";
  const auto message = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    const std::string text = message_of([&] { read_idx(path); });
    EXPECT_NE(text.find(path.string()), std::string::npos) << text;
    return text;
  };
  EXPECT_NE(message("").find("magic"), std::string::npos);
  EXPECT_NE(message(idx_text({2}, "ab").replace(0, 1, "x")).find("magic"), std::string::npos);
  EXPECT_NE(message(idx_text({2}, "ab", 0x0d)).find("0x0d"), std::string::npos);
  EXPECT_NE(message(idx_text({2, 2}, "ab")).find("2 of 4 bytes"), std::string::npos);
  EXPECT_NE(message(idx_text({2}, "abc")).find("after the last"), std::string::npos);
  EXPECT_NE(message(idx_text({0}, "")).find("extent 0"), std::string::npos);
  EXPECT_NE(message(idx_text({4000000000, 4000000000}, "")).find("extent"), std::string::npos);
  // Claims 2 GB and has nothing: must fail at once, not allocate.
  EXPECT_NE(message(idx_text({2000000000}, "")).find("0 of 2000000000"), std::string::npos);
  EXPECT_NE(message_of([&] { read_idx(folder.path() / "absent"); }).find("no such file"), std::string::npos);
  EXPECT_NE(message_of([&] { read_idx(folder.path()); }).find("folder"), std::string::npos);
}

TEST(Idx, RejectsTruncatedGzipAndBadChecksum) {
  const TempFolder folder("idx");
  const fs::path path = folder.path() / "cut.gz";
  write_gzip(path, idx_text({5000}, std::string(5000, 'z')));
  const std::string whole = read_file(path);
  write_bytes(path, whole.substr(0, whole.size() - 4));
  EXPECT_NE(message_of([&] { read_idx(path); }).find("cut.gz"), std::string::npos);
  std::string wrong = whole;
  wrong[wrong.size() - 6] ^= 1;  // in the checksum
  write_bytes(path, wrong);
  EXPECT_NE(message_of([&] { read_idx(path); }).find("cut.gz"), std::string::npos);
}

TEST(Idx, SurvivesMutations) {
  const TempFolder folder("idx");
  write_gzip(folder.path() / "good.gz", idx_text({20, 4, 4}, std::string(320, 'q')));
  const std::string packed = read_file(folder.path() / "good.gz");
  const std::string plain = idx_text({20, 4, 4}, std::string(320, 'q'));
  KeyedRandom random(7, 7);
  int refused = 0;
  for (int i = 0; i < 1500; ++i) {
    std::string bytes = i % 2 ? packed : plain;
    for (uint64_t k = 0; k <= random.below(3); ++k)
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 + random.below(255));
    if (random.below(4) == 0) bytes.resize(random.below(bytes.size()));
    write_bytes(folder.path() / "mutant", bytes);
    try {
      read_idx(folder.path() / "mutant");
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 700);
}

ImageDataset::Options in_memory() {
  ImageDataset::Options options;
  options.num_classes = 4;
  return options;
}

TEST(ImageDataset, ChecksImagesAgainstLabels) {
  const IdxArray images{{2, 2, 2}, std::vector<uint8_t>(8, 1)};
  const auto message = [&](const IdxArray& i, const IdxArray& l) {
    return message_of([&] { ImageDataset(in_memory(), i, l, "toy"); });
  };
  EXPECT_NE(message(images, {{3}, {0, 1, 2}}).find("2 images"), std::string::npos);
  EXPECT_NE(message(images, {{2}, {0, 4}}).find("sample 1 has label 4"), std::string::npos);
  EXPECT_NE(message(images, {{2, 1}, {0, 1}}).find("labels have 1"), std::string::npos);
  EXPECT_NE(message({{8}, std::vector<uint8_t>(8)}, {{8}, std::vector<uint8_t>(8)}).find("images have 3"),
            std::string::npos);
}

TEST(ImageDataset, NormalisesByTheFormula) {
  ImageDataset::Options options = in_memory();
  options.mean = 0.25;
  options.std = 0.5;
  const ImageDataset data(options, {{1, 2, 2}, {0, 51, 102, 255}}, {{1}, {3}}, "toy");
  const std::vector<int64_t> first = {0};
  const Batch batch = data.gather(first, 0);
  const torch::Tensor expected = torch::tensor({-0.5, -0.1, 0.3, 1.5}).reshape({1, 1, 2, 2});
  EXPECT_TRUE(torch::allclose(batch.tensors[0], expected.to(torch::kFloat), 1e-6, 1e-7));
  EXPECT_EQ(batch.tensors[1].item<int64_t>(), 3);
}

TEST(ImageDataset, MovesPixelsOnlyByFlipAndShift) {
  ImageDataset::Options options = in_memory();
  std::vector<uint8_t> pixels(25, 0);
  pixels[12] = 255;  // the centre of 5x5
  options.crop_padding = 1;
  options.flip = true;
  const ImageDataset data(options, {{1, 5, 5}, pixels}, {{1}, {0}}, "toy");
  const std::vector<int64_t> first = {0};
  std::set<int64_t> places;
  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    const torch::Tensor image = data.gather(first, epoch).tensors[0];
    ASSERT_EQ(image.sum().item<float>(), 1.0f);
    ASSERT_TRUE(image.equal(data.gather(first, epoch).tensors[0]));
    places.insert(image.argmax().item<int64_t>());
  }
  EXPECT_EQ(places, (std::set<int64_t>{6, 7, 8, 11, 12, 13, 16, 17, 18}));
}

}  // namespace
}  // namespace assay
