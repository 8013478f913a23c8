// The launcher, the hosts and the options that a campaign's plan asks for.
#pragma once

#include <memory>
#include <set>
#include <string>

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

// Of a run that goes on: its own locks and ports are in nobody's way.
struct OwnRun {
  std::filesystem::path folder = {};   // empty: a new run
  std::set<std::string> running = {};  // steps of it that run: they have what they need
};

// Everything that is in the way, on all hosts, before anything starts. Throws InfrastructureError with all of it.
// Returns the versions that hosts told: {host: {name: text}}.
Json check_site(Context& context, const CampaignPlan& made, const OwnRun& own = {});

// The same before a run goes on, for the steps that are yet to be begun: what runs keeps its leases meanwhile. Says so
// where the run folder has no preflight.json. Throws InfrastructureError as check_site().
void check_site_again(Context& context, const RunFolder& folder, const ExecuteOptions& options);

}  // namespace assay
