#include "data/dataset_request.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/hash.h"

namespace assay {

namespace fs = std::filesystem;

namespace {

// A name is that of any file; "tokenizer/vocab.txt" is only that file in a folder of this name.
bool is_called(const fs::path& file, const std::string& name) {
  return ("/" + file.generic_string()).ends_with("/" + name);
}

}  // namespace

fs::path DatasetRequest::folder(Reader& section, const std::string& contents) const {
  if (const auto folder = section.get_optional_string("input_dir")) return *folder;
  if (!config.data.path) section.fail("input_dir", "is missing: the folder of " + contents);
  return *config.data.path;
}

void DatasetRequest::check_files(const std::vector<fs::path>& files) const {
  if (config.division == Division::Open) return;
  for (const fs::path& file : files) {
    for (const auto& [name, expected] : config.data.sha256) {
      if (!is_called(file, name) || sha256_file(file) == expected) continue;
      throw DataError(
          fmt::format("{}: is damaged or of another data set: its SHA-256 is not the one in case '{}'. In the "
                      "open division other data is allowed",
                      file.string(), config.case_name));
    }
  }
}

}  // namespace assay
