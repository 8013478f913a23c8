// The launcher, the hosts and the options that a campaign's plan asks for.
#pragma once

#include <memory>

#include "context.h"
#include "execute/executor.h"
#include "plan/campaign/campaign_plan.h"

namespace assay {

struct CampaignServices {
  std::unique_ptr<Launcher> launcher;
  std::unique_ptr<HostPool> hosts;
  ExecuteOptions options;
};

// Throws DataError when the plan's description is damaged.
CampaignServices campaign_services(const Plan& plan, const ExecuteOptions& options);

// Copies the data that cases ask for to every host that lacks it. Throws InfrastructureError, telling of every host.
void stage_data(Context& context, const Plan& plan);

// Everything that is in the way, on all hosts, before anything starts. Throws InfrastructureError with all of it.
// Returns the versions that hosts told: {host: {name: text}}.
Json check_site(Context& context, const CampaignPlan& made);

}  // namespace assay
