#include "param_server/table.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ps_test_tools.h"

namespace assay::ps {

namespace {

std::vector<double> pull_rows(Table& table, const std::vector<int64_t>& ids, std::vector<uint8_t>* present = nullptr) {
  std::vector<std::byte> values(ids.size() * table.spec().width * sizeof(double));
  std::vector<uint8_t> flags(ids.size());
  table.pull(ids, values.data(), flags.data());
  if (present) *present = flags;
  return numbers_of(values);
}

std::vector<int64_t> range_of(int64_t count) {
  std::vector<int64_t> ids(count);
  for (int64_t i = 0; i < count; ++i) ids[i] = i;
  return ids;
}

}  // namespace

TEST(PsTable, CreatesRowsAtTheirFirstUse) {
  const auto table = Table::make(f64_table("t", 2, {}, {.kind = InitRule::Kind::Uniform, .scale = 0.5, .seed = 7}));
  EXPECT_EQ(table->num_rows(), 0);
  const auto first = pull_rows(*table, {5, -3, 5});
  EXPECT_EQ(table->num_rows(), 2);
  EXPECT_EQ(first[0], first[4]);
  EXPECT_NE(first[0], first[2]);
  // Another table of the same spec, asked in another order, has the same rows.
  const auto again = Table::make(table->spec());
  const auto second = pull_rows(*again, {-3, 5});
  EXPECT_EQ(second[0], first[2]);
  EXPECT_EQ(second[2], first[0]);
  // Another seed or another name has others.
  TableSpec other = table->spec();
  other.init.seed = 8;
  EXPECT_NE(pull_rows(*Table::make(other), {5})[0], first[0]);
  other = table->spec();
  other.name = "u";
  EXPECT_NE(pull_rows(*Table::make(other), {5})[0], first[0]);
}

TEST(PsTable, DrawsValuesOfTheDistribution) {
  const auto ids = range_of(4000);
  const auto moments = [&](InitRule::Kind kind) {
    const auto table = Table::make(f64_table("t", 5, {}, {.kind = kind, .scale = 2, .seed = 1}));
    double sum = 0, squares = 0, largest = 0;
    const auto values = pull_rows(*table, ids);
    for (const double value : values) {
      sum += value;
      squares += value * value;
      largest = std::max(largest, std::abs(value));
    }
    const auto count = static_cast<double>(values.size());
    return std::tuple(sum / count, squares / count, largest);
  };
  const auto [uniform_mean, uniform_square, uniform_largest] = moments(InitRule::Kind::Uniform);
  EXPECT_NEAR(uniform_mean, 0, 0.04);
  EXPECT_NEAR(uniform_square, 4.0 / 3, 0.04);
  EXPECT_LE(uniform_largest, 2);
  const auto [normal_mean, normal_square, normal_largest] = moments(InitRule::Kind::Normal);
  EXPECT_NEAR(normal_mean, 0, 0.06);
  EXPECT_NEAR(normal_square, 4, 0.15);
  EXPECT_GT(normal_largest, 6);
}

TEST(PsTable, StoresGivenRows) {
  const auto table = Table::make(f64_table("t", 2));
  std::vector<uint8_t> present;
  EXPECT_EQ(pull_rows(*table, {4}, &present), (std::vector<double>{0, 0}));
  EXPECT_EQ(present, std::vector<uint8_t>{0});
  EXPECT_EQ(table->num_rows(), 0);
  const auto values = block_of(0, {4, 6}, {1, 2, 3, 4});
  table->init(values.ids, values.values.data());
  const auto later = block_of(0, {4, 8}, {9, 9, 5, 6});  // 4 keeps its first one
  table->init(later.ids, later.values.data());
  EXPECT_EQ(pull_rows(*table, {8, 4, 6}, &present), (std::vector<double>{5, 6, 1, 2, 3, 4}));
  EXPECT_EQ(present, (std::vector<uint8_t>{1, 1, 1}));
  const RowBlock unknown = block_of(0, {4, 99}, {1, 1, 1, 1});
  EXPECT_EQ(table->update({&unknown}, {1.0, 1}), 1);
  EXPECT_EQ(pull_rows(*table, {4}), (std::vector<double>{0, 1}));
  EXPECT_EQ(table->num_rows(), 3);
}

TEST(PsTable, SumsGradientsInOrderAndMovesOnlyTheirRows) {
  const auto table = Table::make(f64_table("t", 1, {.name = "Adam"}, {.kind = InitRule::Kind::Zero}));
  // In this order the sum is 1, in another one 0: 1e17 + 1 is 1e17.
  const RowBlock a = block_of(0, {1, 2}, {1e17, 5});
  const RowBlock b = block_of(0, {1}, {-1e17});
  const RowBlock c = block_of(0, {1, 2, 2}, {1, -5, 1});
  const auto sgd = Table::make(f64_table("t", 1, {.name = "SGD"}, {.kind = InitRule::Kind::Zero}));
  sgd->update({&a, &b, &c}, {1.0, 1});
  EXPECT_EQ(pull_rows(*sgd, {1, 2, 3}), (std::vector<double>{-1, -1, 0}));
  sgd->update({&b, &c, &a}, {1.0, 2});
  EXPECT_EQ(pull_rows(*sgd, {1}), (std::vector<double>{-1}));  // the sum was 0

  const RowBlock one = block_of(0, {1}, {0.5});
  const RowBlock two = block_of(0, {2}, {0.5});
  table->update({&one}, {0.1, 1});
  const double after_one = pull_rows(*table, {1})[0];
  table->update({&two}, {0.1, 2});
  EXPECT_EQ(pull_rows(*table, {1})[0], after_one);  // neither weight nor moments of row 1
  // Row 2 is new at t = 2: m = 0.05, s = 2.5e-4, corrected by 1 - 0.9^2 and 1 - 0.999^2.
  const double m = 0.05 / (1 - 0.81), s = 0.25e-3 / (1 - 0.999 * 0.999);
  EXPECT_NEAR(pull_rows(*table, {2})[0], -0.1 * m / (std::sqrt(s) + 1e-8), 1e-12);
}

TEST(PsTable, ListsChangesOnceAndInPages) {
  const auto table = Table::make(f64_table("t", 1, {}, {.kind = InitRule::Kind::Zero}));
  pull_rows(*table, range_of(10));
  ChangedRows rows = table->changed_since(0, 6);
  EXPECT_TRUE(rows.more);
  EXPECT_EQ(rows.ids.size(), 6u);
  rows = table->changed_since(rows.version, 6);
  EXPECT_FALSE(rows.more);
  EXPECT_EQ(rows.ids, (std::vector<int64_t>{6, 7, 8, 9}));
  const uint64_t seen = rows.version;
  EXPECT_TRUE(table->changed_since(seen, 6).ids.empty());
  EXPECT_EQ(table->changed_since(seen, 6).version, seen);
  table->add(block_of(0, {3, 1}, {2, 4}));
  rows = table->changed_since(seen, 6);
  EXPECT_EQ(rows.ids, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(numbers_of(rows.values), (std::vector<double>{2, 4}));
  const RowBlock gradient = block_of(0, {7}, {1});
  table->update({&gradient}, {0.5, 1});
  EXPECT_EQ(table->changed_since(rows.version, 6).ids, std::vector<int64_t>{7});
}

TEST(PsTable, RestoresItsStateInAnotherTable) {
  for (const char* name : {"SGD", "Momentum", "Adagrad", "Adam"}) {
    const TableSpec spec = f64_table("t", 3, {.name = name}, {.kind = InitRule::Kind::Normal, .scale = 1});
    const auto table = Table::make(spec);
    const auto ids = range_of(30000);  // more than a chunk
    std::vector<double> gradients(ids.size() * 3);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = std::sin(static_cast<double>(i));
    const RowBlock block = block_of(0, ids, gradients);
    table->update({&block}, {0.1, 1});
    const auto copy = Table::make(spec);
    copy->restore(table->state(), [](int64_t id) { return id % 2 == 0; });
    EXPECT_EQ(copy->num_rows(), 15000);
    const RowBlock more = block_of(0, {10, 12}, {1, 2, 3, 4, 5, 6});
    table->update({&more}, {0.1, 2});
    copy->update({&more}, {0.1, 2});
    EXPECT_EQ(pull_rows(*copy, {10, 12, 29998}), pull_rows(*table, {10, 12, 29998})) << name;
  }
}

}  // namespace assay::ps
