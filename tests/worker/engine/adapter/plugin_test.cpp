// Vendors' adapters: the contract over all that is shipped, and everything that must be refused.
#include "engine/adapter/plugin.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "../toy.h"
#include "base/error.h"
#include "base/files.h"
#include "config/peak_precisions.h"
#include "engine/adapter/adapter_contract.h"
#include "engine/optimizer/fused_optimizer.h"

namespace assay {
namespace {

const fs::path kTestPlugins = ASSAY_TEST_PLUGINS;
const std::vector<std::string> kShippedClasses = registered_adapters();  // before another test registers its own

void expect_contract(Adapter& adapter) {
  for (const ContractCheck& check : check_adapter(adapter)) {
    EXPECT_TRUE(check.passed) << adapter.name() << ": " << check.name << ": " << check.detail;
  }
}

TEST(PluginContract, HoldsForEveryAdapterThatIsShipped) {
  for (const std::string& name : kShippedClasses) expect_contract(*make_adapter(name).adapter);
  ASSERT_FALSE(bundled_plugins().empty());
  for (const fs::path& library : bundled_plugins()) expect_contract(*load_plugin(library).adapter);
}

TEST(PluginContract, HoldsForTheOneOfTheDocument) {
  const LoadedAdapter acme = load_plugin(kTestPlugins / "acme.so");
  EXPECT_EQ(acme.name, "acme");
  EXPECT_EQ(acme.sha256.size(), 64u);
  expect_contract(*acme.adapter);
  DeviceRegistry devices;
  for (const DeviceSpec& device : acme.adapter->devices()) devices.add(device, acme.name);
  EXPECT_EQ(devices.peak_flops("acme1", "bfloat16", 1), 4e11);
  EXPECT_EQ(devices.peak_flops("acme1", "float64", 1), std::nullopt);
  EXPECT_EQ(devices.peak_flops("cpu", "bfloat16", 1), std::nullopt);
}

class Broken {
 public:
  explicit Broken(const char* way) { ::setenv("ASSAY_BROKEN", way, 1); }
  ~Broken() { ::unsetenv("ASSAY_BROKEN"); }
};

std::string refusal_of(const fs::path& library) {
  try {
    load_plugin(library);
  } catch (const ConfigError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find(library.string()), std::string::npos) << text;
    return text;
  }
  return "loaded";
}

TEST(Plugin, RejectsWhatDoesNotFitBeforeTouchingIt) {
  EXPECT_EQ(refusal_of(kTestPlugins / "broken.so"), "loaded");  // broken in no way
  const std::vector<std::pair<const char*, const char*>> ways = {
      {"null_descriptor", "returns nothing"},
      {"magic", "not one of assay"},
      {"size", "its descriptor has 8 bytes"},
      {"interface", "built for plugin interface 999, this program has 3"},
      {"libtorch", "built for libtorch 1.8.0"},
      {"compiler", "another compiler: clang with another library"},
      {"no_name", "no name"},
      {"no_factory", "no factory"},
      {"factory_throws", "its adapter 'broken' cannot be created: no licence"},
      {"factory_returns_nothing", "no reason given"}};
  for (const auto& [way, says] : ways) {
    const Broken broken(way);
    const std::string text = refusal_of(kTestPlugins / "broken.so");
    EXPECT_NE(text.find(says), std::string::npos) << way << ": " << text;
  }
  EXPECT_NE(refusal_of(kTestPlugins / "no_entry.so").find("no symbol 'assay_plugin'"), std::string::npos);
  EXPECT_NE(refusal_of(kTestPlugins / "undefined.so").find("function_of_another_version"), std::string::npos);
  EXPECT_NE(refusal_of(kTestPlugins / "absent.so").find("no such file"), std::string::npos);
  const TempFolder folder("plugin");
  write_file_atomic(folder.path() / "text.so", "not a library");
  EXPECT_NE(refusal_of(folder.path() / "text.so").find("cannot be loaded"), std::string::npos);
}

TEST(Plugin, FindsNamesAndExplainsUnknownOnes) {
  EXPECT_EQ(make_adapter("default").name, "default");
  EXPECT_EQ(make_adapter("reference").adapter->name(), "reference");
  try {
    make_adapter("referense");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'reference'"), std::string::npos) << error.what();
  }
}

// Each kind of breakage fails the check that is for it.
TEST(PluginContract, FindsEveryKindOfBreakage) {
  const std::vector<std::pair<const char*, const char*>> ways = {{"negative_peak", "devices"},
                                                                 {"infinite_peak", "devices"},
                                                                 {"unknown_precision", "devices"},
                                                                 {"device_twice", "devices"},
                                                                 {"takes_cpu", "devices"},
                                                                 {"order_throws", "hooks_in_order"},
                                                                 {"ddp_throws", "hooks_in_order"},
                                                                 {"no_low_weights", "hooks_in_order"},
                                                                 {"renames", "parameters_kept"},
                                                                 {"no_network", "parameters_kept"},
                                                                 {"changes_values", "parameters_kept"},
                                                                 {"changes_shapes", "parameters_kept"},
                                                                 {"ddp_changes_values", "parameters_kept"},
                                                                 {"no_optimizer", "every_parameter"},
                                                                 {"forgets_parameter", "every_parameter"},
                                                                 {"keeps_gradients", "every_parameter"},
                                                                 {"wrong_gradients", "gradients"},
                                                                 {"nan_gradients", "gradients"},
                                                                 {"hides_non_finite", "non_finite_gradients"},
                                                                 {"never_skips", "loss_scaler"},
                                                                 {"stubborn_scaler", "loss_scaler"},
                                                                 {"no_scaler", "loss_scaler"},
                                                                 {"forgets_state", "exact_resume"}};
  const LoadedAdapter plugin = load_plugin(kTestPlugins / "broken.so");
  for (const auto& [way, check_name] : ways) {
    const Broken broken(way);
    bool found = false;
    for (const ContractCheck& check : check_adapter(*plugin.adapter))
      found |= !check.passed && check.name == check_name;
    EXPECT_TRUE(found) << way << " was not found by " << check_name;
  }
  expect_contract(*plugin.adapter);  // and without any it holds
}

TEST(Plugin, RejectsABrokenConversion) {
  const LoadedAdapter plugin = load_plugin(kTestPlugins / "broken.so");
  const auto refusal = [&](const char* way) -> std::string {
    const Broken broken(way);
    const auto module = toy_module();
    EngineOptions options = toy_options();
    options.precision.mixed = torch::kHalf;
    options.precision.low_weights = true;
    options.precision.scaling = LossScaler::Options{};
    EngineServices services;
    services.adapter = plugin.adapter.get();
    try {
      const Engine engine(*module, options, services);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("renames"), "adapter 'broken': convert_model changed the name of parameter 'linear.bias'");
  EXPECT_EQ(refusal("changes_shapes"),
            "adapter 'broken': convert_model changed the shape of parameter 'linear.weight'");
  EXPECT_EQ(refusal("no_network"), "adapter 'broken': convert_model returned no network");
  EXPECT_EQ(refusal("no_optimizer"), "adapter 'broken': create_optimizer returned no optimizer");
  EXPECT_EQ(refusal("no_low_weights"), "adapter 'broken': model_to_fp16 returned nothing");
  EXPECT_EQ(refusal("no_scaler"), "adapter 'broken': create_grad_scaler returned no scaler");
  EXPECT_EQ(refusal(""), "accepted");
}

// Two implementations of the same formulas, one of them fused.
TEST(Plugin, AgreesInTheReferenceOptimizerWithTheFusedOne) {
  const LoadedAdapter reference = make_adapter("reference");
  for (const std::string& rule : Optimizer::names()) {
    const auto plain = toy_module();
    const auto fused = toy_module();
    Optimizer::Options options;
    options.name = rule;
    options.weight_decay = 0.01;
    options.clip_norm = 0.5;
    const auto one = reference.adapter->create_optimizer(*plain, options);
    const auto two = fused->configure_optimizers(options);
    for (int t = 0; t < 10; ++t) {
      for (size_t i = 0; i < 2; ++i) {
        torch::Tensor a = plain->model().parameters()[i];
        torch::Tensor b = fused->model().parameters()[i];
        const torch::Tensor gradient = torch::sin(torch::arange(a.numel(), torch::kFloat) + t).reshape(a.sizes());
        a.mutable_grad() = gradient.clone();
        b.mutable_grad() = gradient.clone();
      }
      one->step({.learning_rate = 0.01});
      two->step({.learning_rate = 0.01});
    }
    EXPECT_TRUE(torch::allclose(plain->model().parameters()[0], fused->model().parameters()[0], 1e-5, 1e-6)) << rule;
    EXPECT_TRUE(torch::allclose(plain->model().parameters()[1], fused->model().parameters()[1], 1e-5, 1e-6)) << rule;
  }
}

// One list for plugins and for vendor.yaml.
TEST(DeviceRegistry, TakesEveryPrecisionOfVendorFiles) {
  DeviceRegistry devices;
  DeviceSpec device{.name = "every"};
  for (const std::string& precision : peak_precisions()) device.peak_flops[precision] = 1e12;
  devices.add(device, "test");
  EXPECT_EQ(devices.peak_flops("every", "tfloat32", 1), 1e12);
}

TEST(DeviceRegistry, KnowsTheProcessorAndMeasuresItsPeak) {
  DeviceRegistry devices;
  EXPECT_EQ(devices.names(), std::vector<std::string>{"cpu"});
  EXPECT_EQ(devices.find("cuda"), nullptr);
  EXPECT_EQ(devices.peak_flops("cuda", "float32", 1), std::nullopt);
  EXPECT_EQ(devices.peak_flops("cpu", "float64", 1), std::nullopt);
  const auto peak = devices.peak_flops("cpu", "float32", 1);
  ASSERT_TRUE(peak);
  EXPECT_GT(*peak, 1e9);
  EXPECT_LT(*peak, 1e13);
}

}  // namespace
}  // namespace assay
