// Runs a Python peer of tests/peers on a folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/process.h"

namespace assay {

inline void run_peer(const std::string& script, const std::filesystem::path& folder) {
  const std::filesystem::path peers = std::filesystem::path(ASSAY_SOURCE_DIR) / "tests/peers";
  std::filesystem::path path = peers / script;
  // The twin of the model that docs/extend/add-a-model.md adds is in that page only.
  if (!std::filesystem::exists(path)) path = std::filesystem::path(ASSAY_DOC_MODEL_DIR) / "tests/peers" / script;
  ProcessOptions options;
  options.argv = {"/usr/bin/python3", path.string(), folder.string()};  // the Python that Debian's packages belong to
  options.env["PYTHONPATH"] = peers.string();
  const CapturedOutput output = capture(options, 300);
  ASSERT_TRUE(output.status.ok()) << script << ": " << output.status.text() << "\n" << output.err;
}

}  // namespace assay
