// Hosts reached by ssh: the step's folder has a mirror there, a relay (relay.h) brings what the job writes.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "launch/multi_node/transport.h"
#include "launch/ssh/ssh_connection.h"

namespace assay {

class SshTransport : public Transport {
 public:
  SshTransport();
  std::string name() const override { return "ssh"; }
  std::string master_address(const LaunchRequest& request) const override;
  std::unique_ptr<NodeSession> open(const LaunchRequest& request, int node) override;

 private:
  std::shared_ptr<SshConnection> connection_to(const Host& host);

  std::shared_ptr<SocketFolder> sockets_;
  std::mutex mutex_;
  // Connections are kept, for the next job on the same host. Guarded by mutex_.
  std::map<std::string, std::vector<std::shared_ptr<SshConnection>>> connections_;
};

}  // namespace assay
