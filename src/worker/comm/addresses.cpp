#include "comm/addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace assay::comm {

namespace {

struct InterfaceAddress {
  std::string name;
  std::string address;
  int family;
};

std::string host_text(const sockaddr* address, socklen_t length) {
  char text[NI_MAXHOST];
  return ::getnameinfo(address, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0 ? text : "";
}

std::vector<InterfaceAddress> interface_addresses() {
  std::vector<InterfaceAddress> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
      if (!entry->ifa_addr || entry->ifa_addr->sa_family != family || !(entry->ifa_flags & IFF_UP)) continue;
      const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      found.push_back({entry->ifa_name, host_text(entry->ifa_addr, length), family});
    }
  }
  ::freeifaddrs(list);
  return found;
}

SocketAddress any_address(int family, int port) {
  SocketAddress any;
  if (family == AF_INET6) {
    auto* address = reinterpret_cast<sockaddr_in6*>(&any.storage);
    address->sin6_family = AF_INET6;
    address->sin6_addr = in6addr_any;
    address->sin6_port = htons(static_cast<uint16_t>(port));
    any.length = sizeof(sockaddr_in6);
  } else {
    auto* address = reinterpret_cast<sockaddr_in*>(&any.storage);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_ANY);
    address->sin_port = htons(static_cast<uint16_t>(port));
    any.length = sizeof(sockaddr_in);
  }
  return any;
}

bool is_local(const SocketAddress& address) {
  SocketAddress without_port = address;
  if (address.storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&without_port.storage)->sin6_port = 0;
  } else {
    reinterpret_cast<sockaddr_in*>(&without_port.storage)->sin_port = 0;
  }
  const FileDescriptor probe(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::bind(probe.get(), without_port.get(), without_port.length) == 0;
}

// 127.0.0.1 and ::1 name this host and nothing else; other loopback addresses are often a host name's entry in
// /etc/hosts, under which other hosts know it by its real address.
bool only_this_host(const SocketAddress& address) {
  const std::string host = address.host();
  return host == "127.0.0.1" || host == "::1";
}

}  // namespace

bool SocketAddress::is_loopback() const {
  if (storage.ss_family == AF_INET) {
    return (ntohl(reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr) >> 24) == 127;
  }
  return storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr);
}

std::string SocketAddress::host() const { return host_text(get(), length); }

std::string endpoint_text(const std::string& address, int port) {
  return address.find(':') == std::string::npos ? fmt::format("{}:{}", address, port)
                                                : fmt::format("[{}]:{}", address, port);
}

std::optional<SocketAddress> resolve_address(const std::string& name, int port, std::string& problem) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int result = ::getaddrinfo(name.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (result != 0) {
    problem = ::gai_strerror(result);
    return std::nullopt;
  }
  SocketAddress address;
  const addrinfo* chosen = list;
  for (const addrinfo* entry = list; entry; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET) {
      chosen = entry;
      break;
    }
  }
  std::memcpy(&address.storage, chosen->ai_addr, chosen->ai_addrlen);
  address.length = chosen->ai_addrlen;
  ::freeaddrinfo(list);
  return address;
}

FileDescriptor listen_at(const std::string& address, int port) {
  const std::string where = endpoint_text(address, port);
  std::string problem;
  const auto target = resolve_address(address, port, problem);
  if (!target) throw CommunicationError(fmt::format("MASTER_ADDR '{}' has no address: {}", address, problem));
  if (!is_local(*target)) {
    throw CommunicationError(
        fmt::format("MASTER_ADDR {} ({}) is not an address of this host, on which rank 0 runs; set MASTER_ADDR to an "
                    "address of the host of rank 0",
                    address, target->host()));
  }
  const SocketAddress at = only_this_host(*target) ? *target : any_address(target->storage.ss_family, port);
  FileDescriptor listener(::socket(at.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listener || ::bind(listener.get(), at.get(), at.length) != 0 || ::listen(listener.get(), 1024) != 0) {
    if (errno == EADDRINUSE) {
      throw CommunicationError(
          fmt::format("port {} of MASTER_ADDR {} is in use: choose another MASTER_PORT, or end the job that has it",
                      port, address));
    }
    throw CommunicationError(fmt::format("rank 0 cannot listen at {}: {}", where, std::strerror(errno)));
  }
  return listener;
}

std::string own_address_of(const std::string& address) {
  std::string problem;
  const auto target = resolve_address(address, 0, problem);
  if (!target || only_this_host(*target)) return address;
  return target->storage.ss_family == AF_INET6 ? "::1" : "127.0.0.1";
}

SocketAddress local_address(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

SocketAddress peer_address(int fd) {
  SocketAddress address;
  address.length = sizeof address.storage;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.length);
  return address;
}

std::string interface_address(const std::string& name) {
  std::vector<std::string> others;
  for (const InterfaceAddress& entry : interface_addresses()) {
    if (entry.name == name) return entry.address;
    others.push_back(entry.name + " " + entry.address);
  }
  const bool exists = ::if_nametoindex(name.c_str()) != 0;
  throw CommunicationError(fmt::format("network interface '{}' {}; those with an address: {}", name,
                                       exists ? "has no address" : "does not exist", join(others, ", ")));
}

std::string interface_of(const std::string& address) {
  for (const InterfaceAddress& entry : interface_addresses()) {
    if (entry.address == address) return entry.name;
  }
  return "";
}

}  // namespace assay::comm
