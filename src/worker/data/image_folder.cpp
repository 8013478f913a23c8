#include "data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/image_file.h"
#include "data/random.h"
#include "data/resample.h"

namespace assay {

namespace {

bool is_image_name(const fs::path& path) {
  const std::string extension = lower(path.extension().string());
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

std::vector<std::string> sorted_names(const fs::path& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || it->is_directory() != folders) continue;
    if (folders || is_image_name(it->path())) names.push_back(name);
  }
  if (error) throw DataError(fmt::format("{}: cannot be read: {}", folder.string(), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

double unit_random(KeyedRandom& random) { return static_cast<double>(random.next() >> 11) * 0x1p-53; }

}  // namespace

ImageFolder::ImageFolder(const Options& options) : options_(options) {
  check_options();
  find_classes();
  find_samples();
  if (options_.check_files) check_headers();
  for (size_t c = 0; c < static_cast<size_t>(options_.channels); ++c) {
    std::array<float, 256> table{};
    for (int value = 0; value < 256; ++value) {
      table[static_cast<size_t>(value)] = static_cast<float>((value / 255.0 - options_.mean[c]) / options_.std[c]);
    }
    normalised_.push_back(table);
  }
}

void ImageFolder::check_options() const {
  const auto refuse = [](const std::string& what) { throw ConfigError("image folder: " + what); };
  if (options_.channels != 1 && options_.channels != 3) refuse("channels must be 1 or 3");
  const auto channels = static_cast<size_t>(options_.channels);
  if (options_.mean.size() != channels || options_.std.size() != channels) {
    refuse(fmt::format("mean and std need {} values each", channels));
  }
  for (const double value : options_.std) {
    if (!(value > 0)) refuse("std must be positive");
  }
  if (options_.image_size < 1 || options_.image_size > 8192) refuse("image_size must be from 1 to 8192");
  if (options_.resize < options_.image_size || options_.resize > 8192) {
    refuse("resize must be from image_size to 8192");
  }
  if (!(options_.min_area > 0 && options_.min_area <= 1)) refuse("min_area must be above 0, and at most 1");
  if (!(options_.max_ratio >= 1 && options_.max_ratio <= 100)) refuse("max_ratio must be from 1 to 100");
}

// The classes of the training data have the labels 0, 1, ... in the order of their names, for every part.
void ImageFolder::find_classes() {
  const fs::path split_folder = options_.folder / options_.split;
  if (!fs::is_directory(split_folder)) {
    throw DataError(
        fmt::format("{}: no such folder; an image folder has <split>/<class>/<images>", split_folder.string()));
  }
  const fs::path train = options_.folder / "train";
  classes_ = sorted_names(fs::is_directory(train) ? train : split_folder, /*folders=*/true);
  if (classes_.empty())
    throw DataError(fmt::format("{}: has no folders; one per class is needed", split_folder.string()));
  const auto num_classes = static_cast<int64_t>(classes_.size());
  if (options_.num_classes > 0 && options_.num_classes != num_classes) {
    throw DataError(fmt::format("{}: has {} classes, the case says {}", options_.folder.string(), num_classes,
                                options_.num_classes));
  }
}

void ImageFolder::find_samples() {
  const fs::path split = options_.folder / options_.split;
  Sha256 hash;
  for (const std::string& name : sorted_names(split, /*folders=*/true)) {
    const auto position = std::lower_bound(classes_.begin(), classes_.end(), name);
    if (position == classes_.end() || *position != name) {
      throw DataError(fmt::format("{}: no such class in the training data", (split / name).string()));
    }
    for (const std::string& file : sorted_names(split / name, /*folders=*/false)) {
      samples_.push_back({(fs::path(options_.split) / name / file).string(), position - classes_.begin()});
    }
  }
  if (options_.limit >= 0 && options_.limit < size()) samples_.resize(static_cast<size_t>(options_.limit));
  if (samples_.empty()) throw DataError(fmt::format("{}: no images (.jpg, .jpeg, .png) in it", split.string()));
  for (const Sample& sample : samples_) {
    const fs::path path = options_.folder / sample.path;
    std::error_code error;
    const uintmax_t bytes = options_.check_ends ? check_image_file(path) : fs::file_size(path, error);
    if (error || bytes == 0) {
      throw DataError(fmt::format("{}: {}", path.string(), error ? error.message() : std::string("is empty")));
    }
    hash.update(fmt::format("{} {}\n", sample.path, bytes));
  }
  hash_ = hash.hex();
}

void ImageFolder::check_headers() const {
  for (const Sample& sample : samples_) {
    const fs::path path = options_.folder / sample.path;
    const std::string bytes = read_file(path);
    Image(bytes, path.string());
  }
}

Batch ImageFolder::gather(std::span<const int64_t> indices, int64_t epoch) const {
  const auto count = static_cast<int64_t>(indices.size());
  const int64_t s = options_.image_size;
  torch::Tensor images = torch::empty({count, options_.channels, s, s}, torch::kFloat);
  torch::Tensor labels = torch::empty({count}, torch::kLong);
  auto* image_out = images.data_ptr<float>();
  auto* label_out = labels.data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t index = indices[static_cast<size_t>(i)];
    ASSAY_CHECK(index >= 0 && index < size(), fmt::format("sample {} of {}", index, size()));
    write_image(index, epoch, image_out + i * options_.channels * s * s);
    label_out[i] = samples_[static_cast<size_t>(index)].label;
  }
  return {{images, labels}, count};
}

// Where the image, its shorter side made `resize`, has `image_size` pixels in its middle. In whole pixels of the
// resized image, so that the result is that of resizing first and cutting then.
ImageFolder::View ImageFolder::centre_of(const Image& image) const {
  const int64_t shorter = std::min(image.width(), image.height());
  const int64_t wide = options_.resize * image.width() / shorter;
  const int64_t high = options_.resize * image.height() / shorter;
  const double scale_x = static_cast<double>(image.width()) / static_cast<double>(wide);
  const double scale_y = static_cast<double>(image.height()) / static_cast<double>(high);
  const double left = std::round(static_cast<double>(wide - options_.image_size) / 2.0);
  const double top = std::round(static_cast<double>(high - options_.image_size) / 2.0);
  const auto size = static_cast<double>(options_.image_size);
  return {.box = {.left = left * scale_x,
                  .top = top * scale_y,
                  .right = (left + size) * scale_x,
                  .bottom = (top + size) * scale_y}};
}

// A part of random area and shape that fits; after ten tries the largest in the middle that is allowed.
ImageFolder::View ImageFolder::view_of(const Image& image, int64_t index, int64_t epoch) const {
  if (!options_.augment) return centre_of(image);
  KeyedRandom random(options_.seed, static_cast<uint64_t>(epoch), static_cast<uint64_t>(index));
  const double full_width = image.width();
  const double full_height = image.height();
  const double log_ratio = std::log(options_.max_ratio);
  View view;
  view.mirror = options_.flip && random.below(2) == 1;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double area = full_width * full_height * (options_.min_area + (1 - options_.min_area) * unit_random(random));
    const double ratio = std::exp(log_ratio * (2 * unit_random(random) - 1));
    const double width = std::round(std::sqrt(area * ratio));
    const double height = std::round(std::sqrt(area / ratio));
    if (width < 1 || height < 1 || width > full_width || height > full_height) continue;
    view.box.left = static_cast<double>(random.below(static_cast<uint64_t>(full_width - width) + 1));
    view.box.top = static_cast<double>(random.below(static_cast<uint64_t>(full_height - height) + 1));
    view.box.right = view.box.left + width;
    view.box.bottom = view.box.top + height;
    return view;
  }
  const double width = std::min(full_width, std::round(full_height * options_.max_ratio));
  const double height = std::min(full_height, std::round(full_width * options_.max_ratio));
  view.box.left = std::floor((full_width - width) / 2);
  view.box.top = std::floor((full_height - height) / 2);
  view.box.right = view.box.left + width;
  view.box.bottom = view.box.top + height;
  return view;
}

void ImageFolder::write_image(int64_t index, int64_t epoch, float* out) const {
  const fs::path path = options_.folder / samples_[static_cast<size_t>(index)].path;
  const std::string bytes = read_file(path);
  const Image image(bytes, path.string());
  const View view = view_of(image, index, epoch);
  const auto s = static_cast<int>(options_.image_size);
  // Without fast_decode the margin still has to hold the filter.
  const int shrink = static_cast<int>(std::min(view.box.width(), view.box.height()) / s);
  const Pixels pixels = options_.fast_decode ? image.read(view.box, shrink) : image.read();
  const std::vector<uint8_t> rgb = resample(pixels, view.box, {.width = s, .height = s});
  const size_t plane = static_cast<size_t>(s) * static_cast<size_t>(s);
  for (int y = 0; y < s; ++y) {
    for (int x = 0; x < s; ++x) {
      const int from = view.mirror ? s - 1 - x : x;
      const uint8_t* pixel =
          rgb.data() + (static_cast<size_t>(y) * static_cast<size_t>(s) + static_cast<size_t>(from)) * 3;
      const size_t to = static_cast<size_t>(y) * static_cast<size_t>(s) + static_cast<size_t>(x);
      if (options_.channels == 1) {
        // Luma of ITU-R BT.601, as PIL's conversion to grey.
        const int grey = (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16;
        out[to] = normalised_[0][static_cast<size_t>(grey)];
        continue;
      }
      for (size_t c = 0; c < 3; ++c) out[c * plane + to] = normalised_[c][pixel[c]];
    }
  }
}

std::shared_ptr<const Dataset> make_image_folder(const DatasetRequest& request, Reader& section) {
  ImageFolder::Options o;
  o.folder = request.folder(section, "<split>/<class>/<images>");
  o.split = section.get_string("split", o.split);
  o.num_classes = section.get_int("num_classes", o.num_classes);
  o.limit = section.get_int("limit", o.limit);
  o.image_size = section.get_int("image_size", o.image_size);
  o.resize = section.get_int("resize", std::max(o.image_size, o.image_size * 8 / 7));
  o.channels = section.get_int("channels", o.channels);
  o.augment = section.get_bool("augment", o.split == "train");
  o.flip = section.get_bool("flip", o.flip);
  o.min_area = section.get_double("min_area", o.min_area);
  o.max_ratio = section.get_double("max_ratio", o.max_ratio);
  if (o.channels == 1) {
    o.mean = {0.0};
    o.std = {1.0};
  }
  o.mean = section.get_doubles("mean", o.mean);
  o.std = section.get_doubles("std", o.std);
  o.fast_decode = section.get_bool("fast_decode", o.fast_decode);
  o.check_ends = section.get_bool("check_ends", o.check_ends);
  o.check_files = section.get_bool("check_files", o.check_files);
  o.seed = request.seed;
  section.finish();
  return std::make_shared<ImageFolder>(o);
}

}  // namespace assay
