#include "nn/recompute.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <torch/autograd.h>

#include <utility>

namespace assay {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor generator_state() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(const at::Tensor& state) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

// Autocast keeps the copies that it makes of weights until the end of its scope. Those of the first pass have no
// gradient, and the second pass, in no scope, would leave its own to the next step, when the weights are others.
class NoKeptCopies {
 public:
  NoKeptCopies() { at::autocast::set_autocast_cache_enabled(false); }
  ~NoKeptCopies() { at::autocast::set_autocast_cache_enabled(before_); }
  NoKeptCopies(const NoKeptCopies&) = delete;
  NoKeptCopies& operator=(const NoKeptCopies&) = delete;

 private:
  bool before_ = at::autocast::is_autocast_cache_enabled();
};

thread_local bool recomputing = false;

// The surroundings of the first pass, brought back for the second: random generator and autocast.
class Surroundings {
 public:
  Surroundings() : random_(generator_state()), autocast_(at::autocast::is_cpu_enabled()) {}

  // Runs work in these surroundings and leaves the present ones as they were.
  void with(const std::function<void()>& work) const {
    struct Restore {
      const at::Tensor random = generator_state();
      const bool autocast = at::autocast::is_cpu_enabled();
      const bool was_recomputing = std::exchange(recomputing, true);
      ~Restore() {
        set_generator_state(random);
        at::autocast::set_cpu_enabled(autocast);
        recomputing = was_recomputing;
      }
    } restore;
    set_generator_state(random_);
    at::autocast::set_cpu_enabled(autocast_);
    work();
  }

 private:
  at::Tensor random_;
  bool autocast_;
};

struct Saved final : torch::CustomClassHolder {
  RecomputedPart part;
  Surroundings surroundings;
};

// `anchor` needs a gradient whatever the inputs do, so that the backward pass comes here for the sake of the
// parameters.
class Recompute : public torch::autograd::Function<Recompute> {
 public:
  static variable_list forward(AutogradContext* context, const RecomputedPart& part, const torch::Tensor& /*anchor*/,
                               at::TensorList inputs) {
    auto saved = c10::make_intrusive<Saved>();
    saved->part = part;
    const NoKeptCopies no_copies;
    variable_list outputs = part(inputs.vec());
    context->saved_data["part"] = c10::IValue::make_capsule(std::move(saved));
    context->save_for_backward(inputs.vec());
    context->set_materialize_grads(false);
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = c10::static_intrusive_pointer_cast<Saved>(context->saved_data["part"].toCapsule());
    std::vector<torch::Tensor> inputs;
    for (const torch::Tensor& input : context->get_saved_variables()) {
      inputs.push_back(input.detach().set_requires_grad(input.requires_grad()));
    }
    variable_list outputs;
    saved->surroundings.with([&] {
      const torch::AutoGradMode enable(true);
      const NoKeptCopies no_copies;
      outputs = saved->part(inputs);
    });
    variable_list used, used_gradients;  // an output that nobody used has no gradient
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!gradients[i].defined() || !outputs[i].requires_grad()) continue;
      used.push_back(outputs[i]);
      used_gradients.push_back(gradients[i]);
    }
    torch::autograd::backward(used, used_gradients);
    variable_list result = {torch::Tensor(), torch::Tensor()};  // part, anchor
    for (const torch::Tensor& input : inputs) result.push_back(input.requires_grad() ? input.grad() : torch::Tensor());
    return result;
  }
};

}  // namespace

bool is_recomputing() { return recomputing; }

std::vector<torch::Tensor> recompute(const RecomputedPart& part, const std::vector<torch::Tensor>& inputs) {
  if (!torch::GradMode::is_enabled()) return part(inputs);
  return Recompute::apply(part, torch::zeros({0}, torch::TensorOptions().requires_grad(true)), at::TensorList(inputs));
}

}  // namespace assay
