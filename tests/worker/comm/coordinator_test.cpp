#include "comm/coordinator.h"

#include <gtest/gtest.h>

#include "comm/wire.h"

using namespace assay;
using namespace assay::comm;

namespace {

Activity in_call(uint64_t group, const char* name, uint64_t number, const char* kind, bool waiting) {
  return {.group = group,
          .group_name = name,
          .ranks = {0, 1, 3},
          .number = number,
          .kind = kind,
          .purpose = "step 4",
          .bytes = 64,
          .waiting = waiting,
          .seconds = 5};
}

}  // namespace

TEST(WatchdogText, NamesMissingRanksAndWhereEverybodyIs) {
  const Activity stuck = in_call(1, "dp", 17, "all_reduce", true);
  const std::string text =
      watchdog_text(stuck, 1,
                    {{0, true, {in_call(1, "dp", 17, "all_reduce", true)}},
                     {1, true, {}},
                     {2, true, {in_call(2, "tp", 4, "all_gather", true)}},
                     {3, true, {in_call(1, "dp", 16, "broadcast", false), in_call(2, "tp", 4, "all_gather", true)}}});
  EXPECT_EQ(
      text,
      "all_reduce #17 of dp (step 4) took longer than 5.0 s: rank 3 did not come (rank 0 waits in all_reduce #17 of "
      "dp (step 4), 64 bytes, for 5.0 s; rank 1 waits in all_reduce #17 of dp (step 4), 64 bytes, for 5.0 s; "
      "rank 2: it waits in all_gather #4 of tp (step 4); rank 3 has not come, its last was broadcast #16 of dp "
      "(step 4), it waits in all_gather #4 of tp (step 4))");
}

TEST(WatchdogText, SaysWhoDoesNotAnswer) {
  const std::string text = watchdog_text(in_call(1, "dp", 2, "barrier", true), 0, {{0, true, {}}, {1, false, {}}});
  EXPECT_NE(text.find("rank 1 did not come"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 does not answer"), std::string::npos) << text;
}

TEST(Ranks, PrintsRanksAsText) {
  EXPECT_EQ(ranks_text({2}), "rank 2");
  EXPECT_EQ(ranks_text({1, 3}), "ranks 1 and 3");
  EXPECT_EQ(ranks_text({0, 1, 3}), "ranks 0, 1 and 3");
}

TEST(Wire, ReadsFieldsBackAndRejectsTornOnes) {
  Encoder out(7);
  out.i32(-3).f64(0.25).text(std::string("a\0b", 3)).u64(~uint64_t{0});
  Decoder in(out.bytes());
  EXPECT_EQ(in.u8(), 7);
  EXPECT_EQ(in.i32(), -3);
  EXPECT_EQ(in.f64(), 0.25);
  EXPECT_EQ(in.text(), std::string("a\0b", 3));
  EXPECT_EQ(in.u64(), ~uint64_t{0});
  EXPECT_TRUE(in.at_end());
  for (size_t length = 0; length < out.bytes().size(); ++length) {
    Decoder torn(std::string_view(out.bytes()).substr(0, length));
    EXPECT_THROW((torn.u8(), torn.i32(), torn.f64(), torn.text(), torn.u64()), WireError);
  }
  Decoder garbage("\xff\xff\xff\xff\xff\xff\xff\xff");
  EXPECT_THROW(garbage.text(), WireError);
}
