// Tensors of libtorch in safetensors files: the bridge between formats/safetensors.h and torch.
#pragma once

#include <torch/nn/module.h>

#include <filesystem>
#include <map>
#include <string>

#include "engine/optimizer/optimizer.h"

namespace assay {

// Writes atomically, in row-major order whatever the layout in memory. Returns the SHA-256 of the file.
std::string save_tensors(const std::filesystem::path& path, const NamedTensors& tensors,
                         const std::map<std::string, std::string>& metadata = {});

struct LoadedTensors {
  std::map<std::string, torch::Tensor> tensors;
  std::map<std::string, std::string> metadata;
};
LoadedTensors load_tensors(const std::filesystem::path& path);  // throws DataError

// Parameters and buffers, with the names that Python's state_dict has.
NamedTensors state_of(const torch::nn::Module& module);
// Copies in place. Throws DataError naming file and tensor when one is missing, unknown, or has another shape or type;
// then nothing was changed.
void load_into(torch::nn::Module& module, const std::map<std::string, torch::Tensor>& tensors,
               const std::string& where);

// SHA-256 over names, types, shapes and values: the same for the same weights whatever file they are in.
std::string hash_of(const NamedTensors& tensors);

}  // namespace assay
