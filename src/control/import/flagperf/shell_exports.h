// FlagPerf's environment_variables.sh without a shell: `export KEY=VALUE` with plain values. Everything else that the
// script does is named, and what it may have set counts as not known.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "import/flagperf/python_literals.h"

namespace assay {

struct ShellExports {
  struct Variable {
    std::string value;
    int line = 0;
  };
  std::map<std::string, Variable> variables;
  std::vector<PythonIssue> issues;
};

ShellExports read_shell_exports(std::string_view text, const std::string& shown);

}  // namespace assay
