// Sockets by name: where to listen, whom to reach, which address an interface has. IPv4 and IPv6. Every error says what
// was looked for and what there is.
#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <vector>

#include "base/files.h"

namespace assay::comm {

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  bool is_loopback() const;
  std::string host() const;  // "10.0.0.1", "fe80::1%eth0"
};

// "10.0.0.1:29500", "[::1]:29500"
std::string endpoint_text(const std::string& address, int port);

// nullopt when the name has no address now; `problem` then says why.
std::optional<SocketAddress> resolve_address(const std::string& name, int port, std::string& problem);

// Rank 0 listens here. Throws CommunicationError for a port in use and for an address that this host does not have.
FileDescriptor listen_at(const std::string& address, int port);
// Where rank 0 reaches its own listener, whatever happens to the network.
std::string own_address_of(const std::string& address);

SocketAddress local_address(int fd);
SocketAddress peer_address(int fd);

// The address of a network interface, IPv4 first. Throws CommunicationError that lists the interfaces that have one.
std::string interface_address(const std::string& name);
// The interface that has this address: "eth0"; "" when none has.
std::string interface_of(const std::string& address);

}  // namespace assay::comm
