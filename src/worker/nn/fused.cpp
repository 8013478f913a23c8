#include "nn/fused.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <mutex>

#include "base/error.h"

namespace assay {

bool can_fuse(std::initializer_list<torch::Tensor> tensors) {
  if (torch::jit::tracer::isTracing() || at::autocast::is_cpu_enabled()) return false;
  c10::optional<torch::ScalarType> type;
  for (const torch::Tensor& tensor : tensors) {
    if (!tensor.defined()) continue;
    if (!type) type = tensor.scalar_type();
    if (!tensor.device().is_cpu() || tensor.scalar_type() != *type) return false;
  }
  return type == torch::kFloat || type == torch::kDouble;
}

DropoutKey draw_dropout(double probability, uint64_t stream) {
  ASSAY_CHECK(probability >= 0 && probability < 1, "the probability of dropout must be from 0 to below 1");
  if (probability == 0) return {};
  auto* generator =
      at::get_generator_or_default<at::CPUGeneratorImpl>(c10::nullopt, at::detail::getDefaultCPUGenerator());
  std::lock_guard lock(generator->mutex_);
  constexpr uint64_t kGolden = 0x9E3779B97F4A7C15;  // the golden ratio's bits: seeds of streams are far apart
  return {.seed = generator->random64() ^ stream * kGolden, .keep = 1 - probability};
}

}  // namespace assay
