// SPDX-License-Identifier: Apache-2.0
#include <bellman/accuracy.hpp>
#include <bellman/impl/chain_sweep.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_recurrence.hpp>
#include <bellman/impl/hmm_tables.hpp>

#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// A thread normalises one row of a model that is too large for every team to do it again.
template <class ExecutionSpace, class Real>
struct HmmNormaliseRow {
  HmmParameters<ExecutionSpace, Real> parameters;
  HmmTables<double> tables;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const { fill_row(parameters, tables, row); }
};

/// A team owns one sequence, its threads own the states (chain_sweep.hpp). Alpha vectors, and the normalised model where it
/// is small, live in team scratch. A sequence climbs the ladder of algebras until one certifies its result.
template <class ExecutionSpace, class Real>
struct HmmForwardTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  HmmParameters<ExecutionSpace, Real> parameters;
  HmmSequences sequences;
  StridedView<Real*, ExecutionSpace> log_likelihood;
  StridedView<Status*, ExecutionSpace> statuses;
  Rung first_rung;
  ScratchLevel scratch_level;
  std::size_t scratch_bytes;
  std::byte* workspace;  ///< the normalised model, or null: each team makes its own
  std::int64_t first_problem = 0;

  struct Result {
    double value;
    Status status;
  };

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t sequence = first_problem + team.league_rank();
    const Result result = evaluate(team, sequence);
    if (team.team_rank() != 0) return;
    log_likelihood(sequence) = static_cast<Real>(result.value);
    if (statuses.data() != nullptr) statuses(sequence) = result.status;
  }

  KOKKOS_FUNCTION Result evaluate(const Team& team, std::int64_t sequence) const {
    const std::int64_t length = sequences.length(sequence);
    if (length < 0 || length > sequences.steps()) return {quiet_nan<double>(), Status::bad_length};
    if (length == 0) return {0, Status::empty};
    if (has_bad_symbol(team, sequence, length)) return {quiet_nan<double>(), Status::bad_symbol};

    std::byte* const vectors = team_scratch(team, scratch_level, scratch_bytes);
    const std::size_t states = parameters.states();
    std::byte* const model = workspace != nullptr ? workspace : vectors + HmmVectors<double>::bytes(states);
    Judgement judgement;
    switch (first_rung) {
      case Rung::linear_float: {
        const auto flags = run_linear<float>(team, sequence, length, model, vectors, judgement);
        if (flags & row_has_nan) return {quiet_nan<double>(), Status::not_a_number};
        if (judgement.certified) break;
        [[fallthrough]];
      }
      case Rung::linear_double: {
        const auto flags = run_linear<double>(team, sequence, length, model, vectors, judgement);
        if (flags & row_has_nan) return {quiet_nan<double>(), Status::not_a_number};
        if (judgement.certified) break;
        [[fallthrough]];
      }
      default: {
        const HmmTables<double> tables(model, parameters.states(), parameters.symbols());
        const LogHmmStep<ExecutionSpace, Real> step(parameters, tables.normaliser);
        judgement = sweep(team, step, sequence, length, vectors);
      }
    }
    return {judgement.score, judgement.score == -infinity<double>() ? Status::impossible : Status::ok};
  }

  /// Makes the model where it is the team's own, and runs a linear rung unless the model is beyond its range.
  template <class Weight>
  KOKKOS_FUNCTION std::uint32_t run_linear(const Team& team, std::int64_t sequence, std::int64_t length,
                                           std::byte* model, std::byte* vectors, Judgement& judgement) const {
    const std::int64_t states = parameters.states();
    const HmmTables<Weight> tables(model, states, parameters.symbols());
    if (workspace == nullptr) {
      team.team_barrier();  // a rung before this one has done with its weights
      for (std::int64_t row = team.team_rank(); row < 1 + 2 * states; row += team.team_size()) {
        fill_row(parameters, tables, row);
      }
      team.team_barrier();  // the model is complete
    }
    const std::uint32_t flags = model_flags(tables, states);
    if (flags == row_is_fine) {
      judgement = sweep(team, LinearHmmStep<Weight>(tables, states, parameters.symbols()), sequence, length, vectors);
    }
    return flags;
  }

  template <class Step>
  KOKKOS_FUNCTION Judgement sweep(const Team& team, const Step& step, std::int64_t sequence, std::int64_t length,
                                  std::byte* vectors) const {
    const auto symbol_at = [&](std::int64_t t) { return sequences.symbols(sequence, t); };
    return sweep_chain(team, step, symbol_at, parameters.states(), length, log_likelihood_tolerance<Real>, vectors);
  }

  KOKKOS_FUNCTION bool has_bad_symbol(const Team& team, std::int64_t sequence, std::int64_t length) const {
    int found = 0;
    const std::int64_t symbols = parameters.symbols();
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, length),
        [&](std::int64_t t, int& any) { any |= sequences.symbols(sequence, t) >= symbols ? 1 : 0; },
        Kokkos::BOr<int>(found));
    return found != 0;
  }
};

/// A workspace may start anywhere; the tables start at the next aligned byte.
std::byte* aligned(std::byte* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return memory + (alignment_slack - address % alignment_slack) % alignment_slack;
}

}  // namespace

template <class ExecutionSpace, class Real>
void hmm_log_likelihood(const ExecutionSpace& exec, const HmmPlan& plan,
                        const HmmParameters<ExecutionSpace, Real>& parameters, const HmmSequences& sequences,
                        const StridedView<Real*, ExecutionSpace>& log_likelihood,
                        const StridedView<Status*, ExecutionSpace>& statuses,
                        const StridedView<std::byte*, ExecutionSpace>& workspace) {
  const Kokkos::Profiling::ScopedRegion region("bellman::hmm_log_likelihood");
  if (sequences.batch() == 0) return;
  std::byte* model = nullptr;
  if (!plan.model_in_scratch) {
    model = aligned(workspace.data());
    const HmmTables<double> tables(model, parameters.states(), parameters.symbols());
    using Rows = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("bellman::hmm_log_likelihood::normalise", Rows(exec, 0, 1 + 2 * parameters.states()),
                         HmmNormaliseRow<ExecutionSpace, Real>{parameters, tables});
  }
  launch_teams("bellman::hmm_log_likelihood::sweep", exec,
               HmmForwardTeam<ExecutionSpace, Real>{parameters, sequences, log_likelihood, statuses, plan.first,
                                                    plan.scratch_level, plan.scratch_bytes, model},
               sequences.batch(), plan.team_threads, 1, plan.scratch_level, plan.scratch_bytes);
}

namespace {

/// The lowest index b * steps + t of a symbol out of range.
template <class ExecutionSpace>
struct FirstBadSymbol {
  HmmSequences sequences;
  std::int64_t symbols;

  KOKKOS_FUNCTION void operator()(std::int64_t index, std::int64_t& first) const {
    const std::int64_t b = index / sequences.steps();
    const std::int64_t t = index % sequences.steps();
    if (index < first && t < sequences.length(b) && sequences.symbols(b, t) >= symbols) first = index;
  }
};

/// Reads one symbol back to the host.
struct ReadSymbol {
  HmmSequences sequences;
  std::int64_t b;
  std::int64_t t;

  KOKKOS_FUNCTION void operator()(std::int64_t, std::int64_t& symbol) const { symbol = sequences.symbols(b, t); }
};

}  // namespace

template <class ExecutionSpace>
SymbolPosition first_bad_symbol(const ExecutionSpace& exec, const HmmSequences& sequences, std::int64_t symbols) {
  using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  const std::int64_t size = sequences.batch() * sequences.steps();
  std::int64_t first = size;
  Kokkos::parallel_reduce("bellman::first_bad_symbol::search", Range(exec, 0, size),
                          FirstBadSymbol<ExecutionSpace>{sequences, symbols}, Kokkos::Min<std::int64_t>(first));
  if (first >= size) return {false, 0, 0, 0};
  const std::int64_t b = first / sequences.steps();
  const std::int64_t t = first % sequences.steps();
  std::int64_t symbol = 0;
  Kokkos::parallel_reduce("bellman::first_bad_symbol::read", Range(exec, 0, 1), ReadSymbol{sequences, b, t}, symbol);
  return {true, static_cast<std::size_t>(b), static_cast<std::size_t>(t), symbol};
}

#define BELLMAN_INSTANTIATE_FOR(Space, Real)                                                \
  template void hmm_log_likelihood<Space, Real>(                                            \
      const Space&, const HmmPlan&, const HmmParameters<Space, Real>&, const HmmSequences&, \
      const StridedView<Real*, Space>&, const StridedView<Status*, Space>&, const StridedView<std::byte*, Space>&);
#define BELLMAN_INSTANTIATE(Space)       \
  BELLMAN_INSTANTIATE_FOR(Space, float)  \
  BELLMAN_INSTANTIATE_FOR(Space, double) \
  template SymbolPosition first_bad_symbol<Space>(const Space&, const HmmSequences&, std::int64_t);
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
