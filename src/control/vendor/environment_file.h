// `environment` files: variables as KEY=VALUE lines. No shell reads them, so nothing is expanded and no quotes are
// removed; a line that would need a shell is an error.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace assay {

struct EnvironmentFile {
  std::map<std::string, std::string> variables;
  std::vector<std::string> warnings;  // "FILE:LINE: ...": values that look like secrets, which logs would show
};

// Throws ConfigError "FILE:LINE: ..." for what is not KEY=VALUE, a comment or empty; also when there is no such file.
EnvironmentFile read_environment_file(const fs::path& path);
EnvironmentFile parse_environment(std::string_view text, const std::string& file);

// Letters, digits and '_', not a digit first.
bool is_variable_name(std::string_view text);
// A name under which people keep passwords and keys.
bool looks_secret(std::string_view variable);

}  // namespace assay
