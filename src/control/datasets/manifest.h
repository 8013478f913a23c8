// manifest.json of a prepared data set: what it was made from and the hash of every file, and the check against it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/json.h"

namespace assay {

inline constexpr const char* kManifestFile = "manifest.json";

struct ManifestFile {
  int64_t num_bytes = 0;
  std::string sha256;
};

struct Manifest {
  std::string name;
  std::string licence;
  std::string layout;
  int revision = 0;  // of the conversion: another one writes other files
  Json sources = Json::array();
  Json counts = Json::object();
  std::map<std::string, ManifestFile> files;  // by path relative to the folder

  int64_t num_bytes() const;  // of all files
  std::string hash() const;   // SHA-256 over names and hashes of the files
};
Json to_json(const Manifest& manifest);
Manifest manifest_of(const Json& json, const std::string& where);  // throws DataError

// The files that a folder holds now, with their hashes.
std::map<std::string, ManifestFile> hash_files(const fs::path& folder);

enum class DataState { Ready, NotPrepared, Damaged };
std::string_view state_name(DataState state);  // "ready", "not prepared", "damaged"

struct DataCheck {
  DataState state = DataState::NotPrepared;
  std::string problem;  // of a damaged one: the file and what is wrong with it
  Manifest manifest;    // unless not prepared
};
// Is every file there with the bytes of the manifest? A file is read only when its size or times changed since it was
// last found right, which <folder>/../.checked remembers; so a check takes milliseconds. Files besides those of the
// manifest do not matter.
DataCheck check_data(const fs::path& folder);

}  // namespace assay
