// Every collective, type and size on both transports, with 2, 3 and 4 processes; see rank_program/.
#include "job.h"

using namespace assay::comm_test;

namespace {

class Collectives : public testing::TestWithParam<std::pair<std::string, int>> {
 protected:
  Environment environment() const { return {{"TRANSPORT", GetParam().first}}; }
  int num_ranks() const { return GetParam().second; }
};

std::string collectives_case_name(const testing::TestParamInfo<std::pair<std::string, int>>& info) {
  return info.param.first + "_" + std::to_string(info.param.second);
}

}  // namespace

TEST_P(Collectives, EqualPlainSums) { expect_fine(num_ranks(), {"collectives"}, environment()); }
TEST_P(Collectives, WorkInTheirOwnMemory) { expect_fine(num_ranks(), {"buffers"}, environment()); }
TEST_P(Collectives, KeepTheirOrder) { expect_fine(num_ranks(), {"order"}, environment()); }
TEST_P(Collectives, DeliverMessages) { expect_fine(num_ranks(), {"messages"}, environment()); }

INSTANTIATE_TEST_SUITE_P(, Collectives,
                         testing::Values(std::pair{"shared_memory", 2}, std::pair{"shared_memory", 3},
                                         std::pair{"shared_memory", 4}, std::pair{"gloo", 2}, std::pair{"gloo", 3},
                                         std::pair{"gloo", 4}),
                         collectives_case_name);

// More than the staging areas and pieces of a transfer, of odd sizes.
TEST(CollectivesLarge, WorkInSharedMemory) {
  expect_fine(3, {"collectives", "700001"}, {{"TRANSPORT", "shared_memory"}});
}
TEST(CollectivesLarge, WorkWithGloo) { expect_fine(3, {"collectives", "700001"}, {{"TRANSPORT", "gloo"}}); }

TEST(Groups, WorkForAWholeMesh) {
  expect_fine(4, {"groups"}, {{"TRANSPORT", "shared_memory"}});
  expect_fine(4, {"groups"}, {{"TRANSPORT", "gloo"}});
}

// Narrower loops, for processors without the widest.
TEST(CollectivesNarrow, AddTheSameInLoops) {
  expect_fine(2, {"collectives", "4097"}, {{"ASSAY_SIMD", "plain"}});
  expect_fine(2, {"collectives", "4097"}, {{"ASSAY_SIMD", "avx2"}});
}

namespace {

std::string bits_of(const std::string& transport, int ranks, const std::string& simd) {
  Job job(ranks, {{"TRANSPORT", transport}, {"ASSAY_SIMD", simd}});
  job.start_all({"bits"});
  std::string bits;
  for (int rank = 0; rank < ranks; ++rank) {
    const Job::End end = job.end(rank);
    EXPECT_TRUE(end.status.ok()) << end.output;
    const size_t at = end.output.find("bits ");
    EXPECT_NE(at, std::string::npos) << end.output;
    const std::string mine = end.output.substr(at, 69);
    EXPECT_TRUE(bits.empty() || bits == mine) << "rank " << rank << " has other bits";
    bits = mine;
  }
  return bits;
}

}  // namespace

TEST(CollectivesBits, AreTheSameOnAllRanksAndTransportsAndProcessors) {
  const std::string shared = bits_of("shared_memory", 3, "");
  EXPECT_EQ(shared, bits_of("gloo", 3, "avx2"));
  EXPECT_EQ(shared, bits_of("shared_memory", 3, "plain"));
  EXPECT_NE(shared, bits_of("shared_memory", 2, ""));  // or the test could not fail
}
