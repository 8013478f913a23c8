// What may stand where a command takes a run, for the completion of shells.
#pragma once

#include "context.h"
#include "run/run_folder.h"

namespace assay {

inline std::vector<std::string> run_names(const Context& context) {
  std::vector<std::string> names;
  for (const std::filesystem::path& run : list_runs(context.runs)) names.push_back(run.filename().string());
  names.push_back("last");
  return names;
}

// The help of such an argument.
inline constexpr const char* kRunHelp = "Run folder, its name, the beginning of its name, or 'last'";

}  // namespace assay
