#include "launch/host/port.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <mutex>

#include "base/error.h"
#include "base/files.h"

namespace assay {

namespace {

// Listens at the port (0: one that the kernel chooses) for a moment. Returns the port, or -errno.
int try_to_listen(int port) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return -errno;
  // Connections of a job that has ended are no obstacle; one that listens is.
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(static_cast<uint16_t>(port));
  socklen_t size = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(socket.get(), 1) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return -errno;
  }
  return ntohs(address.sin_port);
}

}  // namespace

int free_port() {
  // The kernel may offer one again that was given back a moment ago, and a job asks for several.
  static std::deque<int> recent;
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  constexpr size_t kRemembered = 64;
  constexpr int kTries = 200;
  int port = 0;
  for (int i = 0; i < kTries; ++i) {
    port = try_to_listen(0);
    if (port <= 0 || std::find(recent.begin(), recent.end(), port) != recent.end()) continue;
    recent.push_back(port);
    if (recent.size() > kRemembered) recent.pop_front();
    return port;
  }
  throw InfrastructureError(fmt::format("no free TCP port{}", port < 0 ? fmt::format(": {}", ::strerror(-port)) : ""));
}

void check_port_free(int port) {
  const int got = try_to_listen(port);
  if (got > 0) return;
  throw InfrastructureError(
      got == -EADDRINUSE
          ? fmt::format("port {} is in use on this host: choose another with --master_port, or none for a job on one "
                        "host",
                        port)
          : fmt::format("port {} cannot be listened at: {}", port, ::strerror(-got)));
}

}  // namespace assay
