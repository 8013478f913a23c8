#include "config/data_home.h"

#include <cstdlib>

#include "base/error.h"

namespace assay {

namespace {

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

}  // namespace

fs::path data_home() {
  if (const char* given = variable("ASSAY_DATA")) return fs::absolute(given).lexically_normal();
  // The XDG specification: a path that is not absolute is to be ignored.
  const char* xdg = variable("XDG_DATA_HOME");
  if (xdg && fs::path(xdg).is_absolute()) return fs::path(xdg) / "assay/data";
  if (const char* home = variable("HOME")) return fs::absolute(home) / ".local/share/assay/data";
  throw UsageError("no folder for data sets: set ASSAY_DATA, or HOME");
}

fs::path find_data(const std::string& name) {
  const fs::path prepared = data_home() / name, installed = fs::path("/usr/share/datasets") / name;
  std::error_code ignored;
  return !fs::exists(prepared, ignored) && fs::is_directory(installed, ignored) ? installed : prepared;
}

}  // namespace assay
