#include "data/dataset_request.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"

namespace assay {

namespace fs = std::filesystem;

fs::path DatasetRequest::folder(Reader& section, const std::string& contents) const {
  if (const auto folder = section.get_optional_string("input_dir")) return *folder;
  if (!config.data.path) section.fail("input_dir", "is missing: the folder of " + contents);
  return *config.data.path;
}

void DatasetRequest::check_files(const std::vector<fs::path>& files) const {
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

}  // namespace assay
