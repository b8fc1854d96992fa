// SPDX-License-Identifier: Apache-2.0
#include <bellman/accuracy.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/alignment_recurrence.hpp>
#include <bellman/impl/host_kernels.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/smith_waterman.hpp>
#include <bellman/impl/staged_sweep.hpp>
#include <bellman/impl/strip_sweep.hpp>
#include <bellman/impl/tile_sweep.hpp>

#include "instantiations.hpp"
#include "launch.hpp"
#include "smith_waterman_ladder.hpp"
#include "smith_waterman_pipeline.hpp"

namespace bellman::impl {
namespace {

/// All lanes of a thread on one problem, in strips (strip_sweep.hpp), from a given rung up the ladder until one certifies.
/// The row between two strips lives in team scratch.
template <class ExecutionSpace, class Real, int rows_per_lane>
struct Climb {
  using Lanes = LaneGroup<ExecutionSpace>;

  StridedView<const Real***, ExecutionSpace> scores;
  Rungs<Real> rungs;

  KOKKOS_FUNCTION double from(Rung rung, std::int64_t problem, std::byte* row) const {
    while (true) {
      const Judgement judgement = on(rung, problem, row);
      if (judgement.certified) return judgement.score;
      rung = next(rung);
    }
  }
  /// Not inlined, and called on a copy, so that kernels whose first rung is elsewhere pay nothing for it.
  BELLMAN_NOINLINE KOKKOS_FUNCTION static double rarely_from(const Climb& climb, Rung rung, std::int64_t problem,
                                                             std::byte* row) {
    return climb.from(rung, problem, row);
  }

 private:
  KOKKOS_FUNCTION Judgement on(Rung rung, std::int64_t problem, std::byte* row) const {
    if constexpr (is_float<Real>) {
      if (rung == Rung::linear_float) return run(rungs.linear_float, problem, row);
      if (rung == Rung::linear_mixed) return run(rungs.linear_mixed, problem, row);
    }
    if (rung == Rung::linear_double) return run(rungs.linear_double, problem, row);
    if (rung == Rung::log_double) return run(rungs.log_double, problem, row);
    if (rung == Rung::max_float) return run(rungs.max_float, problem, row);
    return run(rungs.max_double, problem, row);
  }

  template <class Algebra>
  KOKKOS_FUNCTION Judgement run(const Algebra& algebra, std::int64_t problem, std::byte* row) const {
    using Recurrence = LocalLinearGap<Algebra>;
    const Recurrence recurrence{algebra};
    const std::int64_t rows = scores.extent(1);
    const std::int64_t columns = scores.extent(2);
    const auto score_of = [&](std::int64_t i, std::int64_t j) { return scores(problem, i, j); };
    const auto found = sweep_strips<Lanes, rows_per_lane>(recurrence, score_of, rows, columns,
                                                          reinterpret_cast<typename Recurrence::Cell*>(row));
    return algebra.judge(found.result, found.watch, rows + columns, score_tolerance<Real>);
  }
};

/// A team is one thread and owns one problem.
template <class ExecutionSpace, class Real, int rows_per_lane>
struct StripTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  Climb<ExecutionSpace, Real, rows_per_lane> climb;
  Outputs<ExecutionSpace, Real> outputs;
  Rung first_rung;
  ScratchLevel scratch_level;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t problem = first_problem + team.league_rank();
    const double result = climb.from(first_rung, problem, team_scratch(team, scratch_level, scratch_bytes));
    if (LaneGroup<ExecutionSpace>::rank() == 0) outputs.write(problem, result);
  }
};

/// What a problem that climbs needs between its strips of four rows a lane.
template <class Real>
KOKKOS_FUNCTION std::size_t climb_bytes(const AlignedScores<Real>& scores) {
  return scores.rows <= 4 * 32 ? 0 : static_cast<std::size_t>(scores.columns) * sizeof(double);
}

/// A team is one thread, whose lane groups own a problem each (tile_sweep.hpp). Teams stay, and take every league_size-th
/// batch of problems. The whole thread helps a problem up the ladder, behind the last batch: the call would cost the sweep its
/// registers.
template <class ExecutionSpace, class Real, class Algebra, class Shape>
struct TileTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Thread = LaneGroup<ExecutionSpace>;
  using Lanes = LaneGroup<ExecutionSpace, Shape::lanes>;
  using Order = TileOrder<Thread, Shape, Real>;
  using Ring = ScoreRing<Thread, Shape, Real>;
  using Recurrence = LocalLinearGap<Algebra>;
  using ThisClimb = Climb<ExecutionSpace, Real, 4>;

  AlignedScores<Real> scores;
  Recurrence recurrence;
  ThisClimb climb;
  Outputs<ExecutionSpace, Real> outputs;
  Rung rung;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, Shape::ring_bytes));
    // Once, for Kokkos grants other memory each time.
    std::byte* const climb_row = team_scratch(team, ScratchLevel::large, climb_bytes(scores));
    const int group = Thread::rank() / Lanes::size;
    const Order order(scores, team.league_rank(), team.league_size());
    auto* const row = reinterpret_cast<typename Recurrence::Cell*>(memory + Shape::ring_bytes) +
                      group * order.row_tiles() * Order::columns;
    Ring ring(scores, order, memory);

    constexpr double open = -1;  // stands for a score that is still to be found: no score is negative
    bool any_open = false;
    // Of small problems a lane keeps one of as many results as a group has lanes, and judges it together with the other lanes:
    // logarithms are long.
    constexpr int most_kept = Order::problems_per_batch == 1 ? 1 : Lanes::size;
    auto kept_best = recurrence.empty_result();
    auto kept_watch = recurrence.algebra.watch();
    std::int64_t kept_problem = 0;
    int kept = 0;
    std::int64_t batches_left = order.batches;
    sweep_tiles<Thread, Lanes, Shape>(
        recurrence, ring, order, scores, row, [&](std::int64_t batch, auto best, const auto& watch) {
          if (Lanes::rank() == kept) {
            kept_best = best;
            kept_watch = watch;
            kept_problem = batch * Order::problems_per_batch + group;
          }
          ++kept;
          if (--batches_left > 0 && kept < most_kept) return;
          if (Lanes::rank() < kept && kept_problem < scores.problems) {
            const Judgement judgement =
                recurrence.algebra.judge(kept_best, kept_watch, scores.rows + scores.columns, score_tolerance<Real>);
            any_open = any_open || !judgement.certified;
            outputs.write(kept_problem, judgement.certified ? judgement.score : open);
          }
          kept = 0;
        });
    if (Thread::ballot(any_open) == 0) return;

    Thread::sync();  // all lanes see the scores of the team
    const ThisClimb copy = climb;
    for (std::int64_t k = 0; k < order.batches * Order::problems_per_batch; ++k) {
      const std::int64_t batch = order.first + k / Order::problems_per_batch * order.step;
      const std::int64_t problem = batch * Order::problems_per_batch + k % Order::problems_per_batch;
      if (problem >= scores.problems || outputs.score(problem) != static_cast<Real>(open)) continue;
      Thread::sync();  // all lanes have seen that it is open
      const double result = copy.rarely_from(copy, next(rung), problem, climb_row);
      if (Thread::rank() == 0) outputs.write(problem, result);
    }
  }
};

/// A team owns one problem: all threads stage its weights, the first visits its cells (staged_sweep.hpp).
template <class ExecutionSpace, class Real, class Algebra>
struct StagedTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Thread = LaneGroup<ExecutionSpace>;
  using Lanes = LaneGroup<ExecutionSpace, StagedShape::lanes>;
  using Watch = typename Algebra::Watch;

  AlignedScores<Real> scores;
  LocalLinearGap<Algebra> recurrence;
  Climb<ExecutionSpace, Real, 4> climb;
  Outputs<ExecutionSpace, Real> outputs;
  Rung rung;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    using Weight = typename Algebra::Weight;
    const std::int64_t problem = first_problem + team.league_rank();
    const auto columns = static_cast<int>(scores.columns);
    auto* const weights = reinterpret_cast<Weight*>(
        aligned(team_scratch(team, ScratchLevel::fast, StagedShape::rows * columns * sizeof(Weight))));
    auto* const watches = reinterpret_cast<Watch*>(weights + StagedShape::rows * columns);
    const Watch seen =
        stage_weights<Thread>(team, recurrence.algebra, scores, problem, weights).template across<Thread>();
    if (Thread::rank() == 0) watches[team.team_rank()] = seen;
    team.team_barrier();
    if (team.team_rank() != 0) return;

    const Watch watch = watches[Thread::rank() % team.team_size()].template across<Thread>();
    const auto best = sweep_staged<Lanes, Real>(recurrence, weights, static_cast<int>(scores.rows), columns);
    const Judgement judgement =
        recurrence.algebra.judge(best, watch, scores.rows + scores.columns, score_tolerance<Real>);
    double result = judgement.score;
    if (!judgement.certified) {
      const Climb<ExecutionSpace, Real, 4> copy = climb;
      result = copy.rarely_from(copy, next(rung), problem, nullptr);
    }
    if (Thread::rank() == 0) outputs.write(problem, result);
  }
};

/// A team is one thread of a host and owns as many problems as a SIMD register of the first rung holds (src/host). Those that
/// it does not certify go on in packs of Linear<double>, and from there one by one. A lane computes the same whatever is in the
/// others, so a result does not depend on who else climbs.
template <class ExecutionSpace, class Real>
struct PackTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  Climb<ExecutionSpace, Real, 4> climb;
  Outputs<ExecutionSpace, Real> outputs;
  AlignmentPlan plan;
  std::int64_t first_problem = 0;  // in packs

  void operator()(const Team& team) const {
    std::byte* const row = aligned(team_scratch(team, plan.scratch_level, plan.scratch_bytes), most_register_bytes);
    const std::int64_t first = (first_problem + team.league_rank()) * plan.problems_per_thread;
    const auto problems = static_cast<std::int64_t>(climb.scores.extent(0));
    std::int64_t left[most_lanes];
    const auto count = static_cast<int>(std::min<std::int64_t>(plan.problems_per_thread, problems - first));
    for (int k = 0; k < count; ++k) left[k] = first + k;
    int uncertified = try_rung(plan.first, plan.problems_per_thread, left, count, row);
    if (uncertified > 0 && plan.first < Rung::linear_double) {
      const int doubles = host_kernels().register_bytes / static_cast<int>(sizeof(double));
      int still_uncertified = 0;
      for (int done = 0; done < uncertified; done += doubles) {
        std::int64_t pack[most_lanes];
        const int size = std::min(doubles, uncertified - done);
        std::copy_n(left + done, size, pack);
        const int failed = try_rung(Rung::linear_double, doubles, pack, size, row);
        std::copy_n(pack, failed, left + still_uncertified);
        still_uncertified += failed;
      }
      uncertified = still_uncertified;
    }
    for (int k = 0; k < uncertified; ++k) outputs.write(left[k], climb.from(Rung::log_double, left[k], row));
  }

 private:
  /// Runs one rung for \p count problems, and writes the results that it certifies. The others are moved to the front.
  /// \return how many these are
  int try_rung(Rung rung, int lanes, std::int64_t* which, int count, std::byte* row) const {
    HostScores<Real> scores;
    const auto problem_stride = static_cast<std::int64_t>(climb.scores.stride(0));
    for (int k = 0; k < lanes; ++k) {
      scores.problem[k] = climb.scores.data() + which[k < count ? k : 0] * problem_stride;
    }
    scores.row_stride = static_cast<std::int64_t>(climb.scores.stride(1));
    scores.column_stride = static_cast<std::int64_t>(climb.scores.stride(2));
    scores.rows = static_cast<std::int64_t>(climb.scores.extent(1));
    scores.columns = static_cast<std::int64_t>(climb.scores.extent(2));
    const HostKernels& kernels = host_kernels();
    const Rungs<Real>& rungs = climb.rungs;
    if constexpr (is_float<Real>) {
      if (rung == Rung::linear_float) return run(kernels.linear_float, rungs.linear_float, scores, which, count, row);
      if (rung == Rung::linear_mixed) return run(kernels.linear_mixed, rungs.linear_mixed, scores, which, count, row);
      if (rung == Rung::linear_double) {
        return run(kernels.linear_double_of_float, rungs.linear_double, scores, which, count, row);
      }
      if (rung == Rung::max_float) return run(kernels.max_float, rungs.max_float, scores, which, count, row);
      return run(kernels.max_double_of_float, rungs.max_double, scores, which, count, row);
    } else {
      if (rung == Rung::linear_double) {
        return run(kernels.linear_double, rungs.linear_double, scores, which, count, row);
      }
      return run(kernels.max_double, rungs.max_double, scores, which, count, row);
    }
  }

  template <class Algebra>
  int run(HostAlignment<Real> kernel, const Algebra& algebra, const HostScores<Real>& scores, std::int64_t* which,
          int count, std::byte* row) const {
    HostAlgebra constants{static_cast<double>(algebra.gap()), 1};
    constexpr bool is_linear = requires { algebra.scale(); };
    if constexpr (is_linear) constants.scale = static_cast<double>(algebra.scale());
    HostFound found;
    kernel(scores, constants, row, found);
    int uncertified = 0;
    for (int k = 0; k < count; ++k) {
      typename Algebra::Watch watch = algebra.watch();
      if constexpr (is_linear) {
        watch.see(static_cast<typename Algebra::Weight>(found.largest_within[k]));
        watch.see(static_cast<typename Algebra::Weight>(found.smallest_beyond[k]));
      } else {
        watch.nan = found.nan[k];
      }
      const Judgement judgement = algebra.judge(static_cast<typename Algebra::Value>(found.best[k]), watch,
                                                scores.rows + scores.columns, score_tolerance<Real>);
      if (judgement.certified) {
        outputs.write(which[k], judgement.score);
      } else {
        which[uncertified++] = which[k];
      }
    }
    return uncertified;
  }
};

/// Whether each row begins at a multiple of 16 bytes and consists of whole tiles.
template <class View>
bool is_aligned(const View& scores) {
  constexpr std::size_t width = 16 / sizeof(typename View::value_type);
  return reinterpret_cast<std::uintptr_t>(scores.data()) % 16 == 0 &&
         (scores.stride(2) == 1 || scores.extent(2) == 1) && scores.extent(2) % width == 0 &&
         scores.stride(1) % width == 0 && scores.stride(0) % width == 0;
}

}  // namespace

template <class ExecutionSpace, class Real>
void smith_waterman_score(const ExecutionSpace& exec, const StridedView<const Real***, ExecutionSpace>& scores,
                          const StridedView<Real*, ExecutionSpace>& score, const SmithWatermanOptions& options,
                          const StridedView<Status*, ExecutionSpace>& statuses,
                          const StridedView<std::byte*, ExecutionSpace>& workspace) {
  const ProfilingRegion region("bellman::smith_waterman_score");
  static const std::string label = "bellman::smith_waterman_score::sweep";
  const Backend backend = backend_of(exec);
  const auto problems = static_cast<std::int64_t>(scores.extent(0));
  const AlignmentPlan plan = plan_smith_waterman(backend, is_double<Real>(), scores.extent(1), scores.extent(2),
                                                 options, is_aligned(scores), problems, workspace.data() != nullptr);
  if (plan.sweep == AlignmentSweep::pipeline) {
    return launch_pipeline(exec, plan, scores, score, options, statuses, is_aligned(scores), workspace.data());
  }
  const Rungs<Real> rungs(options.temperature, options.gap);
  const bool is_empty = scores.extent(1) == 0 || scores.extent(2) == 0;
  const Outputs<ExecutionSpace, Real> outputs{score, statuses, is_empty};

  if (plan.sweep == AlignmentSweep::strips) {
    const auto launch = [&](auto rows_per_lane) {
      launch_teams(label, exec,
                   StripTeam<ExecutionSpace, Real, rows_per_lane()>{
                       {scores, rungs}, outputs, plan.first, plan.scratch_level, plan.scratch_bytes},
                   problems, 1, backend.lanes, plan.scratch_level, plan.scratch_bytes);
    };
    if (plan.rows_per_lane == 1) {
      launch(std::integral_constant<int, 1>());
    } else {
      launch(std::integral_constant<int, 4>());
    }
    return;
  }
  if constexpr (!has_warps<ExecutionSpace>()) {
    const std::int64_t packs = (problems + plan.problems_per_thread - 1) / plan.problems_per_thread;
    launch_teams(label, exec, PackTeam<ExecutionSpace, Real>{{scores, rungs}, outputs, plan}, packs, 1, 1,
                 plan.scratch_level, plan.scratch_bytes);
  } else {
    const AlignedScores<Real> aligned{
        scores.data(), static_cast<std::int64_t>(scores.stride(0)), static_cast<std::int64_t>(scores.stride(1)),
        problems,      static_cast<std::int64_t>(scores.extent(1)), static_cast<std::int64_t>(scores.extent(2))};
    const auto launch = [&](const auto& algebra, auto shape) {
      using Algebra = std::decay_t<decltype(algebra)>;
      using Shape = decltype(shape);
      // All teams take the same number of batches, or one less.
      const std::int64_t problems_per_team = backend.lanes / Shape::lanes;
      const std::int64_t batches = (problems + problems_per_team - 1) / problems_per_team;
      const std::int64_t rounds = std::max<std::int64_t>(1, (batches + plan.most_teams - 1) / plan.most_teams);
      launch_teams(
          label, exec,
          TileTeam<ExecutionSpace, Real, Algebra, Shape>{aligned, {algebra}, {scores, rungs}, outputs, plan.first},
          (batches + rounds - 1) / rounds, 1, backend.lanes, plan.scratch_level, plan.scratch_bytes, plan.climb_bytes);
    };
    if (plan.sweep == AlignmentSweep::staged) {
      const auto launch_staged = [&](const auto& algebra) {
        launch_teams(label, exec,
                     StagedTeam<ExecutionSpace, Real, std::decay_t<decltype(algebra)>>{
                         aligned, {algebra}, {scores, rungs}, outputs, plan.first},
                     problems, staged_threads, backend.lanes, plan.scratch_level, plan.scratch_bytes);
      };
      if constexpr (is_float<Real>) {
        return launch_staged(rungs.linear_float);
      } else {
        return launch_staged(rungs.linear_double);
      }
    }
    const bool is_few = plan.lanes == FewRows::lanes;
    if constexpr (is_float<Real>) {
      if (plan.rows_per_lane == TallStrips::rows_per_lane) return launch(rungs.linear_mixed, TallStrips());
      if (plan.first == Rung::linear_mixed) return launch(rungs.linear_mixed, ManyRows());
      return is_few ? launch(rungs.linear_float, FewRows()) : launch(rungs.linear_float, ManyRows());
    } else {
      return is_few ? launch(rungs.linear_double, FewRows()) : launch(rungs.linear_double, ManyRows());
    }
  }
}

#define BELLMAN_INSTANTIATE_FOR(Space, Real)                                                    \
  template void smith_waterman_score<Space, Real>(                                              \
      const Space&, const StridedView<const Real***, Space>&, const StridedView<Real*, Space>&, \
      const SmithWatermanOptions&, const StridedView<Status*, Space>&, const StridedView<std::byte*, Space>&);
#define BELLMAN_INSTANTIATE(Space)      \
  BELLMAN_INSTANTIATE_FOR(Space, float) \
  BELLMAN_INSTANTIATE_FOR(Space, double)
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
