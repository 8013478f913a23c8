// Which dropout masks tensor-parallel processes share, FleetX's rule: what all of them compute alike drops alike;
// different heads, and different parts of a sequence, do not.
#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cstring>

#include "comm/solo.h"
#include "engine/precision/precision.h"
#include "models/bert/model.h"
#include "models/gpt/model.h"
#include "models/llama/model.h"
#include "parallel/weight_parts.h"

namespace assay {
namespace {

constexpr int kMembers = 2;
constexpr int64_t kStreamWidth = 32, kStreamLength = 8;

// Process `rank` of a group whose other members have exactly what this one has.
class MirrorCommunicator final : public comm::SoloCommunicator {
 public:
  explicit MirrorCommunicator(int rank) : comm::SoloCommunicator(rank, "mp"), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return kMembers; }
  comm::Pending start_all_gather(const void* input, void* output, int64_t count, comm::DType type) override {
    const size_t bytes = static_cast<size_t>(count) * size_of(type);
    for (size_t i = 0; i < kMembers; ++i) std::memcpy(static_cast<char*>(output) + i * bytes, input, bytes);
    return {};
  }
  comm::Pending start_reduce_scatter(const void* input, void* output, int64_t count, comm::DType type,
                                     comm::ReduceOp) override {
    const size_t bytes = static_cast<size_t>(count) * size_of(type);
    std::memcpy(output, static_cast<const char*>(input) + static_cast<size_t>(rank_) * bytes, bytes);
    return {};
  }

 private:
  const int rank_;
};

struct StreamCase {
  double hidden = 0, attention = 0;  // probabilities of dropout
  bool sequence = false;
  bool low = false;  // bfloat16 by autocast
};

template <typename ModuleOf, typename OptionsOf>
torch::Tensor block_output(int rank, const StreamCase& c) {
  OptionsOf options;
  options.vocab_size = 40;
  options.hidden_size = kStreamWidth;
  options.num_layers = 1;
  options.num_attention_heads = 4;
  options.ffn_hidden_size = 64;
  options.max_position_embeddings = options.sequence_length = kStreamLength;
  options.hidden_dropout_prob = c.hidden;
  options.attention_probs_dropout_prob = c.attention;
  if constexpr (requires { options.num_key_value_heads; }) options.num_key_value_heads = 4;
  torch::manual_seed(3);
  ModuleOf module(options);
  module.init();
  Network& network = module.model();
  network.train();
  MirrorCommunicator group(rank);
  network.set_tensor_parallel(TensorParallel(group, c.sequence));
  // Both members get the same part, so that nothing but dropout can tell them apart.
  auto parameters = network.named_parameters();
  for (const WeightSplit& split : network.weight_splits()) {
    torch::Tensor& weight = parameters[split.name];
    weight.set_data(cut_part(weight.detach() * 20, split, 0, kMembers));
  }
  // All positions are the same too: however many of them attention averages, and whichever part a member has.
  const torch::Tensor row = torch::randn({1, 1, kStreamWidth});
  const torch::Tensor x =
      row.expand({2, c.sequence ? kStreamLength / kMembers : kStreamLength, kStreamWidth}).contiguous();
  const torch::Tensor ones = torch::ones({2, kStreamLength}, torch::kLong);
  const Precision precision(c.low ? PrecisionOptions{.mixed = torch::kBFloat16} : PrecisionOptions{});
  const auto scope = precision.autocast();
  torch::manual_seed(11);  // the same in all processes of a group
  return network.run_segment(1, {x, x}, {ones, ones, ones, ones}).at(0).detach().to(torch::kFloat);
}

template <typename ModuleOf, typename OptionsOf>
void expect_streams() {
  // Up to what bfloat16 rounds where attention averages more or fewer positions; dropout changes half of everything.
  const auto same = [](const StreamCase& c) {
    const torch::Tensor first = block_output<ModuleOf, OptionsOf>(0, c),
                        second = block_output<ModuleOf, OptionsOf>(1, c);
    return ((first - second).abs().max() < 0.05 * first.abs().max()).template item<bool>();
  };
  for (const bool low : {false, true}) {
    for (const bool sequence : {false, true}) {
      const std::string where = std::string(low ? "bfloat16" : "float32") + (sequence ? ", sequences split" : "");
      EXPECT_TRUE(same({.sequence = sequence, .low = low})) << where << ", no dropout";
      EXPECT_FALSE(same({.attention = 0.5, .sequence = sequence, .low = low})) << where << ", heads drop alike";
      EXPECT_EQ(same({.hidden = 0.5, .sequence = sequence, .low = low}), !sequence) << where << ", hidden dropout";
    }
  }
}

TEST(DropoutStreams, DifferInGpt) { expect_streams<gpt::Gpt, gpt::Options>(); }
TEST(DropoutStreams, DifferInBert) { expect_streams<bert::Bert, bert::Options>(); }
TEST(DropoutStreams, DifferInLlama) { expect_streams<llama::Llama, llama::Options>(); }

}  // namespace
}  // namespace assay
