// What every command of `assay` shares.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/console.h"
#include "base/error.h"

namespace assay {

struct Context {
  Console console;
  bool json = false;                 // --json: machine-readable standard output
  std::filesystem::path home;        // the folder that holds cases/ and vendors/
  std::filesystem::path runs;        // where run folders go
  std::vector<std::string> command;  // as typed
  int exit_code = kExitPass;         // set by the command that ran
};

}  // namespace assay
