#include "data/image_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"
#include "data/random.h"

namespace assay {

namespace fs = std::filesystem;

std::vector<fs::path> ImageDataset::files(const Options& options) {
  if (options.split != "train" && options.split != "test") {
    throw ConfigError(fmt::format("dataset split '{}': must be train or test", options.split));
  }
  if (!fs::is_directory(options.folder)) {
    throw DataError(
        fmt::format("{}: no such folder. Fashion-MNIST comes with the Debian package dataset-fashion-mnist; "
                    "another copy is chosen by data.path",
                    options.folder.string()));
  }
  const std::string prefix = options.split == "train" ? "train" : "t10k";
  const auto find = [&](const std::string& stem) {
    const fs::path plain = options.folder / (prefix + stem);
    return fs::exists(plain) ? plain : fs::path(plain.string() + ".gz");
  };
  return {find("-images-idx3-ubyte"), find("-labels-idx1-ubyte")};
}

ImageDataset::ImageDataset(const Options& options) : options_(options) {
  const std::vector<fs::path> paths = files(options);
  adopt(read_idx(paths[0]), read_idx(paths[1]), paths[0].string(), paths[1].string());
}

ImageDataset::ImageDataset(const Options& options, IdxArray images, IdxArray labels, const std::string& name)
    : options_(options) {
  adopt(std::move(images), std::move(labels), name, name);
}

void ImageDataset::adopt(IdxArray images, IdxArray labels, const std::string& images_name,
                         const std::string& labels_name) {
  if (images.shape.size() != 3) {
    throw DataError(fmt::format("{}: has {} dimensions, images have 3", images_name, images.shape.size()));
  }
  if (labels.shape.size() != 1) {
    throw DataError(fmt::format("{}: has {} dimensions, labels have 1", labels_name, labels.shape.size()));
  }
  if (images.shape[0] != labels.shape[0]) {
    throw DataError(fmt::format("{} has {} images, but {} has {} labels", images_name, images.shape[0], labels_name,
                                labels.shape[0]));
  }
  const auto wrong = std::find_if(labels.bytes.begin(), labels.bytes.end(),
                                  [&](uint8_t label) { return label >= options_.num_classes; });
  if (wrong != labels.bytes.end()) {
    throw DataError(fmt::format("{}: sample {} has label {}, but there are {} classes", labels_name,
                                wrong - labels.bytes.begin(), *wrong, options_.num_classes));
  }
  if (!(options_.std > 0)) throw ConfigError(fmt::format("dataset std {}: must be positive", options_.std));
  num_samples_ = images.shape[0];
  if (options_.limit >= 0) num_samples_ = std::min(num_samples_, options_.limit);
  if (num_samples_ == 0) throw DataError(fmt::format("{}: no samples are left", images_name));
  height_ = images.shape[1];
  width_ = images.shape[2];
  if (options_.crop_padding < 0 || options_.crop_padding >= std::min(height_, width_)) {
    throw ConfigError(fmt::format("dataset crop_padding {}: must be from 0 to less than the image's {} pixels",
                                  options_.crop_padding, std::min(height_, width_)));
  }
  pixels_ = std::move(images.bytes);
  labels_ = std::move(labels.bytes);
  for (int value = 0; value < 256; ++value) {
    normalised_[value] = static_cast<float>((value / 255.0 - options_.mean) / options_.std);
  }
  hash_ = Sha256().update(pixels_.data(), pixels_.size()).update(labels_.data(), labels_.size()).hex();
}

Batch ImageDataset::gather(std::span<const int64_t> indices, int64_t epoch) const {
  const auto count = static_cast<int64_t>(indices.size());
  torch::Tensor images = torch::empty({count, 1, height_, width_}, torch::kFloat);
  torch::Tensor labels = torch::empty({count}, torch::kLong);
  auto* image_out = images.data_ptr<float>();
  auto* label_out = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    ASSAY_CHECK(index >= 0 && index < num_samples_, fmt::format("sample {} of {}", index, num_samples_));
    write_image(index, epoch, image_out + i * height_ * width_);
    label_out[i] = labels_[static_cast<size_t>(index)];
  }
  return {{images, labels}, count};
}

void ImageDataset::write_image(int64_t index, int64_t epoch, float* out) const {
  const uint8_t* image = pixels_.data() + index * height_ * width_;
  int64_t shift_y = 0;
  int64_t shift_x = 0;
  bool mirror = false;
  if (options_.crop_padding > 0 || options_.flip) {
    KeyedRandom random(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
    const auto range = static_cast<uint64_t>(2 * options_.crop_padding + 1);
    shift_y = static_cast<int64_t>(random.below(range)) - options_.crop_padding;
    shift_x = static_cast<int64_t>(random.below(range)) - options_.crop_padding;
    mirror = options_.flip && random.below(2) == 1;
  }
  if (shift_y == 0 && shift_x == 0 && !mirror) {
    for (int64_t i = 0; i < height_ * width_; ++i) out[i] = normalised_[image[i]];
    return;
  }
  for (int64_t y = 0; y < height_; ++y) {
    const int64_t from_y = y + shift_y;
    for (int64_t x = 0; x < width_; ++x) {
      const int64_t from_x = (mirror ? width_ - 1 - x : x) + shift_x;
      const bool inside = from_y >= 0 && from_y < height_ && from_x >= 0 && from_x < width_;
      out[y * width_ + x] = normalised_[inside ? image[from_y * width_ + from_x] : 0];
    }
  }
}

std::shared_ptr<const Dataset> make_idx_images(const DatasetRequest& request, Reader& section) {
  ImageDataset::Options options;
  options.folder = request.folder(section, "the idx files");
  options.split = section.get_choice("split", {"train", "test"}, "train");
  options.num_classes = section.get_int("num_classes", options.num_classes);
  options.limit = section.get_int("limit", options.limit);
  options.mean = section.get_double("mean", options.mean);
  options.std = section.get_double("std", options.std);
  options.crop_padding = section.get_int("crop_padding", options.crop_padding);
  options.flip = section.get_bool("flip", options.flip);
  options.seed = request.seed;
  section.finish();
  request.check_files(ImageDataset::files(options));
  return std::make_shared<ImageDataset>(options);
}

}  // namespace assay
