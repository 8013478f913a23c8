// Decodes images of a folder as training does, with the loader's threads; prints how many per second. For bench/decode.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "base/time.h"
#include "data/image_folder.h"
#include "data/loader.h"

// decode_native FOLDER THREADS SECONDS fast|exact
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  assay::ImageFolder::Options options;
  options.folder = argv[1];
  options.augment = true;
  options.fast_decode = std::string(argv[4]) == "fast";
  const int threads = std::atoi(argv[2]);
  const double seconds = std::atof(argv[3]);
  const auto data = std::make_shared<assay::ImageFolder>(options);
  assay::Loader loader(data,
                       {.num_samples = data->size(), .batch_size = 32, .shuffle = true, .drop_last = true, .seed = 1},
                       {.num_workers = threads, .prefetch = 4});
  int64_t done = 0;
  assay::Stopwatch clock;
  for (int64_t epoch = 0; clock.seconds() < seconds; ++epoch) {
    loader.start(epoch);
    while (const auto batch = loader.next()) {
      if (epoch > 0) done += batch->num_samples;
    }
    if (epoch == 0) clock.restart();  // files come from the disk once
  }
  fmt::print("{{\"images_per_s\": {:.1f}}}\n", static_cast<double>(done) / clock.seconds());
  return 0;
}
