#include "data/text_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "data/image_file.h"
#include "data/random.h"
#include "data/resample.h"

namespace assay {

namespace {

constexpr int64_t kMaxSide = 4096;

// -1 .. 1
double signed_random(KeyedRandom& random) { return static_cast<double>(random.next() >> 11) * 0x1p-52 - 1; }

}  // namespace

std::filesystem::path TextImages::label_file(const Options& options) {
  return options.folder / (options.split + ".txt");
}

TextImages::TextImages(const Options& options) : options_(options) {
  check_options();
  const fs::path file = label_file(options);
  const std::string text = read_file(file);
  labels_ = parse_text_labels(text, file.string());
  if (options_.limit >= 0 && options_.limit < size()) labels_.resize(static_cast<size_t>(options_.limit));
  if (labels_.empty()) throw DataError(fmt::format("{}: no images in it", file.string()));
  Sha256 hash;
  hash.update(text);
  for (const TextLabels& labels : labels_) {
    if (static_cast<int64_t>(labels.texts.size()) > options_.max_texts) {
      throw DataError(fmt::format("{}: {} has {} texts; max_texts is {}", file.string(), labels.path,
                                  labels.texts.size(), options_.max_texts));
    }
    try {
      const uintmax_t bytes = check_image_file(options_.folder / labels.path);
      hash.update(fmt::format("{} {}\n", labels.path, bytes));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", file.string(), error.what()));
    }
  }
  hash_ = hash.hex();
}

void TextImages::check_options() const {
  const auto refuse = [](const std::string& what) { throw ConfigError("text images: " + what); };
  const TextTargetOptions& t = options_.targets;
  if (t.height < 8 || t.height > kMaxSide || t.width < 8 || t.width > kMaxSide) {
    refuse(fmt::format("height and width must be from 8 to {}", kMaxSide));
  }
  if (!(t.shrink_ratio > 0 && t.shrink_ratio < 1)) refuse("shrink_ratio must be between 0 and 1");
  if (!(t.threshold_min >= 0 && t.threshold_min < t.threshold_max && t.threshold_max <= 1)) {
    refuse("threshold_min must be below threshold_max, both in 0..1");
  }
  if (options_.max_texts < 1 || options_.max_texts > 10'000) refuse("max_texts must be from 1 to 10000");
  if (!(options_.min_area > 0 && options_.min_area <= 1)) refuse("min_area must be above 0, and at most 1");
  if (!(options_.max_jitter >= 0 && options_.max_jitter < 1)) refuse("max_jitter must be from 0 to below 1");
  if (options_.mean.size() != 3 || options_.std.size() != 3) refuse("mean and std need 3 values each");
  for (const double value : options_.std) {
    if (!(value > 0)) refuse("std must be positive");
  }
}

TextImages::View TextImages::view_of(const Image& image, int64_t index, int64_t epoch) const {
  const double width = image.width();
  const double height = image.height();
  View view{.box = {.left = 0, .top = 0, .right = width, .bottom = height}};
  if (!options_.augment) return view;
  KeyedRandom random(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  const double area = 1 - (1 - options_.min_area) * (signed_random(random) + 1) / 2;
  const double scale = std::sqrt(area);
  view.box.left = width * (1 - scale) * (signed_random(random) + 1) / 2;
  view.box.top = height * (1 - scale) * (signed_random(random) + 1) / 2;
  view.box.right = view.box.left + width * scale;
  view.box.bottom = view.box.top + height * scale;
  view.brightness = options_.max_jitter * signed_random(random);
  view.contrast = 1 + options_.max_jitter * signed_random(random);
  return view;
}

void TextImages::write_image(const Pixels& pixels, const View& view, float* out) const {
  const int64_t h = options_.targets.height;
  const int64_t w = options_.targets.width;
  const std::vector<uint8_t> rgb =
      resample(pixels, view.box, {.width = static_cast<int>(w), .height = static_cast<int>(h)});
  for (int64_t c = 0; c < 3; ++c) {
    std::array<float, 256> table{};
    for (int value = 0; value < 256; ++value) {
      const double changed = std::clamp((value / 255.0 - 0.5) * view.contrast + 0.5 + view.brightness, 0.0, 1.0);
      const auto channel = static_cast<size_t>(c);
      table[static_cast<size_t>(value)] =
          static_cast<float>((changed - options_.mean[channel]) / options_.std[channel]);
    }
    for (int64_t i = 0; i < h * w; ++i) out[c * h * w + i] = table[rgb[static_cast<size_t>(i * 3 + c)]];
  }
}

std::vector<TextOutline> TextImages::visible_texts(const TextLabels& labels, const View& view) const {
  const auto w = static_cast<double>(options_.targets.width);
  const auto h = static_cast<double>(options_.targets.height);
  std::vector<TextOutline> visible;
  for (TextOutline text : labels.texts) {
    size_t left = 0, right = 0, above = 0, below = 0;
    for (TextPoint& p : text.points) {
      p.x = (p.x - view.box.left) * w / view.box.width();
      p.y = (p.y - view.box.top) * h / view.box.height();
      // Labels that stand a little over the edge of their image are common, and whole.
      left += p.x < -1 ? 1 : 0;
      right += p.x > w + 1 ? 1 : 0;
      above += p.y < -1 ? 1 : 0;
      below += p.y > h + 1 ? 1 : 0;
    }
    const size_t all = text.points.size();
    if (left == all || right == all || above == all || below == all) continue;
    if (left + right + above + below > 0) text.ignored = true;
    visible.push_back(std::move(text));
  }
  return visible;
}

void TextImages::write_outlines(const std::vector<TextOutline>& texts, float* corners, int64_t* states) const {
  std::fill(corners, corners + options_.max_texts * 8, 0.0F);
  std::fill(states, states + options_.max_texts, int64_t{-1});
  for (size_t i = 0; i < texts.size(); ++i) {
    states[i] = texts[i].ignored ? 0 : 1;
    std::vector<TextPoint> points = texts[i].points;
    if (points.size() != 4) {
      const auto by_x = [](const TextPoint& a, const TextPoint& b) { return a.x < b.x; };
      const auto by_y = [](const TextPoint& a, const TextPoint& b) { return a.y < b.y; };
      const auto [left, right] = std::minmax_element(points.begin(), points.end(), by_x);
      const auto [top, bottom] = std::minmax_element(points.begin(), points.end(), by_y);
      points = {{left->x, top->y}, {right->x, top->y}, {right->x, bottom->y}, {left->x, bottom->y}};
    }
    for (size_t k = 0; k < 4; ++k) {
      corners[i * 8 + k * 2] = static_cast<float>(points[k].x);
      corners[i * 8 + k * 2 + 1] = static_cast<float>(points[k].y);
    }
  }
}

Batch TextImages::gather(std::span<const int64_t> indices, int64_t epoch) const {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t h = options_.targets.height;
  const int64_t w = options_.targets.width;
  torch::Tensor images = torch::empty({count, 3, h, w}, torch::kFloat);
  std::array<torch::Tensor, 4> maps;
  for (torch::Tensor& map : maps) map = torch::empty({count, h, w}, torch::kFloat);
  torch::Tensor outlines = torch::empty({count, options_.max_texts, 4, 2}, torch::kFloat);
  torch::Tensor states = torch::empty({count, options_.max_texts}, torch::kLong);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    ASSAY_CHECK(index >= 0 && index < size(), fmt::format("sample {} of {}", index, size()));
    const TextLabels& labels = labels_[static_cast<size_t>(index)];
    const fs::path path = options_.folder / labels.path;
    const std::string bytes = read_file(path);
    const Image image(bytes, path.string());
    const View view = view_of(image, index, epoch);
    write_image(image.read(), view, images.data_ptr<float>() + i * 3 * h * w);
    std::vector<TextOutline> texts = visible_texts(labels, view);
    const TextTargets targets = make_text_targets(texts, options_.targets);
    const std::array<const std::vector<float>*, 4> drawn = {&targets.shrink_map, &targets.shrink_mask,
                                                            &targets.threshold_map, &targets.threshold_mask};
    for (size_t m = 0; m < maps.size(); ++m) {
      std::copy(drawn[m]->begin(), drawn[m]->end(), maps[m].data_ptr<float>() + i * h * w);
    }
    write_outlines(texts, outlines.data_ptr<float>() + i * options_.max_texts * 8,
                   states.data_ptr<int64_t>() + i * options_.max_texts);
  }
  return {{images, maps[0], maps[1], maps[2], maps[3], outlines, states}, count};
}

std::shared_ptr<const Dataset> make_text_images(const DatasetRequest& request, Reader& section) {
  TextImages::Options o;
  o.folder = request.folder(section, "train.txt and test.txt");
  o.split = section.get_string("split", o.split);
  o.limit = section.get_int("limit", o.limit);
  o.max_texts = section.get_int("max_texts", o.max_texts);
  o.augment = section.get_bool("augment", o.split == "train");
  o.min_area = section.get_double("min_area", o.min_area);
  o.max_jitter = section.get_double("max_jitter", o.max_jitter);
  o.mean = section.get_doubles("mean", o.mean);
  o.std = section.get_doubles("std", o.std);
  o.targets.height = section.get_int("height", o.targets.height);
  o.targets.width = section.get_int("width", o.targets.width);
  o.targets.shrink_ratio = section.get_double("shrink_ratio", o.targets.shrink_ratio);
  o.targets.min_text_size = section.get_double("min_text_size", o.targets.min_text_size);
  o.targets.threshold_min = section.get_double("threshold_min", o.targets.threshold_min);
  o.targets.threshold_max = section.get_double("threshold_max", o.targets.threshold_max);
  o.seed = request.seed;
  section.finish();
  request.check_files({TextImages::label_file(o)});
  return std::make_shared<TextImages>(o);
}

}  // namespace assay
