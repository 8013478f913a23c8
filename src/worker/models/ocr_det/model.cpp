#include "models/ocr_det/model.h"

#include "base/error.h"
#include "base/text.h"
#include "models/ocr_det/loss.h"

namespace assay::ocr_det {

namespace {

// Places in a batch of TextImages.
enum BatchPart : size_t { kImage = 0, kFirstTarget = 1, kOutlines = 5, kStates = 6, kNumParts = 7 };

constexpr int64_t kCoarsest = 32;  // pixels that are one in the coarsest features

const torch::Tensor& part(const Batch& batch, BatchPart which) {
  ASSAY_CHECK(batch.tensors.size() == kNumParts,
              "a batch has an image, four maps, outlines and their states, as the data set text_images gives it");
  return batch.tensors[which];
}

torch::Tensor targets_of(const Batch& batch, torch::ScalarType type) {
  TensorList maps;
  for (size_t i = kFirstTarget; i < kOutlines; ++i) maps.push_back(part(batch, static_cast<BatchPart>(i)));
  return torch::stack(maps, 1).to(type);
}

// corners [M, 4, 2], states [M]: 1 text, 0 ignored, -1 none.
std::vector<TextOutline> texts_of(const torch::Tensor& corners, const torch::Tensor& states) {
  const auto corner = corners.accessor<float, 3>();
  const auto state = states.accessor<int64_t, 1>();
  std::vector<TextOutline> texts;
  for (int64_t i = 0; i < states.size(0); ++i) {
    if (state[i] < 0) continue;
    TextOutline text{.points = {}, .ignored = state[i] == 0};
    for (int64_t k = 0; k < corners.size(1); ++k) text.points.push_back({corner[i][k][0], corner[i][k][1]});
    texts.push_back(std::move(text));
  }
  return texts;
}

double between(Reader& section, const std::string& key, double fallback, double low, double high) {
  const double value = section.get_double(key, fallback);
  if (!(value >= low && value <= high)) {
    section.fail(key, "must be from " + python_float(low) + " to " + python_float(high));
  }
  return value;
}

Options read_options(Reader& section) {
  Options o;
  o.backbone.scale = between(section, "scale", o.backbone.scale, 0.05, 4);
  o.backbone.use_se = section.get_bool("use_se", o.backbone.use_se);
  o.neck_channels = section.get_int("neck_channels", o.neck_channels);
  if (o.neck_channels < 4 || o.neck_channels > 4096 || o.neck_channels % 4 != 0) {
    section.fail("neck_channels", "must be a multiple of 4 up to 4096");
  }
  o.image_size = section.get_int("image_size", o.image_size);
  if (o.image_size < kCoarsest || o.image_size > 4096 || o.image_size % kCoarsest != 0) {
    section.fail("image_size", "must be a multiple of 32 up to 4096");
  }
  return o;
}

BoxOptions read_box_options(Reader& section) {
  BoxOptions o;
  o.threshold = between(section, "threshold", o.threshold, 0, 1);
  o.box_threshold = between(section, "box_threshold", o.box_threshold, 0, 1);
  o.unclip_ratio = between(section, "unclip_ratio", o.unclip_ratio, 0, 10);
  o.min_size = between(section, "min_size", o.min_size, 0, 4096);
  o.max_candidates = section.get_int("max_candidates", o.max_candidates);
  if (o.max_candidates < 1 || o.max_candidates > 1'000'000) {
    section.fail("max_candidates", "must be from 1 to 1000000");
  }
  return o;
}

}  // namespace

std::shared_ptr<Network> TextDetection::get_model() { return std::make_shared<Detector>(options_); }

LossFunction TextDetection::get_loss_fn() { return detection_loss; }

std::vector<InputSpec> TextDetection::input_spec() const {
  return {{.name = "image", .dtype = torch::kFloat, .shape = {-1, 3, options_.image_size, options_.image_size}}};
}

std::optional<double> TextDetection::flops_per_sample() const { return kTrainFlops * multiply_adds(options_); }

Batch TextDetection::pretreating_batch(Batch batch) {
  torch::Tensor& image = batch.tensors.at(kImage);
  image = image.contiguous(torch::MemoryFormat::ChannelsLast);
  return batch;
}

torch::Tensor TextDetection::training_step(const Batch& batch) {
  const torch::Tensor maps = forward({part(batch, kImage)});
  return loss_fn()(maps, targets_of(batch, maps.scalar_type()));
}

EvalStep TextDetection::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step;
  step.output = output;
  step.loss = loss_fn()(output, targets_of(batch, output.scalar_type()));
  step.num_samples = batch.num_samples;
  const torch::Tensor maps = output.detach().select(1, kShrinkChannel).to(torch::kCPU, torch::kFloat).contiguous();
  const torch::Tensor corners = part(batch, kOutlines).to(torch::kCPU, torch::kFloat).contiguous();
  const torch::Tensor states = part(batch, kStates).to(torch::kCPU).contiguous();
  for (int64_t i = 0; i < maps.size(0); ++i) {
    const torch::Tensor map = maps[i];
    const ProbabilityMap probabilities{.values = {map.data_ptr<float>(), static_cast<size_t>(map.numel())},
                                       .height = map.size(0),
                                       .width = map.size(1)};
    const Matches found = match_boxes(texts_of(corners[i], states[i]), find_boxes(probabilities, boxes_));
    step.sums["texts"] += static_cast<double>(found.num_texts);
    step.sums["boxes"] += static_cast<double>(found.num_boxes);
    step.sums["matched"] += static_cast<double>(found.num_matched);
  }
  return step;
}

MetricValues TextDetection::validation_epoch_end(int64_t epoch, const EvalSums& sums) {
  MetricValues metrics = Module::validation_epoch_end(epoch, sums);
  const auto count = [&](const char* name) { return static_cast<int64_t>(sums.sums.at(name)); };
  const Quality quality =
      quality_of({.num_texts = count("texts"), .num_boxes = count("boxes"), .num_matched = count("matched")});
  metrics["precision"] = quality.precision;
  metrics["recall"] = quality.recall;
  metrics["hmean"] = quality.hmean;
  return metrics;
}

ModelEntry entry() {
  const Options o;
  const BoxOptions b;
  return {.name = "ocr_det",
          .summary = "PP-OCR's mobile detector of texts: MobileNetV3 and differentiable binarization",
          .options = {{"scale", o.backbone.scale, "of the widths of MobileNetV3 large"},
                      {"use_se", o.backbone.use_se, "squeeze and excitation in MobileNetV3"},
                      {"neck_channels", o.neck_channels, "channels of the feature pyramid, a multiple of 4"},
                      {"image_size", o.image_size, "height and width that the export declares, a multiple of 32"},
                      {"threshold", b.threshold, "probability above which a pixel belongs to a text"},
                      {"box_threshold", b.box_threshold, "mean probability of a text, at least"},
                      {"unclip_ratio", b.unclip_ratio, "boxes grow by area * ratio / perimeter"},
                      {"min_size", b.min_size, "pixels of a box's shorter side, at least"},
                      {"max_candidates", b.max_candidates, "regions of an image that are looked at"}},
          .make = [](Reader& section) {
            const Options options = read_options(section);
            const BoxOptions boxes = read_box_options(section);
            section.finish();
            return std::make_unique<TextDetection>(options, boxes);
          }};
}

}  // namespace assay::ocr_det
