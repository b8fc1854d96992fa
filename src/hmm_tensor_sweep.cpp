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

/// A warp owns tiles of 16 sequences and all their states, from the first step to the last, in its registers: the sums of one
/// step are the left factor of the next. The warps of a team share the transitions, in scratch, and nothing else.
///
/// Of a tile, lane 4 g + t holds the sequences g and g + 8 (its rows), and of each block of 16 states four, 4 t to 4 t + 3. In
/// the order of add_tensor_product() these are the places 2 t and 2 t + 1 of two tiles of 8 states.
template <class ExecutionSpace, int blocks, int tiles>
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
  static constexpr int rows = 2 * tiles;  ///< sequences of a lane
  static constexpr int warp_sequences = 16 * tiles;
  static constexpr int period = Arithmetic::rescale_period;
  static_assert(period == 4, "a lane reads the symbol of one step for four");

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    auto* const weights =
        reinterpret_cast<TensorFactor<2>*>(aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes)));
    fill_weights(team, weights);
    team.team_barrier();  // the transitions are there
    const std::int64_t league_rank = first_problem + team.league_rank();
    const std::int64_t first = (league_rank * team.team_size() + team.team_rank()) * warp_sequences;
    if (first < sequences.batch()) sweep(weights, first);
  }

 private:
  /// What is known of the sequences of a lane; bit r is that of row r.
  struct Rows {
    int lengths[rows];  ///< 0 for one that has no result here
    int exponents[rows] = {};
    unsigned low;       ///< products may underflow: there was a small entry, or the model has small transitions
    unsigned lost = 0;  ///< not certified
  };

  KOKKOS_FORCEINLINE_FUNCTION static int state_of(int tile, int place) {
    return tile / 2 * 16 + Warp::rank() % 4 * 4 + tile % 2 * 2 + place;
  }
  KOKKOS_FORCEINLINE_FUNCTION static std::int64_t sequence_of(std::int64_t first, int row) {
    return first + row * 8 + Warp::rank() / 4;
  }

  /// The transitions as each lane takes them: (tile of states, tile of next states, lane).
  KOKKOS_FORCEINLINE_FUNCTION void fill_weights(const Team& team, TensorFactor<2>* weights) const {
    constexpr int count = state_tiles * state_tiles * 32;
    for (int n = team.team_rank() * Warp::size + Warp::rank(); n < count; n += team.team_size() * Warp::size) {
      const int column = n % 32 / 4;
      const int from_tile = n / 32 / state_tiles;
      const int to_tile = n / 32 % state_tiles;
      const int from = from_tile / 2 * 16 + n % 4 * 4 + from_tile % 2 * 2;
      const int to = to_tile / 2 * 16 + column / 2 * 4 + to_tile % 2 * 2 + column % 2;
      TensorFactor<2> factor;
      for (int i = 0; i < 2; ++i) factor.set(i, model.trans[(from + i) * stride + to]);
      weights[n] = factor;
    }
  }

  /// The symbol of a step, not looked at yet; -1 if the sequence has ended.
  KOKKOS_FORCEINLINE_FUNCTION std::int32_t read_symbol(std::int64_t sequence, int step, int length) const {
    if (step >= length) return -1;
    const IntegerView<2>& all = sequences.symbols;
    if (all.type == IntegerType::int32) {
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
    mine.low = (flags & row_is_wide) != 0 ? ~0u : 0u;
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

  KOKKOS_FORCEINLINE_FUNCTION void sweep(const TensorFactor<2>* weights, std::int64_t first) const {
    Rows mine;
    begin(first, mine);
    std::int32_t symbols[rows];
    std::int32_t ahead[rows];
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      ahead[r] = read_symbol(sequence_of(first, r), Warp::rank() % 4, mine.lengths[r]);
    }
    TensorFactor<4> vectors[tiles][state_tiles];
    int end = next_end(mine, 0);
    for (int t = 0; end != INT_MAX; ++t) {
      if (t % period == 0) {
        BELLMAN_UNROLL
        for (int r = 0; r < rows; ++r) {
          symbols[r] = ahead[r];
          ahead[r] = read_symbol(sequence_of(first, r), t + period + Warp::rank() % 4, mine.lengths[r]);
        }
      }
      const float* emissions[rows];
      BELLMAN_UNROLL
      for (int r = 0; r < rows; ++r) {
        const auto missing = static_cast<std::uint32_t>(model.symbols);
        const std::int32_t symbol = Warp::from_lane(symbols[r], (Warp::rank() & ~3) | t % period);
        if (symbol >= model.symbols) mine.lost |= 1u << r;
        const auto row = static_cast<std::uint32_t>(symbol) < missing ? static_cast<std::uint32_t>(symbol) : missing;
        emissions[r] = model.emit + std::int64_t{row} * stride + Warp::rank() % 4 * 4;
      }

      float values[tiles][state_tiles][4];
      unsigned zeros = 0;
      BELLMAN_UNROLL
      for (int block = 0; block < blocks; ++block) {
        float emission[rows][4];
        BELLMAN_UNROLL
        for (int r = 0; r < rows; ++r) load_pieces(emissions[r] + block * 16, 0, 4, emission[r]);
        float sums[tiles][2][4];
        if (t == 0) {
          BELLMAN_UNROLL
          for (int i = 0; i < 4; ++i) {
            const float start = model.init[state_of(2 * block + i / 2, i % 2)];
            BELLMAN_UNROLL
            for (int r = 0; r < rows; ++r) sums[r / 2][i / 2][r % 2 * 2 + i % 2] = start;
          }
        } else {
          BELLMAN_UNROLL
          for (int half = 0; half < 2; ++half) {
            BELLMAN_UNROLL
            for (int from = 0; from < state_tiles; ++from) {
              const TensorFactor<2> weight = weights[(from * state_tiles + 2 * block + half) * 32 + Warp::rank()];
              BELLMAN_UNROLL
              for (int m = 0; m < tiles; ++m)
                add_tensor_products<Warp>(sums[m][half], vectors[m][from], weight, from == 0);
            }
          }
        }
        emit(t, block, emission, sums, values, mine, zeros);
      }
      if (Warp::ballot(zeros != 0) != 0) look_up_zeros(emissions, vectors, values, zeros, mine);
      if (t % period == period - 1) rescale(values, mine);
      if (t + 1 == end) {
        finish(first, t + 1, values, mine);
        end = next_end(mine, t + 1);
      }
      BELLMAN_UNROLL
      for (int m = 0; m < tiles; ++m) {
        BELLMAN_UNROLL
        for (int n = 0; n < state_tiles; ++n) {
          BELLMAN_UNROLL
          for (int i = 0; i < 4; ++i) vectors[m][n].set(i, values[m][n][i % 2 * 2 + i / 2]);
        }
      }
    }
  }

  /// values = sums times emission, for a block of states, and what that may have lost.
  KOKKOS_FORCEINLINE_FUNCTION void emit(int t, int block, const float (&emission)[rows][4],
                                        const float (&sums)[tiles][2][4], float (&values)[tiles][state_tiles][4],
                                        Rows& mine, unsigned& zeros) const {
    float lowest = infinity<float>();
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      BELLMAN_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int place = r % 2 * 2 + i % 2;
        const float sum = sums[r / 2][i / 2][place];
        float& value = values[r / 2][2 * block + i / 2][place];
        value = sum * emission[r][i];
        lowest = Kokkos::fmin(lowest, Kokkos::fmin(sum, value));
      }
    }
    if (!(lowest < Arithmetic::low_value())) return;
    const float lowest_sum = t == 0 ? 0.0f : Arithmetic::lowest_sum(model.states);
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      BELLMAN_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int place = r % 2 * 2 + i % 2;
        const float sum = sums[r / 2][i / 2][place];
        const float value = values[r / 2][2 * block + i / 2][place];
        if (emission[r][i] == 0) continue;
        if (sum == 0) {
          if (t > 0) zeros |= 1u << r;
        } else {
          if (value < Arithmetic::low_value()) mine.low |= 1u << r;
          if (!(sum >= lowest_sum && value >= Arithmetic::lowest_value())) mine.lost |= 1u << r;
        }
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static unsigned of_whole_row(unsigned bits) {
    bits |= Warp::from_partner(bits, 1);
    return bits | Warp::from_partner(bits, 2);
  }

  /// A sequence with an entry of 0 that may be one because all products underflowed is not certified.
  KOKKOS_FORCEINLINE_FUNCTION void look_up_zeros(const float* const (&emissions)[rows],
                                                 const TensorFactor<4> (&vectors)[tiles][state_tiles],
                                                 const float (&values)[tiles][state_tiles][4], unsigned zeros,
                                                 Rows& mine) const {
    mine.low = of_whole_row(mine.low);
    zeros &= mine.low;
    if (Warp::ballot(zeros != 0) == 0) return;
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      // Bit k: the entry of state k is not 0, and is 0 in the next vector. At first as if this were lane 0.
      std::uint64_t alive = 0;
      std::uint64_t next_zero = 0;
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 2; ++i) {
          const std::uint64_t bit = std::uint64_t{1} << (n / 2 * 16 + n % 2 * 2 + i);
          if (vectors[r / 2][n].high[2 * i + r % 2] != 0) alive |= bit;
          if (values[r / 2][n][r % 2 * 2 + i] == 0) next_zero |= bit;
        }
      }
      alive <<= Warp::rank() % 4 * 4;
      next_zero <<= Warp::rank() % 4 * 4;
      alive |= Warp::from_partner(alive, 1);
      alive |= Warp::from_partner(alive, 2);
      if ((zeros >> r & 1u) == 0) continue;
      const float* const emission = emissions[r] - Warp::rank() % 4 * 4;
      for (; next_zero != 0; next_zero &= next_zero - 1) {
        const int state = Kokkos::countr_zero(next_zero);
        if (emission[state] == 0) continue;
        for (std::uint64_t from = alive; from != 0; from &= from - 1) {
          if (model.trans[Kokkos::countr_zero(from) * stride + state] != 0) mine.lost |= 1u << r;
        }
      }
    }
  }

  /// Brings the largest entry of each sequence to 1..2.
  KOKKOS_FORCEINLINE_FUNCTION static void rescale(float (&values)[tiles][state_tiles][4], Rows& mine) {
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      float highest = 0;
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 2; ++i) highest = Kokkos::fmax(highest, values[r / 2][n][r % 2 * 2 + i]);
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
          float& value = values[r / 2][n][r % 2 * 2 + i];
          // Only where weights are above 1 an entry becomes smaller.
          if (shift > 0 && value != 0 && value * scale < Arithmetic::low_value()) {
            mine.low |= 1u << r;
            if (!(value * scale >= Arithmetic::lowest_value())) mine.lost |= 1u << r;
          }
          value *= scale;
        }
      }
    }
  }

  /// Writes the results of the sequences of this many steps.
  KOKKOS_FORCEINLINE_FUNCTION void finish(std::int64_t first, int steps, const float (&values)[tiles][state_tiles][4],
                                          Rows& mine) const {
    mine.lost = of_whole_row(mine.lost);
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      double total = 0;
      BELLMAN_UNROLL
      for (int n = 0; n < state_tiles; ++n) {
        BELLMAN_UNROLL
        for (int i = 0; i < 2; ++i) {
          if (state_of(n, i) < model.states) total += static_cast<double>(values[r / 2][n][r % 2 * 2 + i]);
        }
      }
      total += Warp::from_partner(total, 1);
      total += Warp::from_partner(total, 2);
      if (mine.lengths[r] != steps || Warp::rank() % 4 != 0) continue;
      Judgement judgement;
      if ((mine.lost >> r & 1u) == 0) {
        // Products of 8 states, their sum, and the roundings of trans, emit and their product.
        constexpr double roundings = tensor_product_roundings + (state_tiles - 1) + 3;
        judgement = Arithmetic::finish(total, mine.exponents[r], steps, roundings, log_likelihood_tolerance<float>);
      }
      results.write(sequence_of(first, r), judgement);
    }
  }
};

template <int blocks, class ExecutionSpace>
void launch(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<float>& model,
            const HmmSequences& sequences, const TileResults<ExecutionSpace, float>& results) {
  static const std::string label = "bellman::hmm_log_likelihood::sweep";
  const auto launch_with = [&](auto tiles) {
    constexpr int count = decltype(tiles)::value;
    launch_teams<tensor_threads, 2 / count>(
        label, exec, HmmTensorTeam<ExecutionSpace, blocks, count>{model, sequences, results, plan.tiles.scratch_bytes},
        plan.tiles.league_size, plan.tiles.team_threads, 32, ScratchLevel::fast, plan.tiles.scratch_bytes);
  };
  if (plan.tiles.sequences == 16 * plan.tiles.team_threads) {
    launch_with(std::integral_constant<int, 1>{});
  } else {
    launch_with(std::integral_constant<int, 2>{});
  }
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
