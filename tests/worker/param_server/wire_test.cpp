#include "param_server/wire.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace assay::ps {

TEST(PsWire, ReadsFramesBack) {
  const std::string payload = "some bytes";
  const std::string header = frame_header(7, 42, payload);
  ASSERT_EQ(header.size(), kHeaderSize);
  const FrameHeader parsed = parse_header(header, 100);
  EXPECT_EQ(parsed.kind, 7);
  EXPECT_EQ(parsed.request_id, 42u);
  EXPECT_EQ(parsed.payload_size, payload.size());
  EXPECT_NO_THROW(check_payload(parsed, payload));
  EXPECT_THROW(check_payload(parsed, "some bytez"), CommunicationError);
  EXPECT_THROW(check_payload(parsed, "some byte"), CommunicationError);
  EXPECT_THROW(parse_header(header, payload.size() - 1), CommunicationError);
}

TEST(PsWire, DetectsEveryDamagedBitOfAHeader) {
  const std::string header = frame_header(3, 1, "payload");
  for (size_t bit = 0; bit < kHeaderSize * 8; ++bit) {
    std::string damaged = header;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_THROW(parse_header(damaged, UINT64_MAX), CommunicationError) << bit;
  }
}

TEST(PsWire, NamesAnotherVersion) {
  std::string header = frame_header(3, 1, "");
  Encoder other;
  other.put_bytes(header.data(), 4);
  other.put<uint16_t>(kProtocolVersion + 1);
  other.put_bytes(header.data() + 6, 22);
  const std::string start = other.text();
  // The checksum of the changed header, taken from a frame whose payload is this header.
  const FrameHeader sum = parse_header(frame_header(0, 0, start), 1000);
  other.put(sum.payload_crc);
  try {
    parse_header(other.text(), 1000);
    FAIL();
  } catch (const CommunicationError& error) {
    EXPECT_NE(std::string(error.what()).find("version 3"), std::string::npos);
  }
}

TEST(PsWire, ChecksCountsAgainstTheBytes) {
  Encoder out;
  out.put<uint64_t>(UINT64_MAX / 4);
  out.put<int64_t>(1);
  EXPECT_THROW(Decoder(out.text()).get_ids(), CommunicationError);
  EXPECT_THROW(Decoder(out.text()).get_bytes(UINT64_MAX / 2, 8), CommunicationError);
  EXPECT_THROW(Decoder("abc").get<int32_t>(), CommunicationError);
  EXPECT_THROW(Decoder("\xff\xff\xff\xff").get_text(10), CommunicationError);
  Encoder text;
  text.put_text("hello");
  EXPECT_EQ(Decoder(text.text()).get_text(5), "hello");
  EXPECT_THROW(Decoder(text.text()).get_text(4), CommunicationError);
  EXPECT_THROW(Decoder("x").finish(), CommunicationError);
  EXPECT_TRUE(Decoder("").get_bytes(0, 8).empty());
}

}  // namespace assay::ps
