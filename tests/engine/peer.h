// Runs a Python peer of tests/peers on a folder.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/process.h"

namespace assay {

inline void run_peer(const std::string& script, const std::filesystem::path& folder) {
  // The Python that Debian's packages belong to.
  const std::string path = std::string(ASSAY_SOURCE_DIR) + "/tests/peers/" + script;
  const CapturedOutput output = capture({.argv = {"/usr/bin/python3", path, folder.string()}}, 300);
  ASSERT_TRUE(output.status.ok()) << script << ": " << output.status.text() << "\n" << output.err;
}

}  // namespace assay
