#include "comm/core.h"

#include <fmt/format.h>
#include <limits.h>
#include <sched.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/time.h"
#include "comm/addresses.h"
#include "comm/hosts_transport.h"
#include "comm/net_group.h"
#include "comm/segment.h"
#include "comm/shm_transport.h"

namespace assay::comm {

namespace {

constexpr double kTryPatience_s = 3;  // for a peer that looks as if it shared memory with us
constexpr size_t kTokenBytes = 32;

std::string host_name() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, HOST_NAME_MAX);
  return name;
}

// Two processes with different values surely cannot hand each other memory; those with the same one try it. Local
// sockets belong to a network namespace.
std::string kernel_identity() {
  std::string boot;
  try {
    boot = std::string(trim(read_file("/proc/sys/kernel/random/boot_id")));
  } catch (const Error&) {
    boot = host_name();
  }
  char space[128] = {};
  const ssize_t length = ::readlink("/proc/self/ns/net", space, sizeof space - 1);
  return boot + " " + std::string(space, length > 0 ? static_cast<size_t>(length) : 0);
}

int num_cores() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

void check_options(const WorldOptions& options) {
  if (options.world_size < 1 || options.rank < 0 || options.rank >= options.world_size) {
    throw ConfigError(fmt::format("RANK {} is outside of a world of WORLD_SIZE {}", options.rank, options.world_size));
  }
  if (options.master_port < 1 || options.master_port > 65535) {
    throw ConfigError(
        fmt::format("MASTER_PORT {} is not a port; choose a free one from 1 to 65535", options.master_port));
  }
  if (options.time_limit_s <= 0 || options.join_limit_s <= 0) {
    throw ConfigError("the time limits of communication must be above 0");
  }
}

}  // namespace

CommCore::CommCore(const WorldOptions& options) : options_(options), health_(std::make_shared<Health>()) {
  check_options(options_);
  Member self = {.rank = options_.rank,
                 .pid = ::getpid(),
                 .host = host_name(),
                 .kernel = kernel_identity(),
                 .address = options_.interface.empty() ? "" : interface_address(options_.interface),
                 .interface = "",
                 .transport = transport_name(options_.transport)};
  if (options_.rank == 0) {
    coordinator_ = std::make_unique<Coordinator>(listen_at(options_.master_address, options_.master_port), options_);
  }
  control_ = std::make_unique<Control>(options_, self, health_);
  find_hosts();
  if (options_.transport == TransportKind::SharedMemory) require_shared_memory();
  const bool one_host = std::count(hosts_.begin(), hosts_.end(), hosts_[0]) == options_.world_size;
  if (options_.transport == TransportKind::Gloo || !one_host) {
    fabric_ = std::make_shared<NetFabric>(*control_, control_->members()[static_cast<size_t>(options_.rank)].address);
  }
  const auto local = std::count(hosts_.begin(), hosts_.end(), hosts_[static_cast<size_t>(options_.rank)]);
  spin_ = local <= num_cores();
  control_->set_status([this] {
    std::vector<Activity> activities;
    const std::lock_guard lock(mutex_);
    for (const auto& weak : boards_) {
      if (const auto board = weak.lock()) activities.push_back(board->now());
    }
    return activities;
  });
}

// The control channel's thread asks this object what is going on, so it ends first.
CommCore::~CommCore() {
  fabric_.reset();
  control_.reset();
  coordinator_.reset();
}

// Which processes share memory is tried: the lowest rank of those that look as if they did puts a random number into a
// segment, and the others tell what they read there.
void CommCore::find_hosts() {
  const std::vector<Member>& members = control_->members();
  std::map<std::string, int> first_of;
  for (const Member& member : members) first_of.try_emplace(member.kernel, member.rank);
  const auto alike = [&](const Member& a) { return a.kernel == members[static_cast<size_t>(options_.rank)].kernel; };
  const int num_alike = static_cast<int>(std::count_if(members.begin(), members.end(), alike));
  const int leader = first_of[members[static_cast<size_t>(options_.rank)].kernel];
  const std::string name = fmt::format("{}-host-{}", control_->token(), leader);
  const Stopwatch watch;
  const auto check = [&] {
    control_->health().check("looking for shared memory");
    if (watch.seconds() > kTryPatience_s) throw InfrastructureError("it cannot be shared");
  };
  std::string found = fmt::format("alone {}", options_.rank);
  try {
    if (num_alike > 1 && leader == options_.rank) {
      FileDescriptor file = Segment::create(kTokenBytes);
      const int handed = file.get();
      std::string token(kTokenBytes, '\0');
      if (::getrandom(token.data(), token.size(), 0) < 0) throw InfrastructureError("no random bytes");
      if (::pwrite(handed, token.data(), token.size(), 0) < 0) throw InfrastructureError("shared memory is full");
      found = token;
      give_segment(name, handed, num_alike - 1, check);
    } else if (num_alike > 1) {
      const Segment segment(take_segment(name, check), kTokenBytes);
      found.assign(reinterpret_cast<const char*>(segment.data()), kTokenBytes);
    }
  } catch (const InfrastructureError&) {  // then these processes are on different hosts, as far as memory goes
  }
  control_->set(fmt::format("host of {}", options_.rank), found);
  std::map<std::string, int> numbers;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    const std::string value = control_->get(fmt::format("host of {}", rank));
    hosts_.push_back(numbers.try_emplace(value, static_cast<int>(numbers.size())).first->second);
  }
}

void CommCore::require_shared_memory() const {
  std::vector<int> elsewhere;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (hosts_[static_cast<size_t>(rank)] != hosts_[0]) elsewhere.push_back(rank);
  }
  if (elsewhere.empty()) return;
  const std::string problem =
      fmt::format("transport shared_memory: {} cannot share memory with rank 0; use auto", ranks_text(elsewhere));
  control_->fail(problem);  // others may not know where everybody is yet
  throw CommunicationError(problem);
}

// How many members each host has when they stand host by host, the same number on each; 0 when they do not.
int CommCore::members_per_host(const std::vector<int>& ranks) const {
  std::vector<int> hosts;
  for (const int rank : ranks) hosts.push_back(hosts_[static_cast<size_t>(rank)]);
  const auto first = std::find_if(hosts.begin(), hosts.end(), [&](int host) { return host != hosts.front(); });
  const auto run = static_cast<size_t>(first - hosts.begin());
  if (hosts.size() % run != 0) return 0;
  std::set<int> seen;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (i % run == 0 && !seen.insert(hosts[i]).second) return 0;
    if (hosts[i] != hosts[i - i % run]) return 0;
  }
  return static_cast<int>(run);
}

std::unique_ptr<Transport> CommCore::make_transport(const std::vector<int>& ranks, int index, uint64_t number,
                                                    Guard& guard) {
  const int size = static_cast<int>(ranks.size());
  const int local_size = members_per_host(ranks);
  const std::string name = fmt::format("{}-{}", control_->token(), number);
  if (options_.transport == TransportKind::Gloo || local_size <= 1) {
    return std::make_unique<NetEngine>(fabric_, ranks, index, number);
  }
  if (local_size == size) return std::make_unique<ShmTransport>(name, index, size, spin_, guard);
  return std::make_unique<HostsTransport>(fabric_, ranks, index, local_size, number, name, spin_, guard);
}

std::string CommCore::describe() const {
  const int num_hosts = *std::max_element(hosts_.begin(), hosts_.end()) + 1;
  const Member& self = control_->members()[static_cast<size_t>(options_.rank)];
  const std::string network = "gloo over " + (self.interface.empty() ? self.address : self.interface);
  std::string how = "shared memory";
  if (options_.transport == TransportKind::Gloo || num_hosts == options_.world_size) {
    how = network;
  } else if (num_hosts > 1) {
    how = fmt::format("shared memory within a host, {} between hosts", network);
  }
  return fmt::format("{} processes on {} host{}; {}", options_.world_size, num_hosts, num_hosts == 1 ? "" : "s", how);
}

void CommCore::add_board(std::shared_ptr<ActivityBoard> board) {
  const std::lock_guard lock(mutex_);
  std::erase_if(boards_, [](const auto& weak) { return weak.expired(); });
  boards_.push_back(board);
}

}  // namespace assay::comm
