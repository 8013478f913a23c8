#include "datasets/sets/idx_files.h"

#include <fmt/format.h>

#include "base/error.h"

namespace assay {

Json copy_idx_files(const fs::path& from, const std::string& suffix, const Conversion& conversion) {
  double done = 0;
  for (const char* name :
       {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
    check_stop();
    const std::string file = name + suffix;
    std::error_code error;
    fs::copy_file(from / file, conversion.output / file, error);
    if (error) throw InfrastructureError(fmt::format("{}: {}", (conversion.output / file).string(), error.message()));
    conversion.report("copy", ++done, 4, "files");
  }
  return {{"train", 60000}, {"test", 10000}, {"classes", 10}};
}

}  // namespace assay
