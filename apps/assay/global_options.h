// What stands before or behind every command: --json, --runs, --home, -q, -v.
#pragma once

#include <string>

#include "context.h"

namespace assay {

struct GlobalOptions {
  bool quiet = false;
  bool verbose = false;
  std::string home;
  std::string runs;
};

// Puts them into the context. Throws UsageError when --home has no cases.
void settle(Context& context, const GlobalOptions& options);

}  // namespace assay
