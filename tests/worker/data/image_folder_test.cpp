#include "data/image_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>

#include "base/error.h"
#include "data/loader.h"
#include "images_by_pil.h"

namespace assay {
namespace {

ImageFolder::Options small_options() {
  ImageFolder::Options options;
  options.folder = images_by_pil().path();
  options.image_size = 32;
  options.resize = 40;
  return options;
}

std::vector<int64_t> first_indices(int64_t count) {
  std::vector<int64_t> indices(static_cast<size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

torch::Tensor all_images(const ImageFolder& data, int64_t epoch) {
  return data.gather(first_indices(data.size()), epoch).tensors[0];
}

std::string image_folder_error(const ImageFolder::Options& options) {
  try {
    const ImageFolder data(options);
    all_images(data, 0);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST(ImageFolderData, LabelsByTheFoldersInOrder) {
  const ImageFolder data(small_options());
  EXPECT_EQ(data.size(), 11);
  EXPECT_EQ(data.classes(), (std::vector<std::string>{"cat", "dog"}));
  const Batch batch = data.gather(first_indices(11), 0);
  EXPECT_EQ(batch.tensors[0].sizes(), (std::vector<int64_t>{11, 3, 32, 32}));
  EXPECT_EQ(batch.tensors[1].sum().item<int64_t>(), 6);
  EXPECT_EQ(batch.tensors[1][0].item<int64_t>(), 0);
}

TEST(ImageFolderData, CropsTheCentreAsPilDoes) {
  for (const bool fast : {false, true}) {
    ImageFolder::Options options = small_options();
    options.fast_decode = fast;
    options.mean = {0, 0, 0};
    options.std = {1, 1, 1};
    for (const char* split : {"train", "val"}) {
      options.split = split;
      const ImageFolder data(options);
      const torch::Tensor images = all_images(data, 0);
      // The same images by name, in the order of the data set.
      std::map<std::string, const PilImage*> sorted;
      for (const auto& [name, image] : images_by_pil().images) {
        if (name.starts_with(split)) sorted[name] = &image;
      }
      int64_t index = 0;
      for (const auto& [name, image] : sorted) {
        const torch::Tensor expected =
            torch::from_blob(const_cast<char*>(image->small.data()), {32, 32, 3}, torch::kByte)
                .permute({2, 0, 1})
                .to(torch::kFloat);
        const torch::Tensor difference = (images[index++] * 255 - expected).abs();
        EXPECT_LE(difference.mean().item<float>(), fast ? 3.0 : 1.0) << name;
        if (!fast) {
          EXPECT_LE(difference.max().item<float>(), 3.01) << name;
        }
      }
    }
  }
}

TEST(ImageFolderData, AugmentsByAFunctionOfSeedEpochAndIndex) {
  ImageFolder::Options options = small_options();
  options.augment = true;
  options.seed = 7;
  const ImageFolder data(options);
  EXPECT_TRUE(torch::equal(all_images(data, 3), all_images(ImageFolder(options), 3)));
  EXPECT_FALSE(torch::equal(all_images(data, 3), all_images(data, 4)));
  options.seed = 8;
  EXPECT_FALSE(torch::equal(all_images(data, 3), all_images(ImageFolder(options), 3)));
  // One image alone is what it is in a batch.
  const std::vector<int64_t> one = {5};
  EXPECT_TRUE(torch::equal(data.gather(one, 3).tensors[0][0], all_images(data, 3)[5]));
}

TEST(ImageFolderData, DoesNotDependOnTheNumberOfThreads) {
  ImageFolder::Options options = small_options();
  options.augment = true;
  std::vector<torch::Tensor> seen;
  for (const int workers : {0, 1, 3}) {
    Loader loader(std::make_shared<ImageFolder>(options),
                  {.num_samples = 11, .batch_size = 2, .shuffle = true, .drop_last = false, .seed = 1},
                  {.num_workers = workers, .prefetch = 4});
    std::vector<torch::Tensor> batches;
    loader.start(2);
    while (const auto batch = loader.next()) batches.push_back(batch->tensors[0]);
    seen.push_back(torch::cat(batches));
  }
  EXPECT_TRUE(torch::equal(seen[0], seen[1]));
  EXPECT_TRUE(torch::equal(seen[0], seen[2]));
}

TEST(ImageFolderData, FlipsAndCropsAsOftenAsItSays) {
  // An image whose left half is black: a mirrored one is brighter on the left.
  const TempFolder folder;
  const auto done = capture({.argv = {"/usr/bin/python3", "-c",
                                      "import sys, os; from PIL import Image\n"
                                      "os.makedirs(sys.argv[1] + '/train/a')\n"
                                      "i = Image.new('RGB', (64, 64)); i.paste((255, 255, 255), (32, 0, 64, 64))\n"
                                      "[i.save(f'{sys.argv[1]}/train/a/{k:03}.png') for k in range(200)]\n",
                                      folder.path().string()}},
                            60);
  ASSERT_TRUE(done.status.ok()) << done.err;
  ImageFolder::Options options;
  options.folder = folder.path();
  options.image_size = 16;
  options.resize = 16;
  options.augment = true;
  options.min_area = 1;
  options.max_ratio = 1;
  options.mean = {0, 0, 0};
  options.std = {1, 1, 1};
  const torch::Tensor images = all_images(ImageFolder(options), 0);
  const auto left_is_bright = images.slice(3, 0, 8).mean({1, 2, 3}) > 0.5;
  EXPECT_NEAR(left_is_bright.sum().item<int64_t>(), 100, 30);  // four standard deviations
  options.flip = false;
  options.min_area = 0.08;
  options.max_ratio = 4.0 / 3;
  const torch::Tensor cropped = all_images(ImageFolder(options), 0);
  EXPECT_GT(cropped.mean({1, 2, 3}).std().item<float>(), 0.1) << "parts from everywhere";
}

TEST(ImageFolderData, ReadsGreyAsOneChannel) {
  ImageFolder::Options options = small_options();
  options.channels = 1;
  options.mean = {0.5};
  options.std = {0.5};
  const torch::Tensor images = all_images(ImageFolder(options), 0);
  EXPECT_EQ(images.size(1), 1);
  EXPECT_LE(images.abs().max().item<float>(), 1.0);
}

TEST(ImageFolderData, NamesWhatIsWrong) {
  const TempFolder folder;
  const auto write = [&](const fs::path& path, const std::string& text) {
    make_folder((folder.path() / path).parent_path());
    std::ofstream(folder.path() / path, std::ios::binary) << text;
  };
  ImageFolder::Options options = small_options();
  options.folder = folder.path();
  EXPECT_NE(image_folder_error(options).find("train: no such folder"), std::string::npos);
  make_folder(folder.path() / "train/cat");
  EXPECT_NE(image_folder_error(options).find("no images"), std::string::npos);
  const std::string good = read_file(images_by_pil().path() / "train/cat/plain.jpg");
  write("train/cat/a.jpg", good);
  EXPECT_EQ(image_folder_error(options), "");
  options.num_classes = 7;
  EXPECT_NE(image_folder_error(options).find("has 1 classes, the case says 7"), std::string::npos);
  options.num_classes = 1;
  write("val/mouse/a.jpg", good);
  options.split = "val";
  EXPECT_NE(image_folder_error(options).find("mouse: no such class"), std::string::npos);
  options.split = "train";
  write("train/cat/b.jpg", good.substr(0, good.size() / 2));
  EXPECT_NE(image_folder_error(options).find("b.jpg: a damaged JPEG file"), std::string::npos);
  EXPECT_THROW(ImageFolder{options}, DataError) << "before the first batch";
  write("train/cat/b.jpg", good + "more");
  EXPECT_EQ(image_folder_error(options), "") << "bytes behind an image harm nothing";
  fs::remove(folder.path() / "train/cat/b.jpg");
  const std::string png = read_file(images_by_pil().path() / "train/dog/plain.png");
  write("train/cat/c.png", png);
  EXPECT_EQ(image_folder_error(options), "");
  write("train/cat/c.png", png.substr(0, png.size() - 1));
  EXPECT_THROW(ImageFolder{options}, DataError);
  EXPECT_NE(image_folder_error(options).find("c.png"), std::string::npos);
  options.check_ends = false;
  EXPECT_NO_THROW(ImageFolder{options});
  fs::remove(folder.path() / "train/cat/c.png");
  write("train/cat/b.jpg", "<html>404</html>");
  options.check_files = true;
  EXPECT_THROW(ImageFolder{options}, DataError) << "before the first batch";
  EXPECT_NE(image_folder_error(options).find("b.jpg: neither"), std::string::npos);
  write("train/cat/b.jpg", "");
  EXPECT_NE(image_folder_error(options).find("b.jpg: is empty"), std::string::npos);
  options.std = {1};
  EXPECT_NE(image_folder_error(options).find("3 values"), std::string::npos);
}

}  // namespace assay
