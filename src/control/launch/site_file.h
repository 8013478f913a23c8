// campaign.yaml as launchers see it: their own keys, each with its place in the file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/reader.h"
#include "config/value.h"

namespace assay {

// Throws ConfigError: "FILE:LINE: what".
[[noreturn]] void fail_at(const Value& value, const std::string& what);
// Throws for a key of the map that is not known, with the nearest. `what`: "a host".
void check_keys(const Value& map, const std::vector<std::string>& known, const std::string& what);
// The value as text: a name that YAML takes for a number is meant as it stands.
std::string text_of(const Value& value, const std::string& what);
// [4, 5]: numbers of devices, each once.
std::vector<int> device_numbers_of(const Value& list);

class SiteFile {
 public:
  // Both must outlive it.
  SiteFile(const std::filesystem::path& path, const Value& root);

  const Value& root() const { return root_; }
  const Value* child(const std::string& key) const { return root_.child(key); }
  // The section of that name; empty when it is absent.
  Reader section(const std::string& key) const;
  // Paths in the file are relative to it; an absolute one stays.
  std::string located(const std::string& name) const;

 private:
  const std::filesystem::path path_;
  const Value& root_;
  Json plain_;
  std::shared_ptr<const Origins> origins_;
};

}  // namespace assay
