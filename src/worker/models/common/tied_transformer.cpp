#include "models/common/tied_transformer.h"

#include <fmt/format.h>

#include "base/error.h"
#include "nn/linear_cross_entropy.h"

namespace assay {

void TiedTransformer::make_table(PartMaker& make) {
  table_ = make.weight(table_name_, {options_.vocab_size, options_.hidden_size}, options_.initializer_range);
}

void TiedTransformer::make_blocks(PartMaker& make, const BlockNames& names, WeightLayout layout) {
  blocks_.emplace(make, options_, names, layout);
}

TensorList TiedTransformer::run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) {
  if (index > 0) return blocks_->run_block(index - 1, stream, pass(inputs));
  const torch::Tensor& tokens = inputs.at(0);
  ASSAY_CHECK(tokens.size(1) <= options_.max_position_embeddings,
              fmt::format("a sequence of {} tokens; the model has {} positions", tokens.size(1),
                          options_.max_position_embeddings));
  // The table is the last layer too, whose dense gradient takes in this sparse one; dense ones would be two passes over
  // all of it.
  const torch::Tensor embedded = tensor_parallel().embedding(table_, options_.vocab_size, tokens,
                                                             /*sparse=*/is_training() && can_be_sparse(table_));
  return blocks_->begin(add_positions(embedded, inputs), pass(inputs));
}

torch::Tensor TiedTransformer::output(const TensorList& stream) {
  const TensorParallel& parallel = tensor_parallel();
  return parallel.join_outputs(linear(parallel.enter(stream.at(1)), table_, WeightLayout::OutIn), options_.vocab_size);
}

torch::Tensor TiedTransformer::loss(const TensorList& stream, const torch::Tensor& labels) {
  return loss_of(tensor_parallel().enter(stream.at(1)).flatten(0, 1), labels.flatten());
}

torch::Tensor TiedTransformer::loss_of(const torch::Tensor& hidden, const torch::Tensor& labels) const {
  return tensor_parallel().linear_cross_entropy(hidden, {.weight = table_, .bias = {}}, options_.vocab_size, labels);
}

std::vector<std::string> TiedTransformer::segment_parameters(int64_t index) const {
  std::vector<std::string> names = index == 0 ? blocks_->first_norm_parameters() : blocks_->block_parameters(index - 1);
  if (index == 0) {
    names.push_back(table_parameter());
    for (const std::string& name : whole_sequence_parameters()) names.push_back(name);
  }
  if (index + 1 == num_segments()) names.push_back(table_parameter());
  return names;
}

std::vector<WeightSplit> TiedTransformer::weight_splits() const {
  std::vector<WeightSplit> splits = blocks_->weight_splits();
  splits.push_back({table_parameter(), 0});
  return splits;
}

void TiedTransformer::set_tensor_parallel(const TensorParallel& parallel) {
  check_divides(options_, parallel.size());
  Network::set_tensor_parallel(parallel);
}

}  // namespace assay
