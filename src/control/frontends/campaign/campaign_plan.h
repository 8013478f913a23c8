// From a campaign to a plan: one step for every case in every round, before them one for the vendor's setup; where a
// scheduler chooses the hosts every job brings the setup along instead.
#pragma once

#include <filesystem>

#include "frontends/campaign/campaign.h"
#include "plan/planned_run.h"

namespace assay {

// Resolves every case. Throws ConfigError for all that is wrong, at once, one per line.
PlannedRun make_campaign_plan(const Campaign& campaign, const std::filesystem::path& home);

}  // namespace assay
