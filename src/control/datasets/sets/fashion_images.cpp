// Part of Fashion-MNIST as files in folders, one a class: real pictures for the reader of image folders.
#include <fmt/format.h>

#include "datasets/image_tool.h"
#include "datasets/sets/sets.h"

namespace assay {

namespace {

constexpr int kTrainAClass = 1000;
constexpr int kTestAClass = 200;

Json draw_fashion(const Conversion& conversion) {
  run_image_tool({"fashion", "--idx", (conversion.inputs[0] / "usr/share/datasets/fashion-mnist").string(), "--train",
                  fmt::to_string(kTrainAClass), "--test", fmt::to_string(kTestAClass)},
                 conversion);
  return {{"train", kTrainAClass * 10}, {"test", kTestAClass * 10}, {"classes", 10}};
}

}  // namespace

DataSet fashion_images_set() {
  DataSet set = fashion_mnist_set();
  set.name = "fashion-images";
  set.summary = "12,000 pictures of Fashion-MNIST as PNG and JPEG files, in a folder a class";
  set.layout = "image folder";
  set.convert = draw_fashion;
  return set;
}

}  // namespace assay
