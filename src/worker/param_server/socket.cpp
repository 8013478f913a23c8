#include "param_server/socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace assay::ps {

namespace {

constexpr size_t kFirstBytes = 1 << 16;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses addresses_of(const Endpoint& endpoint, bool passive) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &list);
  if (error != 0) {
    const std::string what = fmt::format("{}: {}", endpoint.text(), ::gai_strerror(error));
    if (passive) throw InfrastructureError(what);
    throw ConnectionLost(what);
  }
  return Addresses(list);
}

int poll_ms(Deadline deadline) {
  if (deadline == kNever) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

enum class Ready { Yes, Late, Woken };

Ready wait_ready(int fd, short events, Deadline deadline, int wake_fd) {
  while (true) {
    pollfd entries[2] = {{fd, events, 0}, {wake_fd, POLLIN, 0}};
    const int count = ::poll(entries, wake_fd >= 0 ? 2 : 1, poll_ms(deadline));
    if (count < 0 && errno != EINTR) throw ConnectionLost(fmt::format("poll: {}", std::strerror(errno)));
    if (wake_fd >= 0 && entries[1].revents != 0) return Ready::Woken;
    if (count > 0 && entries[0].revents != 0) return Ready::Yes;
    if (deadline != kNever && Clock::now() >= deadline) return Ready::Late;
  }
}

void set_up(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A host that vanished without a word is noticed even when nobody sends.
  ::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle_s = 10;
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  ::setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &idle_s, sizeof idle_s);
}

// Reads exactly `size` bytes, appended to `out`. `deadline` is for the first byte.
void receive_bytes(int fd, size_t size, std::string& out, Deadline deadline, const ReceiveLimits& limits) {
  size_t done = out.size();
  const size_t end = done + size;
  while (done < end) {
    if (out.size() == done) out.resize(std::min(end, done + std::max(kFirstBytes, done)));
    const ssize_t count = ::recv(fd, out.data() + done, out.size() - done, 0);
    if (count > 0) {
      done += static_cast<size_t>(count);
      deadline = after(limits.stall_s);
      continue;
    }
    if (count == 0) throw ConnectionLost("the connection was closed");
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) throw ConnectionLost(std::strerror(errno));
    switch (wait_ready(fd, POLLIN, deadline, limits.wake_fd)) {
      case Ready::Yes: break;
      case Ready::Late: throw TimeoutError("no answer within the time limit");
      case Ready::Woken: throw InterruptedError("stopped");
    }
  }
}

void send_bytes(int fd, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) throw ConnectionLost(std::strerror(errno));
    if (wait_ready(fd, POLLOUT, deadline, -1) != Ready::Yes) throw TimeoutError("the peer takes no data");
  }
}

}  // namespace

FileDescriptor listen_at(const Endpoint& endpoint) {
  const Addresses addresses = addresses_of(endpoint, true);
  FileDescriptor listener(
      ::socket(addresses->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, addresses->ai_protocol));
  const int on = 1;
  if (listener) ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listener || ::bind(listener.get(), addresses->ai_addr, addresses->ai_addrlen) != 0 ||
      ::listen(listener.get(), 128) != 0) {
    throw InfrastructureError(fmt::format("cannot listen at {}: {}", endpoint.text(), std::strerror(errno)));
  }
  return listener;
}

int port_of(const FileDescriptor& listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw InfrastructureError(fmt::format("getsockname: {}", std::strerror(errno)));
  }
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                                             : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

FileDescriptor accept_peer(const FileDescriptor& listener, Deadline deadline, int wake_fd, std::string& peer) {
  while (wait_ready(listener.get(), POLLIN, deadline, wake_fd) == Ready::Yes) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    FileDescriptor fd(
        ::accept4(listener.get(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      // Out of descriptors: waiting lets connections end; a busy loop would not.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) ::usleep(10'000);
      if (Clock::now() >= deadline) break;
      continue;
    }
    set_up(fd.get());
    char host[NI_MAXHOST] = "?";
    char port[NI_MAXSERV] = "?";
    ::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV);
    peer = fmt::format("{}:{}", host, port);
    return fd;
  }
  return {};
}

FileDescriptor connect_to(const Endpoint& endpoint, Deadline deadline) {
  const Addresses addresses = addresses_of(endpoint, false);
  std::string reason = "no address";
  for (const addrinfo* entry = addresses.get(); entry; entry = entry->ai_next) {
    FileDescriptor fd(::socket(entry->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, entry->ai_protocol));
    if (!fd) {
      reason = std::strerror(errno);
      continue;
    }
    int error = ::connect(fd.get(), entry->ai_addr, entry->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof error;
      if (wait_ready(fd.get(), POLLOUT, deadline, -1) != Ready::Yes) {
        error = ETIMEDOUT;
      } else {
        ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
    if (error == 0) {
      set_up(fd.get());
      return fd;
    }
    reason = std::strerror(error);
  }
  throw ConnectionLost(fmt::format("cannot connect to {}: {}", endpoint.text(), reason));
}

void send_frame(int fd, uint16_t kind, uint64_t request_id, std::string_view payload, Deadline deadline) {
  std::string head = frame_header(kind, request_id, payload);
  if (payload.size() <= kFirstBytes) {  // one packet, one system call
    head += payload;
    return send_bytes(fd, head, deadline);
  }
  send_bytes(fd, head, deadline);
  send_bytes(fd, payload, deadline);
}

Frame receive_frame(int fd, const ReceiveLimits& limits) {
  std::string head;
  receive_bytes(fd, kHeaderSize, head, limits.first, limits);
  Frame frame{.header = parse_header(head, limits.max_payload), .payload = {}};
  receive_bytes(fd, frame.header.payload_size, frame.payload, after(limits.stall_s), limits);
  check_payload(frame.header, frame.payload);
  return frame;
}

}  // namespace assay::ps
