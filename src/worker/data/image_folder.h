// Labelled images in folders, one per class (the layout of ImageNet): <folder>/<split>/<class>/<image>.jpg or .png,
// of any size. For training a random part of each at a fixed size, perhaps mirrored; for evaluation the centre.
//
// Shapes: B batch, C channels, S image_size.
#pragma once

#include <array>
#include <filesystem>
#include <memory>

#include "data/dataset.h"
#include "data/dataset_request.h"
#include "data/image.h"

namespace assay {

class ImageFolder final : public Dataset {
 public:
  struct Options {
    std::filesystem::path folder;
    std::string split = "train";  // the folder of classes in it
    int64_t num_classes = 0;      // how many there must be; 0: as many as there are
    int64_t limit = -1;           // only the first so many samples; -1: all
    int64_t image_size = 224;     // pixels, both ways, of what the network sees
    int64_t resize = 256;         // without augment: the shorter side, before the centre is cut out
    int64_t channels = 3;         // 3, or 1 for grey
    bool augment = false;         // random part and size
    bool flip = true;             // with augment: mirrored left-right with probability one half
    double min_area = 0.08;       // with augment: smallest part of the image's area
    double max_ratio = 4.0 / 3;   // with augment: largest width over height of the part, and height over width
    std::vector<double> mean = {0.485, 0.456, 0.406};  // of pixels in 0..1, a channel each
    std::vector<double> std = {0.229, 0.224, 0.225};
    bool fast_decode = true;   // JPEGs are decoded at a fraction of their size where that is enough
    bool check_ends = true;    // every file's first and last bytes are looked at before the first batch
    bool check_files = false;  // every file's header is read before the first batch
    uint64_t seed = 0;         // of the augmentation
  };

  // Lists the files. Throws DataError naming the folder, or with check_ends or check_files the file.
  explicit ImageFolder(const Options& options);

  int64_t size() const override { return static_cast<int64_t>(samples_.size()); }
  // {image [B,C,S,S] float, label [B] int64}. A damaged file is a DataError that names it.
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  // Over paths and sizes of the files: to read all of a large data set would take hours.
  std::string hash() const override { return hash_; }
  const std::vector<std::string>& classes() const { return classes_; }  // by label

 private:
  struct Sample {
    std::string path;  // relative to the folder
    int64_t label = 0;
  };
  // Which part of an image is used.
  struct View {
    ImageBox box;
    bool mirror = false;
  };
  void check_options() const;
  void find_classes();
  void find_samples();
  void check_headers() const;
  View view_of(const Image& image, int64_t index, int64_t epoch) const;
  View centre_of(const Image& image) const;
  void write_image(int64_t index, int64_t epoch, float* out) const;

  // Constant after construction.
  Options options_;
  std::vector<std::string> classes_;
  std::vector<Sample> samples_;
  std::vector<std::array<float, 256>> normalised_;  // a channel: pixel value -> network input
  std::string hash_;
};

// From the keys of a case's dataset section, see docs/guide/data.md.
std::shared_ptr<const Dataset> make_image_folder(const DatasetRequest& request, Reader& section);

}  // namespace assay
