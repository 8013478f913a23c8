// Every native case of cases/, with every size: its model can be made, and has as many parameters as the case says.
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/case.h"
#include "config/worker_config.h"
#include "models/registry.h"
#include "nn/transformer_parts.h"

namespace assay {
namespace {

// Other frameworks' models are not ours to make.
std::vector<std::string> native_cases() {
  std::vector<std::string> names = list_cases(ASSAY_SOURCE_DIR);
  std::erase_if(names, [](const std::string& name) {
    return !resolve_case({.home = ASSAY_SOURCE_DIR, .key = CaseKey::parse(name)}).is_native();
  });
  return names;
}

class EveryCase : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Listed, EveryCase, testing::ValuesIn(native_cases()), [](const auto& info) {
  std::string name = info.param;
  for (char& letter : name) letter = letter == '-' || letter == '.' ? '_' : letter;
  return name;
});

TEST_P(EveryCase, HasTheParametersItDeclares) {
  const ResolvedCase resolved = resolve_case({.home = ASSAY_SOURCE_DIR, .key = CaseKey::parse(GetParam())});
  const WorkerConfig config = worker_config_of(resolved.worker_json());
  const UndrawnWeights only_sizes;
  const auto module = make_module(config.section("Model"));
  ASSERT_TRUE(resolved.num_parameters.has_value()) << "parameters: " << num_parameters(*module);
  EXPECT_EQ(*resolved.num_parameters, num_parameters(*module));
  EXPECT_GT(module->flops_per_sample().value_or(0), 0);
}

}  // namespace
}  // namespace assay
