// Addresses of devices that have a network of their own. Hosts with Ascend's NPUs tell them in /etc/hccn.conf, a line a
// device, beside others that do not matter here:
//   address_0=192.168.100.101
//   netmask_0=255.255.255.0
// Reads that file; what they are used for is rank_environment.h's affair.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace assay {

inline constexpr const char* kDeviceAddressFile = "/etc/hccn.conf";

struct DeviceAddresses {
  std::map<int, std::string> addresses = {};  // by the number of the device; empty: the host has no such file
  std::vector<std::string> ignored = {};      // what was passed over: "/etc/hccn.conf:3: ..."
};

// Never throws: a file that cannot be read, or is too large, is one thing more that was passed over.
DeviceAddresses read_device_addresses(const std::filesystem::path& file = kDeviceAddressFile);

// {"0": "192.168.100.101"}: between hosts, and in job files.
Json device_addresses_json(const std::map<int, std::string>& addresses);
// Throws DataError beginning with `where` for numbers that are none and addresses that are none.
std::map<int, std::string> device_addresses_of(const Json& value, const std::string& where);

}  // namespace assay
