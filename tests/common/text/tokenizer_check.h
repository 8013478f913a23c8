// What the tests of tokenizers share.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "text/tokenizer.h"

namespace assay {

// What load_tokenizer() says of a damaged folder.
inline std::string load_error(const std::filesystem::path& folder) {
  try {
    load_tokenizer(folder);
  } catch (const DataError& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace assay
