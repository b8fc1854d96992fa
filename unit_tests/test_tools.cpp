// SPDX-License-Identifier: Apache-2.0
// What a call does to the machine, as Kokkos' tools interface sees it: after a warm-up no fence and no allocation, only
// labels of the library, and the instance that it was given.
#include <gtest/gtest.h>

#include <bellman/bellman.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "support/configurations.hpp"
#include "support/random.hpp"
#include "support/tool_events.hpp"

namespace bellman {
namespace {

using namespace support;

template <class Config>
class Tools : public testing::Test {};
TYPED_TEST_SUITE(Tools, ContiguousConfigurations);

/// Calls once to warm up, once recorded.
template <class Space, class Call>
void expect_quiet(const Call& call, const std::string& function) {
  for (const auto& exec : instances<Space>()) {
    call(exec);
    exec.fence();
    const ToolEvents events;
    call(exec);
    EXPECT_EQ(events.fences(), std::vector<std::string>{}) << function;
    EXPECT_EQ(events.allocations(), std::vector<std::string>{}) << function;
    EXPECT_EQ(events.regions(), std::vector<std::string>{function});
    EXPECT_FALSE(events.kernels().empty());
    for (const auto& kernel : events.kernels()) EXPECT_TRUE(kernel.starts_with(function + "::")) << kernel;
    const std::uint32_t wanted = Kokkos::Tools::Experimental::device_id(exec);
    for (const std::uint32_t device : events.devices()) EXPECT_EQ(device, wanted);
  }
}

TYPED_TEST(Tools, CallsOnlyEnqueue) {
  using Space = typename TypeParam::Space;
  using Real = typename TypeParam::Real;
  typename TypeParam::template Array<Real, 3> small({4, 32, 32}, normal_values(4 * 32 * 32, 61));
  typename TypeParam::template Array<Real, 3> large({1, 200, 6000}, normal_values(200 * 6000, 62));
  typename TypeParam::template Array<Real, 1> score({4}), one_score({1});
  expect_quiet<Space>([&](const Space& exec) { smith_waterman_score(exec, small.view(), score.view()); },
                      "bellman::smith_waterman_score");
  expect_quiet<Space>([&](const Space& exec) { smith_waterman_score(exec, large.view(), one_score.view()); },
                      "bellman::smith_waterman_score");
  const Kokkos::View<std::byte*, typename Space::memory_space> shared(
      "shared", smith_waterman_score_workspace_size<Real>(Space(), 1, 200, 6000));
  expect_quiet<Space>(
      [&](const Space& exec) { smith_waterman_score(exec, large.view(), one_score.view(), {}, {}, shared); },
      "bellman::smith_waterman_score");

  for (const std::size_t states : {16, 200}) {
    typename TypeParam::template Array<Real, 1> init({states}, normal_values(states, 63));
    typename TypeParam::template Array<Real, 2> trans({states, states}, normal_values(states * states, 64));
    typename TypeParam::template Array<Real, 2> emit({states, 9}, normal_values(states * 9, 65));
    typename TypeParam::template Array<int, 2> symbols({4, 10}, uniform_integers(40, 66, 0, 8));
    const Kokkos::View<std::byte*, typename Space::memory_space> workspace(
        "workspace", hmm_log_likelihood_workspace_size<Real>(Space(), states, 9, 10));
    expect_quiet<Space>(
        [&](const Space& exec) {
          hmm_log_likelihood(exec, HmmModel{init.view(), trans.view(), emit.view()}, HmmObservations{symbols.view()},
                             score.view(), {}, {}, workspace);
        },
        "bellman::hmm_log_likelihood");
  }

  const std::size_t shapes[][2] = {{4, 20}, {1000, 2}};
  for (const auto& shape : shapes) {
    typename TypeParam::template Array<Real, 2> values({shape[0], shape[1]}, normal_values(shape[0] * shape[1], 67));
    typename TypeParam::template Array<int, 1> lengths({shape[0]}, uniform_integers(shape[0], 68, 0, shape[1]));
    typename TypeParam::template Array<Real, 1> out({shape[1]});
    expect_quiet<Space>([&](const Space& exec) { masked_reduce(exec, values.view(), lengths.view(), out.view()); },
                        "bellman::masked_reduce");
  }
}

}  // namespace
}  // namespace bellman
