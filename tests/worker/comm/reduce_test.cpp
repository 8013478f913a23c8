#include "comm/reduce.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace assay;
using namespace assay::comm;

namespace {

// The value of a 16-bit number by the definition of its format.
double value_of(uint16_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return fraction ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp(1 + std::ldexp(fraction, -fraction_bits), exponent - bias);
}

// The nearest number of the format, of two equally near ones the even one: by search among all 65536.
class NearestHalf {
 public:
  NearestHalf(int exponent_bits, int fraction_bits) : exponent_bits_(exponent_bits), fraction_bits_(fraction_bits) {
    const int largest = ((1 << exponent_bits) - 1) << fraction_bits;  // infinity
    for (int bits = 0; bits <= largest; ++bits) values_.push_back(value(static_cast<uint16_t>(bits)));
    // Infinity begins where the next number would be.
    values_.back() = 2 * values_[values_.size() - 2] - values_[values_.size() - 3];
  }
  double value(uint16_t bits) const { return value_of(bits, exponent_bits_, fraction_bits_); }
  uint16_t of(float number) const {
    const double size = std::fabs(static_cast<double>(number));
    const auto above = std::lower_bound(values_.begin(), values_.end(), size);
    auto index = static_cast<size_t>(above - values_.begin());
    if (index >= values_.size()) {
      index = values_.size() - 1;
    } else if (index > 0) {
      const double up = values_[index] - size, down = size - values_[index - 1];
      if (down < up || (down == up && (index - 1) % 2 == 0)) --index;
    }
    return static_cast<uint16_t>(index | (std::signbit(number) ? 0x8000u : 0u));
  }

 private:
  const int exponent_bits_, fraction_bits_;
  std::vector<double> values_;
};

void check_halves(DType type, int exponent_bits, int fraction_bits) {
  const NearestHalf nearest(exponent_bits, fraction_bits);
  std::mt19937 random(7);
  // All numbers against random others, three inputs: float32 sums, rounded once.
  std::vector<uint16_t> a(65536), b(65536), c(65536), sum(65536);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<uint16_t>(i);
    b[i] = static_cast<uint16_t>(random());
    c[i] = static_cast<uint16_t>(random());
    if (i % 4 == 0) b[i] = static_cast<uint16_t>((a[i] ^ 0x8000) + i / 4 % 3);  // results near zero
  }
  combine({a.data(), b.data(), c.data()}, {sum.data()}, 65536, type, ReduceOp::Sum);
  for (size_t i = 0; i < a.size(); ++i) {
    const float exact = (static_cast<float>(nearest.value(a[i])) + static_cast<float>(nearest.value(b[i]))) +
                        static_cast<float>(nearest.value(c[i]));
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(nearest.value(sum[i]))) << a[i] << " " << b[i] << " " << c[i];
    } else {
      ASSERT_EQ(sum[i], nearest.of(exact)) << a[i] << " " << b[i] << " " << c[i] << " = " << exact;
    }
  }
}

}  // namespace

TEST(Reduce, RoundsBfloat16OnceToTheNearestEven) { check_halves(DType::BF16, 8, 7); }
TEST(Reduce, RoundsFloat16OnceToTheNearestEven) { check_halves(DType::F16, 5, 10); }

TEST(Reduce, KeepsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max}) {
    for (int place = 0; place < 3; ++place) {
      std::vector<float> data[3];
      for (int i = 0; i < 3; ++i) data[i] = std::vector<float>(37, i == place ? nan : static_cast<float>(i));
      combine({data[0].data(), data[1].data(), data[2].data()}, {data[0].data()}, 37, DType::F32, op);
      for (const float value : data[0]) EXPECT_TRUE(std::isnan(value)) << place;
    }
  }
}

TEST(Reduce, AddsInTheOrderOfItsInputs) {
  // 1e8 + 1 - 1e8 in float32 is 0 from the left and 1 from the right.
  for (size_t count : {1u, 7u, 64u, 5000u}) {
    for (size_t inputs = 2; inputs <= 7; ++inputs) {
      std::vector<std::vector<float>> data(inputs, std::vector<float>(count));
      std::mt19937 random(static_cast<unsigned>(inputs));
      for (auto& input : data) {
        for (float& value : input)
          value = std::ldexp(static_cast<float>(random() % 1000), static_cast<int>(random() % 30));
      }
      std::vector<float> expected(count);
      for (size_t i = 0; i < count; ++i) {
        expected[i] = data[0][i];
        for (size_t k = 1; k < inputs; ++k) expected[i] += data[k][i];
      }
      std::vector<const void*> from;
      std::vector<void*> to;
      for (auto& input : data) {
        from.push_back(input.data());
        to.push_back(input.data());
      }
      combine(from, to, static_cast<int64_t>(count), DType::F32, ReduceOp::Sum);
      for (const auto& output : data) EXPECT_EQ(output, expected);
    }
  }
}

TEST(Reduce, WrapsIntegersAround) {
  const int32_t most = std::numeric_limits<int32_t>::max();
  int32_t a[3] = {most, -5, 1}, b[3] = {1, 3, 2}, out[3];
  combine({a, b}, {out}, 3, DType::I32, ReduceOp::Sum);
  EXPECT_EQ(out[0], std::numeric_limits<int32_t>::min());
  EXPECT_EQ(out[1], -2);
  combine({a, b}, {out}, 3, DType::I32, ReduceOp::Min);
  EXPECT_EQ(out[1], -5);
}

TEST(Reduce, ContinuesPartialSumsExactly) {
  std::mt19937 random(3);
  for (const DType type : {DType::BF16, DType::F16, DType::F32, DType::I64}) {
    const int64_t count = 3001;
    std::vector<std::vector<uint16_t>> inputs(4, std::vector<uint16_t>(static_cast<size_t>(count) * size_of(type) / 2));
    for (auto& input : inputs) {
      for (uint16_t& value : input) value = static_cast<uint16_t>(0x3c00 + random() % 0x300);
    }
    std::vector<uint16_t> whole(inputs[0].size()), in_parts(inputs[0].size());
    combine({inputs[0].data(), inputs[1].data(), inputs[2].data(), inputs[3].data()}, {whole.data()}, count, type,
            ReduceOp::Sum);
    std::vector<std::byte> partial(static_cast<size_t>(count) * size_of(partial_type(type)));
    combine_partial(partial.data(), false, {inputs[0].data(), inputs[1].data()}, count, type, ReduceOp::Sum);
    combine_partial(partial.data(), true, {inputs[2].data(), inputs[3].data()}, count, type, ReduceOp::Sum);
    finish_partial(partial.data(), in_parts.data(), count, type);
    EXPECT_EQ(whole, in_parts);
  }
}
