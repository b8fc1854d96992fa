// SPDX-License-Identifier: Apache-2.0
// The case files of data/golden on every space, in float and double. Their inputs are float values written with nine
// digits, so they are rounded to float before use.
#include <gtest/gtest.h>

#include <algorithm>
#include <bellman/bellman.hpp>
#include <cstddef>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "support/case_file.hpp"
#include "support/configurations.hpp"
#include "support/near.hpp"

namespace bellman {
namespace {

using namespace support;

std::vector<std::string> golden_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(BELLMAN_TEST_DATA_DIR "/golden")) {
    const auto name = entry.path().filename().string();
    if (name.ends_with(".yaml") && name[0] >= '0' && name[0] <= '9') files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

template <class Config>
struct Runner {
  using Space = typename Config::Space;
  using Real = typename Config::Real;
  template <class T, std::size_t rank>
  using Array = typename Config::template Array<T, rank>;
  const std::string& name;

  template <class Bound>
  void expect(Array<Real, 1>& output, const std::vector<double>& expected, const Bound& bound) const {
    const auto got = output.values();
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t k = 0; k < got.size(); ++k) {
      EXPECT_TRUE(near(static_cast<double>(got[k]), expected[k], bound(expected[k]))) << name << ", result " << k;
    }
  }

  void operator()(const SmithWatermanCase& problem) const {
    Array<Real, 3> scores({problem.batch, problem.rows, problem.columns}, rounded<float>(problem.scores));
    Array<Real, 1> output({problem.batch});
    smith_waterman_score(Space(), scores.view(), output.view(), {problem.gap, problem.temperature});
    ASSERT_TRUE(problem.expected.score.has_value());
    expect(output, *problem.expected.score,
           [&](double value) { return score_error_bound<Real>(value, problem.temperature); });
  }

  void operator()(const HmmCase& problem) const {
    const std::size_t states = problem.model.states;
    Array<Real, 1> init({states}, rounded<float>(problem.model.log_init)), output({problem.batch});
    Array<Real, 2> trans({states, states}, rounded<float>(problem.model.log_trans));
    Array<Real, 2> emit({states, problem.model.symbols}, rounded<float>(problem.model.log_emit));
    Array<std::int64_t, 2> symbols({problem.batch, problem.length}, problem.observations);
    const Space exec;
    const Kokkos::View<std::byte*, typename Space::memory_space> workspace(
        "workspace", hmm_log_likelihood_workspace_size<Real>(exec, states, problem.model.symbols, problem.length));
    hmm_log_likelihood(exec, HmmModel{init.view(), trans.view(), emit.view()}, HmmObservations{symbols.view()},
                       output.view(), {problem.normalised}, {}, workspace);
    ASSERT_TRUE(problem.expected.log_likelihood.has_value());
    expect(output, *problem.expected.log_likelihood, log_likelihood_error_bound<Real>);
  }

  void operator()(const MaskedReduceCase& problem) const {
    Array<Real, 2> values({problem.ranks, problem.columns}, rounded<float>(problem.values));
    Array<Real, 1> output({problem.columns});
    ASSERT_TRUE(problem.lengths.has_value());
    Array<std::int64_t, 1> lengths({problem.ranks}, *problem.lengths);
    masked_reduce(Space(), values.view(), lengths.view(), output.view());
    ASSERT_TRUE(problem.expected.has_value());
    // No column sums to more than 20 in absolute values.
    expect(output, *problem.expected,
           [&](double value) { return masked_sum_error_bound<Real>(value, 20, problem.ranks); });
  }
};

template <class Config>
class Golden : public testing::Test {};
TYPED_TEST_SUITE(Golden, ContiguousConfigurations);

TYPED_TEST(Golden, EveryFile) {
  const auto files = golden_files();
  EXPECT_EQ(files.size(), 15u);
  for (const auto& file : files) {
    for (const auto& golden : read_case_file(file)) std::visit(Runner<TypeParam>{golden.name}, golden.problem);
  }
}

}  // namespace
}  // namespace bellman
