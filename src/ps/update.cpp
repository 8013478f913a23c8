#include "ps/update.h"

#include <cmath>

#include "base/error.h"

namespace assay::ps {

namespace {

template <UpdateKind K, typename T>
void update_as(const RowState<T>& row, const T* gradient, int64_t width, const RowFactors<T>& f) {
  for (int64_t i = 0; i < width; ++i) {
    T weight = row.weight[i];
    T g = gradient[i];
    if constexpr (K == UpdateKind::AdamW) {
      weight -= f.rate * f.decay * weight;
    } else {
      g += f.decay * weight;
    }
    if constexpr (K == UpdateKind::Sgd) {
      weight -= f.rate * g;
    } else if constexpr (K == UpdateKind::Momentum) {
      row.first[i] = f.momentum * row.first[i] + g;
      weight -= f.rate * row.first[i];
    } else if constexpr (K == UpdateKind::Adagrad) {
      row.second[i] += g * g;
      weight -= f.rate * g / (std::sqrt(row.second[i]) + f.epsilon);
    } else {
      row.first[i] = f.beta1 * row.first[i] + f.rest1 * g;
      row.second[i] = f.beta2 * row.second[i] + f.rest2 * g * g;
      weight -= f.rate * (row.first[i] * f.correction1) / (std::sqrt(row.second[i] * f.correction2) + f.epsilon);
    }
    row.weight[i] = weight;
  }
}

}  // namespace

const std::vector<std::string>& update_names() {
  static const std::vector<std::string> kNames = {"SGD", "Momentum", "Adagrad", "Adam", "AdamW"};
  return kNames;
}

UpdateKind update_kind(const std::string& name) {
  const std::vector<std::string>& names = update_names();
  const auto found = std::find(names.begin(), names.end(), name);
  ASSAY_CHECK(found != names.end(), "unchecked update rule " + name);
  return static_cast<UpdateKind>(found - names.begin());
}

bool has_first(UpdateKind kind) {
  return kind == UpdateKind::Momentum || kind == UpdateKind::Adam || kind == UpdateKind::AdamW;
}

bool has_second(UpdateKind kind) {
  return kind == UpdateKind::Adagrad || kind == UpdateKind::Adam || kind == UpdateKind::AdamW;
}

template <typename T>
RowFactors<T> row_factors(const UpdateOptions& o, double rate, int64_t num_updates) {
  const auto t = static_cast<double>(num_updates);
  return {.rate = static_cast<T>(rate),
          .decay = static_cast<T>(o.weight_decay),
          .momentum = static_cast<T>(o.momentum),
          .beta1 = static_cast<T>(o.beta1),
          .beta2 = static_cast<T>(o.beta2),
          .epsilon = static_cast<T>(o.epsilon),
          .rest1 = static_cast<T>(1.0 - o.beta1),
          .rest2 = static_cast<T>(1.0 - o.beta2),
          .correction1 = static_cast<T>(1.0 / (1.0 - std::pow(o.beta1, t))),
          .correction2 = static_cast<T>(1.0 / (1.0 - std::pow(o.beta2, t)))};
}

template <typename T>
void update_row(UpdateKind kind, const RowState<T>& row, const T* gradient, int64_t width, const RowFactors<T>& f) {
  switch (kind) {
    case UpdateKind::Sgd: return update_as<UpdateKind::Sgd>(row, gradient, width, f);
    case UpdateKind::Momentum: return update_as<UpdateKind::Momentum>(row, gradient, width, f);
    case UpdateKind::Adagrad: return update_as<UpdateKind::Adagrad>(row, gradient, width, f);
    case UpdateKind::Adam: return update_as<UpdateKind::Adam>(row, gradient, width, f);
    case UpdateKind::AdamW: return update_as<UpdateKind::AdamW>(row, gradient, width, f);
  }
}

template RowFactors<float> row_factors(const UpdateOptions&, double, int64_t);
template RowFactors<double> row_factors(const UpdateOptions&, double, int64_t);
template void update_row(UpdateKind, const RowState<float>&, const float*, int64_t, const RowFactors<float>&);
template void update_row(UpdateKind, const RowState<double>&, const double*, int64_t, const RowFactors<double>&);

}  // namespace assay::ps
