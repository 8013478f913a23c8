#include "engine/optimizer/fused_optimizer.h"

#include <ATen/Parallel.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros_like.h>
#include <ATen/record_function.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

// A fixed size, so that sums over pieces do not depend on the number of threads.
constexpr int64_t kPieceSize = 16384;
constexpr char kNumUpdates[] = "num_updates";

bool has_moments(const Optimizer::Options& o) { return o.name == "Adam" || o.name == "AdamW" || o.name == "LAMB"; }
bool has_momentum(const Optimizer::Options& o) { return o.name == "Momentum"; }
bool has_squares(const Optimizer::Options& o) { return o.name == "Adagrad"; }

UpdateRule rule_of(const Optimizer::Options& options) {
  if (options.name == "SGD") return UpdateRule::Sgd;
  if (options.name == "Momentum") return options.nesterov ? UpdateRule::Nesterov : UpdateRule::Momentum;
  if (options.name == "Adam") return UpdateRule::Adam;
  if (options.name == "AdamW") return UpdateRule::AdamW;
  if (options.name == "LAMB") return UpdateRule::LambMoments;
  return UpdateRule::Adagrad;
}

template <typename T, typename Low>
void convert(const torch::Tensor& from, int64_t begin, int64_t count, T* to) {
  const Low* values = from.data_ptr<Low>() + begin;
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(static_cast<float>(values[i]));
}

// The gradients of a piece in the type of the weights. Lower precisions are converted into `buffer`, which stays in the
// cache until the kernel reads it.
template <typename T>
const T* gradient_of(const torch::Tensor& gradient, int64_t begin, int64_t count, std::vector<T>& buffer) {
  const torch::ScalarType type = gradient.scalar_type();
  if (type == c10::CppTypeToScalarType<T>::value) return gradient.data_ptr<T>() + begin;
  buffer.resize(kPieceSize);
  switch (type) {
    case torch::kBFloat16: convert<T, c10::BFloat16>(gradient, begin, count, buffer.data()); break;
    case torch::kHalf: convert<T, c10::Half>(gradient, begin, count, buffer.data()); break;
    case torch::kFloat: convert<T, float>(gradient, begin, count, buffer.data()); break;
    default: ASSAY_CHECK(false, fmt::format("a gradient of type {}", c10::toString(type)));
  }
  return buffer.data();
}

template <typename T>
T* pointer(const torch::Tensor& tensor, int64_t begin) {
  return tensor.defined() ? tensor.data_ptr<T>() + begin : nullptr;
}

std::vector<std::string> names_of_all(const ParameterSet& set) {
  if (!set.all_names.empty()) return set.all_names;
  std::vector<std::string> names;
  for (const TrainedParameter& parameter : set.parameters) names.push_back(parameter.name);
  return names;
}

template <typename T>
UpdateFactors<T> factors_of(const Optimizer::Options& o, double rate, double scale, int64_t num_updates) {
  return update_factors<T>({.rate = rate,
                            .weight_decay = o.weight_decay,
                            .momentum = o.momentum,
                            .beta1 = o.beta1,
                            .beta2 = o.beta2,
                            .epsilon = o.epsilon,
                            .scale = scale,
                            .num_updates = num_updates});
}

}  // namespace

void check_optimizer_options(const Optimizer::Options& options, const ParameterSet& set) {
  const std::vector<std::string>& known = Optimizer::names();
  if (std::find(known.begin(), known.end(), options.name) == known.end()) {
    throw ConfigError(fmt::format("Optimizer.name '{}': unknown optimizer{}; known are {}", options.name,
                                  did_you_mean(options.name, known), join(known, ", ")));
  }
  if (!options.no_decay) return;
  const std::vector<std::string> names = names_of_all(set);
  for (const std::string& part : *options.no_decay) {
    const bool used = std::any_of(names.begin(), names.end(),
                                  [&](const std::string& name) { return name.find(part) != std::string::npos; });
    if (!used) {
      throw ConfigError(fmt::format("Optimizer.no_decay '{}': no parameter has this in its name{}; the model has {}",
                                    part, did_you_mean(part, names), join(names, ", ")));
    }
  }
}

bool is_decayed(const Optimizer::Options& options, const std::string& name, int64_t num_dims) {
  if (!options.no_decay) return num_dims > 1 || (options.name != "AdamW" && options.name != "LAMB");
  return std::none_of(options.no_decay->begin(), options.no_decay->end(),
                      [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

FusedOptimizer::FusedOptimizer(const ParameterSet& set, const Options& options)
    : options_(options), sum_of_all_(set.sum_of_all) {
  check_optimizer_options(options, set);
  std::map<std::string, size_t> index;
  for (const std::string& name : names_of_all(set)) index.emplace(name, index.size());
  num_parameters_ = index.size();
  for (const TrainedParameter& parameter : set.parameters) {
    const torch::Tensor& weight = parameter.tensor;
    const torch::ScalarType type = weight.scalar_type();
    ASSAY_CHECK(weight.device().is_cpu() && (type == torch::kFloat || type == torch::kDouble),
                parameter.name + " is not float32 or float64 on the CPU");
    ASSAY_CHECK(type == set.parameters[0].tensor.scalar_type(),
                parameter.name + " is of another type than the other parameters");
    ASSAY_CHECK(weight.is_non_overlapping_and_dense(), parameter.name + " is not dense");
    Slot slot{.name = parameter.name,
              .weight = weight,
              .first = {},
              .second = {},
              .decays = is_decayed(options, parameter.name, parameter.num_dims),
              .counts = parameter.counts,
              .index = index.at(parameter.name)};
    if (has_moments(options) || has_momentum(options)) slot.first = at::zeros_like(weight.detach());
    if (has_moments(options) || has_squares(options)) slot.second = at::zeros_like(weight.detach());
    slots_.push_back(std::move(slot));
  }
}

std::vector<FusedOptimizer::Piece> FusedOptimizer::pieces() {
  std::vector<Piece> pieces;
  for (Slot& slot : slots_) {
    torch::Tensor gradient = slot.weight.grad();
    if (!gradient.defined()) continue;
    if (gradient.is_sparse() && slot.weight.is_contiguous() && options_.name != "LAMB") {
      add_row_pieces(slot, gradient, pieces);
      continue;
    }
    if (gradient.is_sparse()) slot.weight.mutable_grad() = gradient = gradient.to_dense();
    if (gradient.strides() != slot.weight.strides()) {
      // Elements are visited in memory order, so both must have the same one.
      torch::Tensor same_layout = at::empty_like(slot.weight.detach(), gradient.options());
      same_layout.copy_(gradient);
      slot.weight.mutable_grad() = gradient = same_layout;
    }
    for (int64_t begin = 0; begin < slot.weight.numel(); begin += kPieceSize) {
      pieces.push_back({&slot, gradient, begin, std::min(kPieceSize, slot.weight.numel() - begin), {}});
    }
  }
  return pieces;
}

void FusedOptimizer::add_row_pieces(const Slot& slot, const torch::Tensor& sparse, std::vector<Piece>& pieces) const {
  ASSAY_CHECK(sparse.sparse_dim() == 1, slot.name + " has a sparse gradient that is not one of rows");
  // A row that occurs several times in a batch has one gradient, the sum.
  const torch::Tensor values = sparse._values().to(slot.weight.scalar_type());
  const torch::Tensor sums = at::_sparse_coo_tensor_unsafe(sparse._indices(), values, sparse.sizes()).coalesce();
  const torch::Tensor gradient = sums._values().contiguous();
  const torch::Tensor rows = sums._indices()[0].contiguous();
  const int64_t width = slot.weight.numel() / std::max<int64_t>(slot.weight.size(0), 1);
  const int64_t step = std::max<int64_t>(kPieceSize / std::max<int64_t>(width, 1), 1) * width;
  for (int64_t begin = 0; begin < gradient.numel(); begin += step) {
    pieces.push_back({&slot, gradient, begin, std::min(step, gradient.numel() - begin), rows});
  }
}

template <typename T>
double FusedOptimizer::gradient_norm(const std::vector<Piece>& pieces) const {
  std::vector<double> sums(pieces.size());
  const SquaresKernel<T> squares = squares_kernel<T>();
  at::parallel_for(0, static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
    std::vector<T> buffer;
    for (int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[i];
      sums[i] = squares(gradient_of<T>(piece.gradient, piece.begin, piece.count, buffer), piece.count);
    }
  });
  std::vector<double> total = {0};
  for (size_t i = 0; i < sums.size(); ++i) total[0] += pieces[i].slot->counts ? sums[i] : 0;
  sum_of_all_(total);
  return std::sqrt(total[0]);
}

// One pass of a rule. `ratios` (of the rate) and `norms`, where given, have one entry a piece.
template <typename T>
void FusedOptimizer::pass(UpdateRule rule, const std::vector<Piece>& pieces, const UpdateFactors<T>& factors,
                          const std::vector<double>& ratios, std::vector<UpdateNorms>* norms) {
  const UpdateKernel<T> kernel = update_kernel<T>(rule);
  at::parallel_for(0, static_cast<int64_t>(pieces.size()), 2, [&](int64_t begin, int64_t end) {
    std::vector<T> buffer;
    for (int64_t i = begin; i < end; ++i) {
      const Piece& p = pieces[i];
      UpdateFactors<T> own = factors;
      if (!p.slot->decays) own.decay = 0;
      if (!ratios.empty()) own.rate = static_cast<T>(factors.rate * ratios[i]);
      const T* gradient = gradient_of<T>(p.gradient, p.begin, p.count, buffer);
      const auto update = [&](int64_t begin, const T* gradients, int64_t count) {
        kernel({pointer<T>(p.slot->weight, begin), gradients, pointer<T>(p.slot->first, begin),
                pointer<T>(p.slot->second, begin), count},
               own, norms ? &(*norms)[i] : nullptr);
      };
      if (!p.rows.defined()) {
        update(p.begin, gradient, p.count);
        continue;
      }
      const int64_t width = p.gradient.numel() / p.rows.numel();
      const int64_t* rows = p.rows.data_ptr<int64_t>() + p.begin / width;
      for (int64_t row = 0; row < p.count / width; ++row) update(rows[row] * width, gradient + row * width, width);
    }
  });
}

std::vector<double> FusedOptimizer::trust_ratios(const std::vector<Piece>& pieces,
                                                 const std::vector<UpdateNorms>& norms) const {
  std::vector<double> sums(2 * num_parameters_);  // of weight and change, one parameter after the other
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!pieces[i].slot->counts) continue;
    sums[2 * pieces[i].slot->index] += norms[i].weight;
    sums[2 * pieces[i].slot->index + 1] += norms[i].change;
  }
  sum_of_all_(sums);
  std::vector<double> ratios;
  for (const Piece& piece : pieces) {
    const double weight = sums[2 * piece.slot->index], change = sums[2 * piece.slot->index + 1];
    ratios.push_back(weight > 0 && change > 0 ? std::sqrt(weight / change) : 1.0);
  }
  return ratios;
}

template <typename T>
void FusedOptimizer::update_lamb(const std::vector<Piece>& pieces, const UpdateFactors<T>& factors) {
  std::vector<UpdateNorms> norms(pieces.size());
  pass(UpdateRule::LambMoments, pieces, factors, {}, &norms);
  pass(UpdateRule::LambWeights, pieces, factors, trust_ratios(pieces, norms), nullptr);
}

template <typename T>
Optimizer::Outcome FusedOptimizer::step_as(const Update& update) {
  const std::vector<Piece> work = pieces();
  Outcome outcome;
  double scale = 1 / update.gradient_scale;
  // Also where nothing is clipped: a gradient that is not finite must be known before the first weight changes. It is
  // one more read of the gradients, beside the seven reads and writes of an update with moments.
  const double norm = gradient_norm<T>(work) * scale;
  outcome.gradient_norm = norm;
  if (!std::isfinite(norm)) {
    if (!update.skip_non_finite) {
      throw NonFiniteError(fmt::format("the norm of the gradients is {} at update {}", norm, num_updates_ + 1));
    }
    outcome.skipped = true;
    return outcome;
  }
  // PyTorch's clip_grad_norm_ adds the same 1e-6.
  if (options_.clip_norm) scale *= std::min(1.0, *options_.clip_norm / (norm + 1e-6));
  ++num_updates_;
  const auto factors = factors_of<T>(options_, update.learning_rate, scale, num_updates_);
  if (options_.name == "LAMB") {
    update_lamb(work, factors);
  } else {
    pass(rule_of(options_), work, factors, {}, nullptr);
  }
  return outcome;
}

Optimizer::Outcome FusedOptimizer::step(const Update& update) {
  RECORD_FUNCTION("assay::optimizer_step", std::vector<c10::IValue>());
  const bool is_double = !slots_.empty() && slots_[0].weight.scalar_type() == torch::kDouble;
  return is_double ? step_as<double>(update) : step_as<float>(update);
}

void FusedOptimizer::clear_grad() {
  for (Slot& slot : slots_) slot.weight.mutable_grad() = torch::Tensor();
}

NamedTensors FusedOptimizer::state() const {
  NamedTensors state = {{kNumUpdates, torch::tensor(num_updates_, torch::kLong)}};
  for (const Slot& slot : slots_) {
    if (slot.first.defined()) {
      state.emplace_back((has_moments(options_) ? "moment1." : "momentum.") + slot.name, slot.first);
    }
    if (slot.second.defined()) {
      state.emplace_back((has_moments(options_) ? "moment2." : "squares.") + slot.name, slot.second);
    }
  }
  return state;
}

void FusedOptimizer::load_state(const std::map<std::string, torch::Tensor>& saved) {
  const NamedTensors wanted = state();
  const std::vector<torch::Tensor> found = find_state(wanted, saved);
  for (size_t i = 0; i < wanted.size(); ++i) torch::Tensor(wanted[i].second).copy_(found[i]);
  num_updates_ = wanted[0].second.item<int64_t>();
}

}  // namespace assay
