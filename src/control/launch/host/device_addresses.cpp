#include "launch/host/device_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "launch/host/job.h"

namespace assay {

namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr long long kMaxDevice = 4096;
constexpr size_t kMostIgnored = 10;  // that are told one by one
constexpr size_t kMostShown = 80;    // bytes of a line
constexpr std::string_view kKey = "address_";

bool is_address(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  return ::inet_pton(AF_INET, text.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

std::optional<int> device_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const auto number = parse_int(text);
  return number && *number <= kMaxDevice ? std::optional<int>(static_cast<int>(*number)) : std::nullopt;
}

// Why the line says nothing; "" when it says something, or something else that is none of our business.
std::string take_line(std::string_view line, std::map<int, std::string>& addresses) {
  if (line.empty() || line[0] == '#') return "";
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return "is not KEY=VALUE";
  const std::string_view key = trim(line.substr(0, equals));
  if (!key.starts_with(kKey)) return "";
  const auto device = device_number(key.substr(kKey.size()));
  if (!device) return "names no device";
  const std::string address(trim(line.substr(equals + 1)));
  if (!is_address(address)) return "has no address";
  if (!addresses.insert({*device, address}).second) return fmt::format("names device {} again", *device);
  return "";
}

}  // namespace

DeviceAddresses read_device_addresses(const fs::path& file) {
  DeviceAddresses out;
  std::error_code missing;
  const fs::path path = fs::canonical(file, missing);  // a link in /etc is the administrator's
  if (missing == std::errc::no_such_file_or_directory) return out;
  try {
    const std::string text = read_limited(missing ? file : path, kMaxFileBytes);
    size_t number = 0, num_ignored = 0;
    for (const std::string& line : split(text, '\n')) {
      ++number;
      const std::string why = take_line(trim(line), out.addresses);
      if (why.empty()) continue;
      if (++num_ignored > kMostIgnored) continue;
      out.ignored.push_back(
          fmt::format("{}:{}: '{}' {}", file.string(), number, valid_utf8(trim(line).substr(0, kMostShown)), why));
    }
    if (num_ignored > kMostIgnored) {
      out.ignored.push_back(fmt::format("{}: and {} more lines", file.string(), num_ignored - kMostIgnored));
    }
  } catch (const DataError& error) {
    out.ignored.emplace_back(error.what());
  }
  return out;
}

Json device_addresses_json(const std::map<int, std::string>& addresses) {
  Json out = Json::object();
  for (const auto& [device, address] : addresses) out[std::to_string(device)] = address;
  return out;
}

std::map<int, std::string> device_addresses_of(const Json& value, const std::string& where) {
  if (!value.is_object()) throw DataError(where + ": must be an object");
  std::map<int, std::string> out;
  for (const auto& [name, address] : value.items()) {
    const auto device = device_number(name);
    if (!device) throw DataError(fmt::format("{}: '{}' is not a device number", where, valid_utf8(name)));
    if (!address.is_string() || !is_address(address.get<std::string>())) {
      throw DataError(fmt::format("{}: device {} must have an IP address", where, *device));
    }
    out[*device] = address.get<std::string>();
  }
  return out;
}

}  // namespace assay
