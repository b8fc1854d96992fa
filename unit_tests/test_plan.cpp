// SPDX-License-Identifier: Apache-2.0
// Plans are pure functions of sizes, options and backend, so the plans of a GPU are tested on any machine.
#include <gtest/gtest.h>

#include <bellman/bellman.hpp>
#include <limits>
#include <sstream>

namespace bellman {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr Backend warps{32, 1024, 36 * 1024};
constexpr Backend host{1, 1, 32 * 1024};

TEST(AlignmentPlan, RungsFollowTypeAndTemperature) {
  const auto rungs = [](bool is_double, std::size_t size, double gap, double temperature) {
    const AlignmentPlan plan = impl::plan_smith_waterman(warps, is_double, size, size, {gap, temperature});
    return std::pair(plan.first, plan.last);
  };
  EXPECT_EQ(rungs(false, 32, -1, 1), std::pair(Rung::linear_float, Rung::log_double));
  EXPECT_EQ(rungs(true, 32, -1, 1), std::pair(Rung::linear_double, Rung::log_double));
  EXPECT_EQ(rungs(false, 32, -inf, 1), std::pair(Rung::linear_float, Rung::log_double));
  EXPECT_EQ(rungs(false, 32, -1, 0), std::pair(Rung::max_float, Rung::max_float));
  EXPECT_EQ(rungs(true, 32, -1, 0), std::pair(Rung::max_double, Rung::max_double));
  // Too many roundings for the bound in float.
  EXPECT_EQ(rungs(false, 200, -1, 0), std::pair(Rung::max_double, Rung::max_double));
  // Temperatures whose inverse float or double cannot scale with.
  EXPECT_EQ(rungs(false, 32, -1, 1e-40), std::pair(Rung::log_double, Rung::log_double));
  EXPECT_EQ(rungs(true, 32, -1, 1e-320), std::pair(Rung::log_double, Rung::log_double));
  // A gap that float cannot hold as e^(g/t), but double can.
  EXPECT_EQ(rungs(false, 32, 200, 1), std::pair(Rung::linear_double, Rung::log_double));
}

TEST(AlignmentPlan, ScratchHoldsTheRowBetweenStrips) {
  const AlignmentPlan small = impl::plan_smith_waterman(warps, false, 32, 5000, {});
  EXPECT_EQ(small.scratch_bytes, 0u);
  EXPECT_EQ(small.rows_per_lane, 1);
  const AlignmentPlan wide = impl::plan_smith_waterman(warps, false, 129, 5000, {});
  EXPECT_EQ(wide.rows_per_lane, 4);
  EXPECT_EQ(wide.scratch_bytes, 5000 * sizeof(double));
  EXPECT_EQ(wide.scratch_level, ScratchLevel::large);
  EXPECT_EQ(impl::plan_smith_waterman(warps, false, 129, 100, {}).scratch_level, ScratchLevel::fast);
  EXPECT_EQ(impl::plan_smith_waterman(host, false, 5, 100, {}).scratch_bytes, 100 * sizeof(double));
}

TEST(HmmPlan, SmallModelsNeedNoWorkspace) {
  const HmmPlan small = impl::plan_hmm_log_likelihood(warps, false, 16, 64, 128);
  EXPECT_TRUE(small.model_in_scratch);
  EXPECT_EQ(small.first, Rung::linear_float);
  EXPECT_EQ(small.workspace_bytes, 0u);
  EXPECT_EQ(small.team_threads, 32);
  EXPECT_LE(small.scratch_bytes, warps.fast_scratch_bytes);
  const HmmPlan large = impl::plan_hmm_log_likelihood(warps, false, 500, 100, 128);
  EXPECT_FALSE(large.model_in_scratch);
  EXPECT_EQ(large.first, Rung::linear_double);
  EXPECT_GE(large.workspace_bytes, (500u + 500u * 500u + 500u * 100u + 1001u) * sizeof(double));
  EXPECT_EQ(large.team_threads, 256);
  EXPECT_EQ(impl::plan_hmm_log_likelihood(host, false, 500, 100, 128).team_threads, 1);
}

TEST(MaskedReducePlan, TeamsWhereColumnsAreFew) {
  EXPECT_FALSE(impl::plan_masked_reduce(warps, 4, 20).team_per_column);
  EXPECT_TRUE(impl::plan_masked_reduce(warps, 100000, 20).team_per_column);
  EXPECT_FALSE(impl::plan_masked_reduce(warps, 8, 1 << 24).team_per_column);
  EXPECT_FALSE(impl::plan_masked_reduce(host, 100000, 20).team_per_column);
}

TEST(Plans, CanBeAskedForAndPrinted) {
  const Kokkos::DefaultExecutionSpace exec;
  std::ostringstream text;
  text << smith_waterman_plan<float>(exec, 32, 32) << "\n"
       << hmm_log_likelihood_plan<double>(exec, 16, 64, 128) << "\n"
       << masked_reduce_plan(exec, 4, 20);
  EXPECT_NE(text.str().find("Linear<float> up to LogSumExp, a team of"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("Linear<double> up to LogSumExp, a team of"), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("a thread per column"), std::string::npos) << text.str();
}

TEST(Names, AreTheEnumerators) {
  std::ostringstream text;
  for (const Status status :
       {Status::ok, Status::empty, Status::impossible, Status::not_a_number, Status::bad_symbol, Status::bad_length}) {
    text << status << ' ';
  }
  text << Reduction::sum << ' ' << Reduction::count;
  EXPECT_EQ(text.str(), "ok empty impossible not_a_number bad_symbol bad_length sum count");
  EXPECT_EQ(BELLMAN_VERSION, BELLMAN_VERSION_MAJOR * 10000 + BELLMAN_VERSION_MINOR * 100 + BELLMAN_VERSION_PATCH);
}

}  // namespace
}  // namespace bellman
