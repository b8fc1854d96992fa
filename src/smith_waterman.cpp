// SPDX-License-Identifier: Apache-2.0
#include <bellman/accuracy.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/alignment_recurrence.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/smith_waterman.hpp>
#include <bellman/impl/strip_sweep.hpp>

#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// A team is one lane group and owns one problem; its lanes march over strips of rows (strip_sweep.hpp). The row between two
/// strips lives in team scratch. A problem climbs the ladder of algebras until one certifies its result.
template <class ExecutionSpace, class Real, int rows_per_lane>
struct SmithWatermanTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Lanes = LaneGroup<ExecutionSpace>;

  StridedView<const Real***, ExecutionSpace> scores;
  StridedView<Real*, ExecutionSpace> score;
  StridedView<Status*, ExecutionSpace> statuses;
  double temperature;
  double gap;
  Rung first_rung;
  ScratchLevel scratch_level;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t problem = first_problem + team.league_rank();
    const double result = climb(problem, team_scratch(team, scratch_level, scratch_bytes));
    if (Lanes::rank() != 0) return;
    score(problem) = static_cast<Real>(result);
    if (statuses.data() != nullptr) {
      const bool is_empty = scores.extent(1) == 0 || scores.extent(2) == 0;
      statuses(problem) = is_empty ? Status::empty : result != result ? Status::not_a_number : Status::ok;
    }
  }

  KOKKOS_FUNCTION double climb(std::int64_t problem, std::byte* row) const {
    Judgement judgement;
    switch (first_rung) {
      case Rung::linear_float:
        if constexpr (is_float<Real>) judgement = run<Linear<float>>(problem, row);
        if (judgement.certified) break;
        [[fallthrough]];
      case Rung::linear_double:
        judgement = run<Linear<double>>(problem, row);
        if (judgement.certified) break;
        [[fallthrough]];
      case Rung::log_double: judgement = run<LogSumExp>(problem, row); break;
      case Rung::max_float: judgement = run<MaxPlus<Real>>(problem, row); break;
      case Rung::max_double: judgement = run<MaxPlus<double>>(problem, row); break;
    }
    return judgement.score;
  }

  template <class Algebra>
  KOKKOS_FUNCTION Judgement run(std::int64_t problem, std::byte* row) const {
    using Recurrence = LocalLinearGap<Algebra>;
    const Recurrence recurrence{Algebra(temperature, gap)};
    const std::int64_t rows = scores.extent(1);
    const std::int64_t columns = scores.extent(2);
    const auto score_of = [&](std::int64_t i, std::int64_t j) { return scores(problem, i, j); };
    const auto found = sweep_strips<Lanes, rows_per_lane>(recurrence, score_of, rows, columns,
                                                          reinterpret_cast<typename Recurrence::Cell*>(row));
    return recurrence.algebra.judge(found.result, found.watch, rows + columns, score_tolerance<Real>);
  }
};

}  // namespace

template <class ExecutionSpace, class Real>
void smith_waterman_score(const ExecutionSpace& exec, const StridedView<const Real***, ExecutionSpace>& scores,
                          const StridedView<Real*, ExecutionSpace>& score, const SmithWatermanOptions& options,
                          const StridedView<Status*, ExecutionSpace>& statuses) {
  const Kokkos::Profiling::ScopedRegion region("bellman::smith_waterman_score");
  const AlignmentPlan plan =
      plan_smith_waterman(backend_of(exec), is_double<Real>(), scores.extent(1), scores.extent(2), options);
  const auto launch = [&](auto rows_per_lane) {
    launch_teams("bellman::smith_waterman_score::sweep", exec,
                 SmithWatermanTeam<ExecutionSpace, Real, rows_per_lane()>{scores, score, statuses, options.temperature,
                                                                          options.gap, plan.first, plan.scratch_level,
                                                                          plan.scratch_bytes},
                 static_cast<std::int64_t>(scores.extent(0)), 1, plan.lanes, plan.scratch_level, plan.scratch_bytes);
  };
  if (plan.rows_per_lane == 1) {
    launch(std::integral_constant<int, 1>());
  } else {
    launch(std::integral_constant<int, 4>());
  }
}

#define BELLMAN_INSTANTIATE_FOR(Space, Real)                                                                     \
  template void smith_waterman_score<Space, Real>(const Space&, const StridedView<const Real***, Space>&,        \
                                                  const StridedView<Real*, Space>&, const SmithWatermanOptions&, \
                                                  const StridedView<Status*, Space>&);
#define BELLMAN_INSTANTIATE(Space)      \
  BELLMAN_INSTANTIATE_FOR(Space, float) \
  BELLMAN_INSTANTIATE_FOR(Space, double)
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
