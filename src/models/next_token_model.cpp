#include "models/next_token_model.h"

#include "models/next_token_network.h"

namespace assay {

std::vector<InputSpec> NextTokenModel::input_spec() const {
  return {{.name = "tokens", .dtype = torch::kLong, .shape = {-1, sequence_length_}, .num_values = vocab_size_}};
}

torch::Tensor NextTokenModel::training_loss(const TensorList& stream, const Batch& batch) {
  return dynamic_cast<NextTokenNetwork&>(model()).loss(stream, label_of(batch));
}

}  // namespace assay
