// Messages over a TCP connection that never blocks: a length, a type, and fields. Knows bytes only; whoever sits at the
// other end may be a stranger, so every length is checked.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/files.h"

namespace assay::comm {

class WireError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Encoder {
 public:
  explicit Encoder(uint8_t type) { u8(type); }
  Encoder& u8(uint8_t value);
  Encoder& u64(uint64_t value);
  Encoder& i32(int32_t value) { return u64(static_cast<uint64_t>(static_cast<int64_t>(value))); }
  Encoder& f64(double value);
  Encoder& text(std::string_view value);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Throws WireError at the end of the message.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : bytes_(bytes) {}
  uint8_t u8();
  uint64_t u64();
  int32_t i32() { return static_cast<int32_t>(static_cast<int64_t>(u64())); }
  double f64();
  std::string text();
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view take(size_t count);
  std::string_view bytes_;
};

class WireConnection {
 public:
  WireConnection() = default;
  explicit WireConnection(FileDescriptor socket);  // made non-blocking
  int fd() const { return socket_.get(); }
  bool open() const { return socket_.get() >= 0; }
  void close();

  // Reads what has come; false when the peer has closed or the connection broke.
  bool read_some();
  // The next whole message, if there is one. Throws WireError for a length above the limit.
  bool next(std::string& message);
  void set_limit(size_t bytes) { limit_ = bytes; }

  void queue(const Encoder& message);
  bool flush();  // writes what it can; false when the connection broke
  bool has_output() const { return sent_ < output_.size(); }

 private:
  FileDescriptor socket_;
  std::string input_;
  std::string output_;
  size_t sent_ = 0;
  size_t limit_ = 64u << 20;
};

}  // namespace assay::comm
