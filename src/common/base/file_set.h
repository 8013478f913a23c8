// Files to be copied, each with its hash, so that a copy can be known to be whole.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay {

// Files below one folder: path relative to it -> SHA-256.
struct FileSet {
  std::filesystem::path root;
  std::map<std::string, std::string> files = {};

  bool empty() const { return files.empty(); }
  // Adds a file, or every file of a folder. Throws ConfigError for a name that has no place in a list of lines, and
  // DataError for what cannot be read.
  void add(const std::filesystem::path& relative);
  void add_all();                // every file below the folder
  std::string manifest() const;  // as sha256sum writes and reads it
  std::string names() const;     // one a line
  std::string hash() const;      // of names and contents
};

// A path inside a folder, and not out of it again: relative, no "..", no control characters.
bool is_inner_path(const std::string& path);

// What sha256sum says about files: path -> hash. Throws DataError for anything else.
std::map<std::string, std::string> parse_manifest(const std::string& text, const std::string& where);

}  // namespace assay
