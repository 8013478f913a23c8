// The whole of tensors that are spread over a mesh: gathered on the first process, and cut again for every process. A
// checkpoint is always of whole tensors, so that one of any mesh can be loaded by any other.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/module.h"
#include "parallel/mesh.h"

namespace assay {

// A parameter or buffer of the whole network.
struct TensorRecord {
  std::string name;
  std::vector<int64_t> shape;
  torch::ScalarType type = torch::kFloat;
  std::optional<WeightSplit> split;  // over tensor-parallel processes
  std::vector<int> stages;           // of the pipeline that have it
  bool is_trained = false;
};

class WholeTensors {
 public:
  WholeTensors(const Mesh& mesh, int num_tensor_parallel, std::vector<TensorRecord> records);

  const std::vector<TensorRecord>& records() const { return records_; }
  const TensorRecord* find(const std::string& name) const;
  bool is_here(const TensorRecord& record) const;

  // Tensors with the names of records, this process's parts in their whole shapes -> all of `records`, whole, on the
  // first process; nothing on the others. `prefix` stands before the names in the result.
  NamedTensors gather(const TensorsByName& mine, const std::vector<const TensorRecord*>& records,
                      const std::string& prefix = "") const;
  // This process's part.
  torch::Tensor cut(const TensorRecord& record, const torch::Tensor& whole) const;

  // What the first process has, on all of them, one after the other.
  void broadcast_each(const TensorsByName& whole,
                      const std::function<void(const std::string&, const torch::Tensor&)>& use) const;

  // Which ranks have which part, for whoever looks for the one that is wrong.
  Json placement() const;

 private:
  const Mesh& mesh_;
  int num_tensor_parallel_;
  std::vector<TensorRecord> records_;
};

}  // namespace assay
