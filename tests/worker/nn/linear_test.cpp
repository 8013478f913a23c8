#include "nn/linear.h"

#include "fused_check.h"

namespace assay {
namespace {

torch::Tensor numbers(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

TEST(Linear, EqualsLibtorchsProduct) {
  torch::manual_seed(41);
  for (const auto& [in, out] : {std::pair(5, 3), std::pair(64, 48), std::pair(33, 130)}) {
    const std::string where = std::to_string(in) + " to " + std::to_string(out);
    expect_same_pass([](const auto& x) { return linear(x[0], x[1], WeightLayout::OutIn); },
                     [](const auto& x) { return torch::matmul(x[0], x[1].t()); },
                     {numbers({2, 17, in}), numbers({out, in})}, where);
    expect_same_pass([](const auto& x) { return linear(x[0], x[1], WeightLayout::InOut); },
                     [](const auto& x) { return torch::matmul(x[0], x[1]); },
                     {numbers({2, 17, in}), numbers({in, out})}, where);
    expect_same_pass([](const auto& x) { return affine(x[0], x[1], x[2]); },
                     [](const auto& x) { return torch::linear(x[0], x[1], x[2]); },
                     {numbers({2, 17, in}), numbers({out, in}), numbers({out})}, where);
    expect_same_pass([](const auto& x) { return linear3(x[0], x[1], x[2], x[3]); },
                     [](const auto& x) {
                       return torch::matmul(x[0], torch::cat({x[1], x[2], x[3]}).t());
                     },
                     {numbers({2, 17, in}), numbers({out, in}), numbers({out, in}), numbers({out, in})}, where);
  }
}

TEST(Linear, MatchesFiniteDifferences) {
  torch::manual_seed(42);
  for (const WeightLayout layout : {WeightLayout::OutIn, WeightLayout::InOut}) {
    expect_finite_differences([&](const auto& x) { return linear(x[0], x[1], layout); },
                              {numbers({2, 3}), layout == WeightLayout::OutIn ? numbers({4, 3}) : numbers({3, 4})});
  }
  expect_finite_differences([](const auto& x) { return affine(x[0], x[1], x[2]); },
                            {numbers({2, 3}), numbers({4, 3}), numbers({4})});
  expect_finite_differences([](const auto& x) { return linear3(x[0], x[1], x[2], x[3]); },
                            {numbers({2, 3}), numbers({2, 3}), numbers({2, 3}), numbers({2, 3})});
}

TEST(Linear, SharesOutWholeProducts) {
  torch::manual_seed(43);
  const int before = at::get_num_threads();
  at::set_num_threads(3);
  for (const auto& [rows, columns] : {std::pair(1, 1), std::pair(5, 200), std::pair(200, 5), std::pair(97, 98)}) {
    for (const bool add : {false, true}) {
      const torch::Tensor a = torch::randn({rows, 20}), b = torch::randn({20, columns}),
                          c = torch::randn({rows, columns});
      const torch::Tensor expected = add ? c + a.mm(b) : a.mm(b);
      const torch::Tensor a_t = a.t().contiguous(), b_t = b.t().contiguous();
      for (const bool a_transposed : {false, true}) {
        for (const bool b_transposed : {false, true}) {
          torch::Tensor out = c.clone();
          multiply_into<float>({out.data_ptr<float>(), columns},
                               {(a_transposed ? a_t : a).data_ptr<float>(), a_transposed ? rows : 20, a_transposed},
                               {(b_transposed ? b_t : b).data_ptr<float>(), b_transposed ? 20 : columns, b_transposed},
                               {rows, columns, 20}, add);
          EXPECT_TRUE(torch::allclose(out, expected, 1e-5, 1e-5)) << rows << " " << columns << " " << add;
        }
      }
    }
  }
  at::set_num_threads(before);
}

// Rows a power of two apart, which another library multiplies.
TEST(Linear, MultipliesDeepProductsWhoseRowsCollideInTheCache) {
  torch::manual_seed(44);
  constexpr int64_t kDepth = 1030;
  for (const auto& [rows, columns] : {std::pair(512, 136), std::pair(1024, 24), std::pair(250, 512)}) {
    const torch::Tensor a = torch::randn({kDepth, rows}), b = torch::randn({kDepth, columns}),
                        c = torch::randn({rows, columns});
    const torch::Tensor product = a.to(torch::kDouble).t().mm(b.to(torch::kDouble));
    for (const bool add : {false, true}) {
      torch::Tensor out = c.clone();
      multiply_into<float>({out.data_ptr<float>(), columns}, {a.data_ptr<float>(), rows, true},
                           {b.data_ptr<float>(), columns}, {rows, columns, kDepth}, add);
      const torch::Tensor expected = (add ? c.to(torch::kDouble) + product : product).to(torch::kFloat);
      EXPECT_TRUE(torch::allclose(out, expected, 1e-5, 1e-4)) << rows << " " << columns << " " << add;
    }
  }
}

TEST(Linear, GivesAFrozenWeightNoGradient) {
  const torch::Tensor x = torch::randn({4, 6}, torch::requires_grad()), weight = torch::randn({5, 6});
  linear(x, weight, WeightLayout::OutIn).sum().backward();
  EXPECT_TRUE(torch::allclose(x.grad(), weight.sum(0).expand({4, 6}), 1e-5, 1e-6));
  EXPECT_FALSE(weight.grad().defined());
}

}  // namespace
}  // namespace assay
