// Which devices of which hosts are free. Knows hosts and numbers, not steps; from one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "site/host.h"

namespace assay {

class HostPool {
 public:
  // Without hosts the launcher finds hosts itself (Slurm): everything fits, and places are empty ones.
  explicit HostPool(const std::vector<Host>& hosts = {});

  // `nproc` free devices on each of `nnodes` hosts, the first in order; nullopt when there are not so many now.
  std::optional<std::vector<NodePlace>> take(int nnodes, int nproc);
  // Those of an earlier controller, from its journal. nullopt when a host is not in the pool any more or a device is
  // taken.
  std::optional<std::vector<NodePlace>> take_again(const Json& places);
  void give_back(const std::vector<NodePlace>& places);

 private:
  struct Slots {
    Host host;
    std::map<int, bool> taken;  // by the number of the device
  };
  std::vector<Slots> hosts_;
  bool is_open_;  // the launcher finds hosts
};

// [{"host": "node1", "devices": [0, 1]}]: for the journal.
Json to_json(const std::vector<NodePlace>& places);

}  // namespace assay
