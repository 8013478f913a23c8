// assay run campaign.yaml: cases x rounds over hosts.
#include <fmt/format.h>

#include "base/text.h"
#include "campaign_site.h"
#include "context.h"
#include "plan/campaign/preflight_file.h"
#include "results/collect.h"
#include "run_plan.h"

namespace assay {

namespace {

struct CampaignOptions {
  std::string file;
  bool dry_run = false;
  bool preflight_only = false;
};

void run_campaign(const CampaignOptions& options, Context& context) {
  const Campaign campaign = read_campaign(options.file);
  const CampaignPlan made = make_campaign_plan(campaign, context.home);
  if (options.dry_run) {
    show_plan(context, made.plan);
    return;
  }
  const Json versions = check_site(context, made);
  if (options.preflight_only) {
    context.console.info("nothing is in the way");
    return;
  }
  RunFolder folder = RunFolder::create(context.runs, made.plan, context.command, made.code,
                                       {{kVersionsFile, versions}, {kPreflightFile, preflight_json(made)}});
  announce_run(context, folder);
  run_in_folder(context, folder);
  context.exit_code = report_run(context, folder.path());
}

}  // namespace

void add_run_command(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("run", "Run a campaign: cases, rounds and hosts as campaign.yaml says");
  command->footer(
      "Examples:\n"
      "  assay run campaign.yaml --dry-run      the plan, and nothing else\n"
      "  assay run campaign.yaml --check        what is in the way, on all hosts at once; starts nothing\n"
      "  assay run campaign.yaml                then: assay ps, assay logs last -f, assay stop last, assay table "
      "last\n\n"
      "The file is described in docs/campaigns.md. Ctrl-C stops cleanly; assay resume goes on, also after a crash.\n"
      "Exit codes: 0 all passed, 1 a verdict failed or a case broke, 2 the campaign is wrong, 4 a host, port or disk.");
  auto options = std::make_shared<CampaignOptions>();
  command->add_option("file", options->file, "campaign.yaml")->required();
  command->add_flag("--dry-run", options->dry_run, "Print the plan, run nothing");
  command->add_flag("--check", options->preflight_only, "Only the checks before a run");
  command->callback([options, &context] { run_campaign(*options, context); });
}

}  // namespace assay
