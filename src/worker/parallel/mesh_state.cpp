// MeshStrategy as EvaluationExchange and as StateExchange.
#include <fmt/format.h>
#include <torch/utils.h>

#include <set>

#include "base/error.h"
#include "base/json.h"
#include "engine/checkpoint/tensor_file.h"
#include "parallel/eval_exchange.h"
#include "parallel/exchange.h"
#include "parallel/mesh_strategy.h"

namespace assay {

namespace {

constexpr char kRandomPrefix[] = "random.";
constexpr char kMeshOfRandom[] = "random.mesh";

std::string name_of_random(int rank) { return rank == 0 ? kRandomState : fmt::format("random.rank.{}", rank); }

// "moment1.layer.weight" -> "moment1", "layer.weight".
struct StateName {
  std::string kind, parameter;
};
StateName split_state_name(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

}  // namespace

void MeshStrategy::begin_evaluation() {
  if (!sharded_) return;
  shards_weights() ? sharded_->acquire_late() : sharded_->fetch_weights();
}

void MeshStrategy::end_evaluation() {
  if (shards_weights()) sharded_->release_late();
}

std::optional<EvalStep> MeshStrategy::evaluate(Module& module, const Batch& batch, bool test) {
  std::optional<EvalStep> step;
  if (pipeline_) {
    const TensorList stream = pipeline_->run_forward(module, batch);
    if (pipeline_->has_last_chunk()) step = module.measure_stream(stream, batch);
  } else {
    step = EvaluationExchange::evaluate(module, batch, test);
  }
  return measures() ? step : std::nullopt;
}

EvalSums MeshStrategy::merge(EvalSums mine) { return merge_sums(gather_texts(mesh_.all(), pack_sums(mine))); }

void MeshStrategy::broadcast(std::string& bytes) { broadcast_text(mesh_.all(), bytes); }

NamedTensors MeshStrategy::gather_weights(const Module& module) {
  TensorsByName own;
  for (const auto& [name, tensor] : state_of(module.model())) own[name] = tensor;
  if (sharded_ && !shards_weights()) sharded_->fetch_weights();
  if (shards_weights()) {
    for (auto& [name, tensor] : sharded_->join(sharded_->weight_pieces())) own[name] = tensor;
  }
  std::vector<const TensorRecord*> records;
  for (const TensorRecord& record : whole_->records()) records.push_back(&record);
  return whole_->gather(own, records);
}

NamedTensors MeshStrategy::gather_state(const NamedTensors& mine) {
  NamedTensors whole;
  std::map<std::string, TensorsByName> kinds;
  Json names = Json::array();
  for (const auto& [name, tensor] : mine) {
    const StateName parts = split_state_name(name);
    if (!whole_->find(parts.parameter)) {
      if (is_writer()) whole.emplace_back(name, tensor);
      continue;
    }
    if (!kinds.contains(parts.kind)) names.push_back(parts.kind);
    kinds[parts.kind][parts.parameter] = tensor;
  }
  // A process may have no part of anything.
  std::set<std::string> all_kinds;
  for (const std::string& text : gather_texts(mesh_.all(), names.dump())) {
    for (const Json& kind : Json::parse(text)) all_kinds.insert(kind.get<std::string>());
  }
  std::vector<const TensorRecord*> records;
  for (const TensorRecord& record : whole_->records()) {
    if (record.is_trained) records.push_back(&record);
  }
  for (const std::string& kind : all_kinds) {
    TensorsByName tensors = kinds[kind];
    if (sharded_) {
      for (auto& [name, tensor] : sharded_->join(tensors)) tensors[name] = tensor;
    }
    for (auto& entry : whole_->gather(tensors, records, kind + ".")) whole.push_back(std::move(entry));
  }
  return whole;
}

NamedTensors MeshStrategy::gather_random(const torch::Tensor& mine) {
  comm::Communicator& all = mesh_.all();
  const torch::Tensor state = mine.contiguous();
  torch::Tensor states = torch::empty({all.size(), state.numel()}, torch::kByte);
  all.all_gather(state.data_ptr(), states.data_ptr(), state.numel(), comm::DType::U8);
  if (!is_writer()) return {};
  NamedTensors whole;
  for (int rank = 0; rank < all.size(); ++rank) whole.emplace_back(name_of_random(rank), states[rank].clone());
  whole.emplace_back(kMeshOfRandom, torch::tensor(mesh_shape()));
  return whole;
}

TensorsByName MeshStrategy::scatter_weights(TensorsByName whole) {
  TensorsByName own;
  whole_->broadcast_each(whole, [&](const std::string& name, const torch::Tensor& tensor) {
    const TensorRecord* record = whole_->find(name);
    if (record && !whole_->is_here(*record)) {
      own[name] = torch::empty({0}, record->type);
    } else {
      // One of another shape is left as it is: whoever copies it says so.
      own[name] = record && tensor.sizes() == record->shape ? whole_->cut(*record, tensor) : tensor;
    }
  });
  if (sharded_ && !weights_fetched_) sharded_->fetch_weights();
  weights_fetched_ = sharded_ != nullptr;
  return own;
}

void MeshStrategy::weights_changed() {
  if (weights_fetched_) sharded_->store_weights();
  weights_fetched_ = false;
}

TensorsByName MeshStrategy::scatter_state(TensorsByName whole) {
  TensorsByName own;
  std::erase_if(whole, [](const auto& item) { return item.first.starts_with(kRandomPrefix); });
  whole_->broadcast_each(whole, [&](const std::string& name, const torch::Tensor& tensor) {
    const std::string parameter = split_state_name(name).parameter;
    const TensorRecord* record = whole_->find(parameter);
    if (!record) {
      own[name] = tensor;
      return;
    }
    if (!whole_->is_here(*record) || tensor.sizes() != record->shape) return;
    const torch::Tensor part = whole_->cut(*record, tensor);
    if (!sharded_ || !sharded_->bucket_of(parameter)) {
      own[name] = part;
    } else if (const auto piece = sharded_->piece_of(parameter, part)) {
      own[name] = *piece;
    }
  });
  return own;
}

std::optional<torch::Tensor> MeshStrategy::scatter_random(const TensorsByName& whole, int64_t step) {
  TensorsByName random;
  for (const auto& [name, tensor] : whole) {
    if (name.starts_with(kRandomPrefix)) random[name] = tensor;
  }
  TensorsByName all;
  whole_->broadcast_each(random, [&](const std::string& name, const torch::Tensor& tensor) { all[name] = tensor; });
  const auto mesh = all.find(kMeshOfRandom);
  const torch::Tensor now = torch::tensor(mesh_shape());
  if (mesh != all.end() && torch::equal(mesh->second, now.to(mesh->second.scalar_type()))) {
    return all.at(name_of_random(mesh_.rank()));
  }
  // Of another mesh: new numbers, the same for everyone who loads it with this one.
  seed_random(step + 1);
  return std::nullopt;
}

}  // namespace assay
