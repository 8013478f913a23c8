#include "vendor/environment_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

constexpr size_t kMaxEnvironmentBytes = 1 << 20;

// What a shell would make of the value, and we do not; "" when there is nothing of that kind.
std::string needs_shell(std::string_view value) {
  if (value.find('`') != std::string_view::npos) return "` runs a command in a shell; here nothing does";
  for (size_t at = value.find('$'); at != std::string_view::npos; at = value.find('$', at + 1)) {
    const char next = at + 1 < value.size() ? value[at + 1] : ' ';
    if (std::isalpha(static_cast<unsigned char>(next)) || next == '_' || next == '{' || next == '(') {
      return "variables and commands ($...) are not expanded; write the value itself";
    }
  }
  const bool quoted = value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
  return quoted ? "quotes would be part of the value; leave them out" : "";
}

}  // namespace

bool is_variable_name(std::string_view text) {
  const auto allowed = [](char c) { return c == '_' || (std::isalnum(static_cast<unsigned char>(c)) && c > 0); };
  return !text.empty() && text.size() <= 200 && !std::isdigit(static_cast<unsigned char>(text[0])) &&
         std::all_of(text.begin(), text.end(), allowed);
}

bool looks_secret(std::string_view variable) {
  const std::string name = lower(variable);
  for (std::string_view word :
       {"password", "passwd", "secret", "token", "api_key", "apikey", "access_key", "private_key", "credential"}) {
    if (name.find(word) != std::string::npos) return true;
  }
  return false;
}

EnvironmentFile parse_environment(std::string_view text, const std::string& file) {
  EnvironmentFile out;
  std::map<std::string, int> lines;
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    ++number;
    const auto fail = [&](const std::string& message) {
      throw ConfigError(fmt::format("{}:{}: {}", file, number, message));
    };
    if (line.empty() || line[0] == '#') continue;
    if (line.starts_with("export ")) fail("write KEY=VALUE without 'export': no shell reads this file");
    const size_t equal = line.find('=');
    const std::string name(line.substr(0, equal));
    if (equal == std::string_view::npos || !is_variable_name(name)) {
      fail(fmt::format("'{}' is not KEY=VALUE, a comment (#) or empty; commands belong into setup",
                       valid_utf8(line.substr(0, 80))));
    }
    const std::string_view value = line.substr(equal + 1);
    if (value.find('\0') != std::string_view::npos) fail(fmt::format("{} has a zero byte in its value", name));
    if (const std::string why = needs_shell(value); !why.empty()) fail(fmt::format("{}: {}", name, why));
    if (const auto before = lines.find(name); before != lines.end()) {
      fail(fmt::format("{} is set in line {} already", name, before->second));
    }
    lines[name] = number;
    out.variables[name] = valid_utf8(value);
    if (looks_secret(name) && !value.empty()) {
      out.warnings.push_back(
          fmt::format("{}:{}: {} looks like a secret; run folders keep every variable, so set it on the host instead",
                      file, number, name));
    }
  }
  return out;
}

EnvironmentFile read_environment_file(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    throw ConfigError(fmt::format("{}: there is no such file of variables", path.string()));
  }
  if (fs::file_size(path, error) > kMaxEnvironmentBytes) {
    throw ConfigError(fmt::format("{}: larger than 1 MiB", path.string()));
  }
  return parse_environment(read_file(path), path.string());
}

}  // namespace assay
