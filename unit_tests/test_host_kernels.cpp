// SPDX-License-Identifier: Apache-2.0
// The kernels of src/host for every instruction set that this machine has: the other tests see only the best of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bellman/accuracy.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/host_kernels.hpp>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "reference/reference.hpp"
#include "support/configurations.hpp"
#include "support/near.hpp"
#include "support/random.hpp"

namespace bellman {
namespace {

using namespace support;
using impl::HostKernels;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::vector<const HostKernels*> kernels_of_machine() {
  std::vector<const HostKernels*> all;
  while (const HostKernels* next = impl::host_kernels_of_machine(static_cast<int>(all.size()))) all.push_back(next);
  return all;
}

TEST(HostKernels, TheBestIsTheLast) {
  const auto all = kernels_of_machine();
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all.back(), &impl::host_kernels());
  for (std::size_t k = 1; k < all.size(); ++k) EXPECT_GT(all[k]->register_bytes, all[k - 1]->register_bytes);
}

/// The proof in docs/accuracy.md counts on 4 roundoffs.
template <class Real>
void expect_exp2_bound(void (*exp2)(const Real*, Real*), int lanes, double largest, double step) {
  constexpr double bound = std::is_same_v<Real, float> ? 0x1p-22 : 0x1p-51;
  Real x[impl::most_lanes], power[impl::most_lanes];
  for (double first = -largest; first < largest; first += lanes * step) {
    for (int k = 0; k < lanes; ++k) x[k] = static_cast<Real>(std::min(first + k * step, largest));
    exp2(x, power);
    for (int k = 0; k < lanes; ++k) {
      ASSERT_NEAR(static_cast<double>(power[k]) / std::exp2(static_cast<double>(x[k])), 1, bound) << x[k];
    }
  }
}

TEST(HostKernels, Exp2IsWithinItsBound) {
  for (const HostKernels* kernels : kernels_of_machine()) {
    SCOPED_TRACE(kernels->name);
    expect_exp2_bound(kernels->exp2_of_floats, kernels->register_bytes / 4, 125.9999, 0.000371);
    expect_exp2_bound(kernels->exp2_of_doubles, kernels->register_bytes / 8, 1021.9999, 0.00171);
  }
}

/// A batch of problems, and what one kernel makes of it.
template <class Score>
class Batch {
 public:
  Batch(std::vector<std::vector<double>> problems, std::int64_t rows, std::int64_t columns, std::int64_t column_stride)
      : rows_(rows), columns_(columns), column_stride_(column_stride) {
    for (const auto& problem : problems) {
      std::vector<Score> spread(problem.size() * column_stride, static_cast<Score>(nan));
      for (std::size_t k = 0; k < problem.size(); ++k) spread[k * column_stride] = static_cast<Score>(problem[k]);
      memory_.push_back(std::move(spread));
    }
  }

  impl::HostFound run(impl::HostAlignment<Score> kernel, const impl::HostAlgebra& algebra) const {
    impl::HostScores<Score> scores{};
    for (int k = 0; k < impl::most_lanes; ++k) scores.problem[k] = memory_[k % memory_.size()].data();
    scores.row_stride = columns_ * column_stride_;
    scores.column_stride = column_stride_;
    scores.rows = rows_;
    scores.columns = columns_;
    const std::size_t bytes = static_cast<std::size_t>(columns_) * impl::most_register_bytes;
    const std::unique_ptr<std::byte, decltype(&std::free)> row(
        static_cast<std::byte*>(std::aligned_alloc(impl::most_register_bytes, bytes)), &std::free);
    impl::HostFound found{};
    kernel(scores, algebra, row.get(), found);
    return found;
  }

 private:
  std::vector<std::vector<Score>> memory_;
  std::int64_t rows_, columns_, column_stride_;
};

/// Each lane of a Linear kernel is certified, and within the bound; the same with the problems in other lanes.
template <class Algebra, class Score>
void expect_linear(impl::HostAlignment<Score> kernel, int lanes) {
  const Algebra algebra(1, -1);
  const impl::HostAlgebra constants{static_cast<double>(algebra.gap()), static_cast<double>(algebra.scale())};
  for (const std::int64_t rows : {1, 3, 4, 5, 18}) {
    for (const std::int64_t columns : {1, 2, 7, 8, 15, 16, 17, 33}) {
      std::vector<std::vector<double>> problems;
      for (int k = 0; k < lanes; ++k) {
        problems.push_back(rounded<Score>(normal_values(rows * columns, 100 * rows + columns + 7919 * k, 1.5)));
        problems.back()[0] = k % 2 == 0 ? -inf : problems.back()[0];
      }
      auto turned = problems;
      std::rotate(turned.begin(), turned.begin() + 1, turned.end());
      const auto found = Batch<Score>(problems, rows, columns, 1).run(kernel, constants);
      const auto strided = Batch<Score>(turned, rows, columns, 3).run(kernel, constants);
      for (int k = 0; k < lanes; ++k) {
        typename Algebra::Watch watch;
        watch.see(static_cast<typename Algebra::Weight>(found.largest_within[k]));
        watch.see(static_cast<typename Algebra::Weight>(found.smallest_beyond[k]));
        const auto judgement = algebra.judge(static_cast<typename Algebra::Value>(found.best[k]), watch, rows + columns,
                                             score_tolerance<Score>);
        const double expected = reference::smith_waterman_score(problems[k], rows, columns, -1, 1);
        EXPECT_TRUE(judgement.certified);
        EXPECT_TRUE(near(judgement.score, expected, score_error_bound<Score>(expected, 1)))
            << "lane " << k << ", " << rows << " x " << columns;
        const int other = (k + lanes - 1) % lanes;
        EXPECT_EQ(found.best[k], strided.best[other]);
        EXPECT_EQ(found.largest_within[k], strided.largest_within[other]);
        EXPECT_EQ(found.smallest_beyond[k], inf);
      }
    }
  }
}

template <class Score>
void expect_max(impl::HostAlignment<Score> kernel, int lanes) {
  for (const std::int64_t rows : {1, 4, 7}) {
    for (const std::int64_t columns : {1, 16, 21}) {
      std::vector<std::vector<double>> problems;
      for (int k = 0; k < lanes; ++k) problems.push_back(normal_values(rows * columns, 31 * rows + columns + 7919 * k));
      for (auto& problem : problems) {
        for (double& score : problem) score = std::round(8 * score) / 8;  // exact in float
      }
      const auto found = Batch<Score>(problems, rows, columns, 1).run(kernel, {-0.5, 1});
      for (int k = 0; k < lanes; ++k) {
        EXPECT_EQ(found.best[k], reference::smith_waterman_score(problems[k], rows, columns, -0.5, 0));
        EXPECT_FALSE(found.nan[k]);
      }
      problems[lanes - 1].back() = nan;
      const auto with_nan = Batch<Score>(problems, rows, columns, 1).run(kernel, {-0.5, 1});
      for (int k = 0; k < lanes; ++k) EXPECT_EQ(with_nan.nan[k], k == lanes - 1);
    }
  }
}

TEST(HostKernels, AlignmentsAreWithinTheirBound) {
  for (const HostKernels* kernels : kernels_of_machine()) {
    SCOPED_TRACE(kernels->name);
    const int floats = kernels->register_bytes / 4, doubles = kernels->register_bytes / 8;
    expect_linear<impl::Linear<float>, float>(kernels->linear_float, floats);
    expect_linear<impl::Linear<double, float>, float>(kernels->linear_mixed, doubles);
    expect_linear<impl::Linear<double>, float>(kernels->linear_double_of_float, doubles);
    expect_linear<impl::Linear<double>, double>(kernels->linear_double, doubles);
    expect_max(kernels->max_float, floats);
    expect_max(kernels->max_double_of_float, doubles);
    expect_max(kernels->max_double, doubles);
  }
}

/// What a lane lost is seen in this lane and in no other: scores beyond the range of a factor, NaN, sums beyond that of the
/// numbers.
template <class Score>
void expect_watched(impl::HostAlignment<Score> kernel, int lanes, double limit) {
  const std::int64_t rows = 6, columns = 19, cells = rows * columns;
  for (int bad = 0; bad < lanes; ++bad) {
    for (const std::int64_t place : {std::int64_t{0}, cells / 2, cells - 1}) {
      for (const double score : {-limit - 1, limit + 1, -inf, inf, nan, limit - 3}) {
        std::vector<std::vector<double>> problems(lanes, std::vector<double>(cells, 0.25));
        problems[bad][place] = score;
        const auto found = Batch<Score>(problems, rows, columns, 1).run(kernel, {0.25, 1});
        const double size = std::abs(score);
        for (int k = 0; k < lanes; ++k) {
          const bool is_bad = k == bad;
          EXPECT_EQ(found.largest_within[k], is_bad && size < limit ? size : 0.25) << score;
          EXPECT_EQ(found.smallest_beyond[k], is_bad && size >= limit ? size : inf) << score;
          // Not a number unless the score is low, or small enough.
          EXPECT_EQ(std::isnan(found.best[k]), is_bad && !(score < limit)) << score;
        }
      }
    }
  }
}

TEST(HostKernels, EveryLaneIsWatchedAlone) {
  for (const HostKernels* kernels : kernels_of_machine()) {
    SCOPED_TRACE(kernels->name);
    const int floats = kernels->register_bytes / 4, doubles = kernels->register_bytes / 8;
    expect_watched(kernels->linear_float, floats, 126);
    expect_watched(kernels->linear_mixed, doubles, 126);
    expect_watched(kernels->linear_double_of_float, doubles, 1022);
    expect_watched(kernels->linear_double, doubles, 1022);
  }
}

}  // namespace
}  // namespace bellman
