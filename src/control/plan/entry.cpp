#include "plan/entry.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace assay {

const std::vector<std::string>& entry_words() {
  static const std::vector<std::string> kWords = {"data",  "vendor",   "hardware", "nnodes", "nproc",
                                                  "model", "case_dir", "config",   "output"};
  return kWords;
}

namespace {

std::string expand_argument(const std::string& argument, const std::map<std::string, std::string>& values) {
  std::string out;
  for (size_t at = 0; at < argument.size();) {
    const size_t end = argument[at] == '{' ? argument.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at + 1) : at;
    const bool is_word = argument[at] == '{' && end != std::string::npos && argument[end] == '}' && end > at + 1;
    if (!is_word) {
      out += argument[at++];
      continue;
    }
    const std::string word = argument.substr(at + 1, end - at - 1);
    const auto value = values.find(word);
    if (value != values.end()) {
      out += value->second;
      at = end + 1;
      continue;
    }
    std::vector<std::string> known = entry_words();
    if (std::find(known.begin(), known.end(), word) == known.end()) {
      for (const auto& [name, text] : values) {
        if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
      }
      throw ConfigError(fmt::format("entry: {{{}}} is not known{}; there are {}", word, did_you_mean(word, known),
                                    join(known, ", ")));
    }
    throw ConfigError(fmt::format("entry: {{{}}} has no value here", word));
  }
  return out;
}

}  // namespace

std::vector<std::string> expand_entry(const std::vector<std::string>& entry,
                                      const std::map<std::string, std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& argument : entry) out.push_back(expand_argument(argument, values));
  return out;
}

}  // namespace assay
