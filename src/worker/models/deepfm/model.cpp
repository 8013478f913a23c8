#include "models/deepfm/model.h"

#include <fmt/format.h>
#include <torch/nn/functional/loss.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "models/common/auc.h"
#include "nn/linear.h"
#include "nn/recompute.h"
#include "nn/transformer_parts.h"

namespace assay::deepfm {

namespace {

class Net final : public Network {
 public:
  explicit Net(const Options& o) : dropout_(o.dropout), recomputes_(o.use_recompute) {
    for (const int64_t size : o.fields) {
      offsets_.push_back(num_values_);
      num_values_ += size;
    }
    PartMaker make(*this);
    bias_ = make.zeros("bias", 1);
    weights_ = make.weight("linear", {num_values_, 1}, 0);
    embeddings_ = make.weight("embedding", {num_values_, o.embedding_size}, o.initializer_range);
    int64_t width = static_cast<int64_t>(o.fields.size()) * o.embedding_size;
    const auto layer = [&](int64_t out, double gain) {
      const std::string path = fmt::format("mlp.{}", layers_.size());
      layers_.push_back(
          make.affine(path, {width, out}, WeightLayout::OutIn, std::sqrt(gain / static_cast<double>(width))));
      width = out;
    };
    for (const int64_t size : o.hidden_sizes) layer(size, 2);  // ReLU lets half through
    if (!o.hidden_sizes.empty()) layer(1, 1);
  }

  // Embeddings and factorisation machine, then one a hidden layer. The stream is {sum so far [B], activations}.
  int64_t num_segments() const override { return 1 + std::max<int64_t>(num_hidden(), 1); }
  TensorList run_segment(int64_t index, const TensorList& stream, const TensorList& inputs) override {
    if (index == 0) return embed(inputs);
    if (index > num_hidden()) return stream;
    const auto run = [this, index](const TensorList& in) {
      const torch::Tensor hidden = run_layer(static_cast<size_t>(index) - 1, in[0]).relu();
      return TensorList{torch::dropout(hidden, dropout_, is_training())};
    };
    const TensorList layer = {stream.at(1)};
    return {stream.at(0), (recomputes_ ? recompute(run, layer) : run(layer))[0]};
  }
  torch::Tensor output(const TensorList& stream) override {
    if (layers_.empty()) return stream.at(0);
    return stream.at(0) + run_layer(layers_.size() - 1, stream.at(1)).squeeze(1);
  }

  std::vector<std::string> segment_parameters(int64_t index) const override {
    std::vector<std::string> names;
    if (index == 0) names = {"bias", "linear.weight", "embedding.weight"};
    const auto add = [&](int64_t layer) {
      for (const std::string& name : with_bias({fmt::format("mlp.{}", layer)})) names.push_back(name);
    };
    if (index > 0 && index <= num_hidden()) add(index - 1);
    if (index + 1 == num_segments() && !layers_.empty()) add(num_hidden());
    return names;
  }
  std::vector<std::string> sparse_parameters() const override { return {"linear.weight", "embedding.weight"}; }
  TensorList sparse_rows(const TensorList& inputs) const override {
    const torch::Tensor rows = rows_of(inputs);
    return {rows, rows};
  }
  // Rows of the tables, and pairs of layers.
  std::vector<WeightSplit> weight_splits() const override {
    std::vector<WeightSplit> splits = {{"linear.weight", 0}, {"embedding.weight", 0}};
    for (size_t i = 0; i < layers_.size(); ++i) {
      const std::string at = fmt::format("mlp.{}.", i);
      if (has_part_of_outputs(i)) splits.insert(splits.end(), {{at + "weight", 0}, {at + "bias", 0}});
      if (has_part_of_inputs(i)) splits.push_back({at + "weight", 1});
    }
    return splits;
  }
  void set_tensor_parallel(const TensorParallel& parallel) override {
    if (parallel.splits_sequence()) throw ConfigError("Distributed.sequence_parallel: deepfm has no sequences");
    Network::set_tensor_parallel(parallel);
  }

 private:
  int64_t num_hidden() const { return static_cast<int64_t>(layers_.empty() ? 0 : layers_.size() - 1); }
  bool has_part_of_outputs(size_t layer) const { return layer % 2 == 0 && layer + 1 < layers_.size(); }
  bool has_part_of_inputs(size_t layer) const { return layer % 2 == 1; }

  torch::Tensor rows_of(const TensorList& inputs) const {
    ASSAY_CHECK(inputs.size() == offsets_.size(), fmt::format("{} fields, not {}", offsets_.size(), inputs.size()));
    const torch::Tensor values = torch::stack(inputs, 1);
    return values + torch::tensor(offsets_, values.options());  // [B, F]
  }

  TensorList embed(const TensorList& inputs) {
    const torch::Tensor rows = rows_of(inputs);
    const torch::Tensor first = look_up(weights_, rows).flatten(1).sum(1);
    const torch::Tensor embedded = look_up(embeddings_, rows);  // [B, F, K]
    // The sum over pairs of fields of the products of their embeddings: (e1 + e2 + ...)^2 has each of them twice, and
    // the squares.
    const torch::Tensor second = 0.5 * (embedded.sum(1).square() - embedded.square().sum(1)).sum(1);
    return {bias_ + first + second, embedded.flatten(1)};
  }

  torch::Tensor look_up(const torch::Tensor& table, const torch::Tensor& rows) const {
    return tensor_parallel().embedding(table, num_values_, rows, /*sparse=*/is_training());
  }

  torch::Tensor run_layer(size_t index, const torch::Tensor& x) const {
    const Affine& layer = layers_[index];
    const TensorParallel& parallel = tensor_parallel();
    if (parallel.on() && has_part_of_inputs(index)) {
      return parallel.leave(linear(x, layer.weight, WeightLayout::OutIn)) + layer.bias;
    }
    return affine(has_part_of_outputs(index) ? parallel.enter(x) : x, layer.weight, layer.bias);
  }

  double dropout_;
  bool recomputes_;
  std::vector<int64_t> offsets_;  // of the fields' rows in the tables
  int64_t num_values_ = 0;        // rows of a table
  torch::Tensor bias_;
  torch::Tensor weights_;
  torch::Tensor embeddings_;
  std::vector<Affine> layers_;
};

constexpr int64_t kMaxValues = int64_t{1} << 31;
constexpr int64_t kMaxFields = 1000;
constexpr int64_t kMaxWidth = 1 << 16;

Options read_options(Reader& section) {
  Options o;
  const auto check = [&](const char* key, const std::vector<int64_t>& sizes, int64_t max) {
    if (sizes.size() > kMaxFields) section.fail(key, fmt::format("must be at most {} numbers", kMaxFields));
    for (const int64_t size : sizes) {
      if (size < 1 || size > max) section.fail(key, fmt::format("must be numbers from 1 to {}", max));
    }
  };
  o.fields = section.get_ints("fields", o.fields);
  if (o.fields.size() < 2) section.fail("fields", "must be at least two numbers of values");
  check("fields", o.fields, kMaxValues);
  if (std::accumulate(o.fields.begin(), o.fields.end(), int64_t{0}) > kMaxValues) {
    section.fail("fields", fmt::format("must be at most {} values together", kMaxValues));
  }
  o.embedding_size = section.get_int("embedding_size", o.embedding_size);
  if (o.embedding_size < 1 || o.embedding_size > kMaxWidth) {
    section.fail("embedding_size", fmt::format("must be from 1 to {}", kMaxWidth));
  }
  o.hidden_sizes = section.get_ints("hidden_sizes", o.hidden_sizes);
  check("hidden_sizes", o.hidden_sizes, kMaxWidth);
  o.dropout = section.get_double("dropout", o.dropout);
  if (!(o.dropout >= 0 && o.dropout < 1)) section.fail("dropout", "must be from 0 to below 1");
  o.initializer_range = section.get_double("initializer_range", o.initializer_range);
  if (!(o.initializer_range > 0)) section.fail("initializer_range", "must be above 0");
  o.use_recompute = section.get_bool("use_recompute", o.use_recompute);
  section.finish();
  return o;
}

}  // namespace

std::shared_ptr<Network> DeepFm::get_model() { return std::make_shared<Net>(options_); }

LossFunction DeepFm::get_loss_fn() {
  return [](const torch::Tensor& logits, const torch::Tensor& label) {
    // In a lower precision the logarithm of a number near 1 has few digits left.
    const torch::Tensor exact = logits.to(at::promoteTypes(logits.scalar_type(), torch::kFloat));
    return torch::nn::functional::binary_cross_entropy_with_logits(exact, label);
  };
}

std::vector<InputSpec> DeepFm::input_spec() const {
  std::vector<InputSpec> inputs;
  for (const int64_t size : options_.fields) {
    inputs.push_back(
        {.name = fmt::format("field{}", inputs.size()), .dtype = torch::kLong, .shape = {-1}, .num_values = size});
  }
  return inputs;
}

EvalStep DeepFm::measure_output(const torch::Tensor& output, const Batch& batch) {
  EvalStep step = Module::measure_output(output, batch);
  const torch::Tensor liked = label_of(batch).gt(0.5);
  step.sums["correct"] = step.output.gt(0).eq(liked).sum().item<double>();
  step.values["score"] = step.output;
  step.values["label"] = label_of(batch);
  return step;
}

MetricValues DeepFm::validation_epoch_end(int64_t epoch, const EvalSums& sums) {
  MetricValues metrics = Module::validation_epoch_end(epoch, sums);
  metrics["logloss"] = metrics.at("loss");
  metrics["accuracy"] = sums.sums.at("correct") / static_cast<double>(sums.num_samples);
  metrics["auc"] = area_under_curve(sums.values.at("score"), sums.values.at("label"));
  return metrics;
}

std::optional<double> DeepFm::flops_per_sample() const {
  const auto k = static_cast<double>(options_.embedding_size);
  double width = static_cast<double>(options_.fields.size()) * k;
  double products = 2 * width + k;
  for (const int64_t size : options_.hidden_sizes) {
    products += width * static_cast<double>(size);
    width = static_cast<double>(size);
  }
  if (!options_.hidden_sizes.empty()) products += width;
  return kTrainFlops * products;
}

ModelEntry entry() {
  const Options defaults;
  return {.name = "deepfm",
          .summary = "a factorisation machine and a network over shared embeddings (Guo et al. 2017)",
          .options = {{"fields", defaults.fields, "values that each category has; for ratings: users, items"},
                      {"embedding_size", defaults.embedding_size, "numbers of an embedding"},
                      {"hidden_sizes", defaults.hidden_sizes, "layers of the network; []: a factorisation machine"},
                      {"dropout", defaults.dropout, "behind each hidden layer"},
                      {"initializer_range", defaults.initializer_range, "standard deviation of new embeddings"},
                      {"use_recompute", defaults.use_recompute,
                       "compute activations again in the backward pass instead of keeping them"}},
          .make = [](Reader& section) { return std::make_unique<DeepFm>(read_options(section)); }};
}

}  // namespace assay::deepfm
