// A FlagPerf tree as it lies on disk: its standard cases, vendors' adaptions and run settings, each file read without
// executing it. What becomes of them is import.h's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "import/flagperf/python_literals.h"
#include "import/flagperf/shell_exports.h"
#include "vendor/config_name.h"

namespace assay {

// training/benchmarks/<model>/<framework>
struct FlagperfCase {
  std::string model;
  std::string framework;
  std::string name;  // ours: the model, or <model>-<framework> when it has several
  fs::path folder;
  const PythonFile* base = nullptr;          // config/_base.py
  const PythonFile* mutable_file = nullptr;  // config/mutable_params.py
  bool has_script = false;                   // run_pretraining.py
};

// training/<vendor>/<model>-<framework>
struct FlagperfAdaption {
  struct Config {
    ConfigName name;
    const PythonFile* file = nullptr;
  };
  std::string vendor;
  size_t case_index = 0;
  fs::path folder;
  std::vector<Config> configs = {};
  ShellExports environment = {};
  std::vector<std::string> requirements = {};  // lines of requirements.txt
};

struct FlagperfTree {
  fs::path root;      // files are shown relative to it
  fs::path training;  // the folder training/
  std::unique_ptr<PythonReader> reader;
  const PythonFile* test_conf = nullptr;  // nullptr: not there
  const PythonFile* cluster_conf = nullptr;
  std::vector<FlagperfCase> cases;
  std::vector<FlagperfAdaption> adaptions;  // by vendor, then folder
  std::vector<PythonIssue> issues;          // besides the reader's

  std::string shown(const fs::path& path) const;
};

// `folder` is a checkout of FlagPerf, or its folder training. Throws ConfigError when it is neither.
FlagperfTree read_flagperf_tree(const fs::path& folder);

}  // namespace assay
