// What an operator writes: campaign.yaml. Cases, a vendor, where they run, and the limits. Reading it and nothing else:
// campaign_plan.h makes the plan. Launchers read their own keys of the file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/case.h"
#include "site/site.h"

namespace assay {

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
  Site site;
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
