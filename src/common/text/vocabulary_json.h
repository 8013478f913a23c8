// A vocabulary as one flat JSON object, token to number: {"!": 0, ...}.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay {

// Tokens by number; the numbers are 0 .. n-1, each once. Throws DataError naming the file and the token.
std::vector<std::string> read_vocabulary_json(const std::filesystem::path& path);

}  // namespace assay
