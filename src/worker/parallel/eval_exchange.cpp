#include "parallel/eval_exchange.h"

#include <torch/utils.h>

#include <cstring>

#include "base/json.h"

namespace assay {

namespace {

void add_packed(const std::string& bytes, EvalSums& total, std::map<std::string, TensorList>& values) {
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const Json head = Json::parse(bytes.substr(sizeof length, length));
  total.loss += number_of(head.at("loss"));
  total.num_samples += head.at("num_samples").get<int64_t>();
  for (const auto& [name, value] : head.at("sums").items()) total.sums[name] += number_of(value);
  const char* at = bytes.data() + sizeof length + length;
  for (const auto& [name, count] : head.at("values").items()) {
    torch::Tensor part = torch::empty({count.get<int64_t>()}, torch::kDouble);
    std::memcpy(part.data_ptr(), at, part.nbytes());
    at += part.nbytes();
    values[name].push_back(part);
  }
}

}  // namespace

// Sums as bytes: the length of a JSON text, the text, the values of all samples as doubles.
std::string pack_sums(const EvalSums& sums) {
  Json values = Json::object();
  std::string numbers;
  for (const auto& [name, tensor] : sums.values) {
    const torch::Tensor flat = tensor.to(torch::kDouble).flatten().contiguous();
    values[name] = flat.numel();
    numbers.append(static_cast<const char*>(flat.data_ptr()), flat.nbytes());
  }
  Json named = Json::object();
  for (const auto& [name, value] : sums.sums) named[name] = json_number(value);
  const std::string head =
      Json({{"loss", json_number(sums.loss)}, {"num_samples", sums.num_samples}, {"sums", named}, {"values", values}})
          .dump();
  const auto length = static_cast<uint64_t>(head.size());
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + head + numbers;
}

EvalSums merge_sums(const std::vector<std::string>& packed) {
  EvalSums total;
  std::map<std::string, TensorList> values;
  for (const std::string& bytes : packed) add_packed(bytes, total, values);
  for (const auto& [name, parts] : values) total.values[name] = torch::cat(parts);
  return total;
}

}  // namespace assay
