#include "data/factory.h"

#include "data/dataset_request.h"
#include "data/image_dataset.h"
#include "data/image_folder.h"
#include "data/ratings.h"
#include "data/text_factory.h"
#include "data/text_images.h"

namespace assay {

namespace {

std::shared_ptr<const Dataset> make_idx_images(const DatasetRequest& request, Reader& section) {
  ImageDataset::Options options;
  options.folder = request.folder(section, "the idx files");
  options.split = section.get_choice("split", {"train", "test"}, "train");
  options.num_classes = section.get_int("num_classes", options.num_classes);
  options.limit = section.get_int("limit", options.limit);
  options.mean = section.get_double("mean", options.mean);
  options.std = section.get_double("std", options.std);
  options.crop_padding = section.get_int("crop_padding", options.crop_padding);
  options.flip = section.get_bool("flip", options.flip);
  options.seed = request.seed;
  section.finish();
  request.check_files(ImageDataset::files(options));
  return std::make_shared<ImageDataset>(options);
}

std::shared_ptr<const Dataset> make_dataset(const DatasetRequest& request, Reader& section) {
  const std::string name = section.get_choice("name",
                                              {"idx_images", "image_folder", "ratings", "text_images", "gpt",
                                               "blank_infilling", "text_classification", "masked_language"},
                                              "idx_images");
  if (name == "image_folder") return make_image_folder(request, section);
  if (name == "ratings") return make_ratings(request, section);
  if (name == "text_images") return make_text_images(request, section);
  if (name == "blank_infilling") return make_blank_infilling(request, section);
  if (name == "gpt") return make_gpt_dataset(request, section);
  if (name == "text_classification") return make_text_classification(request, section);
  if (name == "masked_language") return make_masked_language(request, section);
  return make_idx_images(request, section);
}

}  // namespace

std::unique_ptr<Loader> make_loader(const WorkerConfig& config, const std::string& part, int64_t batch_size,
                                    uint64_t seed, const Replicas& replicas) {
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
  sampler.num_replicas = replicas.count;
  sampler.replica = replicas.own;
  sampler.num_parts = replicas.num_parts;
  sampler.keep_all = !train;  // every sample is measured; of training a few less are no matter
  sampler_section.finish();
  Loader::Options loader;
  loader.num_workers = static_cast<int>(loader_section.get_int("num_workers", loader.num_workers));
  loader.prefetch = static_cast<int>(loader_section.get_int("prefetch", loader.prefetch));
  sampler.batch_size = loader_section.get_int("batch_size", batch_size);
  loader_section.finish();

  std::shared_ptr<const Dataset> dataset = make_dataset({config, part, seed}, dataset_section);
  sampler.num_samples = dataset->size();
  return std::make_unique<Loader>(std::move(dataset), sampler, loader);
}

}  // namespace assay
