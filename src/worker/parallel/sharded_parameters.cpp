#include "parallel/sharded_parameters.h"

#include <algorithm>

#include "base/error.h"
#include "nn/tensor_parallel.h"

namespace assay {

namespace {

// A flat tensor whose memory comes later: whoever holds a view of it sees what is attached to its storage.
torch::Tensor without_memory(const FlatLayout& layout, torch::ScalarType type) {
  const auto num_bytes = static_cast<size_t>(layout.size()) * c10::elementSize(type);
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), num_bytes,
                                                       at::DataPtr(nullptr, torch::kCPU), nullptr, false);
  torch::Tensor flat = torch::empty({0}, type);
  return flat.set_(at::Storage(std::move(storage)), 0, {layout.size()}, {1});
}

bool is_low(const FlatLayout& layout) {
  const bool low = computes_low(layout.items()[0].parameter);
  for (const FlatLayout::Item& item : layout.items()) {
    ASSAY_CHECK(computes_low(item.parameter) == low, item.name + " is of another precision than its bucket");
  }
  return low;
}

void attach(const torch::Tensor& flat, void* memory) {
  flat.storage().set_data_ptr_noswap(at::DataPtr(memory, torch::kCPU));
}

}  // namespace

ShardedParameters::ShardedParameters(const SyncedParameters& parameters, const Groups& groups, const Sharding& sharding)
    : GradientSync(parameters, groups, sharding.group.size()),
      sharding_(sharding),
      num_early_(parameters.groups.size()),
      shards_(buckets().size()) {
  for (size_t b = 0; b < shards_.size(); ++b) place_weights(b);
}

ShardedParameters::~ShardedParameters() {
  for (Shard& shard : shards_) {
    try {
      shard.gather.wait();
    } catch (const std::exception&) {  // whoever destroys this knows already, or does not care
    }
  }
}

torch::Tensor ShardedParameters::own_part(size_t index, const torch::Tensor& flat) const {
  const int64_t size = buckets()[index].layout.part_size();
  return flat.narrow(0, sharding_.group.rank() * size, size);
}

// The parameters become views of flat weights.
void ShardedParameters::show(size_t index, const torch::Tensor& flat) {
  const FlatLayout& layout = buckets()[index].layout;
  for (size_t i = 0; i < layout.items().size(); ++i) {
    torch::Tensor parameter = layout.items()[i].parameter;
    parameter.set_data(layout.view(i, flat));
  }
}

void ShardedParameters::place_weights(size_t index) {
  Bucket& bucket = buckets()[index];
  const FlatLayout& layout = bucket.layout;
  Shard& shard = shards_[index];
  torch::Tensor full;
  if (sharding_.stage < 3) {
    shard.memory = sharding_.group.allocate(layout.num_bytes());
    full = flat_in(shard.memory, layout).zero_();
  } else {
    full = torch::zeros({layout.size()}, layout.type());
  }
  for (size_t i = 0; i < layout.items().size(); ++i) layout.view(i, full).copy_(layout.items()[i].parameter.detach());
  shard.weights = sharding_.stage < 3 ? full : without_memory(layout, layout.type());
  shard.own_weights = sharding_.stage < 3 ? own_part(index, full) : own_part(index, full).clone();
  if (sharding_.stage == 3 && sharding_.low_type && is_low(layout)) {
    shard.low_weights = without_memory(layout, *sharding_.low_type);
  }
  show(index, shard.weights);
  const int64_t first = sharding_.group.rank() * layout.part_size();
  for (const FlatLayout::Overlap& o : layout.overlaps(sharding_.group.rank())) {
    shard.pieces.push_back(shard.own_weights.narrow(0, o.begin - first, o.end - o.begin).detach());
  }
  if (sharding_.stage == 1) {
    shard.gradient_memory = sharding_.group.allocate(layout.num_bytes());
    bucket.gradients = flat_in(shard.gradient_memory, layout).zero_();
    shard.own_gradients = own_part(index, bucket.gradients);
  } else {
    shard.own_gradients = torch::zeros({layout.part_size()}, layout.type());
  }
}

ParameterSet ShardedParameters::trained() const {
  ParameterSet set;
  for (size_t b = 0; b < shards_.size(); ++b) {
    const std::vector<FlatLayout::Overlap> overlaps = buckets()[b].layout.overlaps(sharding_.group.rank());
    for (size_t k = 0; k < overlaps.size(); ++k) {
      const FlatLayout::Item& item = buckets()[b].layout.items()[overlaps[k].item];
      set.parameters.push_back({.name = item.name, .tensor = shards_[b].pieces[k], .num_dims = item.parameter.dim()});
    }
  }
  // Rows of tables are few: every process updates all of them.
  for (const auto& [name, parameter] : sparse()) {
    set.parameters.push_back(
        {.name = name, .tensor = parameter, .num_dims = parameter.dim(), .counts = sharding_.group.rank() == 0});
  }
  return set;
}

// Of memory that is free the smallest that is large enough, unless it is far too large: a table's would be missing when
// the table comes.
std::shared_ptr<comm::CommBuffer> ShardedParameters::borrow(int64_t num_bytes) {
  auto fits = free_.end();
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const int64_t size = (*at)->size();
    if (size < num_bytes || size > 2 * num_bytes) continue;
    if (fits == free_.end() || size < (*fits)->size()) fits = at;
  }
  if (fits == free_.end()) return sharding_.group.allocate(num_bytes);
  std::shared_ptr<comm::CommBuffer> buffer = std::move(*fits);
  free_.erase(fits);
  return buffer;
}

void ShardedParameters::give_back(std::shared_ptr<comm::CommBuffer> buffer) { free_.push_back(std::move(buffer)); }

void ShardedParameters::begin_step() {
  GradientSync::begin_step();
  wait_for_gathers();
  for (Shard& shard : shards_) {
    if (sharding_.stage > 1) shard.own_gradients.zero_();
  }
}

void ShardedParameters::prepare_bucket(size_t index) {
  if (sharding_.stage == 1) return;
  Bucket& bucket = buckets()[index];
  shards_[index].gradient_memory = borrow(bucket.layout.num_bytes());
  bucket.gradients = flat_in(shards_[index].gradient_memory, bucket.layout).zero_();
}

void ShardedParameters::start(size_t index) {
  Bucket& bucket = buckets()[index];
  bucket.pending =
      sharding_.group.start_reduce_scatter(bucket.gradients.data_ptr(), own_part(index, bucket.gradients).data_ptr(),
                                           bucket.layout.part_size(), comm_type(bucket.layout.type()));
  if (sharding_.stage == 3 && is_early(index)) release(index);
}

void ShardedParameters::complete(size_t index) {
  if (sharding_.stage == 1) return;
  Bucket& bucket = buckets()[index];
  shards_[index].own_gradients.add_(own_part(index, bucket.gradients));
  bucket.gradients = torch::Tensor();
  give_back(std::move(shards_[index].gradient_memory));
}

void ShardedParameters::finish_bucket(size_t index) {
  Shard& shard = shards_[index];
  if (sharding_.data.size() > 1) {
    sharding_.data.all_reduce(shard.own_gradients.data_ptr(), shard.own_gradients.numel(),
                              comm_type(shard.own_gradients.scalar_type()));
  }
  const FlatLayout& layout = buckets()[index].layout;
  const int64_t first = sharding_.group.rank() * layout.part_size();
  const std::vector<FlatLayout::Overlap> overlaps = layout.overlaps(sharding_.group.rank());
  for (size_t k = 0; k < overlaps.size(); ++k) {
    shard.pieces[k].mutable_grad() =
        shard.own_gradients.narrow(0, overlaps[k].begin - first, overlaps[k].end - overlaps[k].begin);
  }
}

void ShardedParameters::drop_gradient(size_t index, size_t item) {
  const std::vector<FlatLayout::Overlap> overlaps = buckets()[index].layout.overlaps(sharding_.group.rank());
  for (size_t k = 0; k < overlaps.size(); ++k) {
    if (overlaps[k].item == item) shards_[index].pieces[k].mutable_grad().reset();
  }
}

// In stages 1 and 2 the parts go out while the next batch is fetched.
void ShardedParameters::after_update() { start_gathers(); }

void ShardedParameters::start_gathers() {
  parts_changed_ = false;
  if (sharding_.stage == 3 || !sharding_.gathers) return;
  for (size_t b = 0; b < shards_.size(); ++b) {
    Shard& shard = shards_[b];
    shard.gather =
        sharding_.group.start_all_gather(shard.own_weights.data_ptr(), shard.weights.data_ptr(),
                                         buckets()[b].layout.part_size(), comm_type(buckets()[b].layout.type()));
  }
}

void ShardedParameters::wait_for_gathers() {
  if (parts_changed_) start_gathers();
  for (Shard& shard : shards_) {
    shard.gather.wait();
    shard.gather = {};
  }
}

void ShardedParameters::change_parts(const std::function<void()>& change) {
  for (Shard& shard : shards_) {  // on their way the parts must not change
    shard.gather.wait();
    shard.gather = {};
  }
  change();
  parts_changed_ = true;
}

void ShardedParameters::use_low_type(bool use) {
  uses_low_type_ = use;
  for (size_t b = 0; b < shards_.size(); ++b) {
    ASSAY_CHECK(shards_[b].num_users == 0, "weights change their precision while they are used");
    if (shards_[b].low_weights.defined()) show(b, weights_in_use(b));
  }
}

// What the parameters are views of.
const torch::Tensor& ShardedParameters::weights_in_use(size_t index) const {
  const Shard& shard = shards_[index];
  return uses_low_type_ && shard.low_weights.defined() ? shard.low_weights : shard.weights;
}

void ShardedParameters::acquire(size_t index) {
  Shard& shard = shards_[index];
  if (shard.num_users++ > 0) return;
  const torch::Tensor& weights = weights_in_use(index);
  shard.memory = borrow(static_cast<int64_t>(weights.nbytes()));
  attach(weights, shard.memory->data());
  own_part(index, weights).copy_(shard.own_weights);
  sharding_.group.all_gather(own_part(index, weights).data_ptr(), weights.data_ptr(),
                             buckets()[index].layout.part_size(), comm_type(weights.scalar_type()));
}

void ShardedParameters::release(size_t index) {
  Shard& shard = shards_[index];
  if (shard.num_users == 0 || --shard.num_users > 0) return;
  attach(weights_in_use(index), nullptr);
  give_back(std::move(shard.memory));
}

void ShardedParameters::acquire_late() {
  for (size_t b = num_early_; b < shards_.size(); ++b) acquire(b);
}

void ShardedParameters::release_late() {
  for (size_t b = num_early_; b < shards_.size(); ++b) release(b);
}

void ShardedParameters::fetch_weights() {
  wait_for_gathers();
  for (size_t b = 0; b < shards_.size() && sharding_.stage == 3; ++b) acquire(b);
}

void ShardedParameters::store_weights() {
  for (size_t b = 0; b < shards_.size(); ++b) {
    if (sharding_.stage < 3) continue;
    shards_[b].own_weights.copy_(own_part(b, shards_[b].weights));
    release(b);
  }
  free_.clear();  // all weights at once were there: a step needs far less
}

TensorsByName ShardedParameters::join(const TensorsByName& pieces) const {
  TensorsByName whole;
  for (const Bucket& bucket : buckets()) {
    const FlatLayout& layout = bucket.layout;
    torch::Tensor own = torch::zeros({layout.part_size()}, layout.type());
    const int64_t first = sharding_.group.rank() * layout.part_size();
    for (const FlatLayout::Overlap& o : layout.overlaps(sharding_.group.rank())) {
      own.narrow(0, o.begin - first, o.end - o.begin).copy_(pieces.at(layout.items()[o.item].name));
    }
    torch::Tensor flat = torch::empty({layout.size()}, layout.type());
    sharding_.group.all_gather(own.data_ptr(), flat.data_ptr(), layout.part_size(), comm_type(layout.type()));
    for (size_t i = 0; i < layout.items().size(); ++i) {
      whole[layout.items()[i].name] = layout.view(i, flat).contiguous().clone();
    }
  }
  return whole;
}

std::optional<size_t> ShardedParameters::bucket_of(const std::string& name) const {
  for (size_t b = 0; b < buckets().size(); ++b) {
    for (const FlatLayout::Item& item : buckets()[b].layout.items()) {
      if (item.name == name) return b;
    }
  }
  return std::nullopt;
}

std::optional<torch::Tensor> ShardedParameters::piece_of(const std::string& name, const torch::Tensor& whole) const {
  for (const Bucket& bucket : buckets()) {
    const FlatLayout& layout = bucket.layout;
    for (const FlatLayout::Overlap& o : layout.overlaps(sharding_.group.rank())) {
      const FlatLayout::Item& item = layout.items()[o.item];
      if (item.name != name) continue;
      torch::Tensor flat = torch::empty({item.count}, whole.options());
      flat.as_strided(item.parameter.sizes(), item.parameter.strides()).copy_(whole);
      return flat.narrow(0, o.begin - item.begin, o.end - o.begin).clone();
    }
  }
  return std::nullopt;
}

TensorsByName ShardedParameters::weight_pieces() const {
  TensorsByName pieces;
  for (const TrainedParameter& parameter : trained().parameters) pieces[parameter.name] = parameter.tensor;
  for (const auto& [name, parameter] : sparse()) pieces.erase(name);
  return pieces;
}

}  // namespace assay
