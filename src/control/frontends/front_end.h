// A front-end makes a plan of a file that users bring. It knows its own kind of file, and nothing of how plans are run.
// Adding one is a folder with such a value, and one line in front_ends.cpp: docs/extend/add-a-front-end.md.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "plan/planned_run.h"

namespace assay {

struct FrontEndOptions {
  std::filesystem::path home;  // the folder that holds cases/ and vendors/
};

struct FrontEnd {
  std::string name;   // "campaign"
  std::string files;  // for people: what it recognises
  // Whether the file is of its kind, by name and first lines: quick, and without complaint about what is wrong in it.
  std::function<bool(const std::filesystem::path& path)> recognises;
  // Throws ConfigError with file, line and key for all that is wrong, before anything starts.
  std::function<PlannedRun(const std::filesystem::path& path, const FrontEndOptions& options)> plan;
};

// In the order in which they are asked.
const std::vector<FrontEnd>& front_ends();
// Whose file it is. Throws UsageError that names the file and lists what is recognised.
const FrontEnd& front_end_for(const std::filesystem::path& path);

// The top-level keys of a YAML file, as far as its beginning tells: enough to tell one kind of file from another, also
// where there are mistakes further in. Empty: not a text file, or it has none.
std::vector<std::string> top_level_keys(const std::filesystem::path& path);

}  // namespace assay
