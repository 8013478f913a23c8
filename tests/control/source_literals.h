// The string literals of source files, for tests that look for names which have one place.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace assay {

struct SourceLiteral {
  std::string file;
  size_t line = 0;
  std::string text;
  std::string place() const { return file + ":" + std::to_string(line) + ": \"" + text + "\""; }
};

// Of all .h and .cpp files below the folders, comments and includes left out; literals that span lines are not seen.
inline std::vector<SourceLiteral> source_literals(const std::vector<fs::path>& folders) {
  static const std::regex kLiteral(R"re("((?:[^"\\]|\\.)*)")re");
  std::vector<SourceLiteral> found;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".h" && extension != ".cpp") continue;
      size_t number = 0;
      for (std::string line : split(read_file(entry.path()), '\n')) {
        ++number;
        const size_t comment = line.find("//");
        if (comment != std::string::npos) line.resize(comment);
        if (line.starts_with("#include")) continue;
        for (auto at = std::sregex_iterator(line.begin(), line.end(), kLiteral); at != std::sregex_iterator(); ++at) {
          found.push_back({entry.path().string(), number, (*at)[1]});
        }
      }
    }
  }
  return found;
}

}  // namespace assay
