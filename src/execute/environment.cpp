#include "execute/environment.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/text.h"
#include "base/version.h"

namespace assay {

namespace {

// The value of "name<separator>value" in a file of such lines, trimmed and unquoted; null when there is none.
Json find_value(const char* path, std::string_view name, char separator) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const size_t at = line.find(separator);
    if (at == std::string::npos || trim(std::string_view(line).substr(0, at)) != name) continue;
    std::string_view value = trim(std::string_view(line).substr(at + 1));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    return valid_utf8(value);
  }
  return nullptr;
}

Json memory_bytes() {
  const Json text = find_value("/proc/meminfo", "MemTotal", ':');  // "24585012 kB"
  if (!text.is_string()) return nullptr;
  std::istringstream words(text.get<std::string>());
  int64_t kilobytes = 0;
  return (words >> kilobytes) ? Json(kilobytes * 1024) : Json(nullptr);
}

}  // namespace

Json describe_environment() {
  utsname kernel{};
  ::uname(&kernel);
  const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
  return {
      {"host",
       {{"name", valid_utf8(kernel.nodename)},
        {"system", find_value("/etc/os-release", "PRETTY_NAME", '=')},
        {"kernel", valid_utf8(kernel.release)},
        {"architecture", valid_utf8(kernel.machine)}}},
      {"processor",
       {{"model", find_value("/proc/cpuinfo", "model name", ':')}, {"cores", cores > 0 ? Json(cores) : Json(nullptr)}}},
      {"memory", {{"total_bytes", memory_bytes()}}},
      {"assay", {{"version", version()}, {"commit", commit()}}}};
}

}  // namespace assay
