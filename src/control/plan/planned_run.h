// What a front-end makes of a file: a plan, what goes along with it, and what must be there before anything starts.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace assay {

struct PlannedRun {
  Plan plan;
  // Code that steps of other frameworks run, to be copied into the run folder: path there -> here.
  std::map<std::string, std::filesystem::path> code = {};
  // What every host must have, with the files that are checked there: absolute folder -> file -> SHA-256.
  std::map<std::string, std::map<std::string, std::string>> data = {};
  std::string hardware = {};  // of the devices
  // What hosts are asked for, and must be able to tell: the versions of what cases use, name -> command.
  std::map<std::string, std::vector<std::string>> versions = {};
  // What of these a step uses: the folder of its data, or none, and names of versions.
  struct Use {
    std::string data = {};
    std::vector<std::string> versions = {};
    bool operator==(const Use&) const = default;
  };
  std::map<std::string, Use> uses = {};  // by the name of the step
  // What must be there on this host; throws ConfigError or DataError that says what to do. Empty: nothing.
  std::function<void()> check_here = {};
};

}  // namespace assay
