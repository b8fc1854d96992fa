// SPDX-License-Identifier: Apache-2.0
// Plans are pure functions of sizes, options and backend, so the plans of a GPU are tested on any machine.
#include <gtest/gtest.h>

#include <bellman/bellman.hpp>
#include <limits>
#include <sstream>

namespace bellman {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr Backend warps{32, 1024, 36 * 1024, 270336};
constexpr Backend host{1, 1, 32 * 1024, 2};
constexpr Backend host_with_registers{1, 1, 32 * 1024, 2, 64};

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
  // A long problem with scores of the size of t has sums beyond float: its weights are in float, its sums in double.
  EXPECT_EQ(rungs(false, 96, -1, 1), std::pair(Rung::linear_float, Rung::log_double));
  EXPECT_EQ(rungs(false, 97, -1, 1), std::pair(Rung::linear_mixed, Rung::log_double));
  EXPECT_EQ(rungs(true, 1024, -1, 1), std::pair(Rung::linear_double, Rung::log_double));
  // A gap that float cannot hold as e^(g/t), but double can.
  EXPECT_EQ(rungs(false, 32, 200, 1), std::pair(Rung::linear_double, Rung::log_double));
}

TEST(AlignmentPlan, ScratchHoldsTheRowBetweenStrips) {
  const AlignmentPlan small = impl::plan_smith_waterman(warps, false, 32, 5000, {}, false);
  EXPECT_EQ(small.scratch_bytes, 0u);
  EXPECT_EQ(small.rows_per_lane, 1);
  const AlignmentPlan wide = impl::plan_smith_waterman(warps, false, 129, 5000, {}, false);
  EXPECT_EQ(wide.rows_per_lane, 4);
  EXPECT_EQ(wide.scratch_bytes, 5000 * sizeof(double));
  EXPECT_EQ(wide.scratch_level, ScratchLevel::large);
  EXPECT_EQ(impl::plan_smith_waterman(warps, false, 129, 100, {}, false).scratch_level, ScratchLevel::fast);
  EXPECT_EQ(impl::plan_smith_waterman(host, false, 5, 100, {}).scratch_bytes, 100 * sizeof(double));
}

TEST(AlignmentPlan, TilesWhereRowsAreAlignedAndFit) {
  const auto plan = [](const Backend& backend, bool is_double, std::size_t rows, std::size_t columns,
                       bool is_aligned = true, double temperature = 1) {
    return impl::plan_smith_waterman(backend, is_double, rows, columns, {-1, temperature}, is_aligned);
  };
  const AlignmentPlan small = plan(warps, false, 32, 32);
  EXPECT_EQ(small.sweep, AlignmentSweep::tiles);
  EXPECT_EQ(small.lanes, impl::FewRows::lanes);
  const AlignmentPlan large = plan(warps, false, 97, 32);
  EXPECT_EQ(large.sweep, AlignmentSweep::tiles);
  EXPECT_EQ(large.lanes, impl::ManyRows::lanes);
  for (const bool is_double : {false, true}) {
    for (const std::size_t size : {1, 32, 256, 1024}) {
      const AlignmentPlan fits = plan(warps, is_double, size, size);
      EXPECT_EQ(fits.sweep, AlignmentSweep::tiles) << fits;
      EXPECT_EQ(fits.scratch_level, ScratchLevel::fast) << fits;
      EXPECT_LT(fits.scratch_bytes, 48u * 1024) << fits;
      EXPECT_GE(fits.most_teams, 1) << fits;
    }
    // Rows that are not aligned, the exact limit, hosts, and rows too long for the scratch.
    EXPECT_EQ(plan(warps, is_double, 32, 32, false).sweep, AlignmentSweep::strips);
    EXPECT_EQ(plan(warps, is_double, 32, 32, true, 0).sweep, AlignmentSweep::strips);
    EXPECT_EQ(plan(host, is_double, 32, 32).sweep, AlignmentSweep::strips);
    EXPECT_EQ(plan(warps, is_double, 256, 5000).sweep, AlignmentSweep::strips);
    EXPECT_EQ(plan(warps, is_double, 0, 32).sweep, AlignmentSweep::strips);
    EXPECT_EQ(plan(warps, is_double, 32, 0).sweep, AlignmentSweep::strips);
  }
  // Few small problems.
  const auto few = [](std::int64_t problems, std::size_t rows, bool is_double = false) {
    return impl::plan_smith_waterman(warps, is_double, rows, 32, {-1, 1}, true, problems).sweep;
  };
  EXPECT_EQ(few(16, 32), AlignmentSweep::staged);
  EXPECT_EQ(few(16, 32, true), AlignmentSweep::staged);
  EXPECT_EQ(few(16, 33), AlignmentSweep::tiles);
  EXPECT_EQ(few(100000, 32), AlignmentSweep::tiles);
  // The rungs, and so the bits of a result, do not depend on the sweep.
  EXPECT_EQ(plan(warps, false, 256, 256).first, plan(warps, false, 256, 256, false).first);
  EXPECT_EQ(plan(warps, false, 256, 256).first, plan(host, false, 256, 256).first);
}

TEST(AlignmentPlan, FewLargeProblemsAreSharedByTeams) {
  const auto plan = [](const Backend& backend, bool is_double, std::size_t rows, std::size_t columns,
                       std::int64_t problems, bool has_workspace = true, bool is_aligned = true,
                       double temperature = 1) {
    return impl::plan_smith_waterman(backend, is_double, rows, columns, {-1, temperature}, is_aligned, problems,
                                     has_workspace);
  };
  for (const bool is_double : {false, true}) {
    for (const double temperature : {0.0, 1.0, 1e-40}) {
      const AlignmentPlan few = plan(warps, is_double, 1024, 1024, 16, true, true, temperature);
      EXPECT_EQ(few.sweep, AlignmentSweep::pipeline) << few;
      EXPECT_LT(few.scratch_bytes, 48u * 1024 - 256) << few;
      EXPECT_GE(few.workspace_bytes, 16u * 7 * 1024 * sizeof(double)) << few;
      // The workspace does not depend on the layout, nor the rungs on the workspace.
      EXPECT_EQ(plan(warps, is_double, 1024, 1024, 16, true, false, temperature).workspace_bytes, few.workspace_bytes);
      EXPECT_EQ(plan(warps, is_double, 1024, 1024, 16, false, true, temperature).first, few.first);
    }
    EXPECT_EQ(plan(warps, is_double, 10000, 10000, 1).sweep, AlignmentSweep::pipeline);
    EXPECT_EQ(plan(warps, is_double, 500, 100000, 2).sweep, AlignmentSweep::pipeline);
    // Without a workspace, small or many problems, and hosts.
    for (const AlignmentPlan& other :
         {plan(warps, is_double, 1024, 1024, 16, false), plan(warps, is_double, 32, 32, 16),
          plan(warps, is_double, 256, 256, 4096), plan(warps, is_double, 1024, 1024, 0),
          plan(warps, is_double, 0, 1024, 16), plan(host, is_double, 1024, 1024, 16),
          plan(host_with_registers, is_double, 1024, 1024, 16)}) {
      EXPECT_NE(other.sweep, AlignmentSweep::pipeline) << other;
      EXPECT_EQ(other.workspace_bytes, 0u) << other;
    }
  }
}

TEST(AlignmentPlan, ProblemsSideBySideOnHosts) {
  const auto plan = [](bool is_double, std::size_t rows, std::size_t columns, double temperature = 1) {
    return impl::plan_smith_waterman(host_with_registers, is_double, rows, columns, {-1, temperature});
  };
  for (const bool is_double : {false, true}) {
    for (const double temperature : {0.0, 1.0}) {
      for (const std::size_t size : {1, 32, 1000}) {
        const AlignmentPlan packs = plan(is_double, size, size, temperature);
        EXPECT_EQ(packs.sweep, AlignmentSweep::packs) << packs;
        EXPECT_GE(packs.scratch_bytes, 64 * size + 63) << packs;
        EXPECT_EQ(packs.problems_per_thread,
                  packs.first == Rung::linear_float || packs.first == Rung::max_float ? 16 : 8);
      }
    }
    EXPECT_EQ(plan(is_double, 32, 32).scratch_level, ScratchLevel::fast);
    EXPECT_EQ(plan(is_double, 32, 32).first, impl::plan_smith_waterman(host, is_double, 32, 32, {}).first);
    // Nothing but LogSumExp, and rows that no cache holds.
    EXPECT_EQ(plan(is_double, 32, 32, 1e-320).sweep, AlignmentSweep::strips);
    EXPECT_EQ(plan(is_double, 32, 10000000).sweep, AlignmentSweep::strips);
  }
}

TEST(HmmPlan, SmallModelsNeedNoWorkspace) {
  const HmmPlan few = impl::plan_hmm_log_likelihood(warps, false, 64, 16, 64, 128);
  EXPECT_EQ(few.sweep, HmmSweep::lanes);
  EXPECT_EQ(few.league_size, 64);
  const HmmPlan many = impl::plan_hmm_log_likelihood(warps, false, 65536, 16, 64, 128);
  EXPECT_EQ(many.sweep, HmmSweep::matrices);
  EXPECT_EQ(many.league_size, 132);
  EXPECT_EQ(many.team_threads, 8);
  const HmmPlan on_host = impl::plan_hmm_log_likelihood(host_with_registers, true, 64, 3, 4, 128);
  EXPECT_EQ(on_host.sweep, HmmSweep::packs);
  EXPECT_EQ(on_host.league_size, 2);
  EXPECT_EQ(on_host.team_threads, 1);
  for (const HmmPlan& plan : {few, many, on_host}) {
    EXPECT_TRUE(plan.model_in_scratch);
    EXPECT_EQ(plan.workspace_bytes, 0u);
    EXPECT_EQ(plan.scratch_level, ScratchLevel::fast);
  }
  EXPECT_EQ(few.first, Rung::linear_float);
  EXPECT_EQ(on_host.first, Rung::linear_double);
}

TEST(HmmPlan, StatesInRegistersOnHosts) {
  const auto plan = [](bool is_double, std::size_t batch, std::size_t states, std::size_t symbols) {
    return impl::plan_hmm_log_likelihood(host_with_registers, is_double, batch, states, symbols, 128);
  };
  for (const bool is_double : {false, true}) {
    const HmmPlan small = plan(is_double, 64, 16, 64);
    EXPECT_EQ(small.sweep, HmmSweep::packs);
    EXPECT_EQ(small.league_size, 2);
    EXPECT_EQ(small.team_threads, 1);
    EXPECT_EQ(small.workspace_bytes, 0u);
    EXPECT_EQ(small.first, is_double ? Rung::linear_double : Rung::linear_float);
    EXPECT_EQ(plan(is_double, 1, 3, 64).league_size, 1);
    // More symbols than Kokkos calls fast, and than a cache holds.
    EXPECT_EQ(plan(is_double, 64, 16, 1000).sweep, HmmSweep::packs);
    EXPECT_EQ(plan(is_double, 64, 16, 1000).scratch_level, ScratchLevel::large);
    EXPECT_EQ(plan(is_double, 64, 16, 100000).sweep, HmmSweep::chain);
    EXPECT_EQ(plan(is_double, 64, 17, 64).sweep, HmmSweep::chain);
  }
}

/// The cut rests on the number of steps alone: bits must not depend on the batch.
TEST(HmmPlan, LongSequencesAreCutOnGpus) {
  const HmmPlan one = impl::plan_hmm_log_likelihood(warps, false, 1, 16, 64, 65536);
  EXPECT_EQ(one.sweep, HmmSweep::blocks);
  EXPECT_EQ(one.scratch_level, ScratchLevel::fast);
  EXPECT_GT(one.workspace_bytes, 0u);
  const HmmPlan many = impl::plan_hmm_log_likelihood(warps, false, 10000, 16, 64, 65536);
  EXPECT_EQ(many.sweep, HmmSweep::blocks);
  EXPECT_EQ(many.workspace_bytes, one.workspace_bytes);
  EXPECT_EQ(impl::plan_hmm_log_likelihood(warps, false, 1, 16, 64, 65535).sweep, HmmSweep::lanes);
  EXPECT_EQ(impl::plan_hmm_log_likelihood(host_with_registers, false, 1, 16, 64, 65536).sweep, HmmSweep::packs);
  // The workspace does not grow for ever.
  EXPECT_LT(impl::plan_hmm_log_likelihood(warps, true, 1, 16, 64, 1000000000).workspace_bytes, 20000000u);
}

TEST(HmmPlan, LargeModelsAreSharedByATeam) {
  // Few states, but more symbols than fast scratch holds.
  EXPECT_EQ(impl::plan_hmm_log_likelihood(warps, false, 64, 16, 5000, 128).sweep, HmmSweep::chain);
  const HmmPlan middle = impl::plan_hmm_log_likelihood(host, false, 64, 17, 64, 128);
  EXPECT_EQ(middle.sweep, HmmSweep::chain);
  EXPECT_TRUE(middle.model_in_scratch);
  const HmmPlan large = impl::plan_hmm_log_likelihood(host, false, 64, 500, 100, 128);
  EXPECT_EQ(large.sweep, HmmSweep::chain);
  EXPECT_FALSE(large.model_in_scratch);
  EXPECT_EQ(large.first, Rung::linear_double);
  EXPECT_GE(large.workspace_bytes, (500u + 500u * 500u + 500u * 100u + 1001u) * sizeof(double));
  EXPECT_EQ(large.team_threads, 1);
}

TEST(HmmPlan, ManyStatesAreSweptByTiles) {
  for (const bool is_double : {false, true}) {
    for (const std::size_t states : {17, 33, 64, 65, 96, 100, 255, 256}) {
      if (!is_double && states <= 64) continue;
      const HmmPlan few = impl::plan_hmm_log_likelihood(warps, is_double, 8, states, 64, 128);
      const HmmPlan many = impl::plan_hmm_log_likelihood(warps, is_double, 65536, states, 64, 128);
      EXPECT_EQ(few.tiles.sequences, 1) << few;
      EXPECT_GE(many.tiles.sequences, 8) << many;
      for (const HmmPlan& plan : {few, many}) {
        EXPECT_EQ(plan.sweep, HmmSweep::tiles) << plan;
        EXPECT_EQ(plan.first, is_double ? Rung::linear_double : Rung::linear_float) << plan;
        EXPECT_LE(plan.tiles.scratch_bytes, warps.fast_scratch_bytes) << plan;
        EXPECT_GT(plan.tiles.team_threads, 0) << plan;
        EXPECT_LE(plan.tiles.team_threads, 256) << plan;
      }
      EXPECT_EQ(few.workspace_bytes, many.workspace_bytes);
    }
    const HmmPlan few = impl::plan_hmm_log_likelihood(warps, is_double, 8, 257, 64, 128);
    const HmmPlan many = impl::plan_hmm_log_likelihood(warps, is_double, 65536, 257, 64, 128);
    EXPECT_EQ(few.sweep, HmmSweep::steps) << few;
    EXPECT_EQ(few.workspace_bytes, many.workspace_bytes);
    EXPECT_EQ(few.tiles.sequences, many.tiles.sequences);
  }
}

TEST(HmmPlan, DozensOfStatesAreSweptByTensorProductsInFloat) {
  for (const std::size_t states : {17, 32, 33, 48, 64}) {
    std::size_t workspace = 0;
    for (const std::size_t batch : {1, 16, 17, 64, 2048, 5000, 40000, 65536, 1000001}) {
      const HmmPlan plan = impl::plan_hmm_log_likelihood(warps, false, batch, states, 64, 128);
      EXPECT_EQ(plan.sweep, HmmSweep::tensors) << plan;
      EXPECT_EQ(plan.first, Rung::linear_float) << plan;
      EXPECT_LE(plan.tiles.scratch_bytes, warps.fast_scratch_bytes) << plan;
      EXPECT_LE(plan.tiles.team_threads, 8) << plan;
      // No sequence is left out.
      EXPECT_EQ(plan.tiles.sequences, 16 * plan.tiles.team_threads) << plan;
      EXPECT_GE(plan.tiles.league_size * plan.tiles.sequences, static_cast<std::int64_t>(batch)) << plan;
      EXPECT_LT((plan.tiles.league_size - 1) * plan.tiles.sequences, static_cast<std::int64_t>(batch)) << plan;
      if (workspace == 0) workspace = plan.workspace_bytes;
      EXPECT_EQ(plan.workspace_bytes, workspace) << plan;
    }
  }
}

TEST(MaskedReducePlan, TeamsWhereColumnsAreFew) {
  EXPECT_FALSE(impl::plan_masked_reduce(warps, 4, 20).team_per_column);
  EXPECT_TRUE(impl::plan_masked_reduce(warps, 100000, 20).team_per_column);
  EXPECT_FALSE(impl::plan_masked_reduce(warps, 8, 1 << 24).team_per_column);
  EXPECT_FALSE(impl::plan_masked_reduce(host, 100000, 20).team_per_column);
}

TEST(MaskedReducePlan, PacksWhereColumnsAreMany) {
  EXPECT_FALSE(impl::plan_masked_reduce(warps, 4, 20).packs);
  EXPECT_FALSE(impl::plan_masked_reduce(warps, 100000, 4000).packs);
  EXPECT_TRUE(impl::plan_masked_reduce(warps, 8, 1 << 24).packs);
  EXPECT_TRUE(impl::plan_masked_reduce(host, 4, 20).packs);
}

TEST(MaskedReducePlan, BlocksOfColumnsOnHosts) {
  const auto plan = [](std::size_t ranks, std::size_t columns) {
    return impl::plan_masked_reduce(host_with_registers, ranks, columns);
  };
  EXPECT_EQ(plan(8, 1 << 24).block, impl::most_columns_together);
  EXPECT_EQ(plan(8, 1000).block, 448);  // two threads, whole cache lines
  EXPECT_TRUE(plan(8, 1 << 24).streams);
  EXPECT_FALSE(plan(8, 1000).streams);
  EXPECT_EQ(plan(100000, 20).block, 64);
  for (const std::size_t columns : {0, 1, 20, 5000}) {
    EXPECT_FALSE(plan(0, columns).streams);
    EXPECT_FALSE(plan(8, columns).packs);
    EXPECT_FALSE(plan(100000, columns).team_per_column);
  }
  EXPECT_EQ(impl::plan_masked_reduce(warps, 8, 1 << 24).block, 1);
}

TEST(Plans, CanBeAskedForAndPrinted) {
  const Kokkos::DefaultExecutionSpace exec;
  std::ostringstream text;
  text << smith_waterman_plan<float>(exec, 32, 32) << "\n"
       << hmm_log_likelihood_plan<double>(exec, 64, 16, 64, 128) << "\n"
       << masked_reduce_plan(exec, 4, 20);
  EXPECT_NE(text.str().find("Linear<float> up to LogSumExp, "), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("Linear<double> up to LogSumExp, a "), std::string::npos) << text.str();
  EXPECT_NE(text.str().find("a thread per "), std::string::npos) << text.str();
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
