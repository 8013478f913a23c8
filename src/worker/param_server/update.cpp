#include "param_server/update.h"

#include <algorithm>

#include "base/error.h"

namespace assay::ps {

namespace {

struct NamedRule {
  const char* name;
  UpdateRule rule;
  RowParts parts;
};
constexpr NamedRule kRules[] = {
    {"SGD", UpdateRule::Sgd, {.first = false, .second = false}},
    {"Momentum", UpdateRule::Momentum, {.first = true, .second = false}},
    {"Adagrad", UpdateRule::Adagrad, {.first = false, .second = true}},
    {"Adam", UpdateRule::Adam, {.first = true, .second = true}},
    {"AdamW", UpdateRule::AdamW, {.first = true, .second = true}},
};

const NamedRule& rule_named(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const NamedRule& r) { return r.name == name; });
  ASSAY_CHECK(found != std::end(kRules), "unchecked update rule " + name);
  return *found;
}

}  // namespace

const std::vector<std::string>& update_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const NamedRule& rule : kRules) names.emplace_back(rule.name);
    return names;
  }();
  return kNames;
}

UpdateRule update_rule(const std::string& name) { return rule_named(name).rule; }

RowParts row_parts(const std::string& name) { return rule_named(name).parts; }

template <typename T>
UpdateFactors<T> row_factors(const UpdateOptions& o, double rate, int64_t num_updates) {
  return update_factors<T>({.rate = rate,
                            .weight_decay = o.weight_decay,
                            .momentum = o.momentum,
                            .beta1 = o.beta1,
                            .beta2 = o.beta2,
                            .epsilon = o.epsilon,
                            .num_updates = num_updates});
}

template UpdateFactors<float> row_factors(const UpdateOptions&, double, int64_t);
template UpdateFactors<double> row_factors(const UpdateOptions&, double, int64_t);

}  // namespace assay::ps
