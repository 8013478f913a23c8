// A launcher as people choose it, by name: `launcher: ssh`. It reads its own part of campaign.yaml, says what its hosts
// share with this one, and makes what a run needs of it. One object per kind, without state; launchers.h lists them.
// Adding one is a folder with a class like this, and one line there: docs/extend/add-a-launcher.md.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launch/launcher.h"
#include "launch/site_file.h"
#include "site/site.h"

namespace assay {

// Runs an argument array on a host and returns what it printed; may throw InfrastructureError, and returns a failed
// status, when the host cannot be reached. Called from several threads at once, and several times per host. argv[0] is
// "assay": the one there.
using HostRunner =
    std::function<CapturedOutput(const Host& host, const std::vector<std::string>& argv, double time_limit_s)>;

// The most that one step of a plan asks of a site.
struct SiteDemand {
  int nnodes = 1;
  int nproc = 1;  // ranks per host
};

class LauncherKind {
 public:
  virtual ~LauncherKind() = default;
  virtual std::string name() const = 0;

  // --- what it shares
  // Its hosts see the run folder and the data of cases at the paths that they have here; otherwise all is copied there.
  virtual bool shares_files() const { return true; }
  // A scheduler chooses the hosts of every job: nobody knows them before, and every job brings the vendor's setup
  // along.
  virtual bool chooses_hosts() const { return false; }

  // --- campaign.yaml
  // The keys of the file that are this launcher's own.
  virtual std::vector<std::string> keys() const { return {}; }
  // Reads them into the site, whichever launcher `site.launcher` names: what only this one can use is an error when it
  // is another. Throws ConfigError with file and line.
  virtual void read(const SiteFile& /*file*/, Site& /*site*/) const {}

  // --- before a run; each throws InfrastructureError
  // Problems of the site as a whole.
  virtual void check(const Site& /*site*/, const SiteDemand& /*demand*/) const {}
  // The hosts that are looked at, with the devices that can come to be used: steps take the first free ones.
  virtual std::vector<NodePlace> places(const Site& site, const SiteDemand& demand) const;
  virtual HostRunner probe(const Site& site) const = 0;
  // What `problem` tells passes by itself, and the jobs only wait for it.
  virtual bool is_temporary(const std::string& /*problem*/) const { return false; }
  // Copies site.staged to every host that lacks it, telling `say` of it. Only for hosts that share no files.
  virtual void stage(const Site& /*site*/, const std::function<void(const std::string&)>& /*say*/) const {}

  // --- a run
  virtual std::unique_ptr<Launcher> make(const Site& site) const = 0;
};

}  // namespace assay
