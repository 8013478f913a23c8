#include "engine/loop/training_state.h"

#include <fmt/format.h>

#include <string_view>

#include "base/error.h"

namespace assay {

namespace {

constexpr char kConsumedSamples[] = "consumed_samples";

// Every member with its name, once: writing and reading cannot disagree. Works on a const state and on a mutable one.
template <typename State, typename Visit>
void each_field(State& s, Visit&& visit) {
  visit("epoch", s.epoch);
  visit("batch", s.batch);
  visit(kConsumedSamples, s.consumed_samples);
  visit("global_step", s.global_step);
  visit("num_samples", s.num_samples);
  visit("evaluated_at_step", s.evaluated_at_step);
  visit("metric", s.metric);
  visit("eval_loss", s.eval_loss);
  visit("best_metric", s.best_metric);
  visit("best_epoch", s.best_epoch);
  visit("converged", s.converged);
  visit("converged_at_step", s.converged_at_step);
  visit("evaluations_without_better", s.evaluations_without_better);
  visit("best", s.best);
  visit("recent_losses", s.recent_losses);
  visit("window_loss", s.window_loss);
  visit("window_steps", s.window_steps);
  visit("window_found_inf", s.window_found_inf);
  visit("end_to_end_s", s.end_to_end_s);
  visit("init_s", s.init_s);
  visit("train_s", s.train_s);
  visit("no_eval_s", s.no_eval_s);
  visit("compute_s", s.compute_s);
}

Json field_json(bool value) { return value; }
Json field_json(int64_t value) { return value; }
Json field_json(double value) { return json_number(value); }
Json field_json(const BestEvaluation& value) {
  return {{"checkpoint", value.checkpoint}, {"global_step", value.global_step}, {"value", json_number(value.value)}};
}
template <typename T>
Json field_json(const std::optional<T>& value) {
  return value ? field_json(*value) : Json(nullptr);
}
template <typename T>
Json field_json(const std::vector<T>& values) {
  Json list = Json::array();
  for (const T& value : values) list.push_back(field_json(value));
  return list;
}

void read_field(const Json& value, bool& out) { out = value.get<bool>(); }
void read_field(const Json& value, int64_t& out) { out = value.get<int64_t>(); }
void read_field(const Json& value, double& out) { out = number_of(value); }
void read_field(const Json& value, BestEvaluation& out) {
  out.checkpoint = value.at("checkpoint").get<std::string>();
  out.global_step = value.at("global_step").get<int64_t>();
  out.value = number_of(value.at("value"));
}
template <typename T>
void read_field(const Json& value, std::optional<T>& out) {
  out.reset();
  if (value.is_null()) return;
  T held{};
  read_field(value, held);
  out = held;
}
template <typename T>
void read_field(const Json& value, std::vector<T>& out) {
  if (!value.is_array()) throw DataError("not a list");
  out.clear();
  for (const Json& item : value) read_field(item, out.emplace_back());
}

}  // namespace

Json to_json(const TrainingState& state) {
  Json value = Json::object();
  each_field(state, [&](const char* name, const auto& field) { value[name] = field_json(field); });
  return value;
}

TrainingState training_state_of(const Json& value, const std::string& where) {
  TrainingState state;
  state.consumed_samples.reset();
  if (!value.is_object()) throw DataError(where + ": the training state is not an object");
  each_field(state, [&](const char* name, auto& field) {
    const auto found = value.find(name);
    if (found == value.end() && std::string_view(name) == kConsumedSamples) return;  // of before there were any
    if (found == value.end()) throw DataError(fmt::format("{}: the training state has no '{}'", where, name));
    try {
      read_field(*found, field);
    } catch (const std::exception&) {
      throw DataError(fmt::format("{}: the training state's '{}' has the wrong type", where, name));
    }
  });
  if (state.epoch < 0 || state.batch < 0 || state.global_step < 0 || state.consumed_samples.value_or(0) < 0) {
    throw DataError(where + ": the training state has a negative position");
  }
  return state;
}

}  // namespace assay
