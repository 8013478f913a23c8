// Other programs that do part of a preparation: npm, apt-get, tar, our own assay-images.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/files.h"

namespace assay {

struct Finished {
  bool ok = false;
  std::string message;  // the last lines it wrote
};

struct Tool {
  std::vector<std::string> argv;
  fs::path folder;             // it works in
  fs::path log;                // gets what it writes
  std::function<void()> tick;  // called a few times a second while it runs
};

// Runs it until its end or the time limit. Throws InterruptedError when the user asks for a stop, InfrastructureError
// when it cannot be started.
Finished run_tool(const Tool& tool);

}  // namespace assay
