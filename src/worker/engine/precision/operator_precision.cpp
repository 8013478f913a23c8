#include "engine/precision/operator_precision.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <fmt/format.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/text.h"

namespace assay {

namespace {

using c10::DispatchKey;
using c10::OperatorHandle;
using torch::jit::Stack;

constexpr std::string_view kAten = "aten::";

// What libtorch's autocast computes in float16 on devices that have it (ATen/autocast_mode.cpp, lower_precision_fp).
constexpr std::array kHalfOperators = {"_convolution",
                                       "conv1d",
                                       "conv2d",
                                       "conv3d",
                                       "conv_tbc",
                                       "conv_transpose1d",
                                       "conv_transpose2d",
                                       "conv_transpose3d",
                                       "convolution",
                                       "prelu",
                                       "addmm",
                                       "addmv",
                                       "addr",
                                       "matmul",
                                       "mm",
                                       "mv",
                                       "linear",
                                       "addbmm",
                                       "baddbmm",
                                       "bmm",
                                       "chain_matmul",
                                       "linalg_multi_dot",
                                       "gru_cell",
                                       "lstm_cell",
                                       "rnn_tanh_cell",
                                       "rnn_relu_cell"};
// ... and in float32, since they overflow or lose too much (fp32 and fp32_set_opt_dtype).
constexpr std::array kFloatOperators = {"acos",
                                        "asin",
                                        "cosh",
                                        "erfinv",
                                        "exp",
                                        "expm1",
                                        "log",
                                        "log10",
                                        "log2",
                                        "log1p",
                                        "reciprocal",
                                        "rsqrt",
                                        "sinh",
                                        "tan",
                                        "pow",
                                        "softplus",
                                        "layer_norm",
                                        "native_layer_norm",
                                        "group_norm",
                                        "batch_norm",
                                        "native_batch_norm",
                                        "instance_norm",
                                        "frobenius_norm",
                                        "nuclear_norm",
                                        "cosine_similarity",
                                        "poisson_nll_loss",
                                        "cosine_embedding_loss",
                                        "nll_loss",
                                        "nll_loss2d",
                                        "nll_loss_nd",
                                        "hinge_embedding_loss",
                                        "kl_div",
                                        "l1_loss",
                                        "smooth_l1_loss",
                                        "huber_loss",
                                        "mse_loss",
                                        "margin_ranking_loss",
                                        "multilabel_margin_loss",
                                        "soft_margin_loss",
                                        "triplet_margin_loss",
                                        "multi_margin_loss",
                                        "binary_cross_entropy",
                                        "binary_cross_entropy_with_logits",
                                        "dist",
                                        "pdist",
                                        "cdist",
                                        "renorm",
                                        "logsumexp",
                                        "prod",
                                        "softmax",
                                        "_softmax",
                                        "log_softmax",
                                        "_log_softmax",
                                        "cumprod",
                                        "cumsum",
                                        "sum",
                                        "norm",
                                        "linalg_vector_norm",
                                        "linalg_matrix_norm",
                                        "cross_entropy_loss"};
// Copies and conversions: they are how values get from one precision to another.
constexpr std::array kConversions = {"_to_copy", "copy_", "to", "clone", "set_", "resize_", "contiguous"};

// Paddle's names in the configurations that FleetX published.
const std::map<std::string, std::string>& paddle_names() {
  static const std::map<std::string, std::string> kNames = {
      {"reduce_sum", "sum"},
      {"reduce_mean", "mean"},
      {"elementwise_add", "add"},
      {"elementwise_sub", "sub"},
      {"elementwise_mul", "mul"},
      {"elementwise_div", "div"},
      {"matmul_v2", "matmul"},
      {"lookup_table", "embedding"},
      {"lookup_table_v2", "embedding"},
      {"softmax_with_cross_entropy", "cross_entropy_loss"},
      {"c_softmax_with_cross_entropy", "cross_entropy_loss"},
  };
  return kNames;
}

template <typename Names>
bool has_name(const Names& names, std::string_view name) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view known) { return known == name; });
}

// --- boxed operators: they see their arguments as a stack and so fit every signature

bool is_real(const torch::Tensor& t) {
  return t.defined() && t.device().is_cpu() && at::isFloatingType(t.scalar_type()) && t.scalar_type() != torch::kDouble;
}

// Applies a function to every floating tensor among the last `count` values, lists and optional ones included.
template <typename Change>
void change_tensors(Stack& stack, size_t count, const Change& change) {
  for (size_t i = stack.size() - count; i < stack.size(); ++i) {
    c10::IValue& value = stack[i];
    if (value.isTensor()) {
      if (is_real(value.toTensor())) value = change(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<torch::Tensor> list = value.toTensorList().copy();
      for (size_t k = 0; k < list.size(); ++k) {
        if (is_real(list.get(k))) list.set(k, change(list.get(k)));
      }
      value = list;
    } else if (value.isOptionalTensorList()) {
      auto list = value.to<c10::List<c10::optional<torch::Tensor>>>().copy();
      for (size_t k = 0; k < list.size(); ++k) {
        const c10::optional<torch::Tensor> item = list.get(k);
        if (item && is_real(*item)) list.set(k, change(*item));
      }
      value = list;
    }
  }
}

torch::Tensor cast(const torch::Tensor& t, torch::ScalarType dtype) {
  return at::autocast::cached_cast(dtype, t, at::kCPU);
}

// Listed operators that have not run yet. Boxed operators are plain functions, so this is one place for the process.
struct OperatorWatch {
  std::mutex mutex;
  std::atomic<bool> active = false;
  std::set<std::string> idle;
};

OperatorWatch& operator_watch() {
  static OperatorWatch the_watch;
  return the_watch;
}

void note_run(const OperatorHandle& op) {
  OperatorWatch& watch = operator_watch();
  if (!watch.active.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(watch.mutex);
  watch.idle.erase(op.schema().name().substr(kAten.size()));
}

// In libtorch's own kernels for float32 or the lower precision; the graph below sees plain operators.
void run_in_float(const OperatorHandle& op, Stack* stack) {
  note_run(op);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastCPU);
  change_tensors(*stack, op.schema().arguments().size(), [](const torch::Tensor& t) { return cast(t, torch::kFloat); });
  op.callBoxed(stack);
}

void run_in_bfloat16(const OperatorHandle& op, Stack* stack) {
  note_run(op);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastCPU);
  change_tensors(*stack, op.schema().arguments().size(),
                 [](const torch::Tensor& t) { return cast(t, torch::kBFloat16); });
  try {
    op.callBoxed(stack);
  } catch (const c10::Error& error) {
    throw ConfigError(fmt::format("Engine.mix_precision.custom_white_list '{}': libtorch refuses it in bfloat16: {}",
                                  op.schema().name(), error.what_without_backtrace()));
  }
}

// float16 -> float32, without rounding.
torch::Tensor widen_half(const torch::Tensor& t) { return t.scalar_type() == torch::kHalf ? t.to(torch::kFloat) : t; }
torch::Tensor round_to_half(const torch::Tensor& t) { return t.scalar_type() == torch::kHalf ? t : t.to(torch::kHalf); }

// Both conversions are part of the graph, so the backward pass rounds the gradients of outputs and inputs too.
void run_in_half(const OperatorHandle& op, Stack* stack) {
  note_run(op);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastCPU);
  change_tensors(*stack, op.schema().arguments().size(),
                 [](const torch::Tensor& t) { return widen_half(cast(t, torch::kHalf)); });
  op.callBoxed(stack);
  change_tensors(*stack, op.schema().returns().size(), round_to_half);
}

// libtorch's rule for operators of any precision: the widest of the inputs; a scalar counts only beside scalars.
bool result_is_half(const OperatorHandle& op, Stack& stack) {
  const size_t count = op.schema().arguments().size();
  int half[2] = {0, 0};  // [is scalar]
  int wide[2] = {0, 0};
  change_tensors(stack, count, [&](const torch::Tensor& t) {
    ++(t.scalar_type() == torch::kHalf ? half : wide)[t.dim() == 0];
    return t;
  });
  const int scalar = half[0] + wide[0] == 0;
  if (half[scalar] == 0 || wide[scalar] > 0) return false;
  for (size_t i = 0; i < count; ++i) {
    // An explicit dtype decides by itself.
    if (op.schema().arguments()[i].name() == "dtype" && !stack[stack.size() - count + i].isNone()) return false;
  }
  return true;
}

bool any_half(const OperatorHandle& op, Stack& stack) {
  bool found = false;
  change_tensors(stack, op.schema().arguments().size(), [&](const torch::Tensor& t) {
    found |= t.scalar_type() == torch::kHalf;
    return t;
  });
  return found;
}

// A sparse gradient, which embeddings may ask for, cannot go back through a conversion.
void make_gradients_dense(const OperatorHandle& op, Stack& stack) {
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name() == "sparse") stack[stack.size() - arguments.size() + i] = false;
  }
}

void run_in_widest(const OperatorHandle& op, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastCPU);
  if (!any_half(op, *stack)) return op.callBoxed(stack);
  make_gradients_dense(op, *stack);
  const bool to_half = result_is_half(op, *stack);
  change_tensors(*stack, op.schema().arguments().size(), widen_half);
  op.callBoxed(stack);
  if (to_half) change_tensors(*stack, op.schema().returns().size(), round_to_half);
}

// An operator that changes its first argument, such as relu_: the result is rounded into it.
void run_in_place(const OperatorHandle& op, Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(DispatchKey::AutocastCPU);
  const size_t first = stack->size() - op.schema().arguments().size();
  if (!any_half(op, *stack)) return op.callBoxed(stack);
  torch::Tensor self = (*stack)[first].toTensor();
  change_tensors(*stack, op.schema().arguments().size(), widen_half);
  op.callBoxed(stack);
  if (self.scalar_type() != torch::kHalf) return;
  const torch::Tensor result = stack->back().toTensor();
  self.copy_(result);
  stack->back() = self;
}

// --- which operator gets which

struct SignatureKind {
  bool has_tensor = false;
  bool is_view = false;      // returns a part of an argument
  bool is_in_place = false;  // changes its first argument and returns it
  bool is_other_write = false;
};

SignatureKind kind_of(const c10::FunctionSchema& schema) {
  SignatureKind kind;
  int writes = 0;
  for (const c10::Argument& argument : schema.arguments()) {
    kind.has_tensor |= argument.type()->str().find("Tensor") != std::string::npos;
    const c10::AliasInfo* alias = argument.alias_info();
    if (!alias) continue;
    if (alias->isWrite())
      ++writes;
    else
      kind.is_view = true;
  }
  const bool first_written = writes == 1 && schema.arguments()[0].alias_info() &&
                             schema.arguments()[0].alias_info()->isWrite() && schema.returns().size() == 1 &&
                             schema.name().back() == '_';
  kind.is_in_place = first_written;
  kind.is_other_write = writes > 0 && !first_written;
  return kind;
}

struct Overload {
  std::string full_name;  // "sum.dim_IntList"
  OperatorHandle handle;
};
// aten's operators by name without overload.
std::map<std::string, std::vector<Overload>> aten_operators() {
  std::map<std::string, std::vector<Overload>> operators;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (name.name.rfind(kAten, 0) != 0) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (!handle) continue;
    const std::string base = name.name.substr(kAten.size());
    const std::string full = name.overload_name.empty() ? base : base + "." + name.overload_name;
    operators[base].push_back({full, *handle});
  }
  return operators;
}

using Operators = std::map<std::string, std::vector<Overload>>;

// "aten::layer_norm" -> "layer_norm", "reduce_sum" -> "sum".
std::string libtorch_name(const std::string& given) {
  const std::string name = given.rfind(kAten, 0) == 0 ? given.substr(kAten.size()) : given;
  const auto paddle = paddle_names().find(name);
  return paddle == paddle_names().end() ? name : paddle->second;
}

std::set<std::string> resolve_list(const std::vector<std::string>& list, const char* key, const Operators& operators) {
  std::set<std::string> names;
  for (const std::string& given : list) {
    const std::string name = libtorch_name(given);
    const auto found = operators.find(name);
    if (found == operators.end()) {
      std::vector<std::string> known;
      for (const auto& [known_name, overloads] : operators) known.push_back(known_name);
      throw ConfigError(fmt::format("Engine.mix_precision.{} '{}': libtorch has no such operator{}", key, given,
                                    did_you_mean(name, known)));
    }
    const bool usable = std::any_of(found->second.begin(), found->second.end(), [](const Overload& overload) {
      const SignatureKind kind = kind_of(overload.handle.schema());
      return kind.has_tensor && !kind.is_view && !kind.is_in_place && !kind.is_other_write;
    });
    if (!usable || has_name(kConversions, name)) {
      throw ConfigError(fmt::format(
          "Engine.mix_precision.{} '{}': it converts, returns a part of its argument or changes it in place, so it has "
          "no precision of its own",
          key, given));
    }
    names.insert(name);
  }
  return names;
}

template <void (*Run)(const OperatorHandle&, Stack*)>
torch::CppFunction boxed() {
  return torch::CppFunction::makeFromBoxedFunction<Run>();
}

// Overriding libtorch's own choice is what we are here for; its warning about it is not news.
class Silent final : public c10::WarningHandler {
  void process(const c10::SourceLocation&, const std::string&, bool) override {}
};

void register_half(torch::Library& library, const std::string& name, const Overload& overload,
                   const std::set<std::string>& black, const std::set<std::string>& white) {
  const SignatureKind kind = kind_of(overload.handle.schema());
  if (!kind.has_tensor || kind.is_view || kind.is_other_write || has_name(kConversions, name)) return;
  if (kind.is_in_place) {
    library.impl(overload.full_name.c_str(), boxed<run_in_place>());
  } else if (white.count(name) || (has_name(kHalfOperators, name) && !black.count(name))) {
    library.impl(overload.full_name.c_str(), boxed<run_in_half>());
  } else if (black.count(name) || has_name(kFloatOperators, name)) {
    library.impl(overload.full_name.c_str(), boxed<run_in_float>());
  } else if (overload.handle.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) {
    // Made of other operators, which have their own precision; libtorch's choice for bfloat16 goes.
    library.impl(overload.full_name.c_str(), torch::CppFunction::makeFallthrough());
  } else {
    library.impl(overload.full_name.c_str(), boxed<run_in_widest>());
  }
}

void register_bfloat16(torch::Library& library, const std::string& name, const Overload& overload,
                       const std::set<std::string>& black, const std::set<std::string>& white) {
  const SignatureKind kind = kind_of(overload.handle.schema());
  if (!kind.has_tensor || kind.is_view || kind.is_in_place || kind.is_other_write) return;
  if (black.count(name)) library.impl(overload.full_name.c_str(), boxed<run_in_float>());
  if (white.count(name)) library.impl(overload.full_name.c_str(), boxed<run_in_bfloat16>());
}

}  // namespace

OperatorPrecision::OperatorPrecision(const Options& options) {
  const Operators operators = aten_operators();
  const std::set<std::string> black = resolve_list(options.black_list, "custom_black_list", operators);
  const std::set<std::string> white = resolve_list(options.white_list, "custom_white_list", operators);
  for (const std::string& name : black) {
    if (white.count(name)) {
      throw ConfigError(
          fmt::format("Engine.mix_precision: '{}' is in custom_black_list and in custom_white_list; keep one", name));
    }
  }
  Silent silent;
  const c10::Warning::WarningHandlerGuard guard(&silent);
  library_ = std::make_unique<torch::Library>(torch::Library::IMPL, "aten", DispatchKey::AutocastCPU, __FILE__,
                                              static_cast<uint32_t>(__LINE__));
  for (const auto& [name, overloads] : operators) {
    for (const Overload& overload : overloads) {
      const auto add = options.dtype == torch::kHalf ? register_half : register_bfloat16;
      add(*library_, name, overload, black, white);
    }
  }
  OperatorWatch& watch = operator_watch();
  const std::lock_guard lock(watch.mutex);
  watch.idle = black;
  watch.idle.insert(white.begin(), white.end());
  watch.active = true;
}

OperatorPrecision::~OperatorPrecision() = default;

std::vector<std::string> OperatorPrecision::end_watch(const std::vector<std::string>& listed) {
  OperatorWatch& watch = operator_watch();
  const std::lock_guard lock(watch.mutex);
  std::vector<std::string> idle;
  for (const std::string& given : listed) {
    if (watch.idle.count(libtorch_name(given))) idle.push_back(given);
  }
  watch.active = false;
  return idle;
}

AutocastScope::AutocastScope(torch::ScalarType dtype) {
  // libtorch refuses float16 here; with OperatorPrecision's rules for it nothing asks.
  if (dtype != torch::kHalf) at::autocast::set_autocast_cpu_dtype(dtype);
  at::autocast::set_cpu_enabled(true);
}

AutocastScope::~AutocastScope() {
  at::autocast::set_cpu_enabled(false);
  at::autocast::clear_cache();  // it holds copies of weights that the update is about to change
}

}  // namespace assay
