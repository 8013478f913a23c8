#include "comm/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace assay::comm {

Encoder& Encoder::u8(uint8_t value) {
  bytes_.push_back(static_cast<char>(value));
  return *this;
}

Encoder& Encoder::u64(uint64_t value) {
  for (int i = 0; i < 8; ++i) bytes_.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  return *this;
}

Encoder& Encoder::f64(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, 8);
  return u64(bits);
}

Encoder& Encoder::text(std::string_view value) {
  u64(value.size());
  bytes_.append(value);
  return *this;
}

std::string_view Decoder::take(size_t count) {
  if (count > bytes_.size()) throw WireError("a message ends too early");
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

uint8_t Decoder::u8() { return static_cast<uint8_t>(take(1)[0]); }

uint64_t Decoder::u64() {
  const std::string_view bytes = take(8);
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i) value |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  return value;
}

double Decoder::f64() {
  const uint64_t bits = u64();
  double value;
  std::memcpy(&value, &bits, 8);
  return value;
}

std::string Decoder::text() {
  const uint64_t size = u64();
  return std::string(take(size));
}

WireConnection::WireConnection(FileDescriptor socket) : socket_(std::move(socket)) {
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
  const int on = 1;
  ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void WireConnection::close() { socket_ = FileDescriptor(); }

bool WireConnection::read_some() {
  char block[65536];
  while (true) {
    const ssize_t count = ::recv(socket_.get(), block, sizeof block, 0);
    if (count > 0) {
      input_.append(block, static_cast<size_t>(count));
      if (input_.size() > limit_ + 8) return true;  // next() complains or takes messages out
      continue;
    }
    if (count == 0) return false;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK;
  }
}

bool WireConnection::next(std::string& message) {
  if (input_.size() < 8) return false;
  const uint64_t size = Decoder(input_).u64();
  if (size == 0 || size > limit_) throw WireError("a message of an impossible length");
  if (input_.size() < 8 + size) return false;
  message.assign(input_, 8, size);
  input_.erase(0, 8 + size);
  return true;
}

void WireConnection::queue(const Encoder& message) {
  const uint64_t size = message.bytes().size();
  for (int i = 0; i < 8; ++i) output_.push_back(static_cast<char>((size >> (8 * i)) & 0xff));
  output_ += message.bytes();
}

bool WireConnection::flush() {
  while (sent_ < output_.size()) {
    const ssize_t count = ::send(socket_.get(), output_.data() + sent_, output_.size() - sent_, MSG_NOSIGNAL);
    if (count >= 0) {
      sent_ += static_cast<size_t>(count);
      continue;
    }
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == EWOULDBLOCK;
  }
  output_.clear();
  sent_ = 0;
  return true;
}

}  // namespace assay::comm
