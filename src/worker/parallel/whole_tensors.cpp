#include "parallel/whole_tensors.h"

#include <algorithm>

#include "base/error.h"
#include "nn/tensor_parallel.h"
#include "parallel/exchange.h"
#include "parallel/weight_parts.h"

namespace assay {

namespace {

constexpr int kGatherTag = 1 << 20;  // apart from the tags of pipelines

}  // namespace

WholeTensors::WholeTensors(const Mesh& mesh, int num_tensor_parallel, std::vector<TensorRecord> records)
    : mesh_(mesh), num_tensor_parallel_(num_tensor_parallel), records_(std::move(records)) {}

const TensorRecord* WholeTensors::find(const std::string& name) const {
  const auto found =
      std::find_if(records_.begin(), records_.end(), [&](const TensorRecord& record) { return record.name == name; });
  return found == records_.end() ? nullptr : &*found;
}

bool WholeTensors::is_here(const TensorRecord& record) const {
  return std::find(record.stages.begin(), record.stages.end(), mesh_.coordinates().pipeline) != record.stages.end();
}

torch::Tensor WholeTensors::cut(const TensorRecord& record, const torch::Tensor& whole) const {
  if (!record.split || num_tensor_parallel_ == 1) return whole;
  return cut_part(whole, *record.split, mesh_.coordinates().tensor, num_tensor_parallel_);
}

NamedTensors WholeTensors::gather(const TensorsByName& mine, const std::vector<const TensorRecord*>& records,
                                  const std::string& prefix) const {
  NamedTensors whole;
  comm::Communicator& all = mesh_.all();
  for (const TensorRecord* record : records) {
    const int num_parts = record->split ? num_tensor_parallel_ : 1;
    std::vector<torch::Tensor> parts;
    for (int part = 0; part < num_parts; ++part) {
      const int source = mesh_.rank_of({.data = 0, .pipeline = record->stages.front(), .sharding = 0, .tensor = part});
      torch::Tensor tensor;
      if (all.rank() == source) tensor = mine.at(record->name).detach().contiguous();
      if (all.rank() == source && source != 0) {
        all.send(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()), 0, kGatherTag);
      }
      if (all.rank() != 0) continue;
      if (source != 0) {
        const std::vector<int64_t> shape =
            num_parts > 1 ? part_shape(record->shape, *record->split, part, num_parts) : record->shape;
        // The state of an optimizer has the type of what it updates, buffers have their own.
        tensor = torch::empty(shape, record->type);
        all.receive(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()), source, kGatherTag);
      }
      parts.push_back(tensor);
    }
    if (all.rank() == 0) {
      whole.emplace_back(prefix + record->name, num_parts > 1 ? join_parts(parts, *record->split) : parts[0]);
    }
  }
  return whole;
}

void WholeTensors::broadcast_each(const TensorsByName& whole,
                                  const std::function<void(const std::string&, const torch::Tensor&)>& use) const {
  Json list = Json::array();
  for (const auto& [name, tensor] : whole) {
    list.push_back({{"name", name}, {"type", static_cast<int>(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}});
  }
  std::string text = list.dump();
  broadcast_text(mesh_.all(), text);
  list = Json::parse(text);
  for (const Json& entry : list) {
    const auto name = entry.at("name").get<std::string>();
    const auto type = static_cast<torch::ScalarType>(entry.at("type").get<int>());
    torch::Tensor tensor = mesh_.all().rank() == 0 ? whole.at(name).contiguous()
                                                   : torch::empty(entry.at("shape").get<std::vector<int64_t>>(), type);
    if (tensor.nbytes() > 0) {
      mesh_.all().broadcast(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()), comm::DType::U8, 0);
    }
    use(name, tensor);
  }
}

Json WholeTensors::placement() const {
  Json places = Json::object();
  for (const TensorRecord& record : records_) {
    Json parts = Json::array();
    const int num_parts = record.split ? num_tensor_parallel_ : 1;
    for (int part = 0; part < num_parts; ++part) {
      Json ranks = Json::array();
      for (int tensor = 0; tensor < num_tensor_parallel_; ++tensor) {
        if (num_parts > 1 && tensor != part) continue;
        for (const int stage : record.stages) {
          ranks.push_back(mesh_.rank_of({.data = 0, .pipeline = stage, .sharding = 0, .tensor = tensor}));
        }
      }
      Json entry = {{"ranks", ranks}};
      if (num_parts > 1) {
        const PartRange range =
            part_range(record.shape[static_cast<size_t>(record.split->dim)] / record.split->groups, part, num_parts);
        entry.update(
            {{"dim", record.split->dim}, {"groups", record.split->groups}, {"begin", range.begin}, {"end", range.end}});
      }
      parts.push_back(entry);
    }
    places[record.name] = parts;
  }
  return places;
}

}  // namespace assay
