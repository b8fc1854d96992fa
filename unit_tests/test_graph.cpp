// SPDX-License-Identifier: Apache-2.0
// Every operation within a Kokkos::Graph: captured once, replayed on inputs that have changed since. Kokkos captures calls on
// CUDA alone; elsewhere these tests are skipped.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <Kokkos_Graph.hpp>
#include <bellman/bellman.hpp>
#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "support/configurations.hpp"
#include "support/random.hpp"

namespace bellman {
namespace {

using namespace support;

template <class Config>
class Graph : public testing::Test {
 protected:
  using Space = typename Config::Space;
  using Real = typename Config::Real;
  template <class T, std::size_t rank>
  using Array = typename Config::template Array<T, rank>;
  using Bits = std::conditional_t<std::is_same_v<Real, float>, std::uint32_t, std::uint64_t>;

  /// Results as bits: a mean of nothing is NaN.
  static std::vector<Bits> bits(Array<Real, 1>& out) {
    std::vector<Bits> result;
    for (const Real value : out.values()) result.push_back(std::bit_cast<Bits>(value));
    return result;
  }

  void SetUp() override {
#ifdef KOKKOS_ENABLE_CUDA
    if constexpr (std::is_same_v<Space, Kokkos::Cuda>) return;
#endif
    GTEST_SKIP() << "Kokkos captures calls on CUDA alone";
  }

  /// Captures the call once, and expects of each replay the very bits of a call on the inputs of that time. changing holds
  /// the input that changes, from first to second and back.
  template <class Input, class Call>
  static void expect_replay(Input& changing, Input& first, Input& second, Array<Real, 1>& out, const Call& call,
                            const std::string& what) {
#ifdef KOKKOS_ENABLE_CUDA
    if constexpr (std::is_same_v<Space, Kokkos::Cuda>) {
      for (const auto& exec : instances<Space>()) {
        const auto called = [&](Input& values) {
          Kokkos::deep_copy(exec, changing.view(), values.view());
          call(exec);
          exec.fence();
          return bits(out);
        };
        const auto of_first = called(first);
        const auto of_second = called(second);
        ASSERT_NE(of_first, of_second) << what << ": a replay that does nothing would not show";

        // Both nodes are the same call: the second must wait for the first, as it would on the instance.
        // Without an instance, which Kokkos 4.6 and 5.2 take in different forms: the nodes and submit() name theirs.
        auto graph = Kokkos::Experimental::create_graph<Space>(
            [&](const auto& root) { root.cuda_capture(exec, call).cuda_capture(exec, call); });
        graph.instantiate();
        for (auto* values : {&first, &second, &first}) {
          Kokkos::deep_copy(exec, changing.view(), values->view());
          Kokkos::deep_copy(exec, out.view(), Real(-1));
          graph.submit(exec);
          exec.fence();
          EXPECT_EQ(bits(out), values == &second ? of_second : of_first) << what;
        }
      }
    }
#endif
    (void)changing, (void)first, (void)second, (void)out, (void)call, (void)what;
  }
};
TYPED_TEST_SUITE(Graph, ContiguousConfigurations);

TYPED_TEST(Graph, SmithWaterman) {
  using Space = typename TypeParam::Space;
  using Real = typename TypeParam::Real;
  struct Shape {
    std::size_t batch, rows, columns;
    double temperature;
  };
  // Small and large problems, soft and hard: every way in which alignments are launched.
  for (const auto& [batch, rows, columns, temperature] :
       {Shape{16, 32, 32, 1.0}, Shape{3, 200, 300, 1.0}, Shape{2, 33, 9000, 1.0}, Shape{5, 40, 41, 0.0}}) {
    const std::size_t size = batch * rows * columns;
    typename TypeParam::template Array<Real, 3> scores({batch, rows, columns});
    typename TypeParam::template Array<Real, 3> first({batch, rows, columns}, normal_values(size, 71));
    typename TypeParam::template Array<Real, 3> second({batch, rows, columns}, normal_values(size, 72));
    typename TypeParam::template Array<Real, 1> score({batch});
    const SmithWatermanOptions options{.gap = -1.0, .temperature = temperature};
    const std::string what = "smith_waterman_score " + std::to_string(rows) + "x" + std::to_string(columns);
    TestFixture::expect_replay(
        scores, first, second, score,
        [&, options](const Space& exec) { smith_waterman_score(exec, scores.view(), score.view(), options); }, what);
    const std::size_t bytes = smith_waterman_score_workspace_size<Real>(Space(), batch, rows, columns, options);
    if (bytes == 0) continue;
    const Kokkos::View<std::byte*, typename Space::memory_space> workspace("workspace", bytes);
    TestFixture::expect_replay(
        scores, first, second, score,
        [&, options](const Space& exec) {
          smith_waterman_score(exec, scores.view(), score.view(), options, {}, workspace);
        },
        what + " with a workspace");
  }
}

TYPED_TEST(Graph, Hmm) {
  using Space = typename TypeParam::Space;
  using Real = typename TypeParam::Real;
  struct Shape {
    std::size_t batch, states, steps;
  };
  for (const auto& [batch, states, steps] :
       {Shape{8, 16, 50}, Shape{20000, 4, 5}, Shape{1, 16, 5000}, Shape{4, 40, 20}, Shape{4, 200, 20}}) {
    typename TypeParam::template Array<Real, 1> init({states}, normal_values(states, 73));
    typename TypeParam::template Array<Real, 2> trans({states, states}, normal_values(states * states, 74));
    typename TypeParam::template Array<Real, 2> emit({states, 9}, normal_values(states * 9, 75));
    typename TypeParam::template Array<int, 2> symbols({batch, steps}, uniform_integers(batch * steps, 76, 0, 8));
    typename TypeParam::template Array<Real, 2> first({states, states}, normal_values(states * states, 77));
    typename TypeParam::template Array<Real, 2> second({states, states}, normal_values(states * states, 78));
    typename TypeParam::template Array<Real, 1> out({batch});
    const Kokkos::View<std::byte*, typename Space::memory_space> workspace(
        "workspace", hmm_log_likelihood_workspace_size<Real>(Space(), states, 9, steps));
    TestFixture::expect_replay(
        trans, first, second, out,
        [&](const Space& exec) {
          hmm_log_likelihood(exec, HmmModel{init.view(), trans.view(), emit.view()}, HmmObservations{symbols.view()},
                             out.view(), {}, {}, workspace);
        },
        "hmm_log_likelihood of " + std::to_string(batch) + " sequences, " + std::to_string(states) + " states");
  }
}

TYPED_TEST(Graph, MaskedReduce) {
  using Space = typename TypeParam::Space;
  using Real = typename TypeParam::Real;
  const std::size_t shapes[][2] = {{4, 20}, {1000, 2}, {8, 5000}};
  for (const auto& [ranks, columns] : shapes) {
    typename TypeParam::template Array<Real, 2> values({ranks, columns});
    typename TypeParam::template Array<Real, 2> first({ranks, columns}, normal_values(ranks * columns, 79));
    typename TypeParam::template Array<Real, 2> second({ranks, columns}, normal_values(ranks * columns, 80));
    typename TypeParam::template Array<int, 1> lengths({ranks}, uniform_integers(ranks, 81, 1, columns));
    std::vector<std::int64_t> bits = uniform_integers(ranks * columns, 82, 0, 1);
    typename TypeParam::template Array<std::uint8_t, 2> mask({ranks, columns}, bits);
    typename TypeParam::template Array<Real, 1> out({columns});
    for (const auto reduction : {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max}) {
      const MaskedReduceOptions options{.reduction = reduction};
      const std::string what = "masked_reduce " + std::to_string(ranks) + "x" + std::to_string(columns);
      TestFixture::expect_replay(
          values, first, second, out,
          [&, options](const Space& exec) { masked_reduce(exec, values.view(), lengths.view(), out.view(), options); },
          what + " by lengths");
      TestFixture::expect_replay(
          values, first, second, out,
          [&, options](const Space& exec) { masked_reduce(exec, values.view(), mask.view(), out.view(), options); },
          what + " by mask");
    }
    typename TypeParam::template Array<int, 1> other_lengths({ranks}, uniform_integers(ranks, 83, 1, columns));
    typename TypeParam::template Array<int, 1> changing_lengths({ranks});
    TestFixture::expect_replay(
        changing_lengths, lengths, other_lengths, out,
        [&](const Space& exec) {
          masked_reduce(exec, first.view(), changing_lengths.view(), out.view(), {Reduction::count});
        },
        "masked_reduce that counts");
  }
}

}  // namespace
}  // namespace bellman
