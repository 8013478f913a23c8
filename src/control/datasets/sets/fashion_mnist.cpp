// Fashion-MNIST: 28x28 pictures of clothes, ten classes.
#include "datasets/sets/idx_files.h"
#include "datasets/sets/sets.h"

namespace assay {

DataSet fashion_mnist_set() {
  const std::string folder = "usr/share/datasets/fashion-mnist/";
  return {.name = "fashion-mnist",
          .summary = "70,000 grey pictures of clothes, 28x28, ten classes",
          .licence = "MIT",
          .layout = "idx",
          .sources = {{.kind = Source::Kind::Debian,
                       .package = "dataset-fashion-mnist",
                       .version = "0.0~git20200523.55506a9-1",
                       .files = {{folder + "train-images-idx3-ubyte.gz",
                                  "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7"},
                                 {folder + "train-labels-idx1-ubyte.gz",
                                  "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056"},
                                 {folder + "t10k-images-idx3-ubyte.gz",
                                  "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa"},
                                 {folder + "t10k-labels-idx1-ubyte.gz",
                                  "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05"}}}},
          .convert = [folder](const Conversion& c) { return copy_idx_files(c.inputs[0] / folder, ".gz", c); }};
}

}  // namespace assay
