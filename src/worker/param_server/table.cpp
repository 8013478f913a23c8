#include "param_server/table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>
#include <unordered_map>

#include "base/error.h"
#include "base/time.h"
#include "param_server/update.h"

namespace assay::ps {

namespace {

// A chunk of rows is allocated at once; large enough to be cheap, small enough not to waste.
constexpr int64_t kChunkElements = 65536;
// Of the index and the bookkeeping of a row, beside its numbers.
constexpr int64_t kRowOverhead = 64;

// Sebastiano Vigna's splitmix64: every bit of the input changes half of the output.
uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

uint64_t key_of(const TableSpec& spec) {
  uint64_t key = mixed(spec.init.seed);
  for (const char letter : spec.name) key = mixed(key ^ static_cast<uint8_t>(letter));
  return key;
}

// From 0 to below 1, with all 53 bits of a double.
double unit(uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

// Element `i` of a row whose generator starts at `start`.
double drawn(const InitRule& rule, uint64_t start, int64_t i) {
  const uint64_t at = start + 2 * static_cast<uint64_t>(i);
  switch (rule.kind) {
    case InitRule::Kind::Uniform: return rule.scale * (2 * unit(mixed(at)) - 1);
    case InitRule::Kind::Normal: {  // Box and Muller
      const double radius = std::sqrt(-2 * std::log(1 - unit(mixed(at))));
      return rule.scale * radius * std::cos(2 * std::numbers::pi * unit(mixed(at + 1)));
    }
    case InitRule::Kind::Given:
    case InitRule::Kind::Zero: break;
  }
  return 0;
}

template <typename T>
class TypedTable final : public Table {
 public:
  explicit TypedTable(const TableSpec& spec)
      : Table(spec),
        parts_(row_parts(spec.update.name)),
        update_(update_kernel<T>(update_rule(spec.update.name))),
        key_(key_of(spec)),
        first_at_(parts_.first ? spec.width : 0),
        second_at_(parts_.second ? first_at_ + spec.width : 0),
        stride_(spec.width * (1 + parts_.first + parts_.second)),
        chunk_rows_(std::max<int64_t>(kChunkElements / stride_, 1)) {}

  int64_t num_rows() const override { return static_cast<int64_t>(ids_.size()); }
  int64_t num_bytes() const override {
    return static_cast<int64_t>(chunks_.size()) * chunk_rows_ * stride_ * static_cast<int64_t>(sizeof(T)) +
           num_rows() * kRowOverhead;
  }
  int64_t bytes_for(int64_t num_new_rows) const override {
    return num_new_rows * (stride_ * static_cast<int64_t>(sizeof(T)) + kRowOverhead);
  }
  int64_t num_missing(std::span<const int64_t> ids) const override {
    return std::count_if(ids.begin(), ids.end(), [&](int64_t id) { return !index_.contains(id); });
  }

  void pull(std::span<const int64_t> ids, std::byte* values, uint8_t* present) override {
    for (size_t i = 0; i < ids.size(); ++i) {
      const int64_t row = find_or_draw(ids[i]);
      present[i] = row >= 0;
      std::byte* to = values + i * row_bytes();
      if (row < 0) {
        std::memset(to, 0, row_bytes());
      } else {
        std::memcpy(to, weight(row), row_bytes());
      }
    }
  }

  void init(std::span<const int64_t> ids, const std::byte* values) override {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!index_.contains(ids[i])) std::memcpy(weight(add_row(ids[i])), values + i * row_bytes(), row_bytes());
    }
  }

  int64_t update(const std::vector<const RowBlock*>& blocks, const Change& change) override {
    int64_t num_unknown = 0;
    std::vector<int64_t> rows;  // in the order in which they came
    std::vector<T> sums;
    for (const RowBlock* block : blocks) {
      for (size_t i = 0; i < block->ids.size(); ++i) {
        const int64_t row = find_or_draw(block->ids[i]);
        if (row < 0) {
          ++num_unknown;
          continue;
        }
        const T* gradient = values_of(*block) + i * width();
        if (sum_index_[row] < 0) {
          sum_index_[row] = static_cast<int64_t>(rows.size());
          rows.push_back(row);
          sums.insert(sums.end(), gradient, gradient + width());
        } else {
          T* sum = sums.data() + sum_index_[row] * width();
          for (int64_t k = 0; k < width(); ++k) sum[k] += gradient[k];
        }
      }
    }
    const UpdateFactors<T> factors = row_factors<T>(spec_.update, change.rate, change.num_updates);
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t row = rows[i];
      T* state = weight(row);
      update_({.weight = state,
               .gradient = sums.data() + i * width(),
               .first = state + first_at_,
               .second = state + second_at_,
               .count = width()},
              factors, nullptr);
      versions_[row] = ++version_;
      sum_index_[row] = -1;
    }
    return num_unknown;
  }

  int64_t add(const RowBlock& block) override {
    int64_t num_unknown = 0;
    for (size_t i = 0; i < block.ids.size(); ++i) {
      const int64_t row = find_or_draw(block.ids[i]);
      if (row < 0) {
        ++num_unknown;
        continue;
      }
      const T* difference = values_of(block) + i * width();
      T* to = weight(row);
      for (int64_t k = 0; k < width(); ++k) to[k] += difference[k];
      versions_[row] = ++version_;
    }
    return num_unknown;
  }

  ChangedRows changed_since(uint64_t version, int64_t max_rows) const override {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < num_rows(); ++row) {
      if (versions_[row] > version) rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return versions_[a] < versions_[b]; });
    ChangedRows out{.version = version, .more = static_cast<int64_t>(rows.size()) > max_rows, .ids = {}, .values = {}};
    if (out.more) rows.resize(max_rows);
    out.values.resize(rows.size() * row_bytes());
    for (size_t i = 0; i < rows.size(); ++i) {
      out.ids.push_back(ids_[rows[i]]);
      std::memcpy(out.values.data() + i * row_bytes(), weight(rows[i]), row_bytes());
      out.version = versions_[rows[i]];
    }
    return out;
  }

  TableState state() const override {
    std::vector<int64_t> rows(ids_.size());
    std::iota(rows.begin(), rows.end(), 0);
    std::sort(rows.begin(), rows.end(), [&](int64_t a, int64_t b) { return ids_[a] < ids_[b]; });
    TableState out{.spec = spec_, .ids = {}, .weights = {}, .first = {}, .second = {}};
    const size_t bytes = rows.size() * row_bytes();
    out.weights.resize(bytes);
    if (parts_.first) out.first.resize(bytes);
    if (parts_.second) out.second.resize(bytes);
    for (size_t i = 0; i < rows.size(); ++i) {
      const T* from = weight(rows[i]);
      const size_t at = i * row_bytes();
      out.ids.push_back(ids_[rows[i]]);
      std::memcpy(out.weights.data() + at, from, row_bytes());
      if (parts_.first) std::memcpy(out.first.data() + at, from + first_at_, row_bytes());
      if (parts_.second) std::memcpy(out.second.data() + at, from + second_at_, row_bytes());
    }
    return out;
  }

  void restore(const TableState& state, const std::function<bool(int64_t)>& wanted) override {
    const size_t bytes = state.ids.size() * row_bytes();
    ASSAY_CHECK(state.weights.size() == bytes && state.first.size() == (parts_.first ? bytes : 0) &&
                    state.second.size() == (parts_.second ? bytes : 0),
                "unchecked state of table " + spec_.name);
    for (size_t i = 0; i < state.ids.size(); ++i) {
      if (!wanted(state.ids[i]) || index_.contains(state.ids[i])) continue;
      T* to = weight(add_row(state.ids[i]));
      const size_t at = i * row_bytes();
      std::memcpy(to, state.weights.data() + at, row_bytes());
      if (parts_.first) std::memcpy(to + first_at_, state.first.data() + at, row_bytes());
      if (parts_.second) std::memcpy(to + second_at_, state.second.data() + at, row_bytes());
    }
  }

 private:
  int64_t width() const { return spec_.width; }
  size_t row_bytes() const { return static_cast<size_t>(spec_.width) * sizeof(T); }
  const T* values_of(const RowBlock& block) const { return reinterpret_cast<const T*>(block.values.data()); }
  T* weight(int64_t row) const { return chunks_[row / chunk_rows_].get() + row % chunk_rows_ * stride_; }

  int64_t add_row(int64_t id) {
    const int64_t row = num_rows();
    if (row / chunk_rows_ == static_cast<int64_t>(chunks_.size())) {
      chunks_.push_back(std::make_unique<T[]>(static_cast<size_t>(chunk_rows_ * stride_)));
    }
    index_.emplace(id, row);
    ids_.push_back(id);
    versions_.push_back(++version_);
    sum_index_.push_back(-1);
    return row;
  }

  // -1 for a row without a first value.
  int64_t find_or_draw(int64_t id) {
    const auto found = index_.find(id);
    if (found != index_.end()) return found->second;
    if (spec_.init.kind == InitRule::Kind::Given) return -1;
    const int64_t row = add_row(id);
    const uint64_t start = mixed(key_ ^ mixed(static_cast<uint64_t>(id)));
    T* to = weight(row);
    for (int64_t k = 0; k < width(); ++k) to[k] = static_cast<T>(drawn(spec_.init, start, k));
    return row;
  }

  const RowParts parts_;
  const UpdateKernel<T> update_;
  const uint64_t key_;
  // A row is its weights, then what the update rule has: elements from the start of the row.
  const int64_t first_at_;
  const int64_t second_at_;
  const int64_t stride_;
  const int64_t chunk_rows_;

  std::unordered_map<int64_t, int64_t> index_;  // id -> row
  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<int64_t> ids_;
  std::vector<uint64_t> versions_;  // of the last change of each row
  std::vector<int64_t> sum_index_;  // of each row among the sums of the update in work; -1 otherwise
  // Counts changes, from the time in nanoseconds on: after a restart every row is newer than what was seen before.
  uint64_t version_ = static_cast<uint64_t>(now_us()) * 1000;
};

}  // namespace

std::unique_ptr<Table> Table::make(const TableSpec& spec) {
  check_spec(spec);
  if (spec.element == Element::F64) return std::make_unique<TypedTable<double>>(spec);
  return std::make_unique<TypedTable<float>>(spec);
}

}  // namespace assay::ps
