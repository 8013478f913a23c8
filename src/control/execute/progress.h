// Shows how far a running step is, from the records it writes.
#pragma once

#include <filesystem>
#include <string>

#include "base/console.h"
#include "plan/plan.h"
#include "record/stream.h"

namespace assay {

class StepProgress {
 public:
  StepProgress(const Step& step, const std::filesystem::path& folder, Console& console);
  void update();

 private:
  const Step& step_;
  Console& console_;
  RecordFollower records_;
  double done_ = 0;
  double total_ = 0;
  std::string extra_;
};

}  // namespace assay
