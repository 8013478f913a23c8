// A host, the one type of it: what a campaign says of it, what the pool gives out, what launchers reach.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace assay {

struct Host {
  std::string name;               // as people call it; unique in a run
  std::string address = {};       // where ssh and the other hosts reach it; empty: its name
  int slots = 0;                  // devices that steps may use; 0: as many as the largest case needs
  std::vector<int> devices = {};  // their numbers; empty: 0 to slots - 1
  // How it is reached; empty: ssh's own choice.
  std::string user = {};
  int port = 0;
  std::filesystem::path identity_file = {};
  std::filesystem::path known_hosts = {};
  std::filesystem::path work_dir = {};  // there; mirrors of run folders lie under it
  std::filesystem::path program = {};   // assay there; empty: ours, staged

  const std::string& reached_at() const { return address.empty() ? name : address; }
  // The numbers of the devices that steps may use, in the order they are given out.
  std::vector<int> usable_devices() const;
  bool operator==(const Host&) const = default;
};

// One node of a job: a host, and the devices of it that the job has.
struct NodePlace {
  Host host;
  std::vector<int> devices = {};  // one per rank
  // Of devices that have a network of their own, by their number: launch/host/device_addresses.h.
  std::map<int, std::string> device_addresses = {};
};

}  // namespace assay
