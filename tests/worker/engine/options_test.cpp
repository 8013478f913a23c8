// Precision, optimizer and schedule as the configuration says them, and what is refused.
#include "engine/options.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace assay {
namespace {

WorkerConfig config_with(const Json& engine, const Json& optimizer = Json::object()) {
  Json config = {{"Global", {{"local_batch_size", 8}}},
                 {"Engine", engine},
                 {"Optimizer", {{"name", "AdamW"}, {"lr", {{"name", "constant"}, {"learning_rate", 0.1}}}}}};
  config["Optimizer"].update(optimizer);
  return worker_config_of({{"case", "toy"},
                           {"target", {{"metric", "accuracy"}, {"value", 1}, {"goal", "maximize"}}},
                           {"config", config},
                           {"origins", {{"Engine.mix_precision.scale_loss", "case.yaml:7"}}}});
}

std::string options_refusal(const Json& engine, const Json& optimizer = Json::object()) {
  try {
    read_engine_options(config_with(engine, optimizer));
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refusal(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(EngineOptions, ReadsPrecision) {
  const auto precision = [](const Json& engine) { return read_engine_options(config_with(engine)).precision; };
  EXPECT_EQ(precision_name(precision(Json::object())), "float32");
  EXPECT_EQ(precision_name(precision({{"precision", "float64"}})), "float64");
  PrecisionOptions o = precision({{"mix_precision", {{"enable", true}, {"custom_black_list", {"mm"}}}}});
  EXPECT_EQ(precision_name(o), "bfloat16");
  EXPECT_FALSE(o.low_weights);
  EXPECT_FALSE(o.scaling);
  EXPECT_EQ(o.black_list, std::vector<std::string>{"mm"});
  o = precision({{"mix_precision",
                  {{"enable", true},
                   {"dtype", "float16"},
                   {"level", "O2"},
                   {"scale_loss", 1024},
                   {"use_dynamic_loss_scaling", false},
                   {"incr_every_n_steps", 7}}}});
  EXPECT_EQ(precision_name(o), "float16");
  EXPECT_TRUE(o.low_weights);
  ASSERT_TRUE(o.scaling);
  EXPECT_EQ(o.scaling->initial, 1024);
  EXPECT_FALSE(o.scaling->dynamic);
  EXPECT_EQ(o.scaling->growth_interval, 7);
  // 1 means that the loss is not scaled, which is what the unified argument --grad_scale no sets.
  EXPECT_FALSE(precision({{"mix_precision", {{"enable", true}, {"dtype", "float16"}, {"scale_loss", 1}}}}).scaling);
  EXPECT_FALSE(precision({{"mix_precision", {{"enable", false}, {"level", "O2"}}}}).mixed);
}

TEST(EngineOptions, RejectsPrecisionsThatMakeNoSense) {
  const auto mixed = [](Json more) {
    more["enable"] = true;
    return options_refusal({{"mix_precision", more}});
  };
  EXPECT_EQ(mixed({{"dtype", "float16"}}), "accepted");
  expect_refusal(mixed({{"scale_loss", 0.5}}), "case.yaml:7: Engine.mix_precision.scale_loss must be at least 1");
  expect_refusal(mixed({{"incr_ratio", 1}}), "incr_ratio must be above 1");
  expect_refusal(mixed({{"decr_ratio", 1}}), "decr_ratio must be between 0 and 1");
  expect_refusal(mixed({{"level", "O3"}}), "level");
  expect_refusal(mixed({{"custom_white_list", {"matmull"}}}), "did you mean 'matmul'?)");
  expect_refusal(options_refusal({{"precision", "float64"}, {"mix_precision", {{"enable", true}}}}), "it does not mix");
  expect_refusal(options_refusal({{"precision", "float16"}}), "Engine.precision");
}

TEST(EngineOptions, RequireEvaluationsWhereTheyAreUsed) {
  expect_refusal(options_refusal({{"stop_at_target", true}}), "Engine.stop_at_target needs evaluations");
  expect_refusal(options_refusal({{"early_stop", 3}}), "Engine.early_stop needs evaluations");
  expect_refusal(options_refusal({{"save_load", {{"keep_best", 2}}}}), "Engine.save_load.keep_best needs evaluations");
  expect_refusal(options_refusal({{"stop_at_target", false}}), "accepted");
}

TEST(EngineOptions, ReadsOptimizerAndSchedule) {
  const EngineOptions o = read_engine_options(config_with(
      Json::object(), {{"name", "LAMB"},
                       {"no_decay", {"bias"}},
                       {"ema", {{"decay", 0.5}}},
                       {"lr", {{"name", "polynomial"}, {"learning_rate", 0.1}, {"power", 2}, {"unit", "samples"}}}}));
  EXPECT_EQ(o.optimizer.name, "LAMB");
  EXPECT_EQ(o.optimizer.no_decay, std::vector<std::string>{"bias"});
  EXPECT_EQ(o.optimizer.ema_decay, 0.5);
  EXPECT_TRUE(o.schedule_by_samples);
  // 10 steps of 8 samples; half of the way is 40.
  EXPECT_NEAR(make_schedule(o, 10).rate({40, 8}), 0.1 * 0.25, 1e-15);
  const EngineOptions plain = read_engine_options(config_with(Json::object()));
  EXPECT_FALSE(plain.optimizer.no_decay);
  EXPECT_FALSE(plain.optimizer.ema_decay);
  expect_refusal(options_refusal(Json::object(), {{"ema", {{"decay", 1}}}}),
                 "ema.decay must be at least 0 and below 1");
  expect_refusal(options_refusal(Json::object(), {{"name", "Lion"}}), "Optimizer.name");
}

}  // namespace
}  // namespace assay
