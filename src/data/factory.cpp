#include "data/factory.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"
#include "data/image_dataset.h"
#include "data/image_folder.h"
#include "data/ratings.h"
#include "data/text_factory.h"
#include "data/text_images.h"

namespace assay {

namespace fs = std::filesystem;

namespace {

// The case says which bytes it was measured on; other bytes make another benchmark.
void check_files(const WorkerConfig& config, const std::vector<fs::path>& files) {
  if (config.division == Division::Open) return;
  for (const fs::path& file : files) {
    const auto expected = config.data.sha256.find(file.filename().string());
    if (expected == config.data.sha256.end()) continue;
    if (sha256_file(file) != expected->second) {
      throw DataError(
          fmt::format("{}: is damaged or of another data set: its SHA-256 is not the one in case '{}'. In the "
                      "open division other data is allowed",
                      file.string(), config.case_name));
    }
  }
}

std::shared_ptr<const Dataset> make_idx_images(const WorkerConfig& config, Reader& section, uint64_t seed) {
  ImageDataset::Options options;
  const auto folder = section.get_optional_string("input_dir");
  if (!folder && !config.data.path) section.fail("input_dir", "is missing: the folder of the idx files");
  options.folder = folder ? fs::path(*folder) : *config.data.path;
  options.split = section.get_choice("split", {"train", "test"}, "train");
  options.num_classes = section.get_int("num_classes", options.num_classes);
  options.limit = section.get_int("limit", options.limit);
  options.mean = section.get_double("mean", options.mean);
  options.std = section.get_double("std", options.std);
  options.crop_padding = section.get_int("crop_padding", options.crop_padding);
  options.flip = section.get_bool("flip", options.flip);
  options.seed = seed;
  section.finish();
  check_files(config, ImageDataset::files(options));
  return std::make_shared<ImageDataset>(options);
}

std::shared_ptr<const Dataset> make_dataset(const WorkerConfig& config, const std::string& part, Reader& section,
                                            uint64_t seed) {
  const auto check = [&](const std::vector<fs::path>& files) { check_files(config, files); };
  const TextDatasetRequest texts{.config = config, .part = part, .seed = seed, .check_files = check};
  const std::string name = section.get_choice(
      "name", {"idx_images", "image_folder", "ratings", "text_images", "gpt", "text_classification", "masked_language"},
      "idx_images");
  if (name == "image_folder") return make_image_folder(config, section, seed);
  if (name == "ratings") return make_ratings(config, section, check);
  if (name == "text_images") return make_text_images(config, section, seed, check);
  if (name == "gpt") return make_gpt_dataset(texts, section);
  if (name == "text_classification") return make_text_classification(texts, section);
  if (name == "masked_language") return make_masked_language(texts, section);
  return make_idx_images(config, section, seed);
}

}  // namespace

std::unique_ptr<Loader> make_loader(const WorkerConfig& config, const std::string& part, int64_t batch_size,
                                    uint64_t seed) {
  Reader section = config.section("Data." + part);
  if (section.keys().empty()) return nullptr;
  Reader dataset_section = section.section("dataset");
  Reader sampler_section = section.section("sampler");
  Reader loader_section = section.section("loader");
  section.finish();

  const bool train = part == "Train";
  Sampler::Options sampler;
  sampler.shuffle = sampler_section.get_bool("shuffle", train);
  sampler.drop_last = sampler_section.get_bool("drop_last", train);
  sampler.seed = seed;
  sampler_section.finish();
  Loader::Options loader;
  loader.num_workers = static_cast<int>(loader_section.get_int("num_workers", loader.num_workers));
  loader.prefetch = static_cast<int>(loader_section.get_int("prefetch", loader.prefetch));
  sampler.batch_size = loader_section.get_int("batch_size", batch_size);
  loader_section.finish();

  std::shared_ptr<const Dataset> dataset = make_dataset(config, part, dataset_section, seed);
  sampler.num_samples = dataset->size();
  return std::make_unique<Loader>(std::move(dataset), sampler, loader);
}

}  // namespace assay
