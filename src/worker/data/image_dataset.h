// Labelled grey or colour images of one size from a pair of idx files (MNIST, Fashion-MNIST), normalised and, for
// training, randomly shifted and mirrored.
//
// Shapes: B batch, C channels, H height, W width.
#pragma once

#include <array>
#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "data/dataset_request.h"
#include "data/idx.h"

namespace assay {

class ImageDataset final : public Dataset {
 public:
  struct Options {
    std::filesystem::path folder;  // holds <split>-images-idx3-ubyte.gz and <split>-labels-idx1-ubyte.gz
    std::string split = "train";   // "train" or "test"; "test" is t10k in the file names
    int64_t num_classes = 10;      // labels beyond it are an error
    int64_t limit = -1;            // only the first so many samples; -1: all
    double mean = 0.0;             // of pixels in 0..1, subtracted
    double std = 1.0;              // of pixels in 0..1, divided by
    int64_t crop_padding = 0;      // pixels; each image is shifted by up to so many in both directions
    bool flip = false;             // mirrored left-right with probability one half
    uint64_t seed = 0;             // of the augmentation
  };

  // Which files it would read: images, labels. With or without .gz, whichever is there.
  static std::vector<std::filesystem::path> files(const Options& options);
  // Reads both files. Throws DataError naming the file.
  explicit ImageDataset(const Options& options);
  // From memory; for tests and benchmarks. `name` stands for the file in errors.
  ImageDataset(const Options& options, IdxArray images, IdxArray labels, const std::string& name);

  int64_t size() const override { return num_samples_; }
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  std::string hash() const override { return hash_; }
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

 private:
  void adopt(IdxArray images, IdxArray labels, const std::string& images_name, const std::string& labels_name);
  void write_image(int64_t index, int64_t epoch, float* out) const;

  // Constant after construction.
  Options options_;
  int64_t num_samples_ = 0;
  int64_t height_ = 0;
  int64_t width_ = 0;
  std::vector<uint8_t> pixels_;
  std::vector<uint8_t> labels_;
  std::array<float, 256> normalised_{};  // pixel value -> network input
  std::string hash_;
};

// From the keys of a case's dataset section, see docs/guide/data.md.
std::shared_ptr<const Dataset> make_idx_images(const DatasetRequest& request, Reader& section);

}  // namespace assay
