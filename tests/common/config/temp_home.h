// A folder with cases/ and vendors/ of a test's own.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "config/case.h"

namespace assay {

class TempHome {
 public:
  const fs::path& path() const { return folder_.path(); }
  fs::path write(const fs::path& relative, const std::string& text) const {
    const fs::path file = folder_.path() / relative;
    make_folder(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;  // not synced: some tests write thousands
    return file;
  }
  ResolveRequest request(const std::string& key) const { return {.home = path(), .key = CaseKey::parse(key)}; }

 private:
  TempFolder folder_{"assay-config"};
};

// The message of the ConfigError (or other Error) that the action throws; fails the test when it throws none.
template <typename ErrorType = ConfigError, typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const ErrorType& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

// A complete small case; line numbers matter to the tests that use it.
inline constexpr char kTinyCase[] = R"(model: tiny
target: {metric: accuracy, value: 0.9, goal: maximize}
mutable:
  - Global.local_batch_size
  - Engine.mix_precision
  - Model.dropout
config:
  Global:
    local_batch_size: 32
  Model:
    name: tiny
    width: 16
    dropout: 0.5
    blocks: [1, 2, 3]
  Data:
    Train:
      dataset: {name: idx_images}
  Optimizer:
    name: SGD
    lr: {name: constant, learning_rate: 0.1}
)";

}  // namespace assay
