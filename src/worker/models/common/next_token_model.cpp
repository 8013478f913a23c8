#include "models/common/next_token_model.h"

namespace assay {

std::vector<InputSpec> NextTokenModel::input_spec() const {
  return {{.name = "tokens", .dtype = torch::kLong, .shape = {-1, sequence_length_}, .num_values = vocab_size_}};
}

}  // namespace assay
