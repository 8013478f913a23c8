#include "comm/segment.h"

#include <errno.h>
#include <fmt/format.h>
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/error.h"

namespace assay::comm {

namespace {

constexpr int kPatience_ms = 20;

// An abstract address: it belongs to a network namespace, not to a file system, and ends with its socket.
socklen_t local_name(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string full = "assay-" + name;
  ASSAY_CHECK(full.size() + 1 < sizeof address.sun_path, "a name too long for a socket: " + full);
  std::memcpy(address.sun_path + 1, full.data(), full.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
}

// Such addresses are open to every user of the host; ours is only for ourselves.
bool same_user(int socket) {
  ucred peer = {};
  socklen_t length = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

// A message of one byte with room for one file descriptor beside it.
struct FileMessage {
  char byte = 1;
  iovec content = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  FileMessage() {
    message.msg_iov = &content;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;
};

bool send_file(int socket, int file) {
  FileMessage out;
  cmsghdr* header = CMSG_FIRSTHDR(&out.message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  return ::sendmsg(socket, &out.message, MSG_NOSIGNAL) == 1;
}

FileDescriptor receive_file(int socket) {
  FileMessage in;
  if (::recvmsg(socket, &in.message, MSG_CMSG_CLOEXEC) != 1) return FileDescriptor();
  const cmsghdr* header = CMSG_FIRSTHDR(&in.message);
  if (!header || header->cmsg_type != SCM_RIGHTS) return FileDescriptor();
  int file = -1;
  std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return FileDescriptor(file);
}

}  // namespace

Segment::Segment(FileDescriptor file, size_t bytes) : size_(bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    throw InfrastructureError(fmt::format("cannot map {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  data_ = static_cast<std::byte*>(data);
}

Segment::~Segment() { ::munmap(data_, size_); }

FileDescriptor Segment::create(size_t bytes) {
  FileDescriptor file(::memfd_create("assay-comm", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw InfrastructureError(fmt::format("cannot create {} bytes of shared memory: {}", bytes, std::strerror(errno)));
  }
  return file;
}

void give_segment(const std::string& name, int file, int num_takers, const std::function<void()>& check) {
  sockaddr_un address;
  const socklen_t length = local_name(name, address);
  const FileDescriptor listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener.get(), num_takers + 8) != 0) {
    throw InfrastructureError(fmt::format("cannot open a local socket: {}", std::strerror(errno)));
  }
  while (num_takers > 0) {
    pollfd ready = {listener.get(), POLLIN, 0};
    ::poll(&ready, 1, kPatience_ms);
    check();
    const FileDescriptor socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket && same_user(socket.get()) && send_file(socket.get(), file)) --num_takers;
  }
}

FileDescriptor take_segment(const std::string& name, const std::function<void()>& check) {
  sockaddr_un address;
  const socklen_t length = local_name(name, address);
  while (true) {
    const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      ::usleep(1000);  // the giver is not there yet
      check();
      continue;
    }
    pollfd ready = {socket.get(), POLLIN, 0};
    while (::poll(&ready, 1, kPatience_ms) == 0) check();
    if (same_user(socket.get())) {
      FileDescriptor file = receive_file(socket.get());
      if (file) return file;
    }
    check();
  }
}

}  // namespace assay::comm
