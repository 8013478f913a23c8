// The data of an installed R package: an index (.rdx) of named values, each compressed at a place in a second file
// (.rdb). Read without R.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "datasets/r_data.h"

namespace assay {

class LazyLoadData {
 public:
  // `stem`: the files without their extensions, such as .../data/Rdata. Throws DataError naming the file.
  explicit LazyLoadData(const fs::path& stem);
  std::vector<std::string> names() const;
  RValue value(const std::string& name) const;  // throws DataError

 private:
  fs::path rdb_path_;
  fs::path rdx_path_;
  std::string rdb_;
  RValue variables_;  // name -> {offset, length}
};

}  // namespace assay
