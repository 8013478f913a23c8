// Layers whose weights are spread over the processes of a group, and what goes between these processes. Of a pair of
// layers the first has a part of the outputs, the second the same part of the inputs; enter() stands before the pair,
// leave() behind it. With sequences split, what lies outside of such pairs is computed for a part of the sequence only.
//
// In one process everything here is the plain operator. Shapes: B batch, T sequence, D model, V vocabulary, N rows.
#pragma once

#include <torch/types.h>

#include "comm/communicator.h"
#include "nn/linear_cross_entropy.h"

namespace assay {

// The element type of a tensor as communication knows it. Booleans go as bytes.
comm::DType comm_type(torch::ScalarType type);

// Whether the gradient of a table may be kept as some of its rows: those of lower precisions cannot be added up so.
bool can_be_sparse(const torch::Tensor& table);

// The rows or columns of an extent that process `rank` of `size` has. Parts differ by one at most.
struct PartRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t count() const { return end - begin; }
};
PartRange part_range(int64_t extent, int64_t rank, int64_t size);

class TensorParallel {
 public:
  TensorParallel() = default;  // one process
  // Borrows the group. `sequence`: split sequences too.
  TensorParallel(comm::Communicator& group, bool sequence) : group_(&group), sequence_(sequence) {}

  int64_t size() const { return group_ ? group_->size() : 1; }
  int64_t rank() const { return group_ ? group_->rank() : 0; }
  bool on() const { return size() > 1; }
  bool splits_sequence() const { return on() && sequence_; }
  // Attention dropout of different heads: what a process adds to the seed that all of them have drawn.
  uint64_t dropout_stream() const { return static_cast<uint64_t>(rank()); }

  // Before layers with a part of the outputs: whole activations [B, T, D], also where x is a part of the sequence.
  torch::Tensor enter(const torch::Tensor& x) const;
  // The same for x that is whole and the same everywhere.
  torch::Tensor enter_whole(const torch::Tensor& x) const;
  // Behind a layer with a part of the inputs: the sum of all processes' results, with sequences split a part of it.
  torch::Tensor leave(const torch::Tensor& x) const;

  // [B, T, ...], the same everywhere -> this process's part of the sequence, when sequences are split.
  torch::Tensor split_sequence(const torch::Tensor& x) const;
  // The way back, for layers that every process computes alike.
  torch::Tensor join_sequence(const torch::Tensor& x) const;

  // Rows of a table of `num_rows`, of which this process has part_range(num_rows): [..., D], the same everywhere. With
  // `sparse` the gradient has the rows that occur.
  torch::Tensor embedding(const torch::Tensor& part, int64_t num_rows, const torch::Tensor& ids, bool sparse) const;
  // Results of a last layer with part_range(V) of the outputs [..., V part] -> [..., V].
  torch::Tensor join_outputs(const torch::Tensor& x, int64_t num_outputs) const;
  // nn/linear_cross_entropy.h with part_range(V) of the layer. x [N, D] is the same everywhere, behind enter().
  torch::Tensor linear_cross_entropy(const torch::Tensor& x, const VocabularyLayer& part, int64_t num_outputs,
                                     const torch::Tensor& label) const;

 private:
  comm::Communicator* group_ = nullptr;
  bool sequence_ = false;
};

}  // namespace assay
