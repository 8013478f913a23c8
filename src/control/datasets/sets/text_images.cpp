// Pictures of English and Chinese texts with the outline of each, drawn from a seed.
#include <fmt/format.h>

#include "datasets/image_tool.h"
#include "datasets/sets/sets.h"

namespace assay {

namespace {

constexpr int kTrain = 2000;
constexpr int kTest = 300;
constexpr int kTextImagesSeed = 1;
constexpr const char* kDejaVu = "usr/share/fonts/truetype/dejavu/";
constexpr const char* kNoto = "usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc";

Json draw_texts(const Conversion& conversion) {
  std::vector<std::string> arguments = {"text"};
  for (const char* name : {"DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf", "DejaVuSansMono.ttf"}) {
    arguments.insert(arguments.end(), {"--font", (conversion.inputs[0] / kDejaVu / name).string()});
  }
  arguments.insert(arguments.end(), {"--font", (conversion.inputs[1] / kNoto).string()});
  arguments.insert(arguments.end(), {"--train", fmt::to_string(kTrain), "--test", fmt::to_string(kTest), "--seed",
                                     fmt::to_string(kTextImagesSeed)});
  run_image_tool(std::move(arguments), conversion);
  return {{"train", kTrain}, {"test", kTest}, {"width", 320}, {"height", 320}};
}

}  // namespace

DataSet text_images_set() {
  const std::string dejavu = kDejaVu;
  return {
      .name = "text-images",
      .summary = "2,300 drawn pictures of English and Chinese texts, 320x320, with outlines",
      .licence = "Apache-2.0",
      .layout = "text images",
      .sources =
          {{.kind = Source::Kind::Debian,
            .package = "fonts-dejavu-core",
            .version = "2.37-6",
            .files =
                {{dejavu + "DejaVuSans.ttf", "abdc775b21b1bc470d50c97e790d276f2054b7504e56e5bd3e64f48d68582322"},
                 {dejavu + "DejaVuSans-Bold.ttf", "0d977336a6d5fba34eab8e3199eb218327161b5143749f802982c2bc34df0c96"},
                 {dejavu + "DejaVuSerif.ttf", "13e61509f5c81d7c3132810f4f903e3523df89c802bf6e0674621e8f659cdfe1"},
                 {dejavu + "DejaVuSansMono.ttf", "0f5db4f1749979d961019838b160bec74abdf7f9eca69553fe1aa856bbff49a4"}}},
           {.kind = Source::Kind::Debian,
            .package = "fonts-noto-cjk",
            .version = "1:20220127+repack1-1",
            .files = {{kNoto, "b76b0433203017ca80401b2ee0dd69350349871c4b19d504c34dbdd80541690a"}}}},
      .convert = draw_texts};
}

}  // namespace assay
