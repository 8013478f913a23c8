// The command of a case that is not native: `entry` with its {words} replaced by what only a campaign knows.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace assay {

// What may stand in braces: data (folder of the data set), vendor, hardware, nnodes, nproc, model, case_dir (folder of
// the case file), config (file with the effective configuration as JSON), output (folder for what the command makes).
const std::vector<std::string>& entry_words();

// Replaces {word}; `values` may have more words, such as keys of the case's configuration. Braces around anything that
// is not a lower-case word stay as they are, so arguments may be JSON. Throws ConfigError for a word that is unknown,
// with the nearest, or that has no value.
std::vector<std::string> expand_entry(const std::vector<std::string>& entry,
                                      const std::map<std::string, std::string>& values);

}  // namespace assay
