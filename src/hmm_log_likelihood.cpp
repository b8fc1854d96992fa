// SPDX-License-Identifier: Apache-2.0
#include <bellman/accuracy.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/block_sweep.hpp>
#include <bellman/impl/chain_sweep.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_recurrence.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/host_kernels.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/matrix_sweep.hpp>
#include <bellman/impl/register_sweep.hpp>
#include <bellman/impl/state_tile.hpp>

#include "hmm_state_tiles.hpp"
#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

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
    const HmmResult result = evaluate(team, sequence, team_scratch(team, scratch_level, scratch_bytes));
    if (team.team_rank() == 0) results.write(sequence, result);
  }

  KOKKOS_FUNCTION HmmResult evaluate(const Team& team, std::int64_t sequence, std::byte* vectors) const {
    const std::int64_t length = sequences.length(sequence);
    if (length < 0 || length > sequences.steps()) return {quiet_nan<double>(), Status::bad_length};
    if (length == 0) return {0, Status::empty};

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

/// Teams take the sequences that a sweep by tiles or by steps has marked as uncertified further up the ladder.
template <class ExecutionSpace, class Real>
struct HmmClimbTeam : HmmForwardTeam<ExecutionSpace, Real> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t batch = this->sequences.batch();
    const std::int64_t first = batch * team.league_rank() / team.league_size();
    const std::int64_t last = batch * (team.league_rank() + 1) / team.league_size();
    const auto is_marked = [&](std::int64_t sequence) {
      return is_uncertified<Real>(this->results.log_likelihood(sequence));
    };
    int marked = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, first, last),
        [&](std::int64_t sequence, int& any) { any |= is_marked(sequence) ? 1 : 0; }, Kokkos::BOr<int>(marked));
    if (marked == 0) return;
    std::byte* const vectors = team_scratch(team, this->scratch_level, this->scratch_bytes);
    for (std::int64_t sequence = first; sequence < last; ++sequence) {
      if (!is_marked(sequence)) continue;
      const HmmResult result = this->evaluate(team, sequence, vectors);
      team.team_barrier();  // everybody has seen the mark, and is done with the scratch
      if (team.team_rank() == 0) this->results.write(sequence, result);
    }
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

  using Warp = LaneGroup<ExecutionSpace>;

  /// Normalises the model with all warps of a team. A barrier behind is the caller's.
  template <class Team>
  KOKKOS_FORCEINLINE_FUNCTION void make_model(const Team& team, const SmallModel<Real>& model) const {
    const int warp = team.team_rank();
    const int warps = team.team_size();
    clear_small_description(model, warp * Warp::size + Warp::rank(), warps * Warp::size);
    if constexpr (is_float<Real>) {
      fill_small_weights(parameters, model, warp, warps, model.in_double, model.in_float);
    } else {
      fill_small_weights(parameters, model, warp, warps, model.in_double);
    }
    team.team_barrier();  // nobody describes the model before it is clear
    describe_small_model(parameters, model, warp, warps);
  }

  /// The part of warp \p warp of \p warps in the weights that a sweep reads; a barrier behind is the caller's.
  KOKKOS_FORCEINLINE_FUNCTION void make_weights(const SmallModel<Real>& model, int warp, int warps) const {
    fill_small_weights(parameters, model, warp, warps, model.template weights<Real>());
    clear_small_description(model, warp * Warp::size + Warp::rank(), warps * Warp::size);
  }
  /// The same for all the rest, which only the end needs.
  KOKKOS_FORCEINLINE_FUNCTION void complete_model(const SmallModel<Real>& model, int warp, int warps) const {
    if constexpr (is_float<Real>) {
      fill_small_weights(parameters, model, warp, warps, model.in_double);
      Warp::sync();
    }
    describe_small_model(parameters, model, warp, warps);
  }

  /// Whether a sequence has steps; the result of others is known.
  KOKKOS_FORCEINLINE_FUNCTION bool has_steps(std::int64_t length, HmmResult& otherwise) const {
    const bool is_legal = length >= 0 && length <= sequences.steps();
    otherwise = is_legal ? HmmResult{0, Status::empty} : HmmResult{quiet_nan<double>(), Status::bad_length};
    return is_legal && length > 0;
  }

  /// Writes the result of a sequence that has steps, from what its first sweep found; all lanes of a warp together.
  KOKKOS_FORCEINLINE_FUNCTION void settle(std::byte* memory, std::uint32_t flags, bool is_bad,
                                          const Judgement& judgement, std::int64_t sequence,
                                          std::int64_t length) const {
    HmmResult result = result_of(judgement);
    if (is_bad) result = {quiet_nan<double>(), Status::bad_symbol};
    if (flags & row_has_nan) result = {quiet_nan<double>(), Status::not_a_number};
    if (judgement.certified || result.status == Status::bad_symbol || result.status == Status::not_a_number) {
      if (Warp::rank() == 0) results.write(sequence, result);
    } else {
      climb(*this, memory, sequence, length);
    }
  }

  /// Finds and writes what the sweeps for GPUs do not certify, with a warp: rare, and not worth the registers that inlining
  /// it would cost. The kernel itself comes by value: if its address were taken, all of it would be copied to memory when
  /// it starts. The model is found again from its memory for the same reason.
  BELLMAN_NOINLINE KOKKOS_FUNCTION static void climb(HmmSmallModel self, std::byte* memory, std::int64_t sequence,
                                                     std::int64_t length) {
    const SmallModel<Real> model(memory, self.parameters.symbols());
    const auto states = static_cast<int>(self.parameters.states());
    constexpr double tolerance = log_likelihood_tolerance<Real>;
    bool is_bad = false;
    const auto row_at = [&](std::int64_t t) { return self.emission_row(sequence, t, is_bad); };
    Judgement judgement;
    if ((model.template flags_of<Real>() & row_is_unusable) == 0) {
      judgement = sweep_with_care<Warp, Real>(model, states, row_at, length, tolerance);
    }
    if (is_float<Real> && !judgement.certified && (model.template flags_of<double>() & row_is_unusable) == 0) {
      judgement = sweep_with_care<Warp, double>(model, states, row_at, length, tolerance);
    }
    if (!judgement.certified) judgement = self.in_logarithms(model, sequence, length);
    if (Warp::rank() == 0) self.results.write(sequence, result_of(judgement));
  }

  /// The last rung, in one thread.
  KOKKOS_FUNCTION Judgement in_logarithms(const SmallModel<Real>& model, std::int64_t sequence,
                                          std::int64_t length) const {
    constexpr double tolerance = log_likelihood_tolerance<Real>;
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

/// What stands for the log-likelihood of a sequence that is still to climb the ladder. No result is +infinity.
template <class Real>
inline constexpr Real open = infinity<Real>();

/// The result of a sequence, as HmmSmallModel::settle() has it, if it need not climb.
KOKKOS_FORCEINLINE_FUNCTION HmmResult result_or_open(std::uint32_t flags, bool is_bad, const Judgement& judgement) {
  if (flags & row_has_nan) return {quiet_nan<double>(), Status::not_a_number};
  if (is_bad) return {quiet_nan<double>(), Status::bad_symbol};
  return judgement.certified ? result_of(judgement) : HmmResult{open<double>, Status::ok};
}

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
    this->make_model(team, model);
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
      const bool is_open = Warp::rank() < per_warp && sequence < this->sequences.batch() &&
                           this->results.log_likelihood(sequence) == open<Real>;
      const std::uint32_t all_open = Warp::ballot(is_open);
      for (int k = 0; k < per_warp && all_open != 0; ++k) {
        if (all_open >> k & 1) this->climb(*this, memory, first + k, this->sequences.length(first + k));
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
          result = result_or_open(flags, any_bad, judgement);
        }
        this->results.write(sequence, result);
      }
      Warp::sync();  // the warp starts on its next sequences together
    }
  }
};

/// A team owns one sequence: its first warp goes forward and its second backward, a state per lane. The others normalise the
/// model before and add what only the end needs meanwhile: for batches that leave the hardware idle.
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
    if (direction > 1) this->make_weights(model, direction - 2, team.team_size() - 2);
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
      this->complete_model(model, direction - 2, team.team_size() - 2);
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
    const Judgement judgement =
        ChainArithmetic<Real>::finish(total, exchange.exponent[0] + exchange.exponent[1], kept && may_certify(flags),
                                      length, log_likelihood_tolerance<Real>);
    const bool is_bad = exchange.is_bad[0] || exchange.is_bad[1];
    this->settle(memory, flags, is_bad, judgement, sequence, length);
  }
};

/// One pass over some long sequences on one rung of the ladder. Kernels of more than 512 bytes could not be captured in a
/// graph: what follows from the rest is not kept.
template <class ExecutionSpace, class Real>
struct HmmBlockPass : HmmSmallModel<ExecutionSpace, Real> {
  std::byte* memory;
  std::int64_t first_sequence;
  int turn;
  bool climbs;  ///< only sequences that are still open

  KOKKOS_FUNCTION BlockCut cut() const { return BlockCut(this->sequences.steps()); }
  KOKKOS_FUNCTION BlockWorkspace workspace() const { return BlockWorkspace(memory, cut()); }
  /// How many sequences there are.
  KOKKOS_FUNCTION std::int64_t count() const {
    const std::int64_t rest = this->sequences.batch() - first_sequence;
    return rest < cut().sequences ? rest : cut().sequences;
  }
  KOKKOS_FUNCTION bool is_wanted(std::int64_t sequence) const {
    return !climbs || this->results.log_likelihood(sequence) == open<Real>;
  }
  KOKKOS_FUNCTION bool has_work() const {
    for (std::int64_t k = 0; k < count(); ++k) {
      if (is_wanted(first_sequence + k)) return true;
    }
    return false;
  }
  /// The steps of a sequence that this pass has to do with at all.
  KOKKOS_FUNCTION std::int64_t length(std::int64_t sequence) const {
    if (!is_wanted(sequence)) return 0;
    const std::int64_t given = this->sequences.length(sequence);
    return given <= this->sequences.steps() ? given : 0;
  }
  /// The first step of the pass; step 0 needs no transition.
  KOKKOS_FUNCTION std::int64_t begin() const { return 1 + turn * cut().blocks * BlockCut::steps; }
  KOKKOS_FUNCTION std::int64_t blocks_of(std::int64_t sequence) const {
    const std::int64_t rest = length(sequence) - begin();
    const std::int64_t blocks = rest <= 0 ? 0 : (rest + BlockCut::steps - 1) / BlockCut::steps;
    return blocks < cut().blocks ? blocks : cut().blocks;
  }
};

/// Long sequences (block_sweep.hpp), first kernel: a warp owns a block of steps of a sequence, or half of one, and takes each
/// state through it, as HmmForwardInMatrices takes sequences.
template <class ExecutionSpace, class Score, class Real>
struct HmmBlockChains : HmmBlockPass<ExecutionSpace, Score> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Warp = LaneGroup<ExecutionSpace>;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  static constexpr int lanes = matrix_lanes<Real>;
  static constexpr int per_warp = Warp::size / lanes;
  static constexpr int warps_per_block = small_states / per_warp;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    if (!this->has_work()) return;
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    const SmallModel<Score> model(memory, this->parameters.symbols());
    this->make_model(team, model);
    team.team_barrier();  // the model is complete
    const std::int64_t warp = std::int64_t{team.team_rank()} * team.league_size() + team.league_rank();
    const std::int64_t warps = std::int64_t{team.team_size()} * team.league_size();
    if (watches_without_zeros(model.template flags_of<Real>())) {
      multiply_all<true>(model, warp, warps);
    } else {
      multiply_all<false>(model, warp, warps);
    }
  }

  template <bool without_zeros>
  KOKKOS_FORCEINLINE_FUNCTION void multiply_all(const SmallModel<Score>& model, std::int64_t warp,
                                                std::int64_t warps) const {
    using Chain = MatrixChain<Warp, Real, without_zeros>;
    const int place = Warp::rank() % lanes * Chain::own;  // of this lane's first state
    const auto& weights = model.template weights<Real>();
    const bool certifies = may_certify(model.template flags_of<Real>());
    Chain chain(weights.trans);
    const BlockCut cut = this->cut();
    const BlockWorkspace workspace = this->workspace();
    const std::int64_t tasks = this->count() * cut.blocks * warps_per_block;
    for (std::int64_t task = warp; task < tasks; task += warps) {
      const std::int64_t matrix = task / warps_per_block;
      const auto half = static_cast<int>(task % warps_per_block);
      const std::int64_t sequence = this->first_sequence + matrix / cut.blocks;
      const std::int64_t begin = this->begin() + matrix % cut.blocks * BlockCut::steps;
      const std::int64_t rest = this->length(sequence) - begin;
      if (rest <= 0) continue;
      const auto steps = static_cast<int>(rest < BlockCut::steps ? rest : BlockCut::steps);
      const int row = half * per_warp + Warp::rank() / lanes;
      SymbolReader symbols(this->sequences, this->parameters.symbols(), sequence, begin, false, steps);
      chain.run(weights.trans + row * small_states + place, weights.emit + place, symbols, steps);

      const BlockMatrices& blocks = workspace.blocks;
      BELLMAN_UNROLL
      for (int j = 0; j < Chain::own; ++j) {
        blocks.value[(matrix * small_states + row) * small_states + place + j] = static_cast<double>(chain.value(j));
      }
      if (place == 0) blocks.exponent[matrix * small_states + row] = chain.exponent();
      const bool is_kept = row >= this->parameters.states() || (certifies && chain.watch().is_high());
      const std::uint32_t flags = (Warp::ballot(!is_kept) != 0 ? block_is_lost : 0u) |
                                  (Warp::ballot(symbols.is_bad()) != 0 ? block_has_bad_symbol : 0u);
      if (Warp::rank() == 0) {
        blocks.flags[2 * matrix + half] = flags;
        if (warps_per_block == 1) blocks.flags[2 * matrix + 1] = 0;
      }
    }
  }
};

/// Second kernel: a team multiplies the blocks of a group, a lane per entry.
template <class ExecutionSpace, class Score>
struct HmmBlockGroups : HmmBlockPass<ExecutionSpace, Score> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Warp = LaneGroup<ExecutionSpace>;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const BlockCut cut = this->cut();
    const BlockWorkspace workspace = this->workspace();
    const std::int64_t matrix = first_problem + team.league_rank();
    const std::int64_t slot = matrix / cut.groups;
    const std::int64_t first = matrix % cut.groups * BlockCut::group;
    const std::int64_t rest = this->blocks_of(this->first_sequence + slot) - first;
    if (rest <= 0) return;
    const std::int64_t count = rest < BlockCut::group ? rest : BlockCut::group;

    auto& product = *reinterpret_cast<BlockProduct*>(
        aligned(team_scratch(team, ScratchLevel::fast, sizeof(BlockProduct) + alignment_slack)));
    const int entry = team.team_rank() * Warp::size + Warp::rank();
    const auto states = static_cast<int>(this->parameters.states());
    const int row = entry / small_states;
    product.vectors[0][entry] = row == entry % small_states && row < states ? 1 : 0;
    if (entry == 0) product.flags = 0;
    std::int64_t exponent = 0;
    const std::int64_t from = slot * cut.blocks + first;
    const bool is_lost =
        multiply_blocks(workspace.blocks, from, count, states, entry, product, exponent, [&] { team.team_barrier(); });
    std::uint32_t flags = is_lost ? block_is_lost : 0u;
    if (entry < 2 * count) flags |= workspace.blocks.flags[2 * from + entry];
    if (flags != 0) Kokkos::atomic_or(&product.flags, flags);
    const BlockMatrices& groups = workspace.groups;
    groups.value[matrix * BlockMatrices::entries + entry] = product.vectors[count % 2][entry];
    if (entry % small_states == 0) groups.exponent[matrix * small_states + row] = exponent;
    team.team_barrier();  // the flags are complete
    if (entry < 2) groups.flags[2 * matrix + entry] = product.flags;
  }
};

/// Third kernel: a team takes the vector of a sequence through its groups, and judges the result after the last pass.
template <class ExecutionSpace, class Score, class Real>
struct HmmBlockVector : HmmBlockPass<ExecutionSpace, Score> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Warp = LaneGroup<ExecutionSpace>;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t slot = first_problem + team.league_rank();
    const std::int64_t sequence = this->first_sequence + slot;
    if (!this->is_wanted(sequence)) return;
    const int entry = team.team_rank() * Warp::size + Warp::rank();
    const std::int64_t length = this->sequences.length(sequence);
    HmmResult result;
    if (!this->has_steps(length, result)) {
      if (entry == 0) this->results.write(sequence, result);
      return;
    }
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    auto& product = *reinterpret_cast<BlockProduct*>(memory);
    const SmallModel<Score> model(memory + sizeof(BlockProduct), this->parameters.symbols());
    this->make_model(team, model);

    const auto states = static_cast<int>(this->parameters.states());
    const BlockCut cut = this->cut();
    const BlockWorkspace workspace = this->workspace();
    BlockCarry& carry = workspace.carry[slot];
    std::int64_t exponent = 0;
    std::uint32_t flags = 0;
    double start = 0;
    if (this->turn > 0) {
      exponent = carry.exponent;
      flags = static_cast<std::uint32_t>(carry.flags);
      if (entry < states) start = carry.value[entry];
    } else {
      bool is_bad = false;
      const std::int64_t symbol = this->emission_row(sequence, 0, is_bad);
      if (is_bad) flags |= block_has_bad_symbol;
      if (entry < states) {
        const double init = model.in_double.init[entry];
        const double emission = model.in_double.emit[symbol * SmallWeights<double>::emit_pitch + entry];
        start = init * emission;
        if (start < power_of_two<double>(lowest_block_product) && init != 0 && emission != 0) flags |= block_is_lost;
      }
    }
    product.vectors[0][entry] = start;  // only the first row is of use
    if (entry == 0) product.flags = 0;
    team.team_barrier();  // everybody has read the carry, and the model is complete
    const std::int64_t count = (this->blocks_of(sequence) + BlockCut::group - 1) / BlockCut::group;
    const std::int64_t from = slot * cut.groups;
    const bool is_lost =
        multiply_blocks(workspace.groups, from, count, states, entry, product, exponent, [&] { team.team_barrier(); });
    if (is_lost) flags |= block_is_lost;
    for (std::int64_t k = entry; k < count; k += BlockMatrices::entries) {
      flags |= workspace.groups.flags[2 * (from + k)];
    }
    if (flags != 0) Kokkos::atomic_or(&product.flags, flags);
    team.team_barrier();  // the flags are complete
    const double* const vector = product.vectors[count % 2];
    if (entry < small_states) carry.value[entry] = vector[entry];
    for (int row = entry; row < 1 + 2 * states; row += BlockMatrices::entries) {
      carry.normaliser[row] = model.normaliser[row];
    }
    if (entry != 0) return;
    carry.exponent = exponent;
    carry.flags = product.flags;
    if (this->turn + 1 < cut.passes) return;

    const std::uint32_t of_model = model.template flags_of<Real>();
    double total = 0;
    for (int j = 0; j < states; ++j) total += vector[j];
    const bool is_kept = (product.flags & block_is_lost) == 0 && (of_model & row_is_unusable) == 0;
    const Judgement judgement =
        ChainArithmetic<Real>::finish(total, exponent, is_kept, length, log_likelihood_tolerance<Score>);
    const bool any_bad = (product.flags & block_has_bad_symbol) != 0;
    this->results.write(sequence, result_or_open(of_model, any_bad, judgement));
  }
};

/// The last rung of long sequences: a team owns one, a thread a state.
template <class ExecutionSpace, class Score>
struct HmmBlockLast : HmmBlockPass<ExecutionSpace, Score> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t slot = first_problem + team.league_rank();
    const std::int64_t sequence = this->first_sequence + slot;
    if (!this->is_wanted(sequence)) return;
    std::byte* const vectors = team_scratch(team, ScratchLevel::fast, HmmVectors<double>::bytes(small_states));
    const LogHmmStep<ExecutionSpace, Score> step(this->parameters, this->workspace().carry[slot].normaliser);
    const auto symbol_at = [&](std::int64_t t) { return this->sequences.symbols(sequence, t); };
    const Judgement judgement = sweep_chain(team, step, symbol_at, this->parameters.states(),
                                            this->sequences.length(sequence), log_likelihood_tolerance<Score>, vectors);
    if (team.team_rank() == 0) this->results.write(sequence, result_of(judgement));
  }
};

/// Launches what long sequences take: some of them at a time, their passes, and the rungs of the ladder.
template <class ExecutionSpace, class Real>
void launch_blocks(const std::string& label, const ExecutionSpace& exec, const HmmPlan& plan,
                   const HmmSmallModel<ExecutionSpace, Real>& small, std::byte* workspace) {
  const BlockCut cut(small.sequences.steps());
  constexpr int lanes = lanes_of<ExecutionSpace>;
  constexpr int threads = BlockCut::team_threads;
  constexpr auto fast = ScratchLevel::fast;
  HmmBlockPass<ExecutionSpace, Real> pass{small, workspace, 0, 0, false};
  const auto run_rung = [&](auto zero) {
    using Weight = decltype(zero);
    for (pass.turn = 0; pass.turn < static_cast<int>(cut.passes); ++pass.turn) {
      launch_teams<256, 1>(label, exec, HmmBlockChains<ExecutionSpace, Real, Weight>{pass, plan.scratch_bytes},
                           plan.league_size, threads, lanes, fast, plan.scratch_bytes);
      constexpr std::size_t product_bytes = sizeof(BlockProduct) + alignment_slack;
      launch_teams<256, 1>(label, exec, HmmBlockGroups<ExecutionSpace, Real>{pass, product_bytes},
                           pass.count() * cut.groups, threads, lanes, fast, product_bytes);
      launch_teams<256, 1>(label, exec, HmmBlockVector<ExecutionSpace, Real, Weight>{pass, plan.scratch_bytes},
                           pass.count(), threads, lanes, fast, plan.scratch_bytes);
    }
    pass.climbs = true;
  };
  for (; pass.first_sequence < small.sequences.batch(); pass.first_sequence += cut.sequences) {
    pass.climbs = false;
    if constexpr (is_float<Real>) run_rung(float{});
    run_rung(double{});
    constexpr std::size_t vector_bytes = HmmVectors<double>::bytes(small_states);
    launch_teams(label, exec, HmmBlockLast<ExecutionSpace, Real>{pass, vector_bytes}, pass.count(), small_states, 1,
                 fast, vector_bytes);
  }
}

/// A team is one thread of a host: it takes a few sequences at a time, a state per SIMD lane (src/host). Those that are not
/// certified go on in double, and from there one by one. A chain's numbers do not depend on those beside it.
template <class ExecutionSpace, class Real>
struct HmmForwardInPacks : HmmSmallModel<ExecutionSpace, Real> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  static constexpr int most_together = 4;
  static constexpr int block = 256;  ///< steps whose symbols are looked up at once

  ScratchLevel scratch_level;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  void operator()(const Team& team) const {
    std::byte* const memory = aligned(team_scratch(team, scratch_level, scratch_bytes), most_register_bytes);
    const SmallModel<Real> model(memory, this->parameters.symbols());
    if constexpr (is_float<Real>) {
      fill_small_weights(this->parameters, model, 0, 1, model.in_double, model.in_float);
    } else {
      fill_small_weights(this->parameters, model, 0, 1, model.in_double);
    }
    clear_small_description(model, 0, 1);
    describe_small_model(this->parameters, model, 0, 1);
    // Fewer at a time where there are not enough for all threads.
    const std::int64_t batch = this->sequences.batch();
    const std::int64_t share = (batch + team.league_size() - 1) / team.league_size();
    const std::int64_t together = std::min<std::int64_t>(share, at_a_time<Real>());
    for (std::int64_t first = team.league_rank() * together; first < batch; first += team.league_size() * together) {
      evaluate(model, first, static_cast<int>(std::min(together, batch - first)));
    }
  }

 private:
  template <class Weight>
  static int at_a_time() {
    const int together = is_float<Weight> ? host_kernels().floats_together : host_kernels().doubles_together;
    return std::min(together, most_together);
  }

  void evaluate(const SmallModel<Real>& model, std::int64_t first, int count) const {
    std::int64_t left[most_together];
    int size = 0;
    for (std::int64_t sequence = first; sequence < first + count; ++sequence) {
      HmmResult otherwise;
      if (!this->has_steps(this->sequences.length(sequence), otherwise)) {
        this->results.write(sequence, otherwise);
      } else if (model.template flags_of<double>() & row_has_nan) {
        this->results.write(sequence, {quiet_nan<double>(), Status::not_a_number});
      } else {
        left[size++] = sequence;
      }
    }
    size = try_rung<Real>(model, left, size);
    if constexpr (is_float<Real>) {
      int still_left = 0;
      for (int done = 0; done < size; done += at_a_time<double>()) {
        std::int64_t pack[most_together];
        const int pack_size = std::min(at_a_time<double>(), size - done);
        std::copy_n(left + done, pack_size, pack);
        const int failed = try_rung<double>(model, pack, pack_size);
        std::copy_n(pack, failed, left + still_left);
        still_left += failed;
      }
      size = still_left;
    }
    for (int k = 0; k < size; ++k) {
      const std::int64_t length = this->sequences.length(left[k]);
      this->results.write(left[k], result_of(this->in_logarithms(model, left[k], length)));
    }
  }

  template <class Weight>
  HostChainModel<Weight> chain_model(const SmallModel<Real>& model) const {
    const auto& weights = model.template weights<Weight>();
    return {weights.trans,
            weights.emit,
            SmallWeights<Weight>::emit_pitch,
            model.into,
            ChainArithmetic<Weight>::lowest_sum(),
            ChainArithmetic<Weight>::lowest_value()};
  }

  template <class Weight>
  static HostChain<Weight> start(const SmallWeights<Weight>& weights, std::int64_t row) {
    HostChain<Weight> chain{{}, 0, true};
    for (int j = 0; j < chain_states; ++j) {
      const Weight start = weights.init[j];
      const Weight emission = weights.emit[row * SmallWeights<Weight>::emit_pitch + j];
      chain.value[j] = start * emission;
      chain.kept =
          chain.kept && (start == 0 || emission == 0 || chain.value[j] >= ChainArithmetic<Weight>::lowest_value());
    }
    return chain;
  }

  bool emission_rows(std::int64_t sequence, std::int64_t step, int count, std::int32_t* rows) const {
    const IntegerView<2>& symbols = this->sequences.symbols;
    const std::int64_t size = std::int64_t{1} << static_cast<int>(symbols.type) % 4;
    const std::int64_t offset = sequence * symbols.strides[0] + step * symbols.strides[1];
    return host_kernels().emission_rows(static_cast<const std::byte*>(symbols.data) + offset * size, symbols.type,
                                        symbols.strides[1], count, this->parameters.symbols(), rows);
  }

  /// Runs one rung, unless the model is beyond its range, and writes the results that it certifies and those of sequences with
  /// bad symbols. The others are moved to the front. \return how many these are
  template <class Weight>
  int try_rung(const SmallModel<Real>& model, std::int64_t* which, int count) const {
    const bool runs = (model.template flags_of<Weight>() & row_is_unusable) == 0;
    const HostChainModel<Weight> weights = chain_model<Weight>(model);
    HostChain<Weight> chains[most_together];
    std::int32_t rows[most_together][block];
    bool is_bad[most_together] = {};
    int active[most_together];
    int active_count = count;
    for (int k = 0; k < count; ++k) active[k] = k;

    for (std::int64_t step = 0; active_count > 0;) {
      std::int64_t shortest = block;
      for (int k = 0; k < active_count; ++k) {
        shortest = std::min(shortest, this->sequences.length(which[active[k]]) - step);
      }
      const auto steps = static_cast<int>(shortest);
      const int begin = step == 0 ? 1 : 0;  // the first step is the start
      HostChain<Weight>* chain[most_together];
      const std::int32_t* row[most_together];
      for (int k = 0; k < active_count; ++k) {
        const int c = active[k];
        is_bad[c] = emission_rows(which[c], step, steps, rows[c]) || is_bad[c];
        if (step == 0) chains[c] = start(model.template weights<Weight>(), rows[c][0]);
        chain[k] = &chains[c];
        row[k] = rows[c] + begin;
      }
      if (runs) {
        const HostKernels& kernels = host_kernels();
        if constexpr (is_float<Weight>) {
          kernels.advance_floats(weights, chain, row, active_count, step + begin, steps - begin);
        } else {
          kernels.advance_doubles(weights, chain, row, active_count, step + begin, steps - begin);
        }
      }
      step += steps;
      int still_active = 0;
      for (int k = 0; k < active_count; ++k) {
        if (this->sequences.length(which[active[k]]) > step) active[still_active++] = active[k];
      }
      active_count = still_active;
    }

    int uncertified = 0;
    for (int k = 0; k < count; ++k) {
      Judgement judgement;
      if (runs) {
        double total = 0;
        for (int j = 0; j < this->parameters.states(); ++j) total += static_cast<double>(chains[k].value[j]);
        judgement = ChainArithmetic<Weight>::finish(total, chains[k].exponent, chains[k].kept,
                                                    this->sequences.length(which[k]), log_likelihood_tolerance<Real>);
      }
      if (is_bad[k]) {
        this->results.write(which[k], {quiet_nan<double>(), Status::bad_symbol});
      } else if (judgement.certified) {
        this->results.write(which[k], result_of(judgement));
      } else {
        which[uncertified++] = which[k];
      }
    }
    return uncertified;
  }
};
static_assert(chain_states == small_states && chain_rescale_period == ChainArithmetic<float>::rescale_period);

}  // namespace

template <class ExecutionSpace, class Real>
void hmm_log_likelihood(const ExecutionSpace& exec, const HmmPlan& plan,
                        const HmmParameters<ExecutionSpace, Real>& parameters, const HmmSequences& sequences,
                        const StridedView<Real*, ExecutionSpace>& log_likelihood,
                        const StridedView<Status*, ExecutionSpace>& statuses,
                        const StridedView<std::byte*, ExecutionSpace>& workspace) {
  const ProfilingRegion region("bellman::hmm_log_likelihood");
  if (sequences.batch() == 0) return;
  static const std::string label = "bellman::hmm_log_likelihood::sweep";
  const HmmResults<ExecutionSpace, Real> results{log_likelihood, statuses};
  if (plan.sweep == HmmSweep::tensors || plan.sweep == HmmSweep::tiles || plan.sweep == HmmSweep::steps) {
    if constexpr (has_warps<ExecutionSpace>()) {
      std::byte* const memory = aligned(workspace.data());
      sweep_state_tiles<ExecutionSpace, Real>(exec, plan, parameters, sequences, log_likelihood, statuses, memory);
      static const std::string climb_label = "bellman::hmm_log_likelihood::climb";
      launch_teams(climb_label, exec,
                   HmmClimbTeam<ExecutionSpace, Real>{{parameters, sequences, results, Rung::linear_double,
                                                       plan.scratch_level, plan.scratch_bytes, memory}},
                   plan.league_size, plan.team_threads, 1, plan.scratch_level, plan.scratch_bytes);
    }
    return;
  }
  std::byte* model = nullptr;
  if (plan.sweep == HmmSweep::chain && plan.workspace_bytes > 0) {
    model = aligned(workspace.data());
    const HmmTables<double> tables(model, parameters.states(), parameters.symbols());
    using Rows = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    static const std::string normalise_label = "bellman::hmm_log_likelihood::normalise";
    Kokkos::parallel_for(normalise_label, Rows(exec, 0, 1 + 2 * parameters.states()),
                         HmmNormaliseRow<ExecutionSpace, Real>{parameters, tables});
  }
  const HmmSmallModel<ExecutionSpace, Real> small{parameters, sequences, results};
  if (plan.sweep == HmmSweep::packs) {
    if constexpr (!has_warps<ExecutionSpace>()) {
      launch_teams(label, exec, HmmForwardInPacks<ExecutionSpace, Real>{small, plan.scratch_level, plan.scratch_bytes},
                   plan.league_size, plan.team_threads, 1, plan.scratch_level, plan.scratch_bytes);
    }
  } else if (plan.sweep == HmmSweep::matrices) {
    if constexpr (has_warps<ExecutionSpace>()) {
      launch_teams<256, 1>(label, exec, HmmForwardInMatrices<ExecutionSpace, Real>{small, plan.scratch_bytes},
                           plan.league_size, plan.team_threads, lanes_of<ExecutionSpace>, plan.scratch_level,
                           plan.scratch_bytes);
    }
  } else if (plan.sweep == HmmSweep::blocks) {
    if constexpr (has_warps<ExecutionSpace>()) launch_blocks(label, exec, plan, small, aligned(workspace.data()));
  } else if (plan.sweep == HmmSweep::lanes) {
    if constexpr (has_warps<ExecutionSpace>()) {
      launch_teams<416, 1>(label, exec, HmmForwardInLanes<ExecutionSpace, Real>{small, plan.scratch_bytes},
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
