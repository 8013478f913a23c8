// Bytes on the wire: frames with a checked header, and values in their payloads. Everything that arrives is hostile:
// a count is believed only when the bytes for it are there. All numbers are little-endian.
//
// A frame: magic "APS1" | version u16 | kind u16 | request id u64 | payload bytes u64 | CRC-32 of the payload u32 |
// CRC-32 of the 28 bytes before u32; then the payload.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace assay::ps {

static_assert(std::endian::native == std::endian::little, "rows are sent as they are in memory");

inline constexpr uint32_t kFrameMagic = 0x31535041;  // "APS1"
inline constexpr uint16_t kProtocolVersion = 2;
inline constexpr size_t kHeaderSize = 32;
// Before a peer has said who it is, and of messages without rows.
inline constexpr uint64_t kSmallFrame = 1 << 16;

struct FrameHeader {
  uint16_t kind = 0;
  uint64_t request_id = 0;
  uint64_t payload_size = 0;
  uint32_t payload_crc = 0;
};

std::string frame_header(uint16_t kind, uint64_t request_id, std::string_view payload);
// Throws CommunicationError for anything but a header of this version with a payload of at most `max_payload`.
FrameHeader parse_header(std::string_view bytes, uint64_t max_payload);
// Throws CommunicationError when the payload is not what was sent.
void check_payload(const FrameHeader& header, std::string_view payload);

class Encoder {
 public:
  template <typename T>
  void put(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put_text(std::string_view text);
  void put_ids(std::span<const int64_t> ids);
  void put_bytes(const void* bytes, size_t size) { out_.append(static_cast<const char*>(bytes), size); }
  std::string& text() { return out_; }

 private:
  std::string out_;
};

// Every read throws CommunicationError when the payload is too short.
class Decoder {
 public:
  explicit Decoder(std::string_view payload) : rest_(payload) {}
  template <typename T>
  T get() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string get_text(size_t max_size);
  std::vector<int64_t> get_ids();
  std::vector<std::byte> get_bytes(uint64_t count, uint64_t size_of_each);
  size_t size() const { return rest_.size(); }
  void finish() const;  // throws when bytes are left

 private:
  std::string_view take(uint64_t size);
  std::string_view rest_;
};

}  // namespace assay::ps
