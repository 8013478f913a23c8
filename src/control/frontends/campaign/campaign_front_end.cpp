#include "frontends/campaign/campaign_front_end.h"

#include <algorithm>

#include "frontends/campaign/campaign.h"
#include "frontends/campaign/campaign_plan.h"

namespace assay {

namespace {

// By its name, so that a broken one is told what is wrong in it, or by a key that only campaigns have; a base file may
// hold the rest.
bool is_campaign(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return false;
  const std::string extension = path.extension().string();
  if (extension != ".yaml" && extension != ".yml") return false;
  if (path.stem().string().starts_with("campaign")) return true;
  const std::vector<std::string> keys = top_level_keys(path);
  return std::any_of(keys.begin(), keys.end(), [](const std::string& key) {
    return key == "cases" || key == "campaign" || key == "launcher" || key == "_base_";
  });
}

}  // namespace

FrontEnd campaign_front_end() {
  return {
      .name = "campaign",
      .files = "campaign.yaml, or a YAML file with the key cases: cases, rounds and hosts (docs/guide/campaigns.md)",
      .recognises = is_campaign,
      .plan = [](const std::filesystem::path& path, const FrontEndOptions& options) {
        return make_campaign_plan(read_campaign(path), options.home);
      }};
}

}  // namespace assay
