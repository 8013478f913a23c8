// Where the steps of a plan run, and how: hosts, settings, and which launcher starts them there. Data and its JSON: a
// plan keeps it under "campaign", so that `assay resume` has it. Knows launchers by name only (launch/launchers.h).
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "site/host.h"
#include "site/settings.h"

namespace assay {

struct Site {
  std::string launcher = "local";
  std::string vendor;
  std::string division = "closed";
  std::vector<Host> hosts;   // empty: the launcher finds them
  std::vector<int> devices;  // of the only host of launcher local, as the campaign names them
  // What launchers keep of their own, by their names: only the launcher of that name reads it.
  std::map<std::string, Json> sections;
  SiteSettings settings;
  std::vector<std::string> device_command;   // the vendor's: prints how many devices there are
  int device_count = 0;                      // of every host; 0: the command tells
  std::map<std::string, double> peak_flops;  // the vendor's: precision -> operations per second of one device
  // Data that is copied to every host, each into the folder that staged_folder() names.
  struct Staged {
    std::filesystem::path path;  // here
    std::string hash;            // of names and contents
    bool operator==(const Staged&) const = default;
  };
  std::vector<Staged> staged;
  int concurrency = 1;
  int max_failures = 0;  // 0: no limit
  int master_port = 0;   // 0: any that is free
  // The fields of the JSON it was read from, in their order, where an earlier version wrote others than to_json() does:
  // it writes the same again, so that the plan keeps its hash.
  std::vector<std::string> fields;

  bool operator==(const Site&) const = default;
};

// Where a host has staged data, relative to the mirror of a run folder there; runs share it.
std::string staged_folder(const std::string& hash);

Json to_json(const Site& site);
// Fields that earlier versions did not write have their usual values. Throws DataError beginning with `where`.
Site site_of(const Json& json, const std::string& where);

}  // namespace assay
