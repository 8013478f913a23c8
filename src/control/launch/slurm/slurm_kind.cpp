#include "launch/slurm/slurm_kind.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "launch/slurm/slurm.h"
#include "launch/slurm/slurm_queue.h"

namespace assay {

namespace {

constexpr const char* kSlurmSection = "slurm";
constexpr int kSlurmPatience = 20;  // seconds that a node may take to begin a small job

Json to_json(const SlurmOptions& options) {
  return {{"partition", options.partition}, {"account", options.account}, {"options", options.options}};
}

SlurmOptions slurm_options_of(const Site& site) {
  const auto section = site.sections.find(kSlurmSection);
  if (section == site.sections.end()) return {};
  try {
    return {.partition = section->second.at("partition").get<std::string>(),
            .account = section->second.at("account").get<std::string>(),
            .options = section->second.at("options").get<std::vector<std::string>>()};
  } catch (const Json::exception&) {
    throw DataError("slurm: partition, account or options of the site is missing or of the wrong type");
  }
}

class SlurmKind : public LauncherKind {
 public:
  std::string name() const override { return "slurm"; }
  bool chooses_hosts() const override { return true; }
  std::vector<std::string> keys() const override { return {kSlurmSection}; }

  void read(const SiteFile& file, Site& site) const override {
    Reader section = file.section(kSlurmSection);
    const SlurmOptions options{.partition = section.get_string("partition", ""),
                               .account = section.get_string("account", ""),
                               .options = section.get_strings("options")};
    section.finish();
    site.sections[kSlurmSection] = to_json(options);
  }

  void check(const Site& site, const SiteDemand& demand) const override {
    const std::string problem = slurm_partition_problem(slurm_options_of(site).partition, demand.nnodes);
    if (!problem.empty()) throw InfrastructureError("nothing was started: " + problem);
  }

  // Nodes that are idle now; devices are Slurm's to give.
  std::vector<NodePlace> places(const Site& site, const SiteDemand& demand) const override {
    std::vector<NodePlace> out;
    for (std::string& node : idle_slurm_nodes(slurm_options_of(site).partition, demand.nnodes)) {
      out.push_back({.host = {.name = std::move(node)}});
    }
    return out;
  }

  // A small job on a node that was idle a moment ago.
  HostRunner probe(const Site& site) const override {
    return
        [slurm = slurm_options_of(site)](const Host& host, const std::vector<std::string>& words, double time_limit_s) {
          ProcessOptions options{.argv = {"srun", "--quiet", "--nodes=1", "--ntasks=1", "--nodelist=" + host.name,
                                          fmt::format("--immediate={}", kSlurmPatience)}};
          if (!slurm.partition.empty()) options.argv.push_back("--partition=" + slurm.partition);
          if (!slurm.account.empty()) options.argv.push_back("--account=" + slurm.account);
          options.argv.push_back((program_folder() / "assay").string());
          options.argv.insert(options.argv.end(), words.begin() + 1, words.end());
          return capture(options, kSlurmPatience + time_limit_s);
        };
  }

  // The node was taken meanwhile: jobs wait in the queue.
  bool is_temporary(const std::string& problem) const override {
    return problem.find("Unable to allocate resources") != std::string::npos;
  }

  std::unique_ptr<Launcher> make(const Site& site) const override {
    return std::make_unique<SlurmLauncher>(slurm_options_of(site));
  }
};

}  // namespace

const LauncherKind* slurm_kind() {
  static const SlurmKind kKind;
  return &kKind;
}

}  // namespace assay
