// SPDX-License-Identifier: Apache-2.0
#include <bellman/accuracy.hpp>
#include <bellman/impl/chain_sweep.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_recurrence.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/matrix_sweep.hpp>
#include <bellman/impl/register_sweep.hpp>

#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// Workspaces and scratch may start anywhere; tables start at the next multiple of alignment_slack.
KOKKOS_FUNCTION std::byte* aligned(std::byte* memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return memory + (alignment_slack - address % alignment_slack) % alignment_slack;
}

struct HmmResult {
  double value;
  Status status;
};

KOKKOS_FUNCTION HmmResult result_of(const Judgement& judgement) {
  return {judgement.score, judgement.score == -infinity<double>() ? Status::impossible : Status::ok};
}

/// Where the results go.
template <class ExecutionSpace, class Real>
struct HmmResults {
  StridedView<Real*, ExecutionSpace> log_likelihood;
  StridedView<Status*, ExecutionSpace> statuses;

  KOKKOS_FUNCTION void write(std::int64_t sequence, const HmmResult& result) const {
    log_likelihood(sequence) = static_cast<Real>(result.value);
    if (statuses.data() != nullptr) statuses(sequence) = result.status;
  }
};

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
  HmmResults<ExecutionSpace, Real> results;
  Rung first_rung;
  ScratchLevel scratch_level;
  std::size_t scratch_bytes;
  std::byte* workspace;  ///< the normalised model, or null: each team makes its own
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t sequence = first_problem + team.league_rank();
    const HmmResult result = evaluate(team, sequence);
    if (team.team_rank() == 0) results.write(sequence, result);
  }

  KOKKOS_FUNCTION HmmResult evaluate(const Team& team, std::int64_t sequence) const {
    const std::int64_t length = sequences.length(sequence);
    if (length < 0 || length > sequences.steps()) return {quiet_nan<double>(), Status::bad_length};
    if (length == 0) return {0, Status::empty};

    std::byte* const vectors = team_scratch(team, scratch_level, scratch_bytes);
    const std::size_t states = parameters.states();
    std::byte* const model = workspace != nullptr ? workspace : vectors + HmmVectors<double>::bytes(states);
    Judgement judgement;
    Status status = Status::ok;
    if (first_rung == Rung::linear_float) {
      status = run_linear<float>(team, sequence, length, model, vectors, judgement);
    }
    if (status == Status::ok && !judgement.certified) {
      status = run_linear<double>(team, sequence, length, model, vectors, judgement);
    }
    if (status != Status::ok) return {quiet_nan<double>(), status};
    if (!judgement.certified) {
      const HmmTables<double> tables(model, parameters.states(), parameters.symbols());
      const LogHmmStep<ExecutionSpace, Real> step(parameters, tables.normaliser);
      judgement = sweep(team, step, sequence, length, vectors);
    }
    return result_of(judgement);
  }

  /// Makes the model where it is the team's own, and runs a linear rung unless the model is beyond its range.
  template <class Weight>
  KOKKOS_FUNCTION Status run_linear(const Team& team, std::int64_t sequence, std::int64_t length, std::byte* model,
                                    std::byte* vectors, Judgement& judgement) const {
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
    if (flags & row_has_nan) return Status::not_a_number;
    if (has_bad_symbol(team, sequence, length)) return Status::bad_symbol;
    if (flags == row_is_fine) {
      judgement = sweep(team, LinearHmmStep<Weight>(tables, states, parameters.symbols()), sequence, length, vectors);
    }
    return Status::ok;
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

/// A thread that is its own team.
struct SingleThread {
  KOKKOS_FUNCTION int team_rank() const { return 0; }
  KOKKOS_FUNCTION int team_size() const { return 1; }
  KOKKOS_FUNCTION void team_barrier() const {}
};

/// What the kernels for small models share: the team normalises the model into its scratch.
template <class ExecutionSpace, class Real>
struct HmmSmallModel {
  HmmParameters<ExecutionSpace, Real> parameters;
  HmmSequences sequences;
  HmmResults<ExecutionSpace, Real> results;

  /// Whether a sequence has steps; the result of others is known.
  KOKKOS_FORCEINLINE_FUNCTION bool has_steps(std::int64_t length, HmmResult& otherwise) const {
    const bool is_legal = length >= 0 && length <= sequences.steps();
    otherwise = is_legal ? HmmResult{0, Status::empty} : HmmResult{quiet_nan<double>(), Status::bad_length};
    return is_legal && length > 0;
  }

  /// The result of a sequence that has steps, from what its first sweep found.
  KOKKOS_FORCEINLINE_FUNCTION HmmResult result(std::byte* memory, std::uint32_t flags, bool is_bad,
                                               const Judgement& judgement, std::int64_t sequence,
                                               std::int64_t length) const {
    if (flags & row_has_nan) return {quiet_nan<double>(), Status::not_a_number};
    if (is_bad) return {quiet_nan<double>(), Status::bad_symbol};
    return result_of(judgement.certified ? judgement : climb(memory, sequence, length));
  }

  /// What the sweeps for GPUs do not certify, in one thread: rare, and not worth the registers that inlining it would cost.
  /// The model is found again from its memory: a reference to the caller's would keep its pointers out of registers.
  BELLMAN_NOINLINE KOKKOS_FUNCTION Judgement climb(std::byte* memory, std::int64_t sequence,
                                                   std::int64_t length) const {
    const SmallModel<Real> model(memory, parameters.symbols());
    const auto states = static_cast<int>(parameters.states());
    constexpr double tolerance = log_likelihood_tolerance<Real>;
    bool is_bad = false;
    const auto row_at = [&](std::int64_t t) { return emission_row(sequence, t, is_bad); };
    if ((model.template flags_of<Real>() & row_is_unusable) == 0) {
      const Judgement judgement = sweep_in_registers<Real>(model, states, row_at, length, tolerance);
      if (judgement.certified) return judgement;
    }
    if (is_float<Real> && (model.template flags_of<double>() & row_is_unusable) == 0) {
      const Judgement judgement = sweep_in_registers<double>(model, states, row_at, length, tolerance);
      if (judgement.certified) return judgement;
    }
    const LogHmmStep<ExecutionSpace, Real> step(parameters, model.normaliser);
    const auto symbol_at = [&](std::int64_t t) { return sequences.symbols(sequence, t); };
    alignas(16) std::byte vectors[HmmVectors<double>::bytes(small_states)];
    return sweep_chain(SingleThread(), step, symbol_at, parameters.states(), length, tolerance, vectors);
  }

  /// The row of the emission weights for a step; notes a symbol out of range.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t emission_row(std::int64_t sequence, std::int64_t t, bool& is_bad) const {
    const std::int64_t symbol = sequences.symbols(sequence, t);
    const std::int64_t symbols = parameters.symbols();
    is_bad = is_bad || symbol >= symbols;
    return symbol < 0 || symbol >= symbols ? symbols : symbol;
  }
};

/// A thread owns one sequence after the other, with its states in registers: hosts.
template <class ExecutionSpace, class Real>
struct HmmForwardInRegisters : HmmSmallModel<ExecutionSpace, Real> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    const SmallModel<Real> model(memory, this->parameters.symbols());
    fill_small_model(this->parameters, model, team.team_rank(), team.team_size(), [&] { team.team_barrier(); });
    team.team_barrier();  // the weights are complete
    describe_small_model(model, this->parameters.states(), team.team_rank(), team.team_size());
    team.team_barrier();  // the model is complete
    const std::int64_t threads = std::int64_t{team.league_size()} * team.team_size();
    std::int64_t sequence = std::int64_t{team.league_rank()} * team.team_size() + team.team_rank();
    for (; sequence < this->sequences.batch(); sequence += threads) {
      this->results.write(sequence, evaluate(model, memory, sequence));
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION HmmResult evaluate(const SmallModel<Real>& model, std::byte* memory,
                                                 std::int64_t sequence) const {
    const std::int64_t length = this->sequences.length(sequence);
    HmmResult settled;
    if (!this->has_steps(length, settled)) return settled;
    const std::uint32_t flags = model.template flags_of<Real>();
    bool is_bad = false;
    for (std::int64_t t = 0; t < length && !is_bad; ++t) this->emission_row(sequence, t, is_bad);
    return this->result(memory, flags, is_bad, {}, sequence, length);
  }
};

/// What stands for the log-likelihood of a sequence that is still to climb the ladder. No result is +infinity.
template <class Real>
inline constexpr Real open = infinity<Real>();

/// matrix_lanes lanes own a direction of a sequence, the matrix is in their registers (matrix_sweep.hpp): for batches that
/// fill a GPU. The warps of the league take the sequences in turns, neighbouring ones by neighbouring teams, so that the
/// last turn is spread over all of it. Sequences that climb wait until the end: the ladder needs the registers.
template <class ExecutionSpace, class Real>
struct HmmForwardInMatrices : HmmSmallModel<ExecutionSpace, Real> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Warp = LaneGroup<ExecutionSpace>;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  static constexpr int lanes = matrix_lanes<Real>;
  static constexpr int per_warp = Warp::size / (2 * lanes);

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    const SmallModel<Real> model(memory, this->parameters.symbols());
    const int member = team.team_rank() * Warp::size + Warp::rank();
    const int members = team.team_size() * Warp::size;
    fill_small_model(this->parameters, model, member, members, [&] { team.team_barrier(); });
    team.team_barrier();  // the weights are complete
    describe_small_model(model, this->parameters.states(), member, members);
    team.team_barrier();  // the model is complete
    const std::int64_t warp = std::int64_t{team.team_rank()} * team.league_size() + team.league_rank();
    const std::int64_t warps = std::int64_t{team.team_size()} * team.league_size();
    if (watches_without_zeros(model.template flags_of<Real>())) {
      evaluate_all<true>(model, warp, warps);
    } else {
      evaluate_all<false>(model, warp, warps);
    }
    team.team_barrier();  // every sequence of the team has its result, or is open
    for (std::int64_t first = warp * per_warp; first < this->sequences.batch(); first += warps * per_warp) {
      const std::int64_t sequence = first + Warp::rank();
      if (Warp::rank() < per_warp && sequence < this->sequences.batch() &&
          this->results.log_likelihood(sequence) == open<Real>) {
        this->results.write(sequence, result_of(this->climb(memory, sequence, this->sequences.length(sequence))));
      }
    }
  }

  template <bool without_zeros>
  KOKKOS_FORCEINLINE_FUNCTION void evaluate_all(const SmallModel<Real>& model, std::int64_t warp,
                                                std::int64_t warps) const {
    using Chain = MatrixChain<Warp, Real, without_zeros>;
    const int place = Warp::rank() % lanes * Chain::own;  // of this lane's first state
    const bool goes_back = Warp::rank() / lanes % 2 != 0;
    const auto states = static_cast<int>(this->parameters.states());
    const std::uint32_t flags = model.template flags_of<Real>();
    const auto& weights = model.template weights<Real>();
    Chain chain(goes_back ? weights.transposed : weights.trans);

    const std::int64_t batch = this->sequences.batch();
    for (std::int64_t first = warp * per_warp; first < batch; first += warps * per_warp) {
      const std::int64_t sequence = first + Warp::rank() / (2 * lanes);
      const bool is_real = sequence < batch;
      const std::int64_t length = is_real ? this->sequences.length(sequence) : 0;
      HmmResult result;
      const bool has_steps = this->has_steps(length, result);
      const int both = has_steps ? static_cast<int>(length) : 0;
      const int steps = goes_back ? both / 2 : (both + 1) / 2;
      SymbolReader symbols(this->sequences, this->parameters.symbols(), sequence, goes_back ? length - 1 : 0, goes_back,
                           steps);
      chain.run(goes_back ? nullptr : weights.init + place, weights.emit + place, symbols, steps);

      // The forward lanes join what is one transition ahead of them with the vector of the backward lanes.
      Real ahead[Chain::own];
      chain.advance(ahead);
      double total[Chain::own];
      bool kept = true;
      BELLMAN_UNROLL
      for (int j = 0; j < Chain::own; ++j) {
        const Real sum = both > 1 ? ahead[j] : chain.value(j);
        if (!goes_back) chain.watch().template see<without_zeros>(sum);
        const Real behind = Warp::from_partner(chain.value(j), lanes);
        total[j] = place + j < states ? joined(sum, behind, kept) : 0.0;
      }
      kept = (kept || goes_back) && chain.watch().is_high();
      BELLMAN_UNROLL
      for (int bit = 1; bit < Chain::own; bit *= 2) {
        BELLMAN_UNROLL
        for (int j = 0; j < Chain::own; j += 2 * bit) total[j] += total[j + bit];
      }
      BELLMAN_UNROLL
      for (int bit = 1; bit < lanes; bit *= 2) total[0] += Warp::from_partner(total[0], bit);
      const std::int64_t exponent = chain.exponent() + Warp::from_partner(chain.exponent(), lanes);
      constexpr std::uint32_t group = (1u << (2 * lanes - 1) << 1) - 1;
      const int leader = Warp::rank() / (2 * lanes) * (2 * lanes);
      const bool all_kept = (Warp::ballot(!kept) >> leader & group) == 0;
      const bool any_bad = (Warp::ballot(symbols.is_bad()) >> leader & group) != 0;
      if (Warp::rank() == leader && is_real) {
        if (has_steps) {
          const Judgement judgement = ChainArithmetic<Real>::finish(total[0], exponent, all_kept && may_certify(flags),
                                                                    length, log_likelihood_tolerance<Real>);
          result = flags & row_has_nan   ? HmmResult{quiet_nan<double>(), Status::not_a_number}
                   : any_bad             ? HmmResult{quiet_nan<double>(), Status::bad_symbol}
                   : judgement.certified ? result_of(judgement)
                                         : HmmResult{open<double>, Status::ok};
        }
        this->results.write(sequence, result);
      }
      Warp::sync();  // the warp starts on its next sequences together
    }
  }
};

/// A team owns one sequence: its warps normalise the model, then the first goes forward and the second backward, a state per
/// lane, while the others add what only the end needs: for batches that leave the hardware idle.
template <class ExecutionSpace, class Real>
struct HmmForwardInLanes : HmmSmallModel<ExecutionSpace, Real> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Warp = LaneGroup<ExecutionSpace>;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t sequence = first_problem + team.league_rank();
    const std::int64_t length = this->sequences.length(sequence);
    const int direction = team.team_rank();
    HmmResult settled;
    if (!this->has_steps(length, settled)) {
      if (direction == 0 && Warp::rank() == 0) this->results.write(sequence, settled);
      return;
    }
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    auto& exchange = *reinterpret_cast<LaneExchange<Real>*>(memory);
    const SmallModel<Real> model(memory + sizeof(exchange), this->parameters.symbols());
    const bool goes_back = direction == 1;
    const int steps = static_cast<int>(direction > 1 ? 0 : goes_back ? length / 2 : (length + 1) / 2);
    SymbolReader symbols(this->sequences, this->parameters.symbols(), sequence, goes_back ? length - 1 : 0, goes_back,
                         steps);
    LaneChain<Warp, Real> chain(symbols, steps);
    const int member = direction * Warp::size + Warp::rank();
    const int members = team.team_size() * Warp::size;
    fill_small_model(this->parameters, model, member, members, [&] { team.team_barrier(); });
    team.team_barrier();  // the weights are complete

    if (direction < 2) {
      const auto& weights = model.template weights<Real>();
      if (steps > 0) {
        chain.run(goes_back ? nullptr : weights.init, goes_back ? weights.transposed : weights.trans, weights.emit,
                  exchange.vectors[direction][0]);
      }
      const bool any_bad = Warp::ballot(symbols.is_bad()) != 0;
      const bool is_high[2] = {chain.is_high(false), chain.is_high(true)};
      if (Warp::rank() == 0) {
        exchange.exponent[direction] = chain.exponent();
        exchange.is_high[direction][0] = is_high[0];
        exchange.is_high[direction][1] = is_high[1];
        exchange.is_bad[direction] = any_bad;
      }
    } else {
      describe_small_model(model, this->parameters.states(), member - 2 * Warp::size, members - 2 * Warp::size);
    }
    team.team_barrier();  // both directions are there, and the model is complete
    if (direction == 0) join(model, memory + sizeof(exchange), sequence, length, chain, exchange);
  }

  KOKKOS_FORCEINLINE_FUNCTION void join(const SmallModel<Real>& model, std::byte* memory, std::int64_t sequence,
                                        std::int64_t length, LaneChain<Warp, Real>& chain,
                                        const LaneExchange<Real>& exchange) const {
    const std::int64_t forward_steps = (length + 1) / 2;
    const Real* const forward = exchange.vectors[0][(forward_steps - 1) % 2];
    const Real* const backward = exchange.vectors[1][(length - forward_steps + 1) % 2];
    const int state = Warp::rank() % small_states;
    const Real ahead = length > 1 ? chain.advance(forward) : forward[state];
    chain.see(ahead);
    bool kept = true;
    double total = 0;
    if (state < this->parameters.states()) total = joined(ahead, length > 1 ? backward[state] : Real(1), kept);
    BELLMAN_UNROLL
    for (int bit = 1; bit < small_states; bit *= 2) total += Warp::from_partner(total, bit);
    kept = Warp::ballot(!kept) == 0;
    const std::uint32_t flags = model.template flags_of<Real>();
    const int watch = watches_without_zeros(flags) ? 1 : 0;
    kept = kept && chain.is_high(watch != 0) && exchange.is_high[0][watch] && exchange.is_high[1][watch];
    if (Warp::rank() != 0) return;
    const Judgement judgement =
        ChainArithmetic<Real>::finish(total, exchange.exponent[0] + exchange.exponent[1], kept && may_certify(flags),
                                      length, log_likelihood_tolerance<Real>);
    const bool is_bad = exchange.is_bad[0] || exchange.is_bad[1];
    this->results.write(sequence, this->result(memory, flags, is_bad, judgement, sequence, length));
  }
};

}  // namespace

template <class ExecutionSpace, class Real>
void hmm_log_likelihood(const ExecutionSpace& exec, const HmmPlan& plan,
                        const HmmParameters<ExecutionSpace, Real>& parameters, const HmmSequences& sequences,
                        const StridedView<Real*, ExecutionSpace>& log_likelihood,
                        const StridedView<Status*, ExecutionSpace>& statuses,
                        const StridedView<std::byte*, ExecutionSpace>& workspace) {
  const ProfilingRegion region("bellman::hmm_log_likelihood");
  if (sequences.batch() == 0) return;
  std::byte* model = nullptr;
  if (plan.workspace_bytes > 0) {
    model = aligned(workspace.data());
    const HmmTables<double> tables(model, parameters.states(), parameters.symbols());
    using Rows = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("bellman::hmm_log_likelihood::normalise", Rows(exec, 0, 1 + 2 * parameters.states()),
                         HmmNormaliseRow<ExecutionSpace, Real>{parameters, tables});
  }
  static const std::string label = "bellman::hmm_log_likelihood::sweep";
  const HmmResults<ExecutionSpace, Real> results{log_likelihood, statuses};
  const HmmSmallModel<ExecutionSpace, Real> small{parameters, sequences, results};
  if (plan.sweep == HmmSweep::registers) {
    if constexpr (!has_warps<ExecutionSpace>()) {
      launch_teams(label, exec, HmmForwardInRegisters<ExecutionSpace, Real>{small, plan.scratch_bytes},
                   plan.league_size, plan.team_threads, 1, plan.scratch_level, plan.scratch_bytes);
    }
  } else if (plan.sweep == HmmSweep::matrices) {
    if constexpr (has_warps<ExecutionSpace>()) {
      launch_teams<256, 1>(label, exec, HmmForwardInMatrices<ExecutionSpace, Real>{small, plan.scratch_bytes},
                           plan.league_size, plan.team_threads, lanes_of<ExecutionSpace>, plan.scratch_level,
                           plan.scratch_bytes);
    }
  } else if (plan.sweep == HmmSweep::lanes) {
    if constexpr (has_warps<ExecutionSpace>()) {
      launch_teams<288, 2>(label, exec, HmmForwardInLanes<ExecutionSpace, Real>{small, plan.scratch_bytes},
                           plan.league_size, plan.team_threads, lanes_of<ExecutionSpace>, plan.scratch_level,
                           plan.scratch_bytes);
    }
  } else {
    launch_teams(label, exec,
                 HmmForwardTeam<ExecutionSpace, Real>{parameters, sequences, results, plan.first, plan.scratch_level,
                                                      plan.scratch_bytes, model},
                 plan.league_size, plan.team_threads, 1, plan.scratch_level, plan.scratch_bytes);
  }
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
