#include "engine/optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace assay {

// A fixed size, so that sums over pieces do not depend on the number of threads.
struct Optimizer::Piece {
  float* weight;
  float* gradient;
  float* first;
  float* second;
  int64_t count;
  bool decays;
};

namespace {

constexpr int64_t kPieceSize = 16384;

enum class Rule { Sgd, Momentum, Nesterov, Adam, AdamW };

// What one update needs besides the tensors, already in single precision.
struct Factors {
  float rate, decay, momentum, beta1, beta2, epsilon;
  float rest1, rest2;  // 1 - beta, from double: in float 1 - 0.999 is off by 5e-5
  float scale;         // of gradients, from clipping
  float correction1;   // 1 / (1 - beta1^t)
  float correction2;   // 1 / (1 - beta2^t)
};

struct Span {
  float* __restrict weight;
  const float* __restrict gradient;
  float* __restrict first;
  float* __restrict second;
  int64_t count;
};

template <Rule R>
[[gnu::always_inline]] inline void update(const Span s, const Factors f) {
#pragma GCC ivdep
  for (int64_t i = 0; i < s.count; ++i) {
    float weight = s.weight[i];
    float g = s.gradient[i] * f.scale;
    if constexpr (R == Rule::AdamW) {
      weight -= f.rate * f.decay * weight;
    } else {
      g += f.decay * weight;
    }
    if constexpr (R == Rule::Sgd) {
      weight -= f.rate * g;
    } else if constexpr (R == Rule::Momentum || R == Rule::Nesterov) {
      const float velocity = f.momentum * s.first[i] + g;
      s.first[i] = velocity;
      weight -= f.rate * (R == Rule::Nesterov ? g + f.momentum * velocity : velocity);
    } else {
      const float m = f.beta1 * s.first[i] + f.rest1 * g;
      const float v = f.beta2 * s.second[i] + f.rest2 * g * g;
      s.first[i] = m;
      s.second[i] = v;
      weight -= f.rate * (m * f.correction1) / (__builtin_sqrtf(v * f.correction2) + f.epsilon);
    }
    s.weight[i] = weight;
  }
}

using Kernel = void (*)(Span, Factors);

// One copy a vector width, chosen at run time; ordinary functions, since sanitizers and ifuncs do not mix.
#define ASSAY_VECTOR __attribute__((optimize("O3")))
#if defined(__x86_64__)
template <Rule R>
ASSAY_VECTOR __attribute__((target("avx512f,avx512vl,fma,prefer-vector-width=512"))) void update_avx512(Span s,
                                                                                                        Factors f) {
  update<R>(s, f);
}
template <Rule R>
ASSAY_VECTOR __attribute__((target("avx2,fma"))) void update_avx2(Span s, Factors f) {
  update<R>(s, f);
}
#endif
template <Rule R>
ASSAY_VECTOR void update_plain(Span s, Factors f) {
  update<R>(s, f);
}

template <Rule R>
Kernel kernel_of() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return update_avx512<R>;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return update_avx2<R>;
#endif
  return update_plain<R>;
}

Kernel kernel_for(const Optimizer::Options& options) {
  if (options.name == "SGD") return kernel_of<Rule::Sgd>();
  if (options.name == "Momentum") return options.nesterov ? kernel_of<Rule::Nesterov>() : kernel_of<Rule::Momentum>();
  if (options.name == "Adam") return kernel_of<Rule::Adam>();
  return kernel_of<Rule::AdamW>();
}

bool is_adam(const Optimizer::Options& options) { return options.name == "Adam" || options.name == "AdamW"; }

}  // namespace

Optimizer::Optimizer(NamedTensors parameters, const Options& options) : options_(options) {
  static const std::vector<std::string> kNames = {"SGD", "Momentum", "Adam", "AdamW"};
  if (std::find(kNames.begin(), kNames.end(), options.name) == kNames.end()) {
    throw ConfigError(fmt::format("Optimizer.name '{}': unknown optimizer{}; known are {}", options.name,
                                  did_you_mean(options.name, kNames), join(kNames, ", ")));
  }
  for (auto& [name, weight] : parameters) {
    ASSAY_CHECK(weight.scalar_type() == torch::kFloat && weight.device().is_cpu(), name + " is not float32 on the CPU");
    ASSAY_CHECK(weight.is_non_overlapping_and_dense(), name + " is not dense");
    Slot slot{.name = name, .weight = weight, .first = {}, .second = {}, .decays = true};
    if (options.name != "SGD") slot.first = at::zeros_like(weight.detach());
    if (is_adam(options)) slot.second = at::zeros_like(weight.detach());
    slot.decays = options.name != "AdamW" || weight.dim() > 1;
    slots_.push_back(std::move(slot));
  }
}

std::vector<Optimizer::Piece> Optimizer::pieces() {
  std::vector<Piece> pieces;
  for (Slot& slot : slots_) {
    torch::Tensor gradient = slot.weight.grad();
    if (!gradient.defined()) continue;
    if (gradient.strides() != slot.weight.strides()) {
      // Elements are visited in memory order, so both must have the same one.
      torch::Tensor same_layout = at::empty_like(slot.weight.detach());
      same_layout.copy_(gradient);
      slot.weight.mutable_grad() = gradient = same_layout;
    }
    const auto at = [](const torch::Tensor& t, int64_t i) { return t.defined() ? t.data_ptr<float>() + i : nullptr; };
    for (int64_t begin = 0; begin < slot.weight.numel(); begin += kPieceSize) {
      pieces.push_back({.weight = at(slot.weight, begin),
                        .gradient = at(gradient, begin),
                        .first = at(slot.first, begin),
                        .second = at(slot.second, begin),
                        .count = std::min(kPieceSize, slot.weight.numel() - begin),
                        .decays = slot.decays});
    }
  }
  return pieces;
}

double Optimizer::gradient_norm(const std::vector<Piece>& pieces) const {
  std::vector<double> sums(pieces.size());
  at::parallel_for(0, static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < pieces[i].count; ++k) sum += double{pieces[i].gradient[k]} * pieces[i].gradient[k];
      sums[i] = sum;
    }
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return std::sqrt(total);
}

std::optional<double> Optimizer::step(double learning_rate) {
  const std::vector<Piece> work = pieces();
  std::optional<double> norm;
  double scale = 1;
  if (options_.clip_norm) {
    norm = gradient_norm(work);
    if (!std::isfinite(*norm)) {
      throw NonFiniteError(fmt::format("the norm of the gradients is {} at update {}", *norm, num_updates_ + 1));
    }
    // PyTorch's clip_grad_norm_ adds the same 1e-6.
    scale = std::min(1.0, *options_.clip_norm / (*norm + 1e-6));
  }
  ++num_updates_;
  const auto t = static_cast<double>(num_updates_);
  Factors factors{.rate = static_cast<float>(learning_rate),
                  .decay = static_cast<float>(options_.weight_decay),
                  .momentum = static_cast<float>(options_.momentum),
                  .beta1 = static_cast<float>(options_.beta1),
                  .beta2 = static_cast<float>(options_.beta2),
                  .epsilon = static_cast<float>(options_.epsilon),
                  .rest1 = static_cast<float>(1.0 - options_.beta1),
                  .rest2 = static_cast<float>(1.0 - options_.beta2),
                  .scale = static_cast<float>(scale),
                  .correction1 = static_cast<float>(1.0 / (1.0 - std::pow(options_.beta1, t))),
                  .correction2 = static_cast<float>(1.0 / (1.0 - std::pow(options_.beta2, t)))};
  const Kernel kernel = kernel_for(options_);
  at::parallel_for(0, static_cast<int64_t>(work.size()), 2, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = work[i];
      Factors own = factors;
      if (!piece.decays) own.decay = 0;
      kernel({piece.weight, piece.gradient, piece.first, piece.second, piece.count}, own);
    }
  });
  return norm;
}

void Optimizer::clear_grad() {
  for (Slot& slot : slots_) slot.weight.mutable_grad() = torch::Tensor();
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  const bool adam = is_adam(options_);
  for (const Slot& slot : slots_) {
    if (slot.first.defined()) state.emplace_back((adam ? "moment1." : "momentum.") + slot.name, slot.first);
    if (slot.second.defined()) state.emplace_back("moment2." + slot.name, slot.second);
  }
  return state;
}

void Optimizer::load_state(const std::map<std::string, torch::Tensor>& saved, int64_t num_updates) {
  const NamedTensors wanted = state();
  for (const auto& [name, tensor] : wanted) {
    const auto found = saved.find(name);
    if (found == saved.end()) throw DataError(fmt::format("optimizer state has no tensor '{}'", name));
    if (found->second.sizes() != tensor.sizes() || found->second.scalar_type() != tensor.scalar_type()) {
      throw DataError(fmt::format("optimizer state '{}' has another shape or type", name));
    }
  }
  for (const auto& [name, tensor] : wanted) tensor.copy_(saved.at(name));
  num_updates_ = num_updates;
}

}  // namespace assay
