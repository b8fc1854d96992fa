// SPDX-License-Identifier: Apache-2.0

/// \file
/// Hidden Markov models of dozens of states on GPUs, in float: a step of 16 sequences is a product on tensor cores.

#include "hmm_tensor_sweep.hpp"

#include <algorithm>
#include <bellman/accuracy.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/hmm_padded_model.hpp>
#include <bellman/impl/hmm_tile_sizes.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/state_tile.hpp>
#include <bellman/impl/tensor_tile.hpp>
#include <climits>

#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// A warp owns 16 sequences and all their states, from the first step to the last, in its registers: the sums of one
/// step are the left factor of the next. The warps of a team share the transitions, in scratch, and nothing else.
///
/// Lane 4 g + t holds the sequences g and g + 8 (its rows), and of each block of 16 states four, 4 t to 4 t + 3. In
/// the order of add_tensor_product() these are the places 2 t and 2 t + 1 of two tiles of 8 states.
template <class ExecutionSpace, int blocks>
struct HmmTensorTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Warp = LaneGroup<ExecutionSpace>;
  using Arithmetic = TileArithmetic<float>;
  PaddedModel<float> model;
  HmmSequences sequences;
  TileResults<ExecutionSpace, float> results;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  static constexpr int stride = 16 * blocks;
  static constexpr int state_tiles = 2 * blocks;
  static constexpr int rows = 2;  ///< sequences of a lane
  /// Tiles of next states whose sums are under way together: a product waits for the one before.
  static constexpr int together = state_tiles % 4 == 0 ? 4 : 2;
  static constexpr int warp_sequences = tensor_sequences;
  static constexpr int period = Arithmetic::rescale_period;
  static_assert(period == 4, "a lane reads the symbol of one step for four");

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const Scratch scratch(aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes)));
    fill(team, scratch);
    team.team_barrier();  // the transitions are there
    const std::int64_t league_rank = first_problem + team.league_rank();
    const std::int64_t first = (league_rank * team.team_size() + team.team_rank()) * warp_sequences;
    if (first < sequences.batch()) sweep(scratch, first);
  }

 private:
  /// What the warps of a team share.
  struct Scratch {
    TensorFactor<2>* weights;  ///< the transitions as each lane takes them: (tile of states, tile of next states, lane)
    std::uint64_t* ways;       ///< bit k of each state: whether the transition from state k is not 0

    KOKKOS_FUNCTION explicit Scratch(std::byte* memory)
        : weights(reinterpret_cast<TensorFactor<2>*>(memory)),
          ways(reinterpret_cast<std::uint64_t*>(weights + state_tiles * state_tiles * 32)) {}
  };
  static_assert(stride <= 64, "a state has a bit");

  /// What a lane knows of its sequences.
  struct Rows {
    int lengths[rows];  ///< 0 for one that has no result here
    int exponents[rows] = {};
    unsigned lost = 0;  ///< bit r: row r is not certified
  };

  KOKKOS_FORCEINLINE_FUNCTION static int state_of(int tile, int place) {
    return tile / 2 * 16 + Warp::rank() % 4 * 4 + tile % 2 * 2 + place;
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t sequence_of(std::int64_t first, int row) {
    return first + row * 8 + Warp::rank() / 4;
  }

  KOKKOS_FORCEINLINE_FUNCTION void fill(const Team& team, const Scratch& scratch) const {
    const int thread = team.team_rank() * Warp::size + Warp::rank();
    const int threads = team.team_size() * Warp::size;
    for (int n = thread; n < state_tiles * state_tiles * 32; n += threads) {
      const int column = n % 32 / 4;
      const int from_tile = n / 32 / state_tiles;
      const int to_tile = n / 32 % state_tiles;
      const int from = from_tile / 2 * 16 + n % 4 * 4 + from_tile % 2 * 2;
      const int to = to_tile / 2 * 16 + column / 2 * 4 + to_tile % 2 * 2 + column % 2;
      TensorFactor<2> factor;
      for (int i = 0; i < 2; ++i) factor.set(i, model.trans[(from + i) * stride + to]);
      scratch.weights[n] = factor;
    }
    for (int to = thread; to < stride; to += threads) {
      std::uint64_t ways = 0;
      for (int from = 0; from < stride; ++from) {
        if (model.trans[from * stride + to] != 0) ways |= std::uint64_t{1} << from;
      }
      scratch.ways[to] = ways;
    }
  }

  /// The symbol of a step, not looked at yet; -1 if the sequence has ended.
  KOKKOS_FORCEINLINE_FUNCTION std::int32_t read_symbol(std::int64_t sequence, int step, int length) const {
    if (step >= length) return -1;
    const IntegerView<2>& all = sequences.symbols;
    if (all.type == IntegerType::int32) [[likely]] {
      return static_cast<const std::int32_t*>(all.data)[sequence * all.strides[0] + step * all.strides[1]];
    }
    const std::int64_t symbol = all(sequence, static_cast<std::int64_t>(step));
    return static_cast<std::int32_t>(symbol < 0 ? -1 : symbol < model.symbols ? symbol : model.symbols);
  }

  /// Reads the lengths; writes what has no result here.
  KOKKOS_FORCEINLINE_FUNCTION void begin(std::int64_t first, Rows& mine) const {
    std::uint32_t flags = row_is_fine;
    for (std::int64_t row = Warp::rank(); row < model.rows(); row += Warp::size) flags |= model.flags[row];
    flags = Warp::reduce(flags, [](std::uint32_t a, std::uint32_t b) { return a | b; });
    constexpr int most_steps = 1 << 24;  // exponents stay small
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      const std::int64_t k = sequence_of(first, r);
      const bool is_there = k < sequences.batch();
      const std::int64_t length = is_there ? sequences.length(k) : 0;
      const bool is_real =
          (flags & ~row_is_wide) == row_is_fine && length > 0 && length <= sequences.steps() && length <= most_steps;
      mine.lengths[r] = is_real ? static_cast<int>(length) : 0;
      if (is_there && !is_real && Warp::rank() % 4 == 0) results.write(k, {});
    }
  }

  /// Steps to the first of the ends behind step t, or none: INT_MAX.
  KOKKOS_FORCEINLINE_FUNCTION static int next_end(const Rows& mine, int t) {
    int end = INT_MAX;
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) end = mine.lengths[r] > t && mine.lengths[r] < end ? mine.lengths[r] : end;
    return Warp::reduce(end, [](int a, int b) { return a < b ? a : b; });
  }

  KOKKOS_FORCEINLINE_FUNCTION void sweep(const Scratch& scratch, std::int64_t first) const {
    Rows mine;
    begin(first, mine);
    std::int32_t symbols[rows];
    std::int32_t ahead[rows];
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      ahead[r] = read_symbol(sequence_of(first, r), Warp::rank() % 4, mine.lengths[r]);
    }
    TensorFactor<4> vectors[state_tiles];
    int end = next_end(mine, 0);
    for (int t = 0; end != INT_MAX; ++t) {
      if (t % period == 0) {
        BELLMAN_UNROLL
        for (int r = 0; r < rows; ++r) {
          symbols[r] = ahead[r];
          ahead[r] = read_symbol(sequence_of(first, r), t + period + Warp::rank() % 4, mine.lengths[r]);
        }
      }
      const float* emissions[rows];  // of this lane's states in the first block
      BELLMAN_UNROLL
      for (int r = 0; r < rows; ++r) {
        const auto missing = static_cast<std::uint32_t>(model.symbols);
        const std::int32_t symbol = Warp::from_lane(symbols[r], (Warp::rank() & ~3) | t % period);
        if (symbol >= model.symbols) mine.lost |= 1u << r;
        const auto row = static_cast<std::uint32_t>(symbol) < missing ? static_cast<std::uint32_t>(symbol) : missing;
        emissions[r] = model.emit + std::int64_t{row} * stride + Warp::rank() % 4 * 4;
      }

      float values[state_tiles][4];
      float lowest = infinity<float>();  // of all sums and values
      BELLMAN_UNROLL
      for (int first_tile = 0; first_tile < state_tiles; first_tile += together) {
        float emission[rows][together / 2][4];
        BELLMAN_UNROLL
        for (int r = 0; r < rows; ++r) {
          BELLMAN_UNROLL
          for (int block = 0; block < together / 2; ++block) {
            load_pieces(emissions[r] + (first_tile / 2 + block) * 16, 0, 4, emission[r][block]);
          }
        }
        if (t == 0) [[unlikely]] {
          BELLMAN_UNROLL
          for (int n = first_tile; n < first_tile + together; ++n) {
            BELLMAN_UNROLL
            for (int i = 0; i < 4; ++i) values[n][i] = model.init[state_of(n, i % 2)];
          }
        } else {
          multiply(scratch.weights + Warp::rank(), first_tile, vectors, values);
        }
        BELLMAN_UNROLL
        for (int n = 0; n < together; ++n) {
          BELLMAN_UNROLL
          for (int i = 0; i < 4; ++i) {
            float& value = values[first_tile + n][i];
            lowest = Kokkos::fmin(lowest, value);
            value *= emission[i / 2][n / 2][n % 2 * 2 + i % 2];
            lowest = Kokkos::fmin(lowest, value);
          }
        }
      }
      if (Warp::ballot(lowest < Arithmetic::low_value()) != 0) [[unlikely]] {
        test(scratch, t, emissions, vectors, values, mine);
      }
      if (t % period == period - 1) rescale(values, mine);
      if (t + 1 == end) [[unlikely]] {
        finish(first, t + 1, values, mine);
        end = next_end(mine, t + 1);
      }
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 4; ++i) vectors[n].set(i, values[n][i % 2 * 2 + i / 2]);
      }
    }
  }

  /// sums = vectors times transitions, for some tiles of next states
  KOKKOS_FORCEINLINE_FUNCTION static void multiply(const TensorFactor<2>* weights, int first,
                                                   const TensorFactor<4> (&vectors)[state_tiles],
                                                   float (&sums)[state_tiles][4]) {
    BELLMAN_UNROLL
    for (int from = 0; from < state_tiles; ++from) {
      TensorFactor<2> right[together];
      BELLMAN_UNROLL
      for (int n = 0; n < together; ++n) right[n] = weights[(from * state_tiles + first + n) * 32];
      float parts[together][4] = {};
      BELLMAN_UNROLL
      for (int product = 0; product < 3; ++product) {
        BELLMAN_UNROLL
        for (int n = 0; n < together; ++n) add_part_product<Warp>(product, parts[n], vectors[from], right[n]);
      }
      BELLMAN_UNROLL
      for (int n = 0; n < together; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 4; ++i) {
          float& sum = sums[first + n][i];
          sum = from == 0 ? parts[n][i] : sum + parts[n][i];
        }
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static unsigned of_whole_row(unsigned bits) {
    bits |= Warp::from_partner(bits, 1);
    return bits | Warp::from_partner(bits, 2);
  }

  /// Where something is small: whether all the same nothing was lost. A value has to be large enough, with a sum that was so
  /// as well, or 0 because no state that is alive leads there or the symbol is never emitted.
  KOKKOS_FORCEINLINE_FUNCTION void test(const Scratch& scratch, int t, const float* const (&emissions)[rows],
                                        const TensorFactor<4> (&vectors)[state_tiles],
                                        const float (&values)[state_tiles][4], Rows& mine) const {
    const float lowest_sum = t == 0 ? 0.0f : 2 * Arithmetic::lowest_sum(model.states);
    const int first_state = Warp::rank() % 4 * 4;
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      std::uint64_t alive = 0;  // bit k: the entry of state k was not 0
      if (t > 0) {
        BELLMAN_UNROLL
        for (int n = 0; n < state_tiles; ++n) {
          BELLMAN_UNROLL
          for (int i = 0; i < 2; ++i) {
            const std::uint64_t bit = std::uint64_t{1} << (n / 2 * 16 + n % 2 * 2 + i);
            if (vectors[n].high[2 * i + r] != 0) alive |= bit;
          }
        }
      }
      alive <<= first_state;
      alive |= Warp::from_partner(alive, 1);
      alive |= Warp::from_partner(alive, 2);
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 2; ++i) {
          const int state = n / 2 * 16 + n % 2 * 2 + i;
          const float value = values[n][r * 2 + i];
          const float emission = emissions[r][state];
          const bool is_zero =
              t == 0 ? model.init[first_state + state] == 0 : (alive & scratch.ways[first_state + state]) == 0;
          const bool is_kept = emission == 0 || (value == 0 && is_zero) ||
                               (value >= Arithmetic::lowest_value() && value >= lowest_sum * emission);
          if (!is_kept) mine.lost |= 1u << r;
        }
      }
    }
  }

  /// Brings the largest entry of each sequence to 1..2.
  KOKKOS_FORCEINLINE_FUNCTION static void rescale(float (&values)[state_tiles][4], Rows& mine) {
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      float highest = 0;
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 2; ++i) highest = Kokkos::fmax(highest, values[n][r * 2 + i]);
      }
      highest = Kokkos::fmax(highest, Warp::from_partner(highest, 1));
      highest = Kokkos::fmax(highest, Warp::from_partner(highest, 2));
      const int shift = Arithmetic::shift_of(exponent_of(highest));
      const float scale = power_of_two<float>(-shift);
      mine.exponents[r] += shift;
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 2; ++i) {
          float& value = values[n][r * 2 + i];
          const bool was_zero = value == 0;
          value *= scale;
          // Only where weights are above 1 a value becomes smaller.
          if (shift > 0 && !was_zero && !(value >= Arithmetic::lowest_value())) mine.lost |= 1u << r;
        }
      }
    }
  }

  /// Writes the results of the sequences of this many steps.
  KOKKOS_FORCEINLINE_FUNCTION void finish(std::int64_t first, int steps, const float (&values)[state_tiles][4],
                                          Rows& mine) const {
    mine.lost = of_whole_row(mine.lost);
    double total = 0;  // lane r of the lanes that share sequences writes the result of row r
    int exponent = 0;
    bool ends = false;
    const int mine_is = Warp::rank() % 4;
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      double sum = 0;
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 2; ++i) {
          if (state_of(n, i) < model.states) sum += static_cast<double>(values[n][r * 2 + i]);
        }
      }
      sum += Warp::from_partner(sum, 1);
      sum += Warp::from_partner(sum, 2);
      if (r != mine_is) continue;
      total = sum;
      exponent = mine.exponents[r];
      ends = mine.lengths[r] == steps;
    }
    if (!ends) return;
    Judgement judgement;
    if ((mine.lost >> mine_is & 1u) == 0) {
      // Products of 8 states, their sum, and the roundings of trans, emit and their product.
      constexpr double roundings = tensor_product_roundings + (state_tiles - 1) + 3;
      judgement = Arithmetic::finish(total, exponent, steps, roundings, log_likelihood_tolerance<float>);
    }
    results.write(sequence_of(first, mine_is), judgement);
  }
};

template <int blocks, class ExecutionSpace>
void launch(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<float>& model,
            const HmmSequences& sequences, const TileResults<ExecutionSpace, float>& results) {
  static const std::string label = "bellman::hmm_log_likelihood::sweep";
  constexpr unsigned least_teams = blocks > 2 ? 1 : 2;
  launch_teams<tensor_threads, least_teams>(
      label, exec, HmmTensorTeam<ExecutionSpace, blocks>{model, sequences, results, plan.tiles.scratch_bytes},
      plan.tiles.league_size, plan.tiles.team_threads, 32, ScratchLevel::fast, plan.tiles.scratch_bytes);
}

}  // namespace

template <class ExecutionSpace>
void sweep_by_tensor_products(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<float>& model,
                              const HmmSequences& sequences, const TileResults<ExecutionSpace, float>& results) {
  if constexpr (has_warps<ExecutionSpace>()) {
    if (model.stride == 32) {
      launch<2>(exec, plan, model, sequences, results);
    } else if (model.stride == 48) {
      launch<3>(exec, plan, model, sequences, results);
    } else {
      launch<4>(exec, plan, model, sequences, results);
    }
  }
}

#define BELLMAN_INSTANTIATE(Space)                                                                       \
  template void sweep_by_tensor_products<Space>(const Space&, const HmmPlan&, const PaddedModel<float>&, \
                                                const HmmSequences&, const TileResults<Space, float>&);
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
