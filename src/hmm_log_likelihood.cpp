// SPDX-License-Identifier: Apache-2.0
#include <bellman/accuracy.hpp>
#include <bellman/impl/chain_sweep.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_recurrence.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/host_kernels.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/register_sweep.hpp>
#include <bellman/impl/state_tile.hpp>

#include "hmm_state_tiles.hpp"
#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// Workspaces and scratch may start anywhere; tables start at the next multiple of alignment_slack.
KOKKOS_FUNCTION std::byte* aligned(std::byte* memory, std::size_t alignment = alignment_slack) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return memory + (alignment - address % alignment) % alignment;
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

/// The barrier of a thread that is its own team, as a function.
struct NoBarrier {
  KOKKOS_FUNCTION void operator()() const {}
};

/// What the kernels for small models share (register_sweep.hpp): the team normalises the model into its scratch.
template <class ExecutionSpace, class Real>
struct HmmSmallModel {
  HmmParameters<ExecutionSpace, Real> parameters;
  HmmSequences sequences;
  HmmResults<ExecutionSpace, Real> results;

  /// Whether the result of a sequence is known without looking at its symbols.
  KOKKOS_FORCEINLINE_FUNCTION bool is_settled(const SmallModel<Real>& model, std::int64_t length,
                                              HmmResult& result) const {
    result = {quiet_nan<double>(), Status::ok};
    if (length < 0 || length > sequences.steps()) {
      result.status = Status::bad_length;
    } else if (length == 0) {
      result = {0, Status::empty};
    } else if (model.template flags_of<double>() & row_has_nan) {
      result.status = Status::not_a_number;
    }
    return result.status != Status::ok;
  }

  /// The row of the emission weights for a step; notes a symbol out of range.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t emission_row(std::int64_t sequence, std::int64_t t, bool& is_bad) const {
    const std::int64_t symbol = sequences.symbols(sequence, t);
    const std::int64_t symbols = parameters.symbols();
    is_bad = is_bad || symbol >= symbols;
    return symbol < 0 || symbol >= symbols ? symbols : symbol;
  }

  /// The wider rungs, in one thread: rare, and not worth the registers that inlining them would cost. The model is found
  /// again from its memory: a reference to the caller's would keep its pointers out of registers.
  BELLMAN_NOINLINE KOKKOS_FUNCTION Judgement climb(std::byte* memory, std::int64_t sequence,
                                                   std::int64_t length) const {
    const SmallModel<Real> model(memory, parameters.symbols());
    constexpr double tolerance = log_likelihood_tolerance<Real>;
    if (is_float<Real> && model.template flags_of<double>() == row_is_fine) {
      bool is_bad = false;
      const auto row_at = [&](std::int64_t t) { return emission_row(sequence, t, is_bad); };
      const Judgement judgement = sweep_in_registers<double>(model, row_at, length, tolerance);
      if (judgement.certified) return judgement;
    }
    return in_logarithms(model, sequence, length);
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
};

/// A thread owns one sequence after the other, with its states in registers: for batches that fill the hardware.
template <class ExecutionSpace, class Real>
struct HmmForwardInRegisters : HmmSmallModel<ExecutionSpace, Real> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    const SmallModel<Real> model(memory, this->parameters.symbols());
    fill_small_model(this->parameters, model, team.team_rank(), team.team_size(), [&] { team.team_barrier(); });
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
    if (this->is_settled(model, length, settled)) return settled;
    bool is_bad = false;
    const auto row_at = [&](std::int64_t t) { return this->emission_row(sequence, t, is_bad); };
    Judgement judgement;
    if (model.template flags_of<Real>() == row_is_fine) {
      judgement = sweep_in_registers<Real>(model, row_at, length, log_likelihood_tolerance<Real>);
    } else {
      for (std::int64_t t = 0; t < length; ++t) row_at(t);
    }
    if (is_bad) return {quiet_nan<double>(), Status::bad_symbol};
    return result_of(judgement.certified ? judgement : this->climb(memory, sequence, length));
  }
};

/// A team owns one sequence; its threads normalise the model, then the lanes of thread 0 go forward and those of thread 1
/// backward, a state per lane: for batches that leave the hardware idle.
template <class ExecutionSpace, class Real>
struct HmmForwardInLanes : HmmSmallModel<ExecutionSpace, Real> {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Lanes = LaneGroup<ExecutionSpace>;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t sequence = first_problem + team.league_rank();
    std::byte* const memory = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    auto& exchange = *reinterpret_cast<ChainExchange<Real>*>(memory);
    const SmallModel<Real> model(memory + sizeof(exchange), this->parameters.symbols());
    const int member = team.team_rank() * Lanes::size + Lanes::rank();
    fill_small_model(this->parameters, model, member, team.team_size() * Lanes::size, [&] { team.team_barrier(); });

    const std::int64_t length = this->sequences.length(sequence);
    HmmResult result;
    if (this->is_settled(model, length, result)) {
      if (member == 0) this->results.write(sequence, result);
      return;
    }
    const std::int64_t forward_steps = (length + 1) / 2;
    const int direction = team.team_rank();
    if (direction < 2) {
      bool is_bad = false;
      const auto row_at = [&](std::int64_t k) {
        return this->emission_row(sequence, direction == 0 ? k : length - 1 - k, is_bad);
      };
      const std::int64_t steps = direction == 0 ? forward_steps : length - forward_steps;
      LaneChain chain{0, true};
      if (steps > 0) {
        const auto weights = direction == 0 ? forward_chain<Real>(model) : backward_chain<Real>(model);
        chain = chain_in_lanes<Lanes>(weights, row_at, steps, exchange.vectors[direction][0]);
      }
      const int any_bad = Lanes::reduce(static_cast<int>(is_bad), [](int a, int b) { return a | b; });
      if (Lanes::rank() == 0) {
        exchange.exponent[direction] = chain.exponent;
        exchange.kept[direction] = chain.kept;
        exchange.is_bad[direction] = any_bad;
      }
    }
    team.team_barrier();  // both directions are there
    if (direction == 0) join(model, memory + sizeof(exchange), sequence, length, exchange);
  }

  KOKKOS_FORCEINLINE_FUNCTION void join(const SmallModel<Real>& model, std::byte* memory, std::int64_t sequence,
                                        std::int64_t length, ChainExchange<Real>& exchange) const {
    using Arithmetic = ChainArithmetic<Real>;
    const std::int64_t forward_steps = (length + 1) / 2;
    const Real* const backward = exchange.vectors[1][(length - forward_steps + 1) % 2];
    const int state = Lanes::rank() % small_states;
    Real vector[small_states];
    read_vector(exchange.vectors[0][(forward_steps - 1) % 2], vector);
    bool kept = true;
    double ahead = static_cast<double>(exchange.vectors[0][0][state]);
    if (length > 1) {
      Real column[small_states];
      BELLMAN_UNROLL
      for (int i = 0; i < small_states; ++i) column[i] = model.template weights<Real>().trans[i * small_states + state];
      const Real sum = dot(vector, column);
      kept = sum >= Arithmetic::lowest_sum() || (alive_states(vector) & model.into[state]) == 0;
      ahead = static_cast<double>(sum);
    }
    if (Lanes::rank() < small_states) exchange.ahead[state] = ahead;
    kept = Lanes::reduce(static_cast<int>(kept), [](int a, int b) { return a & b; }) != 0;
    Lanes::sync();  // the sums of all states are there
    if (Lanes::rank() != 0) return;

    double total = 0;
    for (int j = 0; j < small_states; ++j) {
      total = Kokkos::fma(exchange.ahead[j], length > 1 ? static_cast<double>(backward[j]) : 1.0, total);
    }
    HmmResult result{quiet_nan<double>(), Status::bad_symbol};
    if (!exchange.is_bad[0] && !exchange.is_bad[1]) {
      Judgement judgement;
      if (model.template flags_of<Real>() == row_is_fine) {
        judgement =
            Arithmetic::finish(total, exchange.exponent[0] + exchange.exponent[1],
                               kept && exchange.kept[0] && exchange.kept[1], length, log_likelihood_tolerance<Real>);
      }
      result = result_of(judgement.certified ? judgement : this->climb(memory, sequence, length));
    }
    this->results.write(sequence, result);
  }
};

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
    fill_small_model(this->parameters, model, 0, 1, NoBarrier());
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
      HmmResult result;
      if (this->is_settled(model, this->sequences.length(sequence), result)) {
        this->results.write(sequence, result);
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
    HostChainModel<Weight> chain{weights.trans, weights.emit, model.into, {}, 0, 0};
    for (int j = 0; j < chain_states; ++j) chain.padding[j] = j < this->parameters.states() ? 0 : 1;
    chain.lowest_sum = ChainArithmetic<Weight>::lowest_sum();
    chain.lowest_value = ChainArithmetic<Weight>::lowest_value();
    return chain;
  }

  template <class Weight>
  static HostChain<Weight> start(const SmallWeights<Weight>& weights, std::int64_t row) {
    HostChain<Weight> chain{{}, 0, true};
    for (int j = 0; j < chain_states; ++j) {
      const Weight start = weights.init[j];
      const Weight emission = weights.emit[row * chain_states + j];
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
    const bool runs = model.template flags_of<Weight>() == row_is_fine;
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
        for (const Weight value : chains[k].value) total += static_cast<double>(value);
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
  if (plan.sweep == HmmSweep::tiles || plan.sweep == HmmSweep::steps) {
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
  if (plan.workspace_bytes > 0) {
    model = aligned(workspace.data());
    const HmmTables<double> tables(model, parameters.states(), parameters.symbols());
    using Rows = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("bellman::hmm_log_likelihood::normalise", Rows(exec, 0, 1 + 2 * parameters.states()),
                         HmmNormaliseRow<ExecutionSpace, Real>{parameters, tables});
  }
  const HmmSmallModel<ExecutionSpace, Real> small{parameters, sequences, results};
  if (plan.sweep == HmmSweep::packs) {
    if constexpr (!has_warps<ExecutionSpace>()) {
      launch_teams(label, exec, HmmForwardInPacks<ExecutionSpace, Real>{small, plan.scratch_level, plan.scratch_bytes},
                   plan.league_size, plan.team_threads, 1, plan.scratch_level, plan.scratch_bytes);
    }
  } else if (plan.sweep == HmmSweep::registers) {
    if constexpr (has_warps<ExecutionSpace>()) {
      launch_teams(label, exec, HmmForwardInRegisters<ExecutionSpace, Real>{small, plan.scratch_bytes},
                   plan.league_size, plan.team_threads, 1, plan.scratch_level, plan.scratch_bytes);
    }
  } else if (plan.sweep == HmmSweep::lanes) {
    if constexpr (has_warps<ExecutionSpace>()) {
      launch_teams(label, exec, HmmForwardInLanes<ExecutionSpace, Real>{small, plan.scratch_bytes}, plan.league_size,
                   plan.team_threads, lanes_of<ExecutionSpace>, plan.scratch_level, plan.scratch_bytes);
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
