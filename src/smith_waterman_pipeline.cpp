// SPDX-License-Identifier: Apache-2.0
#include "smith_waterman_pipeline.hpp"

#include <bellman/accuracy.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/alignment_recurrence.hpp>
#include <bellman/impl/pipeline_sweep.hpp>

#include "instantiations.hpp"
#include "launch.hpp"
#include "smith_waterman_ladder.hpp"

namespace bellman::impl {
namespace {

/// Nothing has been taken, nothing has arrived.
template <class ExecutionSpace>
struct ClearMemory {
  std::uint64_t* words;

  KOKKOS_FUNCTION void operator()(std::int64_t k) const { words[k] = 0; }
};

/// Teams that visit blocks of problems (pipeline_sweep.hpp), as many at a time as there is work for.
///
/// Blocks are taken in the order of tickets: first the topmost block of every problem. So a block that a team waits for has a
/// lower ticket, and is held by a team that runs: teams may start in any order, and need not all run at the same time. The
/// team that finishes the last block of a problem judges it. When no tickets of a rung are left, teams wait until all
/// problems are judged, which those do that run, and go on to the next rung with what is left.
template <class ExecutionSpace, class Real>
struct PipelineTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Thread = LaneGroup<ExecutionSpace>;
  using Shape = FewLargeShape<Real>;

  PipelineScores<Real> scores;
  Rungs<Real> rungs;
  Outputs<ExecutionSpace, Real> outputs;
  PipelineMemory memory;
  Rung first_rung;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::byte* const scratch =
        aligned(team_scratch(team, ScratchLevel::fast, Shape::template bytes<double, Real> + sizeof(std::uint32_t)));
    auto* const told = reinterpret_cast<std::uint32_t*>(scratch + Shape::template bytes<double, Real>);
    const bool is_teller = team.team_rank() == 0 && Thread::rank() == 0;
    const auto tell_all = [&](std::uint32_t value) {
      team.team_barrier();  // all have read what was told before
      if (is_teller) *told = value;
      team.team_barrier();
      return *told;
    };
    const PipelineTeam copy = *this;
    auto left = static_cast<std::uint32_t>(memory.problems);
    Rung rung = first_rung;
    for (int step = 0; left > 0; ++step, rung = next(rung)) {
      PipelineCounters& counters = memory.counters[step];
      while (true) {
        const std::uint32_t ticket = tell_all(is_teller ? Kokkos::atomic_fetch_add(&counters.tickets, 1u) : 0);
        if (ticket >= left * memory.blocks) break;
        const std::uint32_t block = ticket / left;
        const std::uint32_t place = ticket % left;
        const std::int64_t problem = step == 0 ? place : memory.open_problems(step)[place];
        if (rung == Rung::linear_float || rung == Rung::linear_mixed) {
          if constexpr (is_float<Real>) {
            if (rung == Rung::linear_float) {
              visit(copy, team, rungs.linear_float, scratch, problem, block, step);
            } else {
              visit(copy, team, rungs.linear_mixed, scratch, problem, block, step);
            }
          }
        } else if (rung == Rung::linear_double) {
          visit(copy, team, rungs.linear_double, scratch, problem, block, step);
        } else if (rung == Rung::log_double) {
          visit(copy, team, rungs.log_double, scratch, problem, block, step);
        } else if (rung == Rung::max_float) {
          visit(copy, team, rungs.max_float, scratch, problem, block, step);
        } else {
          visit(copy, team, rungs.max_double, scratch, problem, block, step);
        }
      }
      if (rung >= Rung::log_double) return;  // needs no judgement
      if (is_teller) {
        while (load_of_other_teams(&counters.judged) < left) {
        }
        Kokkos::memory_fence();
      }
      left = tell_all(is_teller ? load_of_other_teams(&counters.open) : 0);
    }
  }

 private:
  /// Visits a block on one rung, and judges its problem if it is the last to be visited. Not inlined, and called on a copy:
  /// each rung has its own registers.
  template <class Algebra>
  BELLMAN_NOINLINE KOKKOS_FUNCTION static void visit(const PipelineTeam& self, const Team& team, const Algebra& algebra,
                                                     std::byte* scratch, std::int64_t problem, std::uint32_t block,
                                                     int step) {
    using Recurrence = LocalLinearGap<Algebra>;
    using Cell = typename Recurrence::Cell;
    using Found = PipelineFound<typename Recurrence::Result, typename Algebra::Watch>;
    const PipelineMemory memory = self.memory;
    const PipelineScores<Real> scores = self.scores;
    const Recurrence recurrence{algebra};
    const auto join = [&](const auto& a, const auto& b) { return recurrence.join(a, b); };
    auto* const found_of_problem = reinterpret_cast<Found*>(memory.found(problem));
    Found* const found_of_block = found_of_problem + block * Shape::threads;
    sweep_block<Thread, Shape>(team, recurrence, scores, problem, std::int64_t{block} * Shape::block_rows, scratch,
                               RowInMemory<Cell>(block == 0 ? nullptr : memory.row(problem, block - 1)),
                               RowInMemory<Cell>(block + 1 == memory.blocks ? nullptr : memory.row(problem, block)),
                               [&](const auto& result, const auto& watch) {
                                 const Found found{Thread::reduce(result, join), watch.template across<Thread>()};
                                 if (Thread::rank() == 0) found_of_block[team.team_rank()] = found;
                               });
    Kokkos::memory_fence();
    team.team_barrier();  // all that the team has found is in memory
    if (team.team_rank() != 0) return;

    std::uint32_t done = 0;
    if (Thread::rank() == 0) done = Kokkos::atomic_fetch_add(memory.finished(step) + problem, 1u);
    if (Thread::from_lane(done, 0) + 1 != memory.blocks) return;
    Kokkos::memory_fence();
    Found all{recurrence.empty_result(), algebra.watch()};
    for (std::uint32_t k = Thread::rank(); k < memory.blocks * Shape::threads; k += Thread::size) {
      const Found& found = found_of_problem[k];
      all.result = recurrence.join(all.result, found.result);
      all.watch.join(found.watch);
    }
    const Judgement judgement = algebra.judge(Thread::reduce(all.result, join), all.watch.template across<Thread>(),
                                              scores.rows + scores.columns, score_tolerance<Real>);
    if (Thread::rank() != 0) return;
    PipelineCounters& counters = memory.counters[step];
    if (judgement.certified) {
      self.outputs.write(problem, judgement.score);
    } else {
      memory.open_problems(step + 1)[Kokkos::atomic_fetch_add(&counters.open, 1u)] =
          static_cast<std::uint32_t>(problem);
    }
    Kokkos::memory_fence();
    Kokkos::atomic_fetch_add(&counters.judged, 1u);
  }
};

}  // namespace

template <class ExecutionSpace, class Real>
void launch_pipeline(const ExecutionSpace& exec, const AlignmentPlan& plan,
                     const StridedView<const Real***, ExecutionSpace>& scores,
                     const StridedView<Real*, ExecutionSpace>& score, const SmithWatermanOptions& options,
                     const StridedView<Status*, ExecutionSpace>& statuses, bool has_pieces, std::byte* workspace) {
  if constexpr (has_warps<ExecutionSpace>()) {
    static const std::string clear_label = "bellman::smith_waterman_score::clear";
    static const std::string label = "bellman::smith_waterman_score::sweep";
    const auto problems = static_cast<std::int64_t>(scores.extent(0));
    const auto rows = static_cast<std::int64_t>(scores.extent(1));
    const auto columns = static_cast<std::int64_t>(scores.extent(2));
    const PipelineMemory memory(aligned(workspace), problems, pipeline_blocks(rows), columns);
    Kokkos::parallel_for(
        clear_label,
        Kokkos::RangePolicy<ExecutionSpace>(exec, 0, static_cast<std::int64_t>(memory.cleared_bytes() / 8)),
        ClearMemory<ExecutionSpace>{reinterpret_cast<std::uint64_t*>(memory.counters)});
    const PipelineScores<Real> source{scores.data(),
                                      static_cast<std::int64_t>(scores.stride(0)),
                                      static_cast<std::int64_t>(scores.stride(1)),
                                      static_cast<std::int64_t>(scores.stride(2)),
                                      rows,
                                      columns,
                                      has_pieces};
    constexpr unsigned threads = FewLargeShape<Real>::threads * lanes_of<ExecutionSpace>;
    launch_teams<threads, pipeline_teams_of_multiprocessor>(
        label, exec,
        PipelineTeam<ExecutionSpace, Real>{
            source, Rungs<Real>(options.temperature, options.gap), {score, statuses, false}, memory, plan.first},
        std::min<std::int64_t>(problems * memory.blocks, plan.most_teams), FewLargeShape<Real>::threads,
        lanes_of<ExecutionSpace>, plan.scratch_level, plan.scratch_bytes);
  }
}

#define BELLMAN_INSTANTIATE_FOR(Space, Real)                                                                          \
  template void launch_pipeline<Space, Real>(                                                                         \
      const Space&, const AlignmentPlan&, const StridedView<const Real***, Space>&, const StridedView<Real*, Space>&, \
      const SmithWatermanOptions&, const StridedView<Status*, Space>&, bool, std::byte*);
#define BELLMAN_INSTANTIATE(Space)      \
  BELLMAN_INSTANTIATE_FOR(Space, float) \
  BELLMAN_INSTANTIATE_FOR(Space, double)
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
