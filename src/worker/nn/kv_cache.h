// Keys and values of the tokens that a language model has read, so that the next token costs one token's work.
//
// Shapes: B batch, T new tokens, S tokens in all, H heads, G heads of keys and values, d width of a head.
#pragma once

#include <torch/types.h>

#include <vector>

namespace assay {

class KvCache {
 public:
  struct Size {
    int64_t num_layers = 1;
    int64_t batch = 1;
    int64_t num_heads = 1;  // G
    int64_t head_width = 1;
    int64_t capacity = 1;  // tokens
  };
  KvCache(const Size& size, const torch::TensorOptions& options);

  int64_t length() const { return length_; }  // tokens that all layers have seen
  int64_t capacity() const { return capacity_; }
  // Attention of new queries [B, T, H, d] over what was seen and over the new keys and values [B, T, G, d], which are
  // kept; a query sees the tokens up to its own. Returns [B, T, H d].
  torch::Tensor attend(size_t layer, const torch::Tensor& query, const torch::Tensor& key, const torch::Tensor& value);
  // After every layer has seen the new tokens.
  void advance(int64_t num_tokens);
  // Sample i becomes what sample rows[i] was, so that samples can be dropped, doubled and put in another order.
  void select(const torch::Tensor& rows);

 private:
  int64_t length_ = 0;
  int64_t capacity_;
  std::vector<torch::Tensor> keys_, values_;  // a layer each, [B, G, capacity, d]
};

}  // namespace assay
