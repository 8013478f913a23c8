#include "models/gpt/network.h"

#include "base/error.h"

namespace assay::gpt {

namespace {

constexpr char kTokens[] = "transformer.wte";
constexpr char kPositions[] = "transformer.wpe";

}  // namespace

Transformer::Transformer(const Options& o) : TiedTransformer(o, kTokens) {
  PartMaker make(*this);
  make_table(make);
  positions_ = make.weight(kPositions, {o.max_position_embeddings, o.hidden_size}, o.initializer_range);
  make_blocks(make,
              BlockNames{.path = "transformer.h",
                         .first_norm = "ln_1",
                         .attention = "attn.c_attn",
                         .attention_out = "attn.c_proj",
                         .second_norm = "ln_2",
                         .feed = "mlp.c_fc",
                         .feed_out = "mlp.c_proj",
                         .last_norm = "transformer.ln_f"},
              WeightLayout::InOut);
}

PreNormBlocks::Pass Transformer::pass(const TensorList& /*inputs*/) const {
  return {.seen = {.causal = true}, .training = is_training(), .parallel = tensor_parallel()};
}

torch::Tensor Transformer::add_positions(const torch::Tensor& embedded, const TensorList& inputs) const {
  return embedded + positions_.narrow(0, 0, inputs.at(0).size(1));
}

std::vector<std::string> Transformer::whole_sequence_parameters() const {
  return {std::string(kPositions) + ".weight"};
}

KvCache Transformer::make_cache(int64_t batch) const { return blocks().make_cache(batch); }

torch::Tensor Transformer::decode(const torch::Tensor& tokens, KvCache& cache) {
  const int64_t count = tokens.size(1);
  ASSAY_CHECK(cache.length() + count <= cache.capacity(), "more tokens than the model has positions");
  const torch::Tensor x = torch::embedding(table(), tokens) + positions_.narrow(0, cache.length(), count);
  return linear(blocks().decode(x, cache).select(1, -1), table(), WeightLayout::OutIn);
}

}  // namespace assay::gpt
