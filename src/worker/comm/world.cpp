#include "comm/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "comm/core.h"
#include "comm/group.h"
#include "comm/solo.h"

namespace assay::comm {

TransportKind transport_of(const std::string& name) {
  if (name == "auto") return TransportKind::Auto;
  if (name == "shared_memory") return TransportKind::SharedMemory;
  if (name == "gloo") return TransportKind::Gloo;
  throw ConfigError(fmt::format("transport '{}' is unknown; available: auto, shared_memory, gloo{}", name,
                                did_you_mean(name, {"auto", "shared_memory", "gloo"})));
}

std::string transport_name(TransportKind transport) {
  switch (transport) {
    case TransportKind::Auto: return "auto";
    case TransportKind::SharedMemory: return "shared_memory";
    case TransportKind::Gloo: return "gloo";
  }
  return "auto";
}

namespace {

class WorldOfOne : public World {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int local_rank() const override { return 0; }
  int local_size() const override { return 1; }
  int num_hosts() const override { return 1; }
  std::string describe() const override { return "1 process"; }
  std::unique_ptr<Communicator> group(const std::vector<int>& ranks, const std::string& name) override {
    ASSAY_CHECK(ranks == std::vector<int>{0}, "a world of one has one rank");
    return std::make_unique<SoloCommunicator>(0, name);
  }
  void fail(const std::string&, ErrorKind) override {}
  void leave() override {}
};

class WorldOfMany : public World {
 public:
  explicit WorldOfMany(const WorldOptions& options) : core_(std::make_shared<CommCore>(options)) {}

  int rank() const override { return core_->options().rank; }
  int size() const override { return core_->options().world_size; }
  int local_rank() const override {
    const std::vector<int>& hosts = core_->hosts();
    return static_cast<int>(std::count(hosts.begin(), hosts.begin() + rank(), hosts[static_cast<size_t>(rank())]));
  }
  int local_size() const override {
    const std::vector<int>& hosts = core_->hosts();
    return static_cast<int>(std::count(hosts.begin(), hosts.end(), hosts[static_cast<size_t>(rank())]));
  }
  int num_hosts() const override { return *std::max_element(core_->hosts().begin(), core_->hosts().end()) + 1; }
  std::string describe() const override { return core_->describe(); }
  std::unique_ptr<Communicator> group(const std::vector<int>& ranks, const std::string& name) override;
  void fail(const std::string& reason, ErrorKind kind) override { core_->control().fail(reason, kind); }
  void leave() override { core_->control().leave(); }

 private:
  const std::shared_ptr<CommCore> core_;
  std::map<std::string, int> times_made_;  // groups of the same name and ranks are told apart by it
};

std::unique_ptr<Communicator> WorldOfMany::group(const std::vector<int>& ranks, const std::string& name) {
  std::string key = name;
  for (const int member : ranks) {
    ASSAY_CHECK(member >= 0 && member < size(), fmt::format("group {}: there is no rank {}", name, member));
    ASSAY_CHECK(std::count(ranks.begin(), ranks.end(), member) == 1,
                fmt::format("group {}: rank {} is in it twice", name, member));
    key += fmt::format(" {}", member);
  }
  const auto position = std::find(ranks.begin(), ranks.end(), rank());
  ASSAY_CHECK(position != ranks.end(), fmt::format("group {}: this rank, {}, is not in it", name, rank()));
  if (ranks.size() == 1) return std::make_unique<SoloCommunicator>(rank(), name);
  key += fmt::format(" #{}", ++times_made_[key]);
  return std::make_unique<GroupCommunicator>(core_, ranks, static_cast<int>(position - ranks.begin()), name, key);
}

}  // namespace

std::unique_ptr<World> World::join(const WorldOptions& options) {
  if (options.world_size == 1 && options.rank == 0) return std::make_unique<WorldOfOne>();
  return std::make_unique<WorldOfMany>(options);
}

}  // namespace assay::comm
