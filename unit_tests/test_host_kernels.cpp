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

/// A small model of weights, and chains through it.
template <class Real>
class Chains {
 public:
  static constexpr int states = impl::chain_states;
  static constexpr int symbols = 5;

  Chains() : trans_(normal_values(states * states, 31)), emit_(normal_values((symbols + 1) * states, 32)) {
    for (double& weight : trans_) weight = static_cast<Real>(std::exp(weight) / states);
    for (double& weight : emit_) weight = static_cast<Real>(std::exp(weight) / symbols);
  }
  double& trans(int from, int to) { return trans_[from * states + to]; }
  double& emit(int symbol, int state) { return emit_[symbol * states + state]; }

  /// The symbols of chain \p c.
  static std::vector<std::int32_t> rows(int c, int steps) {
    std::vector<std::int32_t> rows(steps);
    for (int k = 0; k < steps; ++k) rows[k] = (5 * k + c) % (symbols + 1);
    return rows;
  }
  /// What chain \p c starts from.
  static Real start(int c, int state) { return static_cast<Real>(1 + (state * 7 + c) % 5) / 64; }

  /// Runs chains 0 .. count-1 through a kernel, in two calls.
  std::vector<impl::HostChain<Real>> run(impl::HostAdvance<Real> advance, int count, int steps) const {
    const std::vector<Real> trans(trans_.begin(), trans_.end()), emit(emit_.begin(), emit_.end());
    std::vector<std::uint32_t> into(states);
    for (int k = 0; k < states * states; ++k) into[k % states] |= trans[k] != 0 ? 1u << k / states : 0u;
    impl::HostChainModel<Real> model{trans.data(), emit.data(), into.data(), {}, lowest() * 0x1p34f, lowest()};
    std::vector<impl::HostChain<Real>> chains(count);
    std::vector<impl::HostChain<Real>*> pointers;
    std::vector<std::vector<std::int32_t>> all_rows;
    std::vector<const std::int32_t*> first, second;
    const int half = steps / 2;
    for (int c = 0; c < count; ++c) {
      for (int j = 0; j < states; ++j) chains[c].value[j] = start(c, j);
      chains[c].exponent = 0;
      chains[c].kept = true;
      all_rows.push_back(rows(c, steps));
    }
    for (int c = 0; c < count; ++c) {
      pointers.push_back(&chains[c]);
      first.push_back(all_rows[c].data());
      second.push_back(all_rows[c].data() + half);
    }
    advance(model, pointers.data(), first.data(), count, 1, half);
    advance(model, pointers.data(), second.data(), count, 1 + half, steps - half);
    return chains;
  }

  /// The logarithms of the last vector of chain \p c, in long double.
  std::vector<double> expected(int c, int steps) const {
    std::vector<long double> now(states), next(states);
    for (int j = 0; j < states; ++j) now[j] = start(c, j);
    for (const std::int32_t row : rows(c, steps)) {
      for (int j = 0; j < states; ++j) {
        next[j] = 0;
        for (int i = 0; i < states; ++i) next[j] += now[i] * trans_[i * states + j];
        next[j] *= emit_[row * states + j];
      }
      now = next;
    }
    std::vector<double> logs(states);
    for (int j = 0; j < states; ++j) logs[j] = static_cast<double>(std::log(now[j]));
    return logs;
  }

  static Real lowest() { return std::numeric_limits<Real>::min(); }

 private:
  std::vector<double> trans_;
  std::vector<double> emit_;
};

template <class Real>
void expect_chains(impl::HostAdvance<Real> advance, int most) {
  Chains<Real> model;
  const int steps = 301;
  const auto together = model.run(advance, most, steps);
  for (int count = 1; count <= most; ++count) {
    const auto some = model.run(advance, count, steps);
    for (int c = 0; c < count; ++c) {
      const auto expected = model.expected(c, steps);
      EXPECT_TRUE(some[c].kept);
      EXPECT_EQ(some[c].exponent, together[c].exponent);
      for (int j = 0; j < model.states; ++j) {
        EXPECT_EQ(some[c].value[j], together[c].value[j]) << "chain " << c << " of " << count << ", state " << j;
        const double got = std::log(static_cast<double>(some[c].value[j])) + some[c].exponent * std::log(2.0);
        EXPECT_NEAR(got, expected[j], steps * 14 * impl::roundoff<Real>());
      }
    }
  }
  // Entries that are 0 because nothing leads there, or nothing is emitted there, are kept; those that underflowed are not.
  for (int j = 0; j < model.states; ++j) {
    Chains<Real> zeros;
    for (int i = 0; i < model.states; ++i) zeros.trans(i, j) = 0;
    zeros.emit(3, (j + 1) % model.states) = 0;
    for (const auto& chain : zeros.run(advance, most, steps)) {
      EXPECT_TRUE(chain.kept);
      EXPECT_EQ(chain.value[j], 0);
    }
    Chains<Real> small_sum, small_value;
    for (int i = 0; i < model.states; ++i) small_sum.trans(i, j) = Chains<Real>::lowest();
    small_value.emit(2, j) = Chains<Real>::lowest();
    for (const auto& chain : small_sum.run(advance, most, steps)) EXPECT_FALSE(chain.kept) << j;
    for (const auto& chain : small_value.run(advance, most, steps)) EXPECT_FALSE(chain.kept) << j;
  }
}

TEST(HostKernels, ChainsAreWithinTheirBound) {
  for (const HostKernels* kernels : kernels_of_machine()) {
    SCOPED_TRACE(kernels->name);
    expect_chains<float>(kernels->advance_floats, kernels->floats_together);
    expect_chains<double>(kernels->advance_doubles, kernels->doubles_together);
  }
}

template <class Symbol>
void expect_rows(const HostKernels& kernels) {
  const Symbol largest = std::numeric_limits<Symbol>::max();
  const Symbol smallest = std::numeric_limits<Symbol>::min();  // 0 if unsigned
  for (const std::int64_t stride : {1, 3}) {
    for (const int count : {1, 7, 64, 129}) {
      std::vector<Symbol> symbols(count * stride, largest);
      for (int k = 0; k < count; ++k) symbols[k * stride] = static_cast<Symbol>(k % 20);
      if (smallest < 0) symbols[count / 2 * stride] = smallest;
      std::vector<std::int32_t> rows(count);
      const auto find = [&] {
        return kernels.emission_rows(symbols.data(), impl::integer_type<Symbol>(), stride, count, 20, rows.data());
      };
      EXPECT_FALSE(find());
      for (int k = 0; k < count; ++k) EXPECT_EQ(rows[k], smallest < 0 && k == count / 2 ? 20 : k % 20);
      for (const Symbol bad : {Symbol{20}, largest}) {
        symbols[(count - 1) * stride] = bad;
        EXPECT_TRUE(find());
        EXPECT_EQ(rows[count - 1], 20);
      }
    }
  }
}

TEST(HostKernels, EmissionRowsOfEveryIntegerType) {
  for (const HostKernels* kernels : kernels_of_machine()) {
    SCOPED_TRACE(kernels->name);
    expect_rows<std::int8_t>(*kernels);
    expect_rows<std::int16_t>(*kernels);
    expect_rows<std::int32_t>(*kernels);
    expect_rows<std::int64_t>(*kernels);
    expect_rows<std::uint8_t>(*kernels);
    expect_rows<std::uint16_t>(*kernels);
    expect_rows<std::uint32_t>(*kernels);
    expect_rows<std::uint64_t>(*kernels);
  }
}

/// Every kind of join at every length, by mask and without: exact, nothing of a cell that is not valid, nothing behind the last.
template <class Real>
void expect_joins(const impl::HostJoins<Real>& joins) {
  for (int count = 0; count < 70; ++count) {
    std::vector<Real> values(count + 1, static_cast<Real>(nan));
    std::vector<std::uint8_t> mask(count + 1, 1);
    std::vector<double> columns(count + 1, 0.5);
    for (int k = 0; k < count; ++k) {
      values[k] = static_cast<Real>(k % 7 == 6 ? nan : k % 11 == 5 ? -inf : k % 13 == 12 ? inf : (k * 37 % 19) - 9);
      mask[k] = static_cast<std::uint8_t>(k % 3 == 0 ? 0 : k % 3 == 1 ? 1 : 200);
      columns[k] = (k * 29 % 23) - 11;
    }
    const auto expect_join = [&](impl::HostJoin<Real> join, const auto& joined) {
      for (const bool masks : {false, true}) {
        auto got = columns;
        join(got.data(), values.data(), masks ? mask.data() : nullptr, count);
        for (int k = 0; k <= count; ++k) {
          const bool is_valid = k < count && (!masks || mask[k] != 0);
          const double expected = is_valid ? joined(columns[k], static_cast<double>(values[k])) : columns[k];
          EXPECT_TRUE(near(got[k], expected, 0)) << k << " of " << count;
        }
      }
    };
    const auto either = [](bool takes_second, double a, double b) {
      return std::isnan(a) || std::isnan(b) ? nan : takes_second ? b : a;
    };
    expect_join(joins.sum, [](double a, double b) { return a + b; });
    expect_join(joins.min, [&](double a, double b) { return either(b < a, a, b); });
    expect_join(joins.max, [&](double a, double b) { return either(b > a, a, b); });
    expect_join(joins.count, [](double a, double) { return a + 1; });
  }
}

TEST(HostKernels, JoinsAreExact) {
  for (const HostKernels* kernels : kernels_of_machine()) {
    SCOPED_TRACE(kernels->name);
    expect_joins(kernels->joins_of_floats);
    expect_joins(kernels->joins_of_doubles);
  }
}

}  // namespace
}  // namespace bellman
