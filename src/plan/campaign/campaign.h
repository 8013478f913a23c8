// What an operator writes: campaign.yaml. Cases, a vendor, where they run, and the limits. Reading it and nothing else:
// campaign_plan.h makes the plan, and whoever starts the steps reads CampaignSite back from it.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/case.h"

namespace assay {

enum class LauncherKind { Local, Ssh, Slurm };
std::string_view launcher_name(LauncherKind kind);  // "local", "ssh", "slurm"

struct SshSettings {
  std::string user;
  int port = 0;
  std::string identity_file, known_hosts;  // absolute
  std::string work_dir;                    // on the hosts; empty: .assay in the home folder there
  std::string program;                     // assay on the hosts; empty: ours is copied
  bool operator==(const SshSettings&) const = default;
};

// A host as the campaign describes it; launch/launcher.h has the one that launchers know.
struct CampaignHost {
  std::string name;
  std::string address;            // empty: the name
  int slots = 0;                  // devices; 0: as many as the largest case needs
  std::vector<int> devices = {};  // those that are used; empty: 0 to slots - 1
  SshSettings ssh = {};
  bool operator==(const CampaignHost&) const = default;
};

struct SlurmSettings {
  std::string partition, account;
  std::vector<std::string> options;
  bool operator==(const SlurmSettings&) const = default;
};

// Where the steps run and how: kept in the plan, so that `assay resume` has it.
struct CampaignSite {
  LauncherKind launcher = LauncherKind::Local;
  std::string vendor;
  Division division = Division::Closed;
  std::vector<CampaignHost> hosts;
  std::vector<int> devices;  // of the only host of launcher local; empty: the first ones
  SlurmSettings slurm;
  std::string visible_devices;               // the vendor's variable; empty: none
  std::vector<std::string> monitor_command;  // the vendor's, for devices
  std::vector<std::string> device_command;   // the vendor's: prints how many devices there are
  int device_count = 0;                      // of every host; 0: the command tells
  // Data that is copied to every host by ssh, each into the folder that staged_folder() names.
  struct Staged {
    std::filesystem::path path;  // here
    std::string hash;            // of names and contents
    bool operator==(const Staged&) const = default;
  };
  std::vector<Staged> staged;
  // The vendor's preparation of a host, and its variables, where every job brings it along since nobody knows the hosts
  // before (Slurm); empty: none, or a step of its own.
  std::vector<std::string> setup;
  std::map<std::string, std::string> setup_environment;
  std::map<std::string, double> peak_flops;  // the vendor's: precision -> operations a second of one device
  int concurrency = 1;
  int max_failures = 0;  // 0: no limit
  double lease_s = 60;
  double monitor_interval_s = 1;
  int master_port = 0;  // 0: any that is free
  bool clear_caches = false;
  bool operator==(const CampaignSite&) const = default;
};
// Where a host has staged data, relative to the mirror of a run folder there; runs share it.
std::string staged_folder(const std::string& hash);
Json to_json(const CampaignSite& site);
CampaignSite site_of(const Json& json, const std::string& where);  // throws DataError

struct CampaignCase {
  CaseKey key;
  std::string data;    // folder; empty: where the case says
  bool stage = false;  // it is here, and is to be copied to the hosts
  Value settings;      // map; the plan's layer
  std::optional<double> time_limit_s, stall_limit_s;
  std::string place;  // "campaign.yaml:12"
};

// Nothing hangs forever: so long a step may be silent unless the campaign says otherwise.
inline constexpr double kStallSeconds = 1800;

struct Campaign {
  std::string title;
  CampaignSite site;
  std::vector<CampaignCase> cases;
  std::optional<double> time_limit_s;
  std::optional<double> stall_limit_s = kStallSeconds;
  int retries = 1;
  std::map<std::string, std::string> environment;
  std::vector<std::string> collect;
};

// Throws ConfigError with file, line and key. Paths in the file are relative to it.
Campaign read_campaign(const std::filesystem::path& path);

}  // namespace assay
