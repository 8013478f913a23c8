#include "launch/multi_node/frames.h"

#include <gtest/gtest.h>

#include <random>

#include "../job_support.h"
#include "base/error.h"

using namespace assay;

namespace {

std::string hello_frame() { return encode_frame({.kind = Frame::Kind::Hello, .text = "1.0 (abc)"}); }

std::string all_frames() {
  return hello_frame() +
         encode_frame({.kind = Frame::Kind::Bytes, .file = "rank0.log", .offset = 7, .bytes = "a\n{\"b\"}\0c"}) +
         encode_frame({.kind = Frame::Kind::Beat}) +
         encode_frame({.kind = Frame::Kind::Cut, .file = "rank0.log", .offset = 3}) +
         encode_frame({.kind = Frame::Kind::State, .bytes = "{}"}) +
         encode_frame({.kind = Frame::Kind::Gone, .text = "killed"});
}

std::vector<Frame> frames_of(FrameReader& reader) {
  std::vector<Frame> out;
  while (auto frame = reader.next()) out.push_back(std::move(*frame));
  return out;
}

}  // namespace

TEST(Frames, SurviveAnyCutOfTheStream) {
  const std::string stream = all_frames();
  for (const size_t step : {size_t{1}, size_t{3}, stream.size()}) {
    FrameReader reader;
    std::vector<Frame> got;
    for (size_t at = 0; at < stream.size(); at += step) {
      reader.add(std::string_view(stream).substr(at, step));
      for (Frame& frame : frames_of(reader)) got.push_back(std::move(frame));
    }
    ASSERT_EQ(got.size(), 6u);
    EXPECT_EQ(got[0].text, "1.0 (abc)");
    EXPECT_EQ(got[1].file, "rank0.log");
    EXPECT_EQ(got[1].offset, 7);
    EXPECT_EQ(got[1].bytes, "a\n{\"b\"}");
    EXPECT_EQ(got[2].kind, Frame::Kind::Beat);
    EXPECT_EQ(got[3].kind, Frame::Kind::Cut);
    EXPECT_EQ(got[4].bytes, "{}");
    EXPECT_EQ(got[5].text, "killed");
  }
}

TEST(Frames, SkipWhatAShellPrintsFirst) {
  FrameReader reader;
  reader.add("Welcome to node1!\n{\"not\": \"ours\"}\n");
  EXPECT_FALSE(reader.next());
  EXPECT_FALSE(reader.greeted());
  reader.add(all_frames());
  EXPECT_EQ(frames_of(reader).size(), 6u);
  EXPECT_TRUE(reader.greeted());
}

TEST(Frames, RejectGarbage) {
  for (const std::string& bad :
       {std::string("nonsense\n"), std::string("{}\n"), std::string("{\"file\":\"x\",\"offset\":-1,\"bytes\":1}\n"),
        std::string("{\"file\":\"x\",\"offset\":0,\"bytes\":99999999999}\n"),
        std::string("{\"file\":1,\"offset\":0,\"bytes\":1}\n"), std::string("{\"beat\":true,\"more\":1}\n"),
        std::string(10'000, 'x')}) {
    FrameReader reader;
    reader.add(hello_frame() + bad);
    EXPECT_TRUE(reader.next());
    EXPECT_THROW(reader.next(), DataError) << bad.substr(0, 80);
  }
  FrameReader other_version;
  other_version.add("{\"assay-relay\":2,\"version\":\"9\"}\n");
  EXPECT_THROW(other_version.next(), DataError);
}

TEST(Frames, SurviveNoise) {
  std::mt19937 random(3);
  for (int i = 0; i < 500; ++i) {
    std::string stream = all_frames();
    for (int k = 0; k < 2; ++k) stream[random() % stream.size()] = static_cast<char>(random());
    FrameReader reader;
    reader.add(stream);
    try {
      EXPECT_LE(frames_of(reader).size(), 6u);
    } catch (const DataError&) {
    }
  }
}

TEST(Frames, StartWithALineOfWhatThereIs) {
  const std::map<std::string, int64_t> have = {{"rank0.log", 5}, {"records.jsonl", 0}};
  EXPECT_EQ(decode_have(encode_have(have)), have);
  EXPECT_THROW(decode_have("{\"have\": {\"a\": -1}}"), DataError);
  EXPECT_THROW(decode_have("lease"), DataError);
}
