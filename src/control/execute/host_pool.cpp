#include "execute/host_pool.h"

#include <algorithm>

namespace assay {

HostPool::HostPool(const std::vector<Host>& hosts) : is_open_(hosts.empty()) {
  for (const Host& host : hosts) {
    Slots slots{.host = host, .taken = {}};
    for (const int device : host.usable_devices()) slots.taken[device] = false;
    hosts_.push_back(std::move(slots));
  }
}

std::optional<std::vector<NodePlace>> HostPool::take(int nnodes, int nproc) {
  std::vector<NodePlace> places;
  if (is_open_) {
    places.resize(static_cast<size_t>(nnodes));
    return places;
  }
  for (const Slots& slots : hosts_) {
    if (static_cast<int>(places.size()) == nnodes) break;
    NodePlace place{.host = slots.host};
    for (const auto& [device, is_taken] : slots.taken) {
      if (static_cast<int>(place.devices.size()) == nproc) break;
      if (!is_taken) place.devices.push_back(device);
    }
    if (static_cast<int>(place.devices.size()) == nproc) places.push_back(std::move(place));
  }
  if (static_cast<int>(places.size()) < nnodes) return std::nullopt;
  return take_again(to_json(places));
}

std::optional<std::vector<NodePlace>> HostPool::take_again(const Json& places) {
  std::vector<NodePlace> out;
  if (is_open_) {
    out.resize(places.size());
    return out;
  }
  const auto find = [&](const std::string& name) {
    return std::find_if(hosts_.begin(), hosts_.end(), [&](const Slots& slots) { return slots.host.name == name; });
  };
  for (const Json& place : places) {
    const auto host = find(place.at("host").get<std::string>());
    if (host == hosts_.end()) return std::nullopt;
    out.push_back({.host = host->host, .devices = place.at("devices").get<std::vector<int>>()});
    for (const int device : out.back().devices) {
      const auto slot = host->taken.find(device);
      if (slot == host->taken.end() || slot->second) return std::nullopt;
    }
  }
  for (const NodePlace& place : out) {
    for (const int device : place.devices) find(place.host.name)->taken[device] = true;
  }
  return out;
}

void HostPool::give_back(const std::vector<NodePlace>& places) {
  for (const NodePlace& place : places) {
    for (Slots& slots : hosts_) {
      if (slots.host.name != place.host.name) continue;
      for (const int device : place.devices) slots.taken[device] = false;
    }
  }
}

Json to_json(const std::vector<NodePlace>& places) {
  Json out = Json::array();
  for (const NodePlace& place : places) out.push_back({{"host", place.host.name}, {"devices", place.devices}});
  return out;
}

}  // namespace assay
