// The controller's copies of what a job writes elsewhere: each byte once, over lost connections and over controllers
// that were killed. Where the copies of an attempt begin, and where the job lies on its host, stands in
// received.node<I>.json.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "launch/launcher.h"
#include "launch/multi_node/frames.h"

namespace assay {

class Inbox {
 public:
  // What has to be known again to go on with a job.
  struct Place {
    std::string host;
    std::filesystem::path run;      // the run folder there
    std::filesystem::path program;  // assay there
  };

  // Of a new attempt: its part of every file begins where the file ends now. Throws InfrastructureError.
  static Inbox begin(const std::filesystem::path& folder, const LaunchRequest& job, const Place& place);
  // Of an attempt that another controller began; nullopt when it did not. Throws DataError for a damaged file.
  static std::optional<Inbox> resume(const std::filesystem::path& folder, const LaunchRequest& job);

  const Place& place() const { return place_; }
  // How much of each file there is, of this attempt.
  const std::map<std::string, int64_t>& have() const { return have_; }
  // Takes frames of the kinds Bytes and Cut. Throws DataError for a file that is none of the job's and for a gap.
  void accept(const Frame& frame);

 private:
  std::filesystem::path folder_;
  Place place_;
  std::map<std::string, int64_t> base_;
  std::map<std::string, int64_t> have_;
};

}  // namespace assay
