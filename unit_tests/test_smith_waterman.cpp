// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bellman/accuracy.hpp>
#include <bellman/alignment.hpp>
#include <bellman/impl/lanes.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "reference/reference.hpp"
#include "support/configurations.hpp"
#include "support/near.hpp"
#include "support/random.hpp"

namespace bellman {
namespace {

using namespace support;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

struct Scored {
  std::vector<double> score;
  std::vector<Status> status;
};

/// Scores a batch on every instance of the space, with and without statuses, all of which have to agree bitwise.
template <class Config>
Scored score(const std::vector<double>& scores, std::size_t batch, std::size_t rows, std::size_t columns,
             const SmithWatermanOptions& options) {
  using Real = typename Config::Real;
  typename Config::template Array<Real, 3> input({batch, rows, columns}, scores);
  Scored result;
  for (const auto& exec : instances<typename Config::Space>()) {
    typename Config::template Array<Real, 1> output({batch}), output_alone({batch});
    typename Config::template Array<Status, 1> statuses({batch});
    smith_waterman_score(exec, input.view(), output.view(), options, statuses.view());
    smith_waterman_score(exec, input.view(), output_alone.view(), options);
    exec.fence();
    const auto values = output.values();
    const Scored now{{values.begin(), values.end()}, statuses.values()};
    EXPECT_TRUE(output.padding_is_untouched());
    EXPECT_TRUE(statuses.padding_is_untouched());
    const auto alone = output_alone.values();
    for (std::size_t b = 0; b < batch; ++b) {
      EXPECT_TRUE(near(static_cast<double>(alone[b]), now.score[b], 0));
      if (!result.score.empty()) {
        EXPECT_TRUE(near(now.score[b], result.score[b], 0)) << "instances differ";
        EXPECT_EQ(now.status[b], result.status[b]);
      }
    }
    result = now;
  }
  return result;
}

/// Scores a batch and compares it with the reference on the same rounded input, within the documented bound.
template <class Config>
void expect_reference(const std::vector<double>& scores, std::size_t batch, std::size_t rows, std::size_t columns,
                      const SmithWatermanOptions& options) {
  using Real = typename Config::Real;
  const auto got = score<Config>(scores, batch, rows, columns, options);
  const auto expected =
      reference::smith_waterman_scores(rounded<Real>(scores), batch, rows, columns, options.gap, options.temperature);
  for (std::size_t b = 0; b < batch; ++b) {
    EXPECT_TRUE(near(got.score[b], expected[b], score_error_bound<Real>(expected[b], options.temperature)))
        << "problem " << b << " of " << batch << " x " << rows << " x " << columns << ", gap " << options.gap << ", t "
        << options.temperature;
    EXPECT_EQ(got.status[b], Status::ok);
  }
}

template <class Config>
class SmithWaterman : public testing::Test {};
TYPED_TEST_SUITE(SmithWaterman, AllConfigurations);

/// Sizes around a lane group (32) and a strip of four rows a lane (128), in both directions.
TYPED_TEST(SmithWaterman, EqualsReferenceForEverySize) {
  for (const std::size_t rows : {1, 2, 31, 32, 33, 65, 127, 128, 129, 260}) {
    for (const std::size_t columns : {1, 3, 31, 32, 33, 65}) {
      const std::size_t batch = 3;
      const auto scores = normal_values(batch * rows * columns, rows * 1000 + columns);
      expect_reference<TypeParam>(scores, batch, rows, columns, {-1, 1});
      expect_reference<TypeParam>(scores, batch, rows, columns, {-1, 0});
    }
  }
}

TYPED_TEST(SmithWaterman, EqualsReferenceForEveryTemperature) {
  const auto scores = normal_values(4 * 40 * 50, 11, 2);
  for (const double temperature : {0.0, 1e-40, 1e-30, 1e-10, 1e-3, 0.01, 0.1, 0.5, 1.0, 3.0, 100.0, 1e3}) {
    for (const double gap : {-inf, -1e4, -11.0, -1.0, -0.01, 0.0}) {
      expect_reference<TypeParam>(scores, 4, 40, 50, {gap, temperature});
    }
  }
}

TYPED_TEST(SmithWaterman, EqualsReferenceForPositiveGap) {
  const auto scores = normal_values(2 * 20 * 30, 12);
  for (const double temperature : {0.0, 1.0}) expect_reference<TypeParam>(scores, 2, 20, 30, {0.5, temperature});
}

TYPED_TEST(SmithWaterman, ManyProblems) {
  const auto scores = normal_values(1000 * 9 * 7, 13);
  expect_reference<TypeParam>(scores, 1000, 9, 7, {-0.5, 0.7});
}

TYPED_TEST(SmithWaterman, NothingToDo) {
  EXPECT_TRUE(score<TypeParam>({}, 0, 5, 5, {}).score.empty());
  const std::size_t shapes[][2] = {{0, 5}, {5, 0}, {0, 0}};
  for (const auto& shape : shapes) {
    for (const double temperature : {0.0, 1.0}) {
      const auto got = score<TypeParam>({}, 3, shape[0], shape[1], {-1, temperature});
      for (std::size_t b = 0; b < 3; ++b) {
        EXPECT_EQ(got.score[b], 0);
        EXPECT_EQ(got.status[b], Status::empty);
      }
    }
  }
}

TYPED_TEST(SmithWaterman, ForbiddenCellsAreExact) {
  for (const double temperature : {0.0, 0.1, 1.0}) {
    // Everything forbidden.
    const auto all = score<TypeParam>(std::vector<double>(2 * 6, -inf), 2, 2, 3, {-inf, temperature});
    EXPECT_EQ(all.score[0], 0);
    EXPECT_EQ(all.status[0], Status::ok);
    // Some cells, and gaps as well.
    auto scores = normal_values(3 * 34 * 36, 14);
    for (std::size_t k = 0; k < scores.size(); k += 3) scores[k] = -inf;
    expect_reference<TypeParam>(scores, 3, 34, 36, {-1, temperature});
    expect_reference<TypeParam>(scores, 3, 34, 36, {-inf, temperature});
  }
}

TYPED_TEST(SmithWaterman, NanStaysInItsProblem) {
  const std::size_t batch = 5, rows = 37, columns = 33, cells = rows * columns;
  const auto clean = normal_values(batch * cells, 15);
  for (const double temperature : {0.0, 1.0, 1e-40}) {
    const SmithWatermanOptions options{-1, temperature};
    const auto without = score<TypeParam>(clean, batch, rows, columns, options);
    for (const std::size_t place : {std::size_t{0}, cells / 2, cells - 1}) {
      auto scores = clean;
      scores[2 * cells + place] = nan;
      const auto got = score<TypeParam>(scores, batch, rows, columns, options);
      for (std::size_t b = 0; b < batch; ++b) {
        if (b == 2) {
          EXPECT_TRUE(std::isnan(got.score[b])) << got.score[b];
          EXPECT_EQ(got.status[b], Status::not_a_number);
        } else {
          EXPECT_EQ(got.score[b], without.score[b]);
          EXPECT_EQ(got.status[b], Status::ok);
        }
      }
    }
  }
}

TYPED_TEST(SmithWaterman, InfiniteScoreWins) {
  for (const double temperature : {0.0, 1.0}) {
    for (const double gap : {-1.0, -inf}) {
      const auto got = score<TypeParam>({1, inf, -inf, 2}, 1, 2, 2, {gap, temperature});
      EXPECT_EQ(got.score[0], inf);
      EXPECT_EQ(got.status[0], Status::ok);
    }
  }
}

/// Bitwise the same alone, at another place, and beside other problems.
TYPED_TEST(SmithWaterman, DependsOnItsOwnProblemAlone) {
  const std::size_t rows = 45, columns = 39, cells = rows * columns;
  const auto scores = normal_values(6 * cells, 16, 3);
  const std::vector<double> third(scores.begin() + 2 * cells, scores.begin() + 3 * cells);
  for (const double temperature : {0.0, 0.05, 1.0}) {
    const auto together = score<TypeParam>(scores, 6, rows, columns, {-1, temperature});
    const auto alone = score<TypeParam>(third, 1, rows, columns, {-1, temperature});
    EXPECT_EQ(together.score[2], alone.score[0]);
  }
}

/// Problems of one batch that stay on the first rung, climb to each of the others, or have no number for a result: each as it
/// would be alone, bitwise, whoever its neighbours are.
TYPED_TEST(SmithWaterman, ClimbsAlone) {
  using Real = typename TypeParam::Real;
  const std::size_t batch = 37, rows = 21, columns = 18, cells = rows * columns;
  const double scales[] = {1, 1, 60, 1, 1e4, 1, 1, 900, 0.1, 1, 40};
  auto scores = normal_values(batch * cells, 22);
  for (std::size_t k = 0; k < scores.size(); ++k) scores[k] *= scales[k / cells % std::size(scales)];
  for (const std::size_t b : {5, 20}) scores[b * cells + 100] = nan;
  for (const std::size_t b : {6, 24}) scores[b * cells + 200] = -inf;
  const auto together = score<TypeParam>(scores, batch, rows, columns, {-1, 1});
  const auto expected = reference::smith_waterman_scores(rounded<Real>(scores), batch, rows, columns, -1, 1);
  for (std::size_t b = 0; b < batch; ++b) {
    EXPECT_TRUE(near(together.score[b], expected[b], score_error_bound<Real>(expected[b], 1))) << b;
    if (b % 3 != 0) continue;
    const std::vector<double> own(scores.begin() + b * cells, scores.begin() + (b + 1) * cells);
    const auto alone = score<TypeParam>(own, 1, rows, columns, {-1, 1});
    EXPECT_TRUE(near(together.score[b], alone.score[0], 0)) << b;
    EXPECT_EQ(together.status[b], alone.status[0]) << b;
  }
}

/// Bitwise the same whether rows are aligned or not, and so whichever sweep the plan chooses; also where some problems of
/// a batch climb the ladder and others do not.
TYPED_TEST(SmithWaterman, DoesNotDependOnTheSweep) {
  using Real = typename TypeParam::Real;
  using Space = typename TypeParam::Space;
  using Memory = typename Space::memory_space;
  const std::size_t batch = 21;
  for (const std::size_t rows : {5, 32, 40, 130, 257}) {
    for (const std::size_t columns : {4, 32, 100}) {
      auto values = normal_values(batch * rows * columns, 100 * rows + columns, 1.5);
      for (std::size_t k = 0; k < rows * columns; ++k) values[3 * rows * columns + k] *= 90;
      for (std::size_t k = 0; k < values.size(); k += 7) values[k] = -inf;
      const std::size_t wide = columns + 1;
      const Kokkos::View<Real***, Kokkos::LayoutRight, Kokkos::HostSpace> dense("dense", batch, rows, columns);
      const Kokkos::View<Real***, Kokkos::LayoutRight, Kokkos::HostSpace> padded("padded", batch, rows, wide);
      for (std::size_t k = 0; k < values.size(); ++k) {
        dense.data()[k] = static_cast<Real>(values[k]);
        padded.data()[k / columns * wide + k % columns] = static_cast<Real>(values[k]);
      }
      const auto dense_there = Kokkos::create_mirror_view_and_copy(Memory(), dense);
      const auto padded_there = Kokkos::create_mirror_view_and_copy(Memory(), padded);
      const auto columns_there =
          Kokkos::subview(padded_there, Kokkos::ALL, Kokkos::ALL, std::make_pair(std::size_t{0}, columns));
      typename TypeParam::template Array<Real, 1> from_dense({batch}), from_padded({batch});
      const Space exec;
      smith_waterman_score(exec, dense_there, from_dense.view());
      smith_waterman_score(exec, columns_there, from_padded.view());
      exec.fence();
      const auto a = from_dense.values(), b = from_padded.values();
      const auto expected = reference::smith_waterman_scores(rounded<Real>(values), batch, rows, columns, -1, 1);
      for (std::size_t p = 0; p < batch; ++p) {
        EXPECT_EQ(a[p], b[p]) << "problem " << p << " of " << rows << " x " << columns;
        EXPECT_TRUE(near(static_cast<double>(a[p]), expected[p], score_error_bound<Real>(expected[p], 1)));
      }
    }
  }
}

/// Bitwise the same among few and among many, and so whichever sweep the plan chooses for that; also where some problems
/// climb the ladder.
TYPED_TEST(SmithWaterman, DoesNotDependOnTheSizeOfTheBatch) {
  using Real = typename TypeParam::Real;
  using Space = typename TypeParam::Space;
  using View = Kokkos::View<Real***, Kokkos::LayoutRight, typename Space::memory_space>;
  const std::size_t few = 6;
  for (const std::size_t rows : {5, 32, 70, 130, 600}) {
    for (const std::size_t columns : {4, 36, 100}) {
      const std::size_t many = rows <= 32 || columns == 4 ? 1501 : 23, cells = rows * columns;
      auto values = normal_values(few * cells, 200 * rows + columns, 1.5);
      for (std::size_t k = 0; k < cells; ++k) values[3 * cells + k] *= 90;
      for (std::size_t k = 0; k < values.size(); k += 7) values[k] = -inf;
      const Kokkos::View<Real***, Kokkos::LayoutRight, Kokkos::HostSpace> host("scores", many, rows, columns);
      for (std::size_t k = 0; k < many * cells; ++k) host.data()[k] = static_cast<Real>(values[k % values.size()]);
      const View scores("scores", many, rows, columns);
      Kokkos::deep_copy(scores, host);
      const auto first_few = Kokkos::subview(scores, std::make_pair(std::size_t{0}, few), Kokkos::ALL, Kokkos::ALL);
      typename TypeParam::template Array<Real, 1> among_few({few}), among_many({many});
      const Space exec;
      smith_waterman_score(exec, first_few, among_few.view());
      smith_waterman_score(exec, scores, among_many.view());
      exec.fence();
      const auto a = among_few.values(), b = among_many.values();
      const auto expected = reference::smith_waterman_scores(rounded<Real>(values), few, rows, columns, -1, 1);
      for (std::size_t p = 0; p < many; ++p) {
        ASSERT_EQ(a[p % few], b[p]) << "problem " << p << " of " << rows << " x " << columns;
      }
      for (std::size_t p = 0; p < few; ++p) {
        EXPECT_TRUE(near(static_cast<double>(a[p]), expected[p], score_error_bound<Real>(expected[p], 1)));
      }
    }
  }
}

/// Reference case S, and the hand-worked values around it.
TYPED_TEST(SmithWaterman, HandWorkedCases) {
  using Real = typename TypeParam::Real;
  struct Row {
    std::vector<double> scores;
    std::size_t rows, columns;
    double gap, temperature, expected;
  };
  const std::vector<double> s{1, -1, .5, -.5, 2, -1};
  for (const Row& row : std::vector<Row>{{s, 2, 3, -1, 0, 3},
                                         {s, 2, 3, -1, .1, 3.000004540302143},
                                         {s, 2, 3, -1, 1, 3.59680882686024},
                                         {s, 2, 3, -1, 10, 34.10928664425798},
                                         {{2}, 1, 1, -1, 1, 2.2109976232},
                                         {{2}, 1, 1, -1, .1, 2.0000000002},
                                         {{2}, 1, 1, -1, 1e-3, 2},
                                         {{2}, 1, 1, -1, 1e-40, 2},
                                         {{2}, 1, 1, -1, 0, 2},
                                         {{-5}, 1, 1, -1, 0, 0}}) {
    const auto got = score<TypeParam>(row.scores, 1, row.rows, row.columns, {row.gap, row.temperature});
    EXPECT_TRUE(near(got.score[0], row.expected, score_error_bound<Real>(row.expected, row.temperature) + 1e-10));
  }
}

template <class Config>
class SmithWatermanContiguous : public testing::Test {};
TYPED_TEST_SUITE(SmithWatermanContiguous, ContiguousConfigurations);

/// Inputs beyond the range of the linear algebras. Each has to climb the ladder, and to keep the promised error.
TYPED_TEST(SmithWatermanContiguous, HostileInputs) {
  const std::size_t n = 64;
  const auto diagonal = [&](double on, double off) {
    std::vector<double> scores(n * n, off);
    for (std::size_t i = 0; i < n; ++i) scores[i * n + i] = on;
    return scores;
  };
  // H/t of 1e3, 1e4, 1e6.
  for (const double on : {10.0, 150.0, 2e4}) expect_reference<TypeParam>(diagonal(on, -1), 1, n, n, {-1, 1});
  // A gap of -95 t and -800 t on the best path between two blocks.
  for (const double gap : {-95.0, -800.0}) {
    std::vector<double> scores(n * n, -inf);
    for (std::size_t i = 0; i < n / 2; ++i) scores[i * n + i] = scores[(n / 2 + i) * n + n / 2 + i - 1] = 40;
    expect_reference<TypeParam>(scores, 1, n, n, {gap, 1});
  }
  // One finite score of -95 t and -800 t on the best path, and masks of -1e4 beside it that must not matter.
  for (const double low : {-95.0, -800.0}) {
    auto scores = diagonal(30, -inf);
    scores[(n / 2) * n + n / 2] = low;
    for (std::size_t i = 0; i + 1 < n; ++i) scores[i * n + i + 1] = -1e4;
    expect_reference<TypeParam>(scores, 1, n, n, {-inf, 1});
  }
  // Sums that stay small along very long paths, where rounding could add up.
  const std::size_t length = 3000;
  std::vector<double> sawtooth(length, -inf);
  for (std::size_t i = 0; i < length; ++i) sawtooth[i] = i % 2 == 0 ? 79.9 : -79.9;
  std::vector<double> along(300 * 300, -inf);
  for (std::size_t i = 0; i < 300; ++i) along[i * 300 + i] = i % 2 == 0 ? 79.9 : -79.9;
  expect_reference<TypeParam>(along, 1, 300, 300, {-inf, 1});
  for (std::size_t i = 0; i < 300; ++i) along[i * 300 + i] = i % 2 == 0 ? 80.3 : -79.9;
  expect_reference<TypeParam>(along, 1, 300, 300, {-inf, 0});
  // Values of very different size.
  expect_reference<TypeParam>(normal_values(40 * 40, 17, 1e30), 1, 40, 40, {-1e30, 1e28});
  expect_reference<TypeParam>(normal_values(40 * 40, 18, 1e-30), 1, 40, 40, {-1e-30, 1e-30});
}

/// Sums of very many paths, all of about the same weight: each step's rounding of the same gap weight adds up to more than
/// the bound in float, while every number stays small.
TYPED_TEST(SmithWatermanContiguous, RoundingAddsUpAlongGaps) {
  const double gap = -0.00012175;  // e^gap is nearly half-way between two float numbers
  expect_reference<TypeParam>(std::vector<double>(60000, -inf), 1, 1, 60000, {gap, 1});
  expect_reference<TypeParam>(std::vector<double>(60000, -inf), 1, 60000, 1, {gap, 1});
}

/// Longer than any lane group, and long enough for every kind of scratch.
TYPED_TEST(SmithWatermanContiguous, LargeSizes) {
  const std::size_t shapes[][2] = {{1, 5000},   {5000, 1},    {300, 5000}, {1000, 1000},
                                   {5000, 130}, {1025, 1025}, {2, 4097}};
  for (const auto& shape : shapes) {
    const auto scores = normal_values(shape[0] * shape[1], 19);
    expect_reference<TypeParam>(scores, 1, shape[0], shape[1], {-1, 1});
    expect_reference<TypeParam>(scores, 1, shape[0], shape[1], {-1, 0});
  }
}

/// Problems that lie more than 2^31 elements apart. The memory between them is never touched.
TYPED_TEST(SmithWatermanContiguous, OffsetsBeyond32Bits) {
  using Real = typename TypeParam::Real;
  using Space = typename TypeParam::Space;
  using Memory = typename Space::memory_space;
  const std::size_t rows = 3, columns = 4, cells = rows * columns, distance = (std::size_t{1} << 31) + 8;
  const Kokkos::View<Real*, Memory> memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, "memory"), distance + cells);
  const auto values = normal_values(2 * cells, 21);
  for (std::size_t b = 0; b < 2; ++b) {
    const Kokkos::View<Real*, Kokkos::HostSpace> host("host", cells);
    for (std::size_t k = 0; k < cells; ++k) host(k) = static_cast<Real>(values[b * cells + k]);
    Kokkos::deep_copy(Kokkos::subview(memory, std::make_pair(b * distance, b * distance + cells)), host);
  }
  const Kokkos::View<Real***, Kokkos::LayoutStride, Memory> scores(
      memory.data(), Kokkos::LayoutStride(2, distance, rows, columns, columns, 1));
  typename TypeParam::template Array<Real, 1> output({2});
  smith_waterman_score(Space(), scores, output.view());
  const auto got = output.values();
  const auto expected = reference::smith_waterman_scores(rounded<Real>(values), 2, rows, columns, -1, 1);
  for (std::size_t b = 0; b < 2; ++b) {
    EXPECT_TRUE(near(static_cast<double>(got[b]), expected[b], score_error_bound<Real>(expected[b], 1)));
  }
}

/// The proof in docs/accuracy.md counts on 2^-51.
TEST(BranchFreeExp2, IsWithinItsBound) {
  for (double x = -1021.99; x < 1021.99; x += 0.00971) {
    const double exact = std::exp2(x);
    ASSERT_NEAR(impl::branch_free_exp2(x) / exact, 1, 0x1p-51) << x;
  }
  for (const double x : {0.0, 1.0, -1.0, 1021.0, -1021.0}) EXPECT_EQ(impl::branch_free_exp2(x), std::exp2(x));
  for (const double x : {-1022.0, -1e9, -inf}) EXPECT_EQ(impl::branch_free_exp2(x), 0);
  for (const double x : {1022.0, 1e9, inf, nan, -nan}) EXPECT_TRUE(std::isnan(impl::branch_free_exp2(x))) << x;
}

template <class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TYPED_TEST(SmithWaterman, RefusesWhatDoesNotFit) {
  using Real = typename TypeParam::Real;
  using Array = typename TypeParam::template Array<Real, 1>;
  const typename TypeParam::Space exec;
  typename TypeParam::template Array<Real, 3> scores({4, 2, 3}, normal_values(24, 20));
  Array output({3}), right({4});
  typename TypeParam::template Array<Status, 1> statuses({5});

  EXPECT_THROW(smith_waterman_score(exec, scores.view(), output.view()), ShapeError);
  EXPECT_EQ(message_of([&] { smith_waterman_score(exec, scores.view(), output.view()); }),
            "bellman::smith_waterman_score: view \"score\" has extent(0) = 3, expected 4 (B = scores.extent(0))");
  EXPECT_EQ(message_of([&] { smith_waterman_score(exec, scores.view(), right.view(), {}, statuses.view()); }),
            "bellman::smith_waterman_score: view \"statuses\" has extent(0) = 5, expected 4 (B = scores.extent(0))");
  for (const double temperature : {-1.0, nan, inf}) {
    EXPECT_THROW(smith_waterman_score(exec, scores.view(), right.view(), {-1, temperature}), OptionError);
  }
  for (const double gap : {nan, inf}) {
    EXPECT_THROW(smith_waterman_score(exec, scores.view(), right.view(), {gap, 1}), OptionError);
  }
  EXPECT_EQ(message_of([&] {
              smith_waterman_score(exec, scores.view(), right.view(), {-1, -2});
            }),
            "bellman::smith_waterman_score: option \"temperature\" is -2, expected a finite number >= 0");
  const Kokkos::View<Real*, Kokkos::LayoutStride, typename TypeParam::Space::memory_space> inside(
      scores.view().data() + 1, Kokkos::LayoutStride(4, 1));
  EXPECT_EQ(
      message_of([&] { smith_waterman_score(exec, scores.view(), inside); }),
      "bellman::smith_waterman_score: output view \"score\" shares memory with view \"scores\"; give it memory of its "
      "own");
  // Nothing was launched: the outputs are as they were.
  for (const Real value : right.values()) EXPECT_TRUE(std::isnan(value));
  for (const Real value : output.values()) EXPECT_TRUE(std::isnan(value));
}

/// A workspace of any content.
template <class Real, class Space>
Kokkos::View<std::byte*, typename Space::memory_space> full_workspace(const Space& exec, std::size_t batch,
                                                                      std::size_t rows, std::size_t columns,
                                                                      const SmithWatermanOptions& options) {
  const std::size_t bytes = smith_waterman_score_workspace_size<Real>(exec, batch, rows, columns, options);
  const Kokkos::View<std::byte*, typename Space::memory_space> workspace("workspace", bytes);
  Kokkos::deep_copy(workspace, std::byte{0xa5});
  return workspace;
}

/// Problems that certify on the first rung, on the second and on the last, and one with a NaN.
std::vector<double> mixed_problems(std::size_t batch, std::size_t cells, int seed) {
  auto scores = normal_values(batch * cells, seed, 1.5);
  for (std::size_t k = 0; k < scores.size(); k += 7) scores[k] = -inf;
  const double scales[] = {1, 90, 1, 1e4, 1};
  for (std::size_t k = 0; k < scores.size(); ++k) scores[k] *= scales[k / cells % std::size(scales)];
  for (std::size_t b = 4; b < batch; b += 5) scores[b * cells + cells / 3] = nan;
  return scores;
}

/// Bitwise the same with a workspace, whatever it holds, and again on the one just used; also where problems climb the
/// ladder. Sizes around lane groups, strips, blocks and stages of the sweep that takes a workspace on GPUs.
TYPED_TEST(SmithWaterman, AWorkspaceDoesNotShow) {
  using Real = typename TypeParam::Real;
  struct Shape {
    std::size_t batch, rows, columns;
  };
  for (const auto& [batch, rows, columns] :
       {Shape{6, 65, 257}, Shape{7, 129, 1263}, Shape{5, 192, 1264}, Shape{6, 256, 800}, Shape{3, 193, 700},
        Shape{5, 500, 1001}, Shape{1, 1100, 256}, Shape{90, 130, 1260}}) {
    typename TypeParam::template Array<Real, 3> scores({batch, rows, columns},
                                                       mixed_problems(batch, rows * columns, 300 + rows));
    for (const double temperature : {1.0, 0.0, 1e-40}) {
      if (temperature == 1e-40 && rows != 129) continue;  // LogSumExp alone: slow
      const SmithWatermanOptions options{-1, temperature};
      // Without one the calls are the same.
      const typename TypeParam::Space space;
      const bool wants_one = smith_waterman_score_workspace_size<Real>(space, batch, rows, columns, options) > 0;
      if (!wants_one && rows > 65) continue;
      for (const auto& exec : instances<typename TypeParam::Space>()) {
        typename TypeParam::template Array<Real, 1> without({batch}), with({batch});
        typename TypeParam::template Array<Status, 1> statuses({batch}), statuses_with({batch});
        const auto workspace = full_workspace<Real>(exec, batch, rows, columns, options);
        smith_waterman_score(exec, scores.view(), without.view(), options, statuses.view());
        exec.fence();
        const auto expected = without.values();
        for (int call = 0; call < 3; ++call) {
          Kokkos::deep_copy(exec, with.view(), Real(-5));
          smith_waterman_score(exec, scores.view(), with.view(), options, statuses_with.view(), workspace);
          exec.fence();
          const auto got = with.values();
          for (std::size_t b = 0; b < batch; ++b) {
            ASSERT_TRUE(near(static_cast<double>(got[b]), static_cast<double>(expected[b]), 0))
                << "problem " << b << " of " << batch << " x " << rows << " x " << columns << ", t " << temperature;
          }
          EXPECT_EQ(statuses_with.values(), statuses.values());
        }
      }
    }
  }
}

/// Two instances at once, each with a workspace of its own, many calls deep.
TYPED_TEST(SmithWatermanContiguous, WorkspacesOfTwoInstances) {
  using Space = typename TypeParam::Space;
  using Real = typename TypeParam::Real;
  const std::size_t batch = 5, rows = 700, columns = 600;
  const auto parts = Kokkos::Experimental::partition_space(Space(), 1, 1);
  typename TypeParam::template Array<Real, 3> first({batch, rows, columns}, mixed_problems(batch, rows * columns, 41));
  typename TypeParam::template Array<Real, 3> second({batch, rows, columns}, mixed_problems(batch, rows * columns, 42));
  typename TypeParam::template Array<Real, 1> want_first({batch}), want_second({batch}), got_first({batch}),
      got_second({batch});
  smith_waterman_score(Space(), first.view(), want_first.view());
  smith_waterman_score(Space(), second.view(), want_second.view());
  Kokkos::fence();
  const auto workspace_of_first = full_workspace<Real>(parts[0], batch, rows, columns, {});
  const auto workspace_of_second = full_workspace<Real>(parts[1], batch, rows, columns, {});
  const int calls = workspace_of_first.extent(0) > 0 ? 20 : 1;
  for (int call = 0; call < calls; ++call) {
    smith_waterman_score(parts[0], first.view(), got_first.view(), {}, {}, workspace_of_first);
    smith_waterman_score(parts[1], second.view(), got_second.view(), {}, {}, workspace_of_second);
  }
  Kokkos::fence();
  const auto want_1 = want_first.values(), want_2 = want_second.values();
  const auto got_1 = got_first.values(), got_2 = got_second.values();
  for (std::size_t b = 0; b < batch; ++b) {
    EXPECT_TRUE(near(static_cast<double>(got_1[b]), static_cast<double>(want_1[b]), 0)) << b;
    EXPECT_TRUE(near(static_cast<double>(got_2[b]), static_cast<double>(want_2[b]), 0)) << b;
  }
}

/// Long and thin, and more blocks than teams run at a time.
TYPED_TEST(SmithWatermanContiguous, LargeSizesWithAWorkspace) {
  using Space = typename TypeParam::Space;
  using Real = typename TypeParam::Real;
  struct Shape {
    std::size_t batch, rows, columns;
  };
  if (smith_waterman_score_workspace_size<Real>(Space(), 1, 3000, 3000) == 0) GTEST_SKIP() << "no use on this backend";
  for (const auto& [batch, rows, columns] :
       {Shape{1, 70, 60000}, Shape{1, 40000, 256}, Shape{2, 3001, 3002}, Shape{200, 300, 1270}}) {
    typename TypeParam::template Array<Real, 3> scores({batch, rows, columns},
                                                       normal_values(batch * rows * columns, 43));
    typename TypeParam::template Array<Real, 1> without({batch}), with({batch});
    const Space exec;
    smith_waterman_score(exec, scores.view(), without.view());
    smith_waterman_score(exec, scores.view(), with.view(), {}, {},
                         full_workspace<Real>(exec, batch, rows, columns, {}));
    exec.fence();
    EXPECT_EQ(with.values(), without.values()) << batch << " x " << rows << " x " << columns;
  }
}

TYPED_TEST(SmithWatermanContiguous, AWorkspaceThatIsTooSmallIsRefused) {
  using Space = typename TypeParam::Space;
  using Real = typename TypeParam::Real;
  const Space exec;
  const std::size_t batch = 2, rows = 300, columns = 400;
  typename TypeParam::template Array<Real, 3> scores({batch, rows, columns});
  typename TypeParam::template Array<Real, 1> score({batch});
  const std::size_t bytes = smith_waterman_score_workspace_size<Real>(exec, batch, rows, columns);
  if (bytes == 0) GTEST_SKIP() << "this backend needs none";
  const Kokkos::View<std::byte*, typename Space::memory_space> small("small", bytes - 1), right("right", bytes);
  EXPECT_THROW(smith_waterman_score(exec, scores.view(), score.view(), {}, {}, small), ShapeError);
  const Kokkos::View<Real*, typename Space::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> inside(
      reinterpret_cast<Real*>(right.data()), batch);
  EXPECT_THROW(smith_waterman_score(exec, scores.view(), inside, {}, {}, right), AliasError);
}

/// One weight beyond the range of float where the sums are in double: an infinity or NaN among the weights must not hide.
TYPED_TEST(SmithWatermanContiguous, WeightsBeyondTheRangeDoNotHide) {
  const std::size_t columns = 100;
  for (const std::size_t rows : {100, 130, 600}) {
    auto scores = normal_values(rows * columns, 31);
    double& one = scores[40 * columns + 70];
    one = 200;
    expect_reference<TypeParam>(scores, 1, rows, columns, {-1, 1});
    one = inf;
    EXPECT_EQ(score<TypeParam>(scores, 1, rows, columns, {-1, 1}).score[0], inf);
    one = nan;
    const auto got = score<TypeParam>(scores, 1, rows, columns, {-1, 1});
    EXPECT_TRUE(std::isnan(got.score[0])) << got.score[0];
    EXPECT_EQ(got.status[0], Status::not_a_number);
  }
}

}  // namespace
}  // namespace bellman
