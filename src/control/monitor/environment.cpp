#include "monitor/environment.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <openssl/crypto.h>
#include <sqlite3.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/hash.h"
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

// Of every interface that is up, without the loopback: {interface, address}.
Json addresses() {
  Json out = Json::array();
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return nullptr;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    if (!entry->ifa_addr || !(entry->ifa_flags & IFF_UP) || (entry->ifa_flags & IFF_LOOPBACK)) continue;
    const int family = entry->ifa_addr->sa_family;
    const void* address = nullptr;
    if (family == AF_INET) address = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    if (family == AF_INET6) address = &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
    char text[INET6_ADDRSTRLEN] = {};
    if (!address || !::inet_ntop(family, address, text, sizeof text)) continue;
    out.push_back({{"interface", valid_utf8(entry->ifa_name)}, {"address", text}});
  }
  ::freeifaddrs(list);
  return out;
}

// The version in the name of the file that the library's link leads to; null when it is not installed where the system
// has its libraries. What a worker really loaded is in its own environment record.
Json installed_libtorch() {
  namespace fs = std::filesystem;
  utsname system{};
  ::uname(&system);
  const fs::path places[] = {fs::path("/usr/lib") / fmt::format("{}-linux-gnu", system.machine), "/usr/lib64",
                             "/usr/local/lib"};
  for (const fs::path& place : places) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(place, none)) {
      const std::string name = entry.path().filename().string();
      constexpr std::string_view kStem = "libtorch.so.";
      if (name.rfind(kStem, 0) == 0 && !entry.is_symlink(none)) return valid_utf8(name.substr(kStem.size()));
    }
  }
  return nullptr;
}

Json libraries() {
  return {{"glibc", ::gnu_get_libc_version()},
          {"openssl", ::OpenSSL_version(OPENSSL_VERSION_STRING)},
          {"sqlite", ::sqlite3_libversion()},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
          {"libtorch", installed_libtorch()}};
}

// The first line of a file; null when there is none.
Json first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line) || trim(line).empty()) return nullptr;
  return valid_utf8(trim(line));
}

// Of the devices whose drivers tell.
Json drivers() {
  return {{"nvidia", first_line("/sys/module/nvidia/version")},
          {"amdgpu", first_line("/sys/module/amdgpu/version")},
          {"habanalabs", first_line("/sys/module/habanalabs/version")},
          {"ascend", find_value("/usr/local/Ascend/driver/version.info", "Version", '=')}};
}

// Of this program's file: a commit says what it should be, this what it is.
Json program_hash() {
  try {
    return sha256_file("/proc/self/exe");
  } catch (const DataError&) {
    return nullptr;
  }
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
        {"architecture", valid_utf8(kernel.machine)},
        {"addresses", addresses()}}},
      {"processor",
       {{"model", find_value("/proc/cpuinfo", "model name", ':')}, {"cores", cores > 0 ? Json(cores) : Json(nullptr)}}},
      {"memory", {{"total_bytes", memory_bytes()}}},
      {"drivers", drivers()},
      {"libraries", libraries()},
      {"assay", {{"version", version()}, {"commit", commit()}, {"program_sha256", program_hash()}}}};
}

}  // namespace assay
