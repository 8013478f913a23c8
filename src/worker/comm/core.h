// What all groups of a process share: the control channel, the hosts, and the list of what is going on. Outlives the
// World and its groups.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/call.h"
#include "comm/control.h"
#include "comm/coordinator.h"
#include "comm/net_fabric.h"
#include "comm/transport.h"

namespace assay::comm {

class CommCore {
 public:
  explicit CommCore(const WorldOptions& options);  // joins; throws as World::join() does
  ~CommCore();

  const WorldOptions& options() const { return options_; }
  Control& control() const { return *control_; }
  const std::vector<int>& hosts() const { return hosts_; }  // of each rank, numbered from 0
  bool spin() const { return spin_; }                       // every process of this host has a core

  // The way to move bytes among these ranks, of which this process is number `index`. `number` is the group's.
  std::unique_ptr<Transport> make_transport(const std::vector<int>& ranks, int index, uint64_t number, Guard& guard);
  std::string describe() const;

  void add_board(std::shared_ptr<ActivityBoard> board);

 private:
  void find_hosts();
  void require_shared_memory() const;
  int members_per_host(const std::vector<int>& ranks) const;

  const WorldOptions options_;
  std::shared_ptr<Health> health_;
  std::unique_ptr<Coordinator> coordinator_;  // rank 0 only
  std::unique_ptr<Control> control_;
  std::vector<int> hosts_;
  std::shared_ptr<NetFabric> fabric_;  // none when all are on one host
  bool spin_ = false;

  std::mutex mutex_;
  std::vector<std::weak_ptr<ActivityBoard>> boards_;
};

}  // namespace assay::comm
