// Sharding (Rajbhandari et al. 2020): the processes of a group share one copy of the optimizer's state (stage 1), also
// of the gradients (stage 2), also of the weights (stage 3). A bucket is cut into equal parts, one for each process,
// which updates its part; then the parts are gathered.
//
// In stage 3 a bucket is a segment of the network, and its weights exist only while the segment computes. With O2
// (engine/precision/precision.h) the parts stay float32, and what is gathered for a step is of the lower precision;
// then a segment is two buckets, since some parameters are float32 in a step too.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "engine/module.h"
#include "parallel/gradient_sync.h"

namespace assay {

class ShardedParameters final : public GradientSync {
 public:
  struct Sharding {
    comm::Communicator& group;  // that shares the state
    comm::Communicator& data;   // that has other samples and the same part of the state
    int stage = 1;
    std::optional<torch::ScalarType> low_type = {};  // stage 3: of weights in a step
    bool gathers = true;                             // false: a fault on purpose, for tests
  };
  ShardedParameters(const SyncedParameters& parameters, const Groups& groups, const Sharding& sharding);
  ~ShardedParameters() override;  // waits for weights on their way: they come into this object's memory

  ParameterSet trained() const override;
  void begin_step() override;
  void after_update() override;

  // Stage 3: the weights of a bucket are there from acquire() to release().
  void acquire(size_t bucket);
  void release(size_t bucket);
  void acquire_late();
  void release_late();
  bool is_early(size_t bucket) const { return bucket < num_early_; }
  // Stage 3: acquire() gives weights of the lower precision from now on, where there is one, or those of the optimizer.
  // Not while any are there.
  void use_low_type(bool use);
  // Makes a change of this process's parts that is not an update; the others get them when the weights are needed next.
  void change_parts(const std::function<void()>& change);
  // All weights are there, for whoever reads or writes them outside of a step; until store_weights(), which takes over
  // what they are then.
  void fetch_weights();
  void store_weights();

  // Pieces of parameters, by name, as trained() has them and as the optimizer keeps its state -> whole parameters.
  TensorsByName join(const TensorsByName& pieces) const;
  // The piece of a whole parameter that this process has; nullopt: none of it.
  std::optional<torch::Tensor> piece_of(const std::string& name, const torch::Tensor& whole) const;
  TensorsByName weight_pieces() const;
  // The bucket of a parameter; nullopt: it is not sharded.
  std::optional<size_t> bucket_of(const std::string& name) const;

 private:
  struct Shard {
    std::shared_ptr<comm::CommBuffer> memory;  // of the weights; stage 3: only while they are there
    torch::Tensor weights;                     // flat; in stage 3 without memory in between
    torch::Tensor low_weights;                 // the same in the lower precision; undefined where there is none
    torch::Tensor own_weights;                 // this process's part
    torch::Tensor own_gradients;               // the same part of the sums
    std::shared_ptr<comm::CommBuffer> gradient_memory;
    std::vector<torch::Tensor> pieces;  // of own_weights, one for each overlap
    comm::Pending gather = {};
    int num_users = 0;  // stage 3: acquire()s without release()
  };
  void prepare_bucket(size_t index) override;
  void start(size_t index) override;
  void complete(size_t index) override;
  void finish_bucket(size_t index) override;
  void drop_gradient(size_t index, size_t item) override;
  size_t max_in_flight() const override { return sharding_.stage == 1 ? SIZE_MAX : 2; }

  void place_weights(size_t index);
  void show(size_t index, const torch::Tensor& flat);
  const torch::Tensor& weights_in_use(size_t index) const;
  void start_gathers();
  void wait_for_gathers();
  torch::Tensor own_part(size_t index, const torch::Tensor& flat) const;
  std::shared_ptr<comm::CommBuffer> borrow(int64_t num_bytes);
  void give_back(std::shared_ptr<comm::CommBuffer> buffer);

  Sharding sharding_;
  size_t num_early_;
  std::vector<Shard> shards_;
  bool uses_low_type_ = false;
  bool parts_changed_ = false;                           // since they were last gathered
  std::vector<std::shared_ptr<comm::CommBuffer>> free_;  // memory for weights and gradients that come and go
};

}  // namespace assay
