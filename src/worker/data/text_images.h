// Images with texts in them and the outlines of those texts, for text detection.
//
// Shapes: B batch, H height, W width, M max_texts.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>

#include "data/dataset.h"
#include "data/dataset_request.h"
#include "data/image.h"
#include "data/text_labels.h"
#include "data/text_targets.h"

namespace assay {

class TextImages final : public Dataset {
 public:
  struct Options {
    std::filesystem::path folder;  // holds <split>.txt, whose paths are relative to it
    std::string split = "train";
    int64_t limit = -1;        // only the first so many; -1: all
    int64_t max_texts = 64;    // outlines an image has room for; more are an error
    bool augment = false;      // a random part of the image, other brightness and contrast
    double min_area = 0.5;     // with augment: smallest part of the image's area
    double max_jitter = 0.25;  // with augment: brightness and contrast change by at most so much
    std::vector<double> mean = {0.485, 0.456, 0.406};  // of pixels in 0..1, a channel each
    std::vector<double> std = {0.229, 0.224, 0.225};
    TextTargetOptions targets = {.height = 320, .width = 320};
    uint64_t seed = 0;  // of the augmentation
  };

  static std::filesystem::path label_file(const Options& options);
  // Reads the labels and looks for every image. Throws DataError naming file and line.
  explicit TextImages(const Options& options);

  int64_t size() const override { return static_cast<int64_t>(labels_.size()); }
  // {image [B,3,H,W], shrink_map [B,H,W], shrink_mask [B,H,W], threshold_map [B,H,W], threshold_mask [B,H,W] float,
  //  outlines [B,M,4,2] float: corners in pixels of the image, outline_state [B,M] int64: 1 text, 0 ignored, -1 none}.
  // An outline of other than four points is given by the corners of the rectangle around it.
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  // Of the label file, and paths and sizes of the images.
  std::string hash() const override { return hash_; }

 private:
  // What is made of an image.
  struct View {
    ImageBox box;
    double brightness = 0;  // added, of 1
    double contrast = 1;    // multiplied, around the middle grey
  };
  void check_options() const;
  View view_of(const Image& image, int64_t index, int64_t epoch) const;
  void write_image(const Pixels& pixels, const View& view, float* out) const;
  // The outlines as the view shows them; those outside are left out, those cut through are ignored.
  std::vector<TextOutline> visible_texts(const TextLabels& labels, const View& view) const;
  void write_outlines(const std::vector<TextOutline>& texts, float* corners, int64_t* states) const;

  // Constant after construction.
  Options options_;
  std::vector<TextLabels> labels_;
  std::string hash_;
};

// From the keys of a case's dataset section, see docs/guide/data.md. `check_files` throws when a file is not the one
// that the case declares.
std::shared_ptr<const Dataset> make_text_images(const DatasetRequest& request, Reader& section);

}  // namespace assay
