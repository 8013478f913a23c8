// The update rules, each one pass over all parameters at once (LAMB: two), spread over the compute threads.
//
// g gradient, w weight, l rate, d weight decay, all per element; g' = g + d * w:
//   SGD       w -= l * g'
//   Momentum  v = mu * v + g';  w -= l * v      (with nesterov: w -= l * (g' + mu * v))
//   Adagrad   s = s + g'^2;  w -= l * g' / (sqrt(s) + eps)
//   Adam      m = b1 * m + (1 - b1) * g';  s = b2 * s + (1 - b2) * g'^2;
//             w -= l * (m / (1 - b1^t)) / (sqrt(s / (1 - b2^t)) + eps)
//   AdamW     w -= l * d * w, then Adam with g
//   LAMB      m, s as Adam with g;  r = (m / (1 - b1^t)) / (sqrt(s / (1 - b2^t)) + eps) + d * w;
//             w -= l * |w| / |r| * r      (norms over the whole parameter; ratio 1 when one of them is 0)
// d is 0 for parameters that are not decayed, see Optimizer::Options::no_decay.
//
// A sparse gradient, such as an embedding gives, is one of some rows. These rows are updated as above; of the others
// nothing changes, neither weight nor moments, and they cost no time. (PyTorch's SparseAdam and Paddle's lazy_mode do
// the same.) LAMB, whose norms are over the whole parameter, makes such a gradient dense.
#pragma once

#include "engine/optimizer/optimizer.h"
#include "kernels/update_kernels.h"

namespace assay {

// Throws ConfigError for an unknown rule, and for a part of no_decay that no name has.
void check_optimizer_options(const Optimizer::Options& options, const ParameterSet& set);
bool is_decayed(const Optimizer::Options& options, const std::string& name, int64_t num_dims);

class FusedOptimizer final : public Optimizer {
 public:
  // Keeps the parameters, which must be dense, on the CPU and all float32 or all float64. Gradients may be of a lower
  // precision than their parameter. Throws ConfigError for an unknown rule, and for a part of no_decay that no name
  // has.
  FusedOptimizer(const ParameterSet& parameters, const Options& options);
  FusedOptimizer(const NamedTensors& parameters, const Options& options)
      : FusedOptimizer(whole_parameters(parameters), options) {}

  Outcome step(const Update& update) override;
  void clear_grad() override;
  int64_t num_updates() const override { return num_updates_; }
  // "num_updates", and "momentum.<parameter>", "moment1.<parameter>", "moment2.<parameter>", "squares.<parameter>".
  NamedTensors state() const override;
  void load_state(const std::map<std::string, torch::Tensor>& state) override;

 private:
  struct Slot {
    std::string name;
    torch::Tensor weight;
    torch::Tensor first;   // same layout as the weight
    torch::Tensor second;  // same layout as the weight
    bool decays = true;
    bool counts = true;  // in sums over all processes
    size_t index = 0;    // of the parameter among those of all processes
  };
  // A part of one parameter that one thread updates. Elements of the gradient; those of the weight are at the same
  // place unless the gradient is one of rows.
  struct Piece {
    const Slot* slot;
    torch::Tensor gradient;
    int64_t begin;
    int64_t count;
    torch::Tensor rows;  // undefined, or [N] of the parameter that the gradient [N, ...] is of
  };
  std::vector<Piece> pieces();
  void add_row_pieces(const Slot& slot, const torch::Tensor& sparse, std::vector<Piece>& pieces) const;
  template <typename T>
  double gradient_norm(const std::vector<Piece>& pieces) const;
  template <typename T>
  Outcome step_as(const Update& update);
  template <typename T>
  void pass(UpdateRule rule, const std::vector<Piece>& pieces, const UpdateFactors<T>& factors,
            const std::vector<double>& ratios, std::vector<UpdateNorms>* norms);
  // |weight| / |change| for each piece, over the whole parameter, of which other processes may have parts.
  std::vector<double> trust_ratios(const std::vector<Piece>& pieces, const std::vector<UpdateNorms>& norms) const;
  template <typename T>
  void update_lamb(const std::vector<Piece>& pieces, const UpdateFactors<T>& factors);

  Options options_;
  std::function<void(std::vector<double>&)> sum_of_all_;
  std::vector<Slot> slots_;
  size_t num_parameters_ = 0;  // of all processes
  int64_t num_updates_ = 0;
};

}  // namespace assay
