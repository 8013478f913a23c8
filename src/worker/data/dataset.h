// What a loader reads from: samples with numbers, gathered into batches. Knows no order and no threads.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace assay {

struct Batch {
  std::vector<torch::Tensor> tensors;  // for images: {image [B,C,H,W] float, label [B] int64}
  int64_t num_samples = 0;
  std::optional<double> text_bytes = std::nullopt;  // of language models: bytes of text that the labels stand for
  // Samples of the same batch on all processes that share it; 0: this one has all. A process may have none of a last
  // batch: num_samples is 0 then, and the tensors have one sample that does not count.
  int64_t num_samples_of_all = 0;
  int64_t whole_size() const { return num_samples_of_all > 0 ? num_samples_of_all : num_samples; }
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // Called from several threads at once. `epoch` decides the augmentation. The result depends on the arguments only,
  // and the work stays on the calling thread.
  virtual Batch gather(std::span<const int64_t> indices, int64_t epoch) const = 0;
  // SHA-256 over the files it was read from.
  virtual std::string hash() const = 0;
};

}  // namespace assay
