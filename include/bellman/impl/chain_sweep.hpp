// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_CHAIN_SWEEP_HPP
#define BELLMAN_IMPL_CHAIN_SWEEP_HPP

#include <Kokkos_Core.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <cstdint>

namespace bellman::impl {

/// Visits the steps of one chain one after the other. The threads of a team share the states of a step; the vectors of the
/// last two steps live in team scratch.
///
/// \param symbol_at  symbol_at(t), the same for all threads; steps >= 1
/// \return           the same for all threads; not certified when the recurrence lost something that matters
template <class Step, class Team, class SymbolAt>
KOKKOS_FUNCTION Judgement sweep_chain(const Team& team, const Step& step, const SymbolAt& symbol_at,
                                      std::int64_t states, std::int64_t steps, double tolerance, std::byte* memory) {
  HmmVectors<typename Step::Value> vectors(memory, states);
  const int rank = team.team_rank();
  const int threads = team.team_size();
  team.team_barrier();  // a rung before this one may still be reading its verdict
  if (rank == 0) vectors.lost[0] = vectors.lost[1] = 0;
  team.team_barrier();  // the flags are clear

  auto scale = Step::no_scale();
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t symbol = symbol_at(t);
    bool kept = true;
    for (std::int64_t state = rank; state < states; state += threads) {
      const auto now = t == 0 ? step.start(state, symbol) : step.next(vectors.previous, state, symbol);
      vectors.current[state] = now.value;
      kept = kept && now.kept;
      if (state == rank) Step::rescale(scale, now.shift);
    }
    if (!kept) vectors.lost[t % 2] = 1;
    team.team_barrier();  // the vector of this step is complete, and nobody reads that of the step before any more
    if (vectors.lost[t % 2] != 0) return {};
    auto* const swapped = vectors.previous;
    vectors.previous = vectors.current;
    vectors.current = swapped;
  }
  if (rank == 0) *vectors.verdict = step.finish(vectors.previous, scale, steps, tolerance);
  team.team_barrier();  // thread 0 owns a state, so its scale is the one that counts
  return *vectors.verdict;
}

}  // namespace bellman::impl

#endif
