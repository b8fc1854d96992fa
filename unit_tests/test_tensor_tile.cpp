// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/tensor_tile.hpp>
#include <cmath>
#include <cstddef>
#include <random>

namespace bellman {
namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Warp = impl::LaneGroup<Space>;
using Team = Kokkos::TeamPolicy<Space>::member_type;
using Matrices = Kokkos::View<float***, Kokkos::LayoutRight, Space>;
constexpr std::size_t rows = 16, columns = 8;

/// A warp multiplies a matrix of 16 x 8 with one of 8 x 8.
struct Multiply {
  Matrices a, b, products;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int problem = team.league_rank();
    const int row = Warp::rank() / 4, column = Warp::rank() % 4;
    impl::TensorFactor<4> left;
    impl::TensorFactor<2> right;
    for (int i = 0; i < 4; ++i) left.set(i, a(problem, row + i % 2 * 8, column + i / 2 * 4));
    for (int i = 0; i < 2; ++i) right.set(i, b(problem, column + i * 4, row));
    float sums[4] = {};
    if constexpr (Warp::size == 32) impl::add_tensor_products<Warp>(sums, left, right);
    for (int i = 0; i < 4; ++i) products(problem, row + i / 2 * 8, 2 * column + i % 2) = sums[i];
  }
};

/// A positive number over a range of exponents, whose low part is random, the largest, or none.
float draw(std::mt19937_64& random, unsigned range) {
  std::uniform_real_distribution<double> uniform(0, 1);
  const double rest[] = {uniform(random), 0x1p-11 - 0x1p-23, 0x1p-11, 0x1p-12, 0x1p-11 * uniform(random), 0};
  const double mantissa = 1 + rest[random() % 6];
  return static_cast<float>(std::ldexp(mantissa, -static_cast<int>(random() % range)));
}

/// Certificates of models of many states rest on this bound; the second range is so wide that most terms are cut off.
TEST(TensorTile, ProductsKeepTheirBound) {
  if (Warp::size != 32) GTEST_SKIP() << "no warps";
  constexpr std::size_t problems = 5000;
  std::mt19937_64 random(7);
  for (const unsigned range : {1, 2, 12, 24}) {
    const Matrices a("a", problems, rows, columns), b("b", problems, columns, columns), c("c", problems, rows, columns);
    const auto left = Kokkos::create_mirror_view(a), right = Kokkos::create_mirror_view(b);
    for (std::size_t k = 0; k < left.size(); ++k) left.data()[k] = draw(random, range);
    for (std::size_t k = 0; k < right.size(); ++k) right.data()[k] = random() % 8 == 0 ? 0.0f : draw(random, range);
    // One large term, and seven that lose all but their highest bit.
    for (std::size_t k = 0; k < columns; ++k) left(0, 0, k) = right(0, k, 0) = k == 0 ? 1.0f : 0x1.ffcp-13f;
    Kokkos::deep_copy(a, left);
    Kokkos::deep_copy(b, right);
    Kokkos::parallel_for(Kokkos::TeamPolicy<Space>(static_cast<int>(problems), 1, Warp::size), Multiply{a, b, c});
    const auto got = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), c);
    double largest = 0;
    for (std::size_t p = 0; p < problems; ++p) {
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          double sum = 0;  // exact to 2^-53: enough to see errors of 2^-24
          for (std::size_t k = 0; k < columns; ++k) sum += static_cast<double>(left(p, i, k)) * right(p, k, j);
          const double error = std::abs(static_cast<double>(got(p, i, j)) - sum);
          ASSERT_TRUE(sum > 0 || error == 0) << "a sum of zeros";
          if (sum > 0) largest = std::max(largest, error / sum);
        }
      }
    }
    EXPECT_LE(largest, impl::tensor_product_roundings * impl::roundoff<float>()) << "range " << range;
    EXPECT_GT(largest, 0) << "range " << range;
  }
}

}  // namespace
}  // namespace bellman
