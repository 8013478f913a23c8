#include "deploy/export.h"

#include <fmt/format.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/script.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/hash.h"
#include "engine/checkpoint/tensor_file.h"

namespace assay {

namespace {

// Any sizes do that differ from each other and from 1: then an extent taken for a constant, or for another, shows.
constexpr int64_t kTraceBatch = 3;
constexpr int64_t kExtentStep = 4;  // between free extents: 3 samples of 7 tokens

const std::map<std::string, torch::ScalarType> kTypes = {{"float32", torch::kFloat}, {"float64", torch::kDouble},
                                                         {"int64", torch::kLong},    {"int32", torch::kInt},
                                                         {"uint8", torch::kByte},    {"bool", torch::kBool}};

torch::Tensor example(const InputSpec& spec, int64_t batch) {
  std::vector<int64_t> shape = spec.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == -1) shape[i] = batch + static_cast<int64_t>(i) * kExtentStep;
  }
  const int64_t count = c10::multiply_integers(shape);
  // Not from the default generator: exporting must not disturb a training run.
  if (torch::isFloatingType(spec.dtype)) return torch::arange(count, spec.dtype).mul_(0.7).sin_().reshape(shape);
  if (spec.dtype == torch::kBool) return torch::arange(count).remainder(3).ne(0).reshape(shape);
  constexpr int64_t kStride = 7919;  // a prime: neighbours get different values whatever num_values is
  return torch::arange(count).mul_(kStride).remainder_(spec.num_values).to(spec.dtype).reshape(shape);
}

// Shares the tensors themselves: that is how the tracer knows that what the network reads is an attribute.
torch::jit::Module mirror(const torch::nn::Module& module, const std::string& type_name) {
  torch::jit::Module copy(type_name);
  for (const auto& item : module.named_parameters(/*recurse=*/false)) {
    copy.register_parameter(item.key(), item.value(), /*is_buffer=*/false);
  }
  for (const auto& item : module.named_buffers(/*recurse=*/false)) copy.register_buffer(item.key(), item.value());
  for (const auto& item : module.named_children()) {
    copy.register_module(item.key(), mirror(*item.value(), type_name + "_" + item.key()));
  }
  copy.register_attribute("training", torch::jit::BoolType::get(), false);
  return copy;
}

void add_forward(torch::jit::Module& copy, Network& network, const std::vector<InputSpec>& inputs) {
  torch::jit::Stack stack;
  std::vector<std::string> names;
  for (const InputSpec& spec : inputs) {
    stack.emplace_back(example(spec, kTraceBatch));
    names.push_back(spec.name);
  }
  const auto run = [&network](torch::jit::Stack values) {
    TensorList tensors;
    for (const torch::jit::IValue& value : values) tensors.push_back(value.toTensor());
    return torch::jit::Stack{network.forward(tensors)};
  };
  const auto no_name = [](const torch::Tensor&) { return std::string(); };
  const auto traced =
      torch::jit::tracer::trace(stack, run, no_name, /*strict=*/true, /*force_outplace=*/true, &copy, names);
  const auto unit = copy._ivalue()->compilation_unit();
  auto* function = unit->create_function(c10::QualifiedName(*copy.type()->name(), "forward"), traced.first->graph);
  copy.type()->addMethod(function);
}

// Fused operators, which a trace does not have, add in another order: what that changes is measured against the largest
// value, since a value near 0 among large ones is what their rounding left of it.
bool equal_but_for_rounding(const torch::Tensor& actual, const torch::Tensor& expected) {
  if (!actual.defined() || actual.sizes() != expected.sizes()) return false;
  if (expected.numel() == 0) return true;
  const double scale = std::max(expected.abs().max().item<double>(), 0.1);
  return (actual - expected).abs().max().item<double>() <= 1e-5 * scale;
}

// The trace must compute what the module does, also for a batch of another size than the traced one.
void check_export(torch::jit::Module& copy, Network& network, const std::vector<InputSpec>& inputs) {
  for (const int64_t batch : {int64_t{1}, kTraceBatch + 2}) {
    TensorList tensors;
    std::vector<torch::jit::IValue> values;
    for (const InputSpec& spec : inputs) {
      tensors.push_back(example(spec, batch));
      values.emplace_back(tensors.back());
    }
    const torch::Tensor expected = network.forward(tensors);
    torch::Tensor actual;
    try {
      actual = copy.forward(values).toTensor();
    } catch (const std::exception&) {
      // Its own message is a page of TorchScript; what it means is below.
    }
    if (!equal_but_for_rounding(actual, expected)) {
      throw InternalError(
          fmt::format("the traced model differs from the module at batch size {}: its forward pass decides something "
                      "by the values or the extents of its inputs",
                      batch));
    }
  }
}

std::string type_text(torch::ScalarType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return name;
  }
  throw InternalError(fmt::format("inputs of type {} cannot be exported", c10::toString(type)));
}

}  // namespace

Json to_json(const ExportInfo& info) {
  Json inputs = Json::array();
  for (const InputSpec& spec : info.inputs) {
    inputs.push_back({{"name", spec.name}, {"dtype", type_text(spec.dtype)}, {"shape", spec.shape}});
    if (!torch::isFloatingType(spec.dtype)) inputs.back()["num_values"] = spec.num_values;
  }
  Json json = {{"format", "torchscript"},           {"case", info.case_name},
               {"weights_hash", info.weights_hash}, {"inputs", inputs},
               {"sample_unit", info.sample_unit},   {"units_per_sample", info.units_per_sample}};
  if (!info.file_hash.empty()) json["sha256"] = info.file_hash;
  return json;
}

ExportInfo export_info_of(const Json& json, const std::string& where) {
  ExportInfo info;
  try {
    info.case_name = json.at("case").get<std::string>();
    info.weights_hash = json.at("weights_hash").get<std::string>();
    info.file_hash = json.value("sha256", "");
    info.sample_unit = json.at("sample_unit").get<std::string>();
    info.units_per_sample = json.at("units_per_sample").get<double>();
    for (const Json& input : json.at("inputs")) {
      info.inputs.push_back({.name = input.at("name").get<std::string>(),
                             .dtype = kTypes.at(input.at("dtype").get<std::string>()),
                             .shape = input.at("shape").get<std::vector<int64_t>>(),
                             .num_values = input.value("num_values", int64_t{1})});
    }
  } catch (const std::exception&) {
    throw DataError(fmt::format("{}: not the description of an exported model", where));
  }
  return info;
}

ExportInfo export_torchscript(Module& module, const fs::path& path, const std::string& case_name) {
  const torch::NoGradGuard no_grad;
  Network& network = module.model();
  network.eval();
  ExportInfo info{.case_name = case_name,
                  .weights_hash = hash_of(state_of(network)),
                  .inputs = module.input_spec(),
                  .sample_unit = module.sample_unit(),
                  .units_per_sample = module.units_per_sample(),
                  .file_hash = {}};
  // A network in float64 takes its inputs in float64.
  for (InputSpec& input : info.inputs) {
    if (at::isFloatingType(input.dtype)) input.dtype = network.parameters().at(0).scalar_type();
  }
  torch::jit::Module copy = mirror(network, "__torch__.assay_model");
  add_forward(copy, network, info.inputs);
  check_export(copy, network, info.inputs);

  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), ::getpid());
  make_folder(fs::absolute(path).parent_path());
  try {
    copy.save(temporary.string(), {{kExportDescription, to_line(to_json(info))}});
    info.file_hash = sha256_file(temporary);
    fs::rename(temporary, path);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw InfrastructureError(fmt::format("{}: cannot write: {}", path.string(), error.what()));
  }
  sync_folder(fs::absolute(path).parent_path());
  write_file_atomic(fs::path(path).replace_filename("export.json"), to_pretty(to_json(info)));
  return info;
}

}  // namespace assay
