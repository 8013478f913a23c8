#include "engine/checkpoint/tensor_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "formats/safetensors.h"

namespace assay {

namespace {

struct TypeName {
  torch::ScalarType type;
  const char* name;
};
constexpr TypeName kTypes[] = {{torch::kDouble, "F64"},    {torch::kFloat, "F32"}, {torch::kHalf, "F16"},
                               {torch::kBFloat16, "BF16"}, {torch::kLong, "I64"},  {torch::kInt, "I32"},
                               {torch::kShort, "I16"},     {torch::kChar, "I8"},   {torch::kByte, "U8"},
                               {torch::kBool, "BOOL"}};

std::string name_of(torch::ScalarType type) {
  for (const TypeName& entry : kTypes) {
    if (entry.type == type) return entry.name;
  }
  throw InternalError(fmt::format("no safetensors name for {}", c10::toString(type)));
}

torch::ScalarType type_of(const std::string& name, const std::string& where) {
  for (const TypeName& entry : kTypes) {
    if (name == entry.name) return entry.type;
  }
  throw DataError(fmt::format("{}: tensors of type {} are not supported", where, name));
}

TensorView view_of(const std::string& name, const torch::Tensor& tensor) {
  return {.name = name,
          .dtype = name_of(tensor.scalar_type()),
          .shape = tensor.sizes().vec(),
          .bytes = static_cast<const std::byte*>(tensor.data_ptr()),
          .num_bytes = tensor.nbytes()};
}

std::string shape_text(at::IntArrayRef shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace

std::string save_tensors(const std::filesystem::path& path, const NamedTensors& tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::vector<torch::Tensor> kept;
  std::vector<TensorView> views;
  for (const auto& [name, tensor] : tensors) {
    kept.push_back(tensor.detach().cpu().contiguous());
    views.push_back(view_of(name, kept.back()));
  }
  return write_safetensors(path, views, metadata);
}

LoadedTensors load_tensors(const std::filesystem::path& path) {
  const SafetensorsFile file(path);
  LoadedTensors loaded{.tensors = {}, .metadata = file.metadata()};
  for (const TensorView& view : file.tensors()) {
    torch::Tensor tensor = torch::empty(view.shape, type_of(view.dtype, path.string()));
    if (view.num_bytes > 0) std::memcpy(tensor.data_ptr(), view.bytes, view.num_bytes);
    loaded.tensors.emplace(view.name, std::move(tensor));
  }
  return loaded;
}

NamedTensors state_of(const torch::nn::Module& module) {
  NamedTensors state;
  for (const auto& item : module.named_parameters()) state.emplace_back(item.key(), item.value());
  for (const auto& item : module.named_buffers()) state.emplace_back(item.key(), item.value());
  return state;
}

void load_into(torch::nn::Module& module, const std::map<std::string, torch::Tensor>& tensors,
               const std::string& where) {
  const NamedTensors state = state_of(module);
  std::vector<std::string> known;
  for (const auto& [name, target] : state) {
    known.push_back(name);
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw DataError(fmt::format("{}: has no tensor '{}', the model needs it", where, name));
    if (found->second.sizes() != target.sizes() || found->second.scalar_type() != target.scalar_type()) {
      throw DataError(fmt::format("{}: tensor '{}' is {} {}, the model has {} {}", where, name,
                                  name_of(found->second.scalar_type()), shape_text(found->second.sizes()),
                                  name_of(target.scalar_type()), shape_text(target.sizes())));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw DataError(
          fmt::format("{}: tensor '{}' does not belong to the model{}", where, name, did_you_mean(name, known)));
    }
  }
  const torch::NoGradGuard no_grad;
  for (const auto& [name, target] : state) torch::Tensor(target).copy_(tensors.at(name));
}

std::string hash_of(const NamedTensors& tensors) {
  Sha256 hash;
  for (const auto& [name, tensor] : tensors) {
    const torch::Tensor values = tensor.detach().cpu().contiguous();
    hash.update(fmt::format("{} {} {}\n", name, name_of(values.scalar_type()), shape_text(values.sizes())));
    hash.update(values.data_ptr(), values.nbytes());
  }
  return hash.hex();
}

}  // namespace assay
