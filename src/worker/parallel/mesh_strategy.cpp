#include "parallel/mesh_strategy.h"

#include <fmt/format.h>
#include <torch/autograd.h>
#include <torch/utils.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "device/allocator.h"
#include "engine/adapter/adapter.h"
#include "engine/checkpoint/checkpoint.h"
#include "parallel/exchange.h"
#include "parallel/pipeline_plan.h"
#include "parallel/segment_costs.h"
#include "parallel/weight_parts.h"

namespace assay {

namespace {

constexpr char kDivision[] = "(pipeline)";  // in the placement, among the names of tensors

// The order of its own in the backward pass: `call` runs before any gradient behind it is computed.
class BeforeBackward : public torch::autograd::Function<BeforeBackward> {
 public:
  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, at::TensorList tensors,
                                                ShardedParameters* sharded, const std::vector<int64_t>& buckets) {
    context->saved_data["sharded"] = reinterpret_cast<int64_t>(sharded);
    context->saved_data["buckets"] = buckets;
    context->set_materialize_grads(false);
    torch::autograd::variable_list same;
    for (const torch::Tensor& tensor : tensors) same.push_back(tensor.view_as(tensor));
    return same;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    auto* sharded = reinterpret_cast<ShardedParameters*>(context->saved_data["sharded"].toInt());
    for (const int64_t bucket : context->saved_data["buckets"].toIntVector()) {
      sharded->acquire(static_cast<size_t>(bucket));
    }
    gradients.resize(gradients.size() + 2);
    return gradients;
  }
};

// What a division of segments has to fit.
struct SegmentDivision {
  std::vector<int64_t> mesh;
  int64_t num_chunks = 0;
  int64_t num_segments = 0;
};

// The edges in the newest checkpoint of a run, or else in the one that it starts from, if they fit; otherwise none.
// Whether the checkpoint is whole is asked when it is loaded.
Json saved_edges(const SegmentDivision& division, const fs::path& checkpoint_folder,
                 const std::optional<fs::path>& start) {
  std::vector<fs::path> checkpoints = list_checkpoints(checkpoint_folder);
  if (checkpoints.empty() && start) checkpoints.push_back(*start);
  const Json none = Json::array();
  if (checkpoints.empty()) return none;
  try {
    const Json saved = read_json_file(checkpoints[0] / "meta.json").at("placement").at(kDivision);
    const auto edges = saved.at("edges").get<std::vector<int64_t>>();
    const bool fits = saved.at("mesh") == Json(division.mesh) &&
                      static_cast<int64_t>(edges.size()) == division.num_chunks + 1 && edges.front() == 0 &&
                      edges.back() == division.num_segments &&
                      std::adjacent_find(edges.begin(), edges.end(), std::greater_equal<>()) == edges.end();
    return fits ? saved.at("edges") : none;
  } catch (const Json::exception&) {  // of another kind of run
  } catch (const Error&) {            // damaged
  }
  return none;
}

std::string parent_of(const std::string& name) { return name.substr(0, name.rfind('.') + 1); }

}  // namespace

MeshStrategy::MeshStrategy(const ParallelOptions& options, Services services)
    : options_(options), services_(std::move(services)), mesh_(services_.world, options) {
  comm::CommBuffer::set_counter(count_foreign_memory);
}

MeshStrategy::~MeshStrategy() = default;

Topology MeshStrategy::topology() const {
  std::string text = fmt::format("dp {} x sharding {} x pp {} x mp {}", options_.data, options_.sharding,
                                 options_.pipeline, options_.tensor);
  if (options_.shards()) text += fmt::format(", sharding stage {}", options_.sharding_stage);
  if (options_.sequence) text += ", sequences split";
  if (options_.virtual_stages > 1) text += fmt::format(", {} chunks per stage", options_.virtual_stages);
  return {.description = std::move(text),
          .world_size = options_.world_size(),
          .is_alone = false,
          .is_writer = is_writer(),
          .num_replicas = mesh_.num_replicas(),
          .replica = mesh_.replica()};
}

bool MeshStrategy::measures() const {
  return mesh_.coordinates().tensor == 0 && mesh_.coordinates().pipeline == options_.pipeline - 1;
}

void MeshStrategy::refuse(const Module& module) const {
  if (options_.tensor > 1 && module.model().weight_splits().empty()) {
    throw ConfigError(
        "Distributed.mp_degree above 1: this model does not say how its weights are split "
        "(Network::weight_splits)");
  }
}

std::vector<double> MeshStrategy::segment_costs(Module& module) const {
  const Network& network = module.model();
  if (options_.segments == "layers") return std::vector<double>(static_cast<size_t>(network.num_segments()), 1.0);
  if (options_.segments == "parameters") return parameters_of_segments(network);
  // One process measures, so that all of them divide alike.
  std::vector<double> costs(static_cast<size_t>(network.num_segments()));
  if (mesh_.rank() == 0) costs = seconds_of_segments(module, 2);
  mesh_.all().broadcast(costs.data(), static_cast<int64_t>(costs.size()), comm::DType::F64, 0);
  return costs;
}

std::vector<int64_t> MeshStrategy::mesh_shape() const {
  return {options_.data, options_.sharding, options_.pipeline, options_.tensor, options_.virtual_stages};
}

// Measured times differ from start to start, and with them would the division, and with that the random numbers of
// every segment: a run that continues keeps the division of its checkpoint.
std::vector<int64_t> MeshStrategy::divide(Module& module, const EngineOptions& options) const {
  const int64_t num_chunks = options_.pipeline * options_.virtual_stages;
  if (options_.pipeline == 1) return {0, module.model().num_segments()};
  if (options_.segments == "time") {
    std::string text;
    if (mesh_.rank() == 0) {
      const SegmentDivision division{mesh_shape(), num_chunks, module.model().num_segments()};
      text = saved_edges(division, services_.checkpoint_folder, options.ckpt_dir).dump();
    }
    broadcast_text(mesh_.all(), text);
    const auto edges = Json::parse(text).get<std::vector<int64_t>>();
    if (!edges.empty()) return edges;
  }
  return divide_segments(segment_costs(module), num_chunks);
}

std::vector<TensorRecord> MeshStrategy::take_stock(const Network& network) const {
  std::map<std::string, std::set<int>> stages;  // by parameter
  for (size_t chunk = 0; chunk + 1 < edges_.size(); ++chunk) {
    for (int64_t i = edges_[chunk]; i < edges_[chunk + 1]; ++i) {
      for (const std::string& name : network.segment_parameters(i)) {
        stages[name].insert(static_cast<int>(chunk) % options_.pipeline);
      }
    }
  }
  std::map<std::string, WeightSplit> splits;
  if (options_.tensor > 1) {
    for (const WeightSplit& split : network.weight_splits()) splits.emplace(split.name, split);
  }
  std::vector<TensorRecord> records;
  const auto add = [&](const std::string& name, const torch::Tensor& tensor, const std::set<int>& at) {
    TensorRecord record{.name = name,
                        .shape = tensor.sizes().vec(),
                        .type = tensor.scalar_type(),
                        .split = {},
                        .stages = {at.begin(), at.end()},
                        .is_trained = tensor.requires_grad()};
    if (const auto found = splits.find(name); found != splits.end()) record.split = found->second;
    records.push_back(std::move(record));
  };
  for (const auto& item : network.named_parameters()) {
    ASSAY_CHECK(stages.contains(item.key()), item.key() + " belongs to no segment of the network");
    add(item.key(), item.value(), stages.at(item.key()));
  }
  // Statistics are where the weights of the same layer are.
  for (const auto& item : network.named_buffers()) {
    std::set<int> at = {0};
    for (const auto& [name, found] : stages) {
      if (parent_of(name) == parent_of(item.key())) at = {*found.begin()};
    }
    add(item.key(), item.value(), at);
  }
  return records;
}

void MeshStrategy::cut_weights(Network& network) {
  auto parameters = network.named_parameters();
  auto buffers = network.named_buffers();
  for (const TensorRecord& record : whole_->records()) {
    torch::Tensor* found = parameters.find(record.name);
    torch::Tensor tensor = found ? *found : *buffers.find(record.name);
    if (!whole_->is_here(record)) {
      tensor.set_data(torch::empty({0}, tensor.options()));
      if (found) tensor.set_requires_grad(false);
    } else if (record.split) {
      tensor.set_data(whole_->cut(record, tensor.detach()));
    }
  }
}

// Parameters that several stages have get the sum of all their gradients.
void MeshStrategy::make_ties(Network& network) {
  std::map<std::vector<int>, NamedTensors> by_stages;
  const auto parameters = network.named_parameters();
  for (const TensorRecord& record : whole_->records()) {
    if (record.stages.size() < 2 || !whole_->is_here(record)) continue;
    if (const torch::Tensor* parameter = parameters.find(record.name)) {
      by_stages[record.stages].emplace_back(record.name, *parameter);
    }
  }
  for (auto& [stages, tied] : by_stages) ties_.push_back({mesh_.stages(stages, "tied"), std::move(tied)});
}

// Which parameters stand together. A bucket that is gathered by itself is of one precision in a step, so with
// `splits_by_precision` those that differ stand apart.
SyncedParameters MeshStrategy::synced_parameters(const Network& network, bool splits_by_precision) const {
  const std::vector<std::string> sparse = network.sparse_parameters();
  std::set<std::string> late;
  for (const Tie& tie : ties_) {
    for (const auto& [name, parameter] : tie.parameters) late.insert(name);
  }
  const bool by_segment = options_.shards() && options_.sharding_stage == 3;
  const int64_t num_segments = network.num_segments();
  std::map<std::string, int64_t> segment;  // of a parameter that only one uses
  for (int64_t i = 0; i < num_segments && by_segment; ++i) {
    for (const std::string& name : network.segment_parameters(i)) {
      // What comes behind the last segment is computed with its weights too.
      if (i + 1 == num_segments || !segment.emplace(name, i).second) late.insert(name);
    }
  }
  SyncedParameters synced;
  NamedTensors early;
  const auto is_low = [&](const torch::Tensor& parameter) { return splits_by_precision && computes_low(parameter); };
  std::map<bool, NamedTensors> late_groups;
  for (const auto& [name, parameter] : trainable_parameters(network)) {
    if (std::find(sparse.begin(), sparse.end(), name) != sparse.end()) {
      synced.sparse.emplace_back(name, parameter);
    } else {
      (late.contains(name) ? late_groups[is_low(parameter)] : early).emplace_back(name, parameter);
    }
  }
  for (auto& [low, group] : late_groups) synced.late.push_back(std::move(group));
  if (by_segment) {
    std::map<std::pair<int64_t, bool>, NamedTensors> groups;
    for (const auto& entry : early) {  // the last segment first
      groups[{-segment.at(entry.first), is_low(entry.second)}].push_back(entry);
    }
    for (auto& [key, group] : groups) synced.groups.push_back(std::move(group));
  } else if (!early.empty()) {
    synced.groups = group_by_size(early, options_.bucket_bytes);
  }
  return synced;
}

void MeshStrategy::make_sync(Module& module, const EngineOptions& options) {
  Network& network = module.model();
  const std::vector<std::string> whole = network.whole_sequence_parameters();
  std::optional<torch::ScalarType> low_type;
  if (options.precision.low_weights && options_.shards() && options_.sharding_stage == 3) {
    low_type = options.precision.mixed;
  }
  const SyncedParameters synced = synced_parameters(network, low_type.has_value());
  GradientSync::Groups groups{
      .replicas = mesh_.replicas(),
      .tensor = mesh_.tensor(),
      .summed_over_tensor = {},
      .find_unused = options_.find_unused,
      .reduces_every_part = options_.shards() && options_.sharding_stage > 1 && options_.pipeline == 1};
  for (const auto& [name, parameter] : trainable_parameters(network)) {
    const bool everywhere = !whole_->find(name)->split && std::find(whole.begin(), whole.end(), name) == whole.end();
    if (options_.sequence && everywhere) groups.summed_over_tensor.insert(name);
  }
  if (options_.shards()) {
    auto sharded = std::make_unique<ShardedParameters>(
        synced, groups,
        ShardedParameters::Sharding{.group = mesh_.sharding(),
                                    .data = mesh_.data(),
                                    .stage = options_.sharding_stage,
                                    .low_type = low_type,
                                    .gathers = options_.broken != "sharded-no-gather"});
    sharded_ = sharded.get();
    sync_ = std::move(sharded);
  } else {
    sync_ = std::make_unique<ReplicatedGradients>(synced, groups, options_.broken != "dp-no-sync");
  }
}

// Stage 3: the weights of a segment are there while it computes, forward and again backward.
void MeshStrategy::run_segments_with_their_weights(Network& network) {
  std::map<int64_t, std::vector<int64_t>> buckets;  // of a segment
  for (int64_t i = 0; i < network.num_segments(); ++i) {
    std::set<int64_t> own;
    for (const std::string& name : network.segment_parameters(i)) {
      const std::optional<size_t> found = sharded_->bucket_of(name);
      if (found && sharded_->is_early(*found)) own.insert(static_cast<int64_t>(*found));
    }
    if (!own.empty()) buckets[i].assign(own.begin(), own.end());
  }
  network.run_segments_by([this, &network, buckets](int64_t index, const TensorList& stream, const TensorList& inputs) {
    const auto found = buckets.find(index);
    if (found == buckets.end()) return network.run_segment(index, stream, inputs);
    for (const int64_t bucket : found->second) sharded_->acquire(static_cast<size_t>(bucket));
    TensorList outputs = network.run_segment(index, stream, inputs);
    if (torch::GradMode::is_enabled()) {
      outputs = BeforeBackward::apply(at::TensorList(outputs), sharded_, found->second);
    }
    for (const int64_t bucket : found->second) sharded_->release(static_cast<size_t>(bucket));
    return outputs;
  });
}

// In a step the sharded weights are of the lower precision by themselves. What is left are tables with sparse
// gradients, which stay as they are.
std::unique_ptr<LowPrecisionWeights> MeshStrategy::create_low_weights(torch::ScalarType dtype) {
  if (!shards_weights()) return nullptr;
  return std::make_unique<LowPrecisionWeights>(std::vector<torch::Tensor>(), dtype);
}

ParameterSet MeshStrategy::trained_set() const {
  ParameterSet set = sync_->trained();
  for (TrainedParameter& parameter : set.parameters) {
    const TensorRecord& record = *whole_->find(parameter.name);
    if (!record.split && mesh_.coordinates().tensor != 0) parameter.counts = false;
    if (record.stages.front() != mesh_.coordinates().pipeline) parameter.counts = false;
  }
  for (const TensorRecord& record : whole_->records()) {
    if (record.is_trained) set.all_names.push_back(record.name);
  }
  set.sum_of_all = [&group = mesh_.model()](std::vector<double>& own) {
    group.all_reduce(own.data(), static_cast<int64_t>(own.size()), comm::DType::F64);
  };
  if (sharded_) set.change_values = [this](const std::function<void()>& change) { sharded_->change_parts(change); };
  return set;
}

void MeshStrategy::prepare(Module& module, const EngineOptions& options) {
  refuse(module);
  network_ = &module.model();
  edges_ = divide(module, options);
  whole_ = std::make_unique<WholeTensors>(mesh_, options_.tensor, take_stock(*network_));
  if (options_.tensor > 1) network_->set_tensor_parallel(TensorParallel(mesh_.tensor(), options_.sequence));
  cut_weights(*network_);
  if (options_.pipeline > 1) {
    pipeline_ = std::make_unique<Pipeline>(
        mesh_.pipeline(), Pipeline::Options{.virtual_stages = options_.virtual_stages, .edges = edges_});
    make_ties(*network_);
  }
  make_sync(module, options);
  if (shards_weights()) run_segments_with_their_weights(*network_);
  module.set_trained_parameters(trained_set());
  if (mesh_.num_replicas() > 1 || options_.pipeline > 1) seed_random(0);
}

// FleetX's rule: equal within a tensor-parallel group, different everywhere else.
void MeshStrategy::seed_random(int64_t step) const {
  uint64_t seed = static_cast<uint64_t>(services_.seed);
  const MeshCoordinates& coordinates = mesh_.coordinates();
  for (const int64_t value : {static_cast<int64_t>(coordinates.data), static_cast<int64_t>(coordinates.sharding),
                              static_cast<int64_t>(coordinates.pipeline), step}) {
    seed = (seed ^ static_cast<uint64_t>(value + 1)) * 0x9E3779B97F4A7C15;  // the golden ratio's bits
    seed ^= seed >> 32;
  }
  torch::manual_seed(seed);
}

double MeshStrategy::sum_over_replicas(double mine) {
  mesh_.replicas().all_reduce(&mine, 1, comm::DType::F64);
  return mine;
}

void MeshStrategy::begin_step(int64_t step) {
  step_ = step;
  waited_before_ = mesh_.seconds_waited();
  mesh_.replicas().set_purpose(fmt::format("gradients of step {}", step));
  mesh_.all().set_purpose(fmt::format("the end of step {}", step));
  sync_->begin_step();
  if (shards_weights()) {
    sharded_->use_low_type(true);
    sharded_->acquire_late();
  }
  statistics_.emplace(mesh_.replicas());
}

void MeshStrategy::before_micro_batch(bool is_last) {
  const bool every = options_.shards() && options_.sharding_stage > 1;
  if (is_last || every) sync_->arm();
}

void MeshStrategy::sum_ties() {
  if (options_.broken == "pp-no-tie") return;
  for (const Tie& tie : ties_) {
    for (const auto& [name, parameter] : tie.parameters) {
      torch::Tensor tensor = parameter, gradient = tensor.grad();
      gradient = !gradient.defined() ? torch::zeros_like(tensor)
                                     : (gradient.is_sparse() ? gradient.to_dense() : gradient.contiguous());
      // With O2 a stage may have a gradient of the lower precision and another none, and sums are better in this one.
      gradient = gradient.to(tensor.scalar_type());
      tie.group->all_reduce(gradient.data_ptr(), gradient.numel(), comm_type(gradient.scalar_type()));
      tensor.mutable_grad() = gradient;
    }
  }
}

void MeshStrategy::finish_gradients() {
  sum_ties();
  sync_->finish();
  if (shards_weights()) {
    sharded_->release_late();
    sharded_->use_low_type(false);
  }
  statistics_.reset();
}

StepAgreement MeshStrategy::agree(const StepAgreement& mine) {
  double values[] = {measures() ? mine.loss : 0, mine.stop ? 1.0 : 0.0};
  mesh_.all().all_reduce(values, 2, comm::DType::F64);
  return {.loss = values[0], .stop = values[1] > 0};
}

void MeshStrategy::after_update() {
  sync_->after_update();
  if (options_.check_replicas) compare_replicas();
}

double MeshStrategy::comm_seconds() const { return mesh_.seconds_waited() - waited_before_; }

Json MeshStrategy::placement() const {
  Json places = whole_->placement();
  if (options_.pipeline > 1) places[kDivision] = {{"mesh", mesh_shape()}, {"edges", edges_}};
  return places;
}

void MeshStrategy::compare_replicas() {
  if (sharded_ && !shards_weights()) sharded_->fetch_weights();
  std::vector<std::string> names;
  std::vector<int64_t> sums;
  const auto add = [&](const std::string& name, const torch::Tensor& tensor) {
    if (!whole_->is_here(*whole_->find(name))) return;
    const torch::Tensor bytes = tensor.detach().contiguous();
    const auto* data = static_cast<const char*>(bytes.data_ptr());
    uint64_t sum = 0xCBF29CE484222325;  // Fowler-Noll-Vo, eight bytes at a time
    for (size_t at = 0; at < bytes.nbytes(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, data + at, std::min(sizeof word, bytes.nbytes() - at));
      sum = (sum ^ word) * 0x100000001B3;
    }
    names.push_back(name);
    sums.push_back(static_cast<int64_t>(sum));
  };
  if (!shards_weights()) {  // otherwise there is one copy of every weight
    for (const auto& item : network_->named_parameters()) add(item.key(), item.value());
  }
  for (const auto& item : network_->named_buffers()) add(item.key(), item.value());
  const auto compare = [&](comm::Communicator& group, bool split_too) {
    if (group.size() == 1 || sums.empty()) return;
    std::vector<int64_t> all(sums.size() * static_cast<size_t>(group.size()));
    group.all_gather(sums.data(), all.data(), static_cast<int64_t>(sums.size()), comm::DType::I64);
    for (size_t i = 0; i < names.size(); ++i) {
      if (!split_too && whole_->find(names[i])->split) continue;
      for (int r = 1; r < group.size(); ++r) {
        if (all[static_cast<size_t>(r) * sums.size() + i] == all[i]) continue;
        services_.on_replica_differs(
            {{"step", step_}, {"parameter", names[i]}, {"rank", group.world_ranks()[static_cast<size_t>(r)]}});
      }
    }
  };
  compare(mesh_.replicas(), true);
  compare(mesh_.tensor(), false);
}

}  // namespace assay
