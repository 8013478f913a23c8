#include "param_server/wire.h"

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"

namespace assay::ps {

namespace {

constexpr size_t kCheckedHeader = kHeaderSize - sizeof(uint32_t);

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

template <typename T>
T at_offset(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::string frame_header(uint16_t kind, uint64_t request_id, std::string_view payload) {
  Encoder header;
  header.put(kFrameMagic);
  header.put(kProtocolVersion);
  header.put(kind);
  header.put(request_id);
  header.put(static_cast<uint64_t>(payload.size()));
  header.put(crc_of(payload));
  header.put(crc_of(header.text()));
  return std::move(header.text());
}

FrameHeader parse_header(std::string_view bytes, uint64_t max_payload) {
  ASSAY_CHECK(bytes.size() == kHeaderSize, "a header of another size");
  if (at_offset<uint32_t>(bytes, 0) != kFrameMagic) {
    throw CommunicationError("these bytes are not a message of a parameter server or trainer");
  }
  if (at_offset<uint32_t>(bytes, kCheckedHeader) != crc_of(bytes.substr(0, kCheckedHeader))) {
    throw CommunicationError("the header of a message was damaged on its way");
  }
  const auto version = at_offset<uint16_t>(bytes, 4);
  if (version != kProtocolVersion) {
    throw CommunicationError(
        fmt::format("the peer speaks version {} of the protocol, this program version {}: use the same build", version,
                    kProtocolVersion));
  }
  const FrameHeader header{.kind = at_offset<uint16_t>(bytes, 6),
                           .request_id = at_offset<uint64_t>(bytes, 8),
                           .payload_size = at_offset<uint64_t>(bytes, 16),
                           .payload_crc = at_offset<uint32_t>(bytes, 24)};
  if (header.payload_size > max_payload) {
    throw CommunicationError(
        fmt::format("a message of {} bytes, the limit is {}: use more servers", header.payload_size, max_payload));
  }
  return header;
}

void check_payload(const FrameHeader& header, std::string_view payload) {
  if (payload.size() != header.payload_size || crc_of(payload) != header.payload_crc) {
    throw CommunicationError("a message was damaged on its way");
  }
}

void Encoder::put_text(std::string_view text) {
  put(static_cast<uint32_t>(text.size()));
  out_.append(text);
}

void Encoder::put_ids(std::span<const int64_t> ids) {
  put(static_cast<uint64_t>(ids.size()));
  put_bytes(ids.data(), ids.size_bytes());
}

std::string_view Decoder::take(uint64_t size) {
  if (size > rest_.size()) {
    throw CommunicationError(fmt::format("a message ends {} bytes too early", size - rest_.size()));
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

std::string Decoder::get_text(size_t max_size) {
  const auto size = get<uint32_t>();
  if (size > max_size) throw CommunicationError(fmt::format("a text of {} bytes, the limit is {}", size, max_size));
  return std::string(take(size));
}

std::vector<int64_t> Decoder::get_ids() {
  const auto count = get<uint64_t>();
  if (count > rest_.size() / sizeof(int64_t)) {
    throw CommunicationError(
        fmt::format("a message claims {} ids and has bytes for {}", count, rest_.size() / sizeof(int64_t)));
  }
  const std::string_view bytes = take(count * sizeof(int64_t));
  std::vector<int64_t> ids(count);
  if (count > 0) std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

std::vector<std::byte> Decoder::get_bytes(uint64_t count, uint64_t size_of_each) {
  if (size_of_each > 0 && count > rest_.size() / size_of_each) {
    throw CommunicationError(
        fmt::format("a message claims {} values of {} bytes and has {} bytes", count, size_of_each, rest_.size()));
  }
  const std::string_view bytes = take(count * size_of_each);
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

void Decoder::finish() const {
  if (!rest_.empty()) throw CommunicationError(fmt::format("a message has {} bytes too many", rest_.size()));
}

}  // namespace assay::ps
