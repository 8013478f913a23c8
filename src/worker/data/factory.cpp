#include "data/factory.h"

#include "data/dataset_request.h"
#include "data/registry.h"

namespace assay {

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
  sampler.replica = replicas.index;
  sampler.num_parts = replicas.num_parts;
  sampler.keep_all = !train;  // every sample is measured; in training a few less do not matter
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
