#include "engine/module/network.h"

#include "base/error.h"

namespace assay {

TensorList Network::run_segment(int64_t index, const TensorList& /*stream*/, const TensorList& inputs) {
  ASSAY_CHECK(index == 0 && num_segments() == 1, "a network with segments must say how to run one");
  return {forward(inputs)};
}

std::vector<std::string> Network::segment_parameters(int64_t /*index*/) const {
  std::vector<std::string> names;
  for (const auto& item : named_parameters()) names.push_back(item.key());
  return names;
}

TensorList Network::run_one(int64_t index, const TensorList& stream, const TensorList& inputs) {
  return runner_ ? runner_(index, stream, inputs) : run_segment(index, stream, inputs);
}

TensorList Network::run(const TensorList& inputs) {
  TensorList stream;
  for (int64_t i = 0; i < num_segments(); ++i) stream = run_one(i, stream, inputs);
  return stream;
}

}  // namespace assay
