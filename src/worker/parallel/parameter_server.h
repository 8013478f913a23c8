// The strategy of a trainer of parameter servers: tables and dense parameters live on servers, which also update them.
// A trainer has copies, of which only what a batch reads is fresh.
//
// Sync and async: before a batch its rows and all dense parameters are pulled, after it gradients are pushed. Geo:
// trainers update their copies themselves and exchange differences every geo_steps steps.
//
// What servers do not have is as every trainer has it: drawn from the seed of the run, or loaded. A row comes to its
// server with that value when a batch reads it first.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/worker_config.h"
#include "engine/strategy.h"
#include "param_server/client.h"

namespace assay {

struct ServerJobOptions {
  ps::Mode mode = ps::Mode::Sync;
  int64_t geo_steps = 10;
  double time_limit_s = 30;
};
// From Distributed.ps and Distributed.comm; nullopt for mode none. Throws ConfigError for other kinds of parallelism
// beside it.
std::optional<ServerJobOptions> read_server_options(const WorkerConfig& config);

class ParameterServerStrategy final : public Strategy, StepExchange, EvaluationExchange, StateExchange {
 public:
  // Connects to all servers.
  ParameterServerStrategy(const ServerJobOptions& options, const ps::ClientOptions& client, int64_t seed);
  ~ParameterServerStrategy() override;

  Topology topology() const override;
  // Trainers that do not wait for each other each evaluate all data.
  bool shares_evaluation() const { return options_.mode == ps::Mode::Sync; }

  void prepare(Module& module, const EngineOptions& options) override;
  std::unique_ptr<Optimizer> create_optimizer(const Optimizer::Options& options) override;
  StepExchange& step() override { return *this; }
  EvaluationExchange& evaluation() override { return *this; }
  StateExchange& state() override { return *this; }

  // Behind the last step: waits until all trainers are there and everything that they did is on the servers.
  void finish();
  void leave();                                   // the normal end
  void fail(const std::string& reason) noexcept;  // the others need not wait

 private:
  // --- StepExchange
  double sum_over_replicas(double mine) override;
  void begin_step(int64_t step) override;
  void bring_weights(const std::vector<MicroBatch>& parts) override;
  void finish_gradients() override;
  StepAgreement agree(const StepAgreement& mine) override;
  void after_update() override;
  double comm_seconds() const override { return waited_s_; }

  // --- EvaluationExchange
  void begin_evaluation() override;
  EvalSums merge(EvalSums mine) override;

  // --- StateExchange
  NamedTensors gather_weights(const Module& module) override;
  // The servers save their state at the same step.
  NamedTensors gather_state(const NamedTensors& mine) override;
  NamedTensors gather_random(const torch::Tensor& mine) override;
  Json placement() const override;
  void broadcast(std::string& bytes) override;
  TensorsByName scatter_weights(TensorsByName whole) override { return broadcast_each(std::move(whole)); }
  TensorsByName scatter_state(TensorsByName whole) override { return broadcast_each(std::move(whole)); }
  std::optional<torch::Tensor> scatter_random(const TensorsByName& whole, int64_t step) override;

  class ServerOptimizer;
  struct SparseTable {
    std::string name;
    torch::Tensor weight;
    uint32_t table = 0;
    torch::Tensor base = {};            // geo: the weights as of the last exchange
    std::vector<bool> is_known = {};    // geo: which rows servers have, unless they were started again
    std::vector<int64_t> touched = {};  // geo: since the last exchange
  };
  struct DenseTable {
    uint32_t table = 0;
    std::vector<torch::Tensor> tensors = {};
    int64_t num_elements = 0;
    std::vector<int64_t> pieces = {};
    torch::Tensor flat = {};  // all tensors one after the other, filled up to whole pieces
    torch::Tensor base = {};  // geo
  };

  int trainer() const { return client_.options().trainer; }
  int num_trainers() const { return client_.options().num_trainers; }
  bool is_writer() const { return trainer() == 0; }
  void refuse(const Module& module, const EngineOptions& options) const;
  void make_tables(const Network& network, const Optimizer::Options& options);
  void start();
  void collect(DenseTable& dense, torch::Tensor flat, bool gradients) const;
  void spread(const DenseTable& dense) const;
  bool own_gradients_finite() const;
  void push(double learning_rate, double gradient_scale);
  void refresh();
  void take_changed();
  void exchange();
  void give_first_values();
  void note_touched_rows();
  TensorsByName broadcast_each(TensorsByName whole);

  ServerJobOptions options_;
  int64_t seed_;
  ps::Client client_;
  Network* network_ = nullptr;  // the module's
  std::vector<SparseTable> sparse_;
  std::vector<DenseTable> dense_;
  bool started_ = false;
  int64_t step_ = 0;                // of this trainer; servers of a sync job are at the same
  bool gradients_finite_ = true;    // in this step; with sync those of all trainers
  bool pushed_ = false;             // in this step
  int num_reconnects_ = 0;          // geo: with which servers know what is_known says
  double waited_s_ = 0;             // in this step
  std::vector<std::string> saved_;  // files of the servers' last checkpoint
};

}  // namespace assay
