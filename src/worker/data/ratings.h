// Who gave which item how many stars, from a csv file; the label is whether it was liked. For click-through models.
//
// Shapes: B batch.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

#include "data/dataset.h"
#include "data/dataset_request.h"

namespace assay {

class Ratings final : public Dataset {
 public:
  struct Options {
    std::filesystem::path folder;  // holds <split>.csv: user,item,rating
    std::string split = "train";
    int64_t limit = -1;     // only the first so many; -1: all
    double liked_from = 4;  // a rating of at least so much has label 1
    int64_t num_users = 0;  // ids beyond are an error; 0: any
    int64_t num_items = 0;
  };

  static std::filesystem::path file(const Options& options);
  // Reads the file. Throws DataError naming file and line.
  explicit Ratings(const Options& options);

  int64_t size() const override { return static_cast<int64_t>(users_.size()); }
  // {user [B] int64, item [B] int64, label [B] float}
  Batch gather(std::span<const int64_t> indices, int64_t epoch) const override;
  std::string hash() const override { return hash_; }

 private:
  void parse(std::string_view text);

  // Constant after construction.
  Options options_;
  std::vector<int64_t> users_;
  std::vector<int64_t> items_;
  std::vector<float> labels_;
  std::string hash_;
};

// From the keys of a case's dataset section, see docs/guide/data.md. `check_files` throws when a file is not the one
// that the case declares.
std::shared_ptr<const Dataset> make_ratings(const DatasetRequest& request, Reader& section);

}  // namespace assay
