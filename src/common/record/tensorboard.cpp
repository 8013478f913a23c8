#include "record/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/time.h"
#include "record/keys.h"

namespace assay {

static_assert(std::endian::native == std::endian::little, "the frames and numbers below are little-endian");

namespace {

constexpr double kMicroseconds = 1e6;

std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? kReversedPolynomial : 0);
    table[i] = value;
  }
  return table;
}

// TensorFlow's mask: a CRC over bytes that hold a CRC is a bad one.
uint32_t masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

template <typename T>
void append_raw(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// --- protobuf's wire format: a key (field number, wire type), then the value
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}
void append_key(std::string& out, uint32_t field, WireType type) { append_varint(out, (field << 3) | type); }
void append_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  append_key(out, field, kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}
void append_number(std::string& out, uint32_t field, int64_t value) {
  append_key(out, field, kVarint);
  append_varint(out, static_cast<uint64_t>(value));
}

// Event { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5; SessionLog session_log =
// 7; }
std::string event_of(int64_t time_us, int64_t step) {
  std::string event;
  append_key(event, 1, kFixed64);
  append_raw(event, static_cast<double>(time_us) / kMicroseconds);
  append_number(event, 2, step);
  return event;
}

// Summary { repeated Value value = 1; }  Value { string tag = 1; float simple_value = 2; }
void append_scalar(std::string& summary, std::string tag, double value) {
  const size_t dot = tag.find('.');
  if (dot != std::string::npos) tag[dot] = '/';
  std::string entry;
  append_bytes(entry, 1, tag);
  append_key(entry, 2, kFixed32);
  append_raw(entry, static_cast<float>(value));
  append_bytes(summary, 1, entry);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

TensorBoardWriter::TensorBoardWriter(const fs::path& folder) {
  make_folder(folder);
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const int64_t now = now_us();
  // Readers take the files by name; ten digits of seconds, as TensorFlow writes them, then what makes it unique.
  path_ = folder /
          fmt::format("events.out.tfevents.{:010}.{}.{}.{:06}", now / 1'000'000, host, ::getpid(), now % 1'000'000);
  file_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_) throw InfrastructureError(fmt::format("{}: cannot create: {}", path_.string(), std::strerror(errno)));
  std::string version = event_of(now, 0);
  append_bytes(version, 3, "brain.Event:2");
  append(version);
}

void TensorBoardWriter::append(std::string_view event) {
  std::string frame;
  append_raw(frame, static_cast<uint64_t>(event.size()));
  append_raw(frame, masked_crc(frame));
  frame += event;
  append_raw(frame, masked_crc(event));
  write_all(file_.get(), frame, path_);
}

void TensorBoardWriter::write(const Record& record) {
  const auto step = record.data.find(keys::kGlobalStep);
  if (step == record.data.end() || !step->is_number()) return;
  if (record.type == Record::Type::Event && record.name == keys::kResumed) {
    // SessionLog { SessionStatus status = 1; } with START: what has this step or a later one is void.
    constexpr int64_t kStart = 1;
    std::string log;
    append_number(log, 1, kStart);
    std::string event = event_of(record.time_us, step->get<int64_t>() + 1);
    append_bytes(event, 7, log);
    append(event);
  }
  if (record.type != Record::Type::Metrics) return;
  std::string summary;
  for (const auto& [name, value] : record.data.items()) {
    if (name != keys::kGlobalStep && is_number(value)) append_scalar(summary, name, number_of(value));
  }
  std::string event = event_of(record.time_us, step->get<int64_t>());
  append_bytes(event, 5, summary);
  append(event);
}

}  // namespace assay
