// From a campaign to a plan: one step for every case in every round, before them one for the vendor's setup; on Slurm
// every job brings the setup along instead.
#pragma once

#include <filesystem>

#include "plan/campaign/campaign.h"
#include "plan/plan.h"

namespace assay {

struct CampaignPlan {
  Plan plan;
  // Code that steps of other frameworks run, to be copied into the run folder: path there -> here.
  std::map<std::string, std::filesystem::path> code;
  // What every host must have, with the files that are checked there: absolute folder -> file -> SHA-256.
  std::map<std::string, std::map<std::string, std::string>> data;
  std::string hardware;  // of the devices
  // What hosts are asked for, and must be able to tell: the versions of what cases use, name -> command.
  std::map<std::string, std::vector<std::string>> versions;
  // What of these a step uses: the folder of its data, or none, and names of versions.
  struct Use {
    std::string data = {};
    std::vector<std::string> versions = {};
    bool operator==(const Use&) const = default;
  };
  std::map<std::string, Use> uses;  // by the name of the step
};

// Resolves every case. Throws ConfigError for all that is wrong, at once, one a line.
CampaignPlan make_campaign_plan(const Campaign& campaign, const std::filesystem::path& home);

}  // namespace assay
