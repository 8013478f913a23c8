// All processes of a job: how they find each other, who shares a host with whom, and who was lost. Groups are made from
// it. The one object of communication that a program holds.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"

namespace assay::comm {

enum class TransportKind { Auto, SharedMemory, Gloo };
TransportKind transport_of(const std::string& name);  // "auto", "shared_memory", "gloo"; throws ConfigError
std::string transport_name(TransportKind transport);

struct WorldOptions {
  int rank = 0;
  int world_size = 1;
  std::string master_address = "127.0.0.1";  // of the host of rank 0
  int master_port = 0;
  TransportKind transport = TransportKind::Auto;
  std::string interface = {};  // whose address others are told: "eth0"; empty: the one that leads to the master
  // Any one wait lasts at most so long, and so does the search for a peer that does not answer.
  double time_limit_s = 30;
  double join_limit_s = 30;  // until all processes have come, and until an earlier job has left the port
};

class World {
 public:
  // Returns when all processes are there. Throws CommunicationError within seconds for a port in use, a rank that came
  // twice, processes that disagree about world_size, an interface without an address; after join_limit_s for ranks
  // that did not come, naming them. A world of one opens no socket.
  static std::unique_ptr<World> join(const WorldOptions& options);
  virtual ~World() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the processes of this host
  virtual int local_size() const = 0;
  virtual int num_hosts() const = 0;
  // "4 processes on 2 hosts; shared memory within a host, gloo over eth0 between hosts".
  virtual std::string describe() const = 0;

  // The communicator of these ranks, in this order, of which this process is one. Called by the members only, and by
  // each of them for the groups it is in in the same order. `name` is the same on all of them: "dp", "tp".
  virtual std::unique_ptr<Communicator> group(const std::vector<int>& ranks, const std::string& name) = 0;

  // Tells the others that this process fails, so that they end at once and name it and its reason. Of kind Config the
  // others fail with ConfigError too, whoever of them finds the mistake first: the configuration is that of all.
  virtual void fail(const std::string& reason, ErrorKind kind = ErrorKind::Internal) = 0;
  // The normal end: waits until all have come here, then a closed connection is not a loss.
  virtual void leave() = 0;
};

}  // namespace assay::comm
