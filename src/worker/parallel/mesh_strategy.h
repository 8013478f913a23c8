// The strategy of a mesh: data, sharding, pipeline and tensor parallelism in any combination. It puts together what the
// other files of this folder do one by one.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>

#include "engine/strategy.h"
#include "nn/batch_statistics.h"
#include "parallel/gradient_sync.h"
#include "parallel/mesh.h"
#include "parallel/pipeline.h"
#include "parallel/sharded_parameters.h"
#include "parallel/whole_tensors.h"

namespace assay {

class MeshStrategy final : public Strategy, StepExchange, EvaluationExchange, StateExchange {
 public:
  struct Services {
    comm::World& world;  // borrowed
    int64_t seed = 0;
    std::filesystem::path checkpoint_folder = {};  // of the run, which may hold what it continues from
    std::function<void(const Json&)> on_replica_differs = [](const Json&) {};  // {step, parameter, rank}
  };
  MeshStrategy(const ParallelOptions& options, Services services);
  ~MeshStrategy() override;

  Topology topology() const override;
  void prepare(Module& module, const EngineOptions& options) override;
  std::unique_ptr<LowPrecisionWeights> create_low_weights(torch::ScalarType dtype) override;
  StepExchange& step() override { return *this; }
  EvaluationExchange& evaluation() override { return *this; }
  StateExchange& state() override { return *this; }

 private:
  // --- StepExchange
  double sum_over_replicas(double mine) override;
  void begin_step(int64_t step) override;
  void before_micro_batch(bool is_last) override;
  MicroBatchSchedule* schedule() override { return pipeline_.get(); }
  void finish_gradients() override;
  StepAgreement agree(const StepAgreement& mine) override;
  void after_update() override;
  double comm_seconds() const override;

  // --- EvaluationExchange
  void begin_evaluation() override;
  void end_evaluation() override;
  std::optional<EvalStep> evaluate(Module& module, const Batch& batch, bool test) override;
  EvalSums merge(EvalSums mine) override;

  // --- StateExchange
  NamedTensors gather_weights(const Module& module) override;
  NamedTensors gather_state(const NamedTensors& mine) override;
  NamedTensors gather_random(const torch::Tensor& mine) override;
  Json placement() const override;
  void broadcast(std::string& bytes) override;
  TensorsByName scatter_weights(TensorsByName whole) override;
  TensorsByName scatter_state(TensorsByName whole) override;
  std::optional<torch::Tensor> scatter_random(const TensorsByName& whole, int64_t step) override;
  void weights_changed() override;

  bool is_writer() const { return mesh_.rank() == 0; }
  bool shards_weights() const { return sharded_ && options_.sharding_stage == 3; }
  bool measures() const;  // this process's losses and metrics count: others of its replica have the same
  void refuse(const Module& module) const;
  std::vector<TensorRecord> take_stock(const Network& network) const;
  std::vector<double> segment_costs(Module& module) const;
  std::vector<int64_t> divide(Module& module, const EngineOptions& options) const;
  std::vector<int64_t> mesh_shape() const;
  void cut_weights(Network& network);
  void make_ties(Network& network);
  void make_sync(Module& module, const EngineOptions& options);
  SyncedParameters synced_parameters(const Network& network, bool splits_by_precision) const;
  void run_segments_with_their_weights(Network& network);
  ParameterSet trained_set() const;
  void sum_ties();
  void compare_replicas();
  void seed_random(int64_t step) const;

  ParallelOptions options_;
  Services services_;
  Mesh mesh_;
  Network* network_ = nullptr;  // the module's
  std::unique_ptr<WholeTensors> whole_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<GradientSync> sync_;
  ShardedParameters* sharded_ = nullptr;  // the same, when it is one
  std::vector<int64_t> edges_;            // of the pipeline's chunks
  struct Tie {
    std::unique_ptr<comm::Communicator> group;
    NamedTensors parameters;
  };
  std::vector<Tie> ties_;
  std::optional<SharedStatistics> statistics_;
  int64_t step_ = 0;
  double waited_before_ = 0;
  bool weights_fetched_ = false;
};

}  // namespace assay
