#include "nn/kv_cache.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace assay {

KvCache::KvCache(const Size& size, const torch::TensorOptions& options) : capacity_(size.capacity) {
  for (int64_t i = 0; i < size.num_layers; ++i) {
    for (auto* list : {&keys_, &values_}) {
      list->push_back(torch::empty({size.batch, size.num_heads, size.capacity, size.head_width}, options));
    }
  }
}

torch::Tensor KvCache::attend(size_t layer, const torch::Tensor& query, const torch::Tensor& key,
                              const torch::Tensor& value) {
  const int64_t count = query.size(1), total = length_ + count;
  ASSAY_CHECK(total <= capacity_, fmt::format("{} tokens; the cache holds {}", total, capacity_));
  keys_[layer].narrow(2, length_, count).copy_(key.transpose(1, 2));
  values_[layer].narrow(2, length_, count).copy_(value.transpose(1, 2));
  const int64_t groups = query.size(2) / key.size(2);
  const auto all = [&](const torch::Tensor& kept) {
    const torch::Tensor seen = kept.narrow(2, 0, total);  // [B, G, S, d]
    return groups == 1 ? seen : seen.unsqueeze(2).expand({-1, -1, groups, -1, -1}).flatten(1, 2);
  };
  const torch::Tensor scaled = query.transpose(1, 2) / std::sqrt(static_cast<double>(query.size(3)));
  torch::Tensor scores = scaled.matmul(all(keys_[layer]).transpose(-1, -2));  // [B, H, T, S]
  if (count > 1) {
    const torch::Tensor hidden = torch::ones({count, total}, torch::kBool).triu(length_ + 1);
    scores = scores.masked_fill(hidden, -INFINITY);
  }
  return scores.softmax(-1).matmul(all(values_[layer])).transpose(1, 2).flatten(2);
}

void KvCache::advance(int64_t num_tokens) { length_ += num_tokens; }

void KvCache::select(const torch::Tensor& rows) {
  for (auto* list : {&keys_, &values_}) {
    for (torch::Tensor& kept : *list) {
      std::vector<int64_t> shape = kept.sizes().vec();
      shape[0] = rows.size(0);
      torch::Tensor chosen = torch::empty(shape, kept.options());
      chosen.narrow(2, 0, length_).copy_(kept.narrow(2, 0, length_).index_select(0, rows));
      kept = chosen;
    }
  }
}

}  // namespace assay
