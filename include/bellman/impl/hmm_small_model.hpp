// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_SMALL_MODEL_HPP
#define BELLMAN_IMPL_HMM_SMALL_MODEL_HPP

/// \file
/// A model of few states, normalised by a team into its scratch in the form that the sweeps of small models read.

#include <Kokkos_Core.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace bellman::impl {

/// The most states that a small model has. Where there are fewer, the places behind them hold copies of the states, state j
/// being a copy of j % S: paths lead into a copy as into its state, but none leads out of it. So no place holds a zero that
/// the model does not have, and sums over all places are right as long as they go through a transition.
inline constexpr int small_states = 16;

/// What else a row of a small model holds, beside RowFlags. The sweeps without a look at each sum rest on it.
enum SmallRowFlags : std::uint32_t {
  row_has_zero = 4,   ///< a structural zero
  row_is_steep = 8,   ///< a weight that is not 0 but below lowest_even_weight
  row_is_dense = 16,  ///< weights that add up to more than 1, as densities may
  row_is_unusable = row_has_nan | row_is_out_of_range
};

/// The power of two that weights of a model that is not steep are not below (matrix_sweep.hpp).
template <class Real>
inline constexpr int lowest_even_exponent = is_float<Real> ? -24 : -48;

/// The model as weights in Real. Rows are long enough to be read in whole chunks.
template <class Real>
struct SmallWeights {
  /// In float rows of emissions start in different banks of the memory.
  static constexpr int emit_pitch = is_float<Real> ? small_states + 4 : small_states;

  Real* init;
  Real* trans;       ///< (from, to); rows of copies are zero
  Real* transposed;  ///< (to, from); rows of copies are zero
  Real* emit;        ///< (symbol, state), emit_pitch apart; the row behind the last symbol is 1, for missing ones

  KOKKOS_FUNCTION static constexpr std::size_t size(std::size_t symbols) {
    return small_states * (1 + 2 * small_states) + emit_pitch * (symbols + 1);
  }

  KOKKOS_FUNCTION explicit SmallWeights(std::byte* memory) {
    init = reinterpret_cast<Real*>(memory);
    trans = init + small_states;
    transposed = trans + small_states * small_states;
    emit = transposed + small_states * small_states;
  }
};

/// What a team keeps of a small model: weights in double, in float where the results are float, and what is known of rows.
template <class Score>
struct SmallModel {
  static constexpr std::size_t rows = 1 + 2 * small_states;
  static constexpr int words = 2 * small_states + 2;  ///< of into, out_of and flags, which lie side by side

  SmallWeights<double> in_double;
  SmallWeights<float> in_float;
  double* normaliser;  ///< of each row, as HmmTables has them: init, trans, emit; describe_small_model() completes them
  double* sum;         ///< of each row: the sum of e^(logit - normaliser), before describe_small_model()
  std::uint32_t* into;    ///< bit i of entry j: trans(i,j) is not 0
  std::uint32_t* out_of;  ///< bit j of entry i: trans(i,j) is not 0
  std::uint32_t* flags;   ///< RowFlags and SmallRowFlags of all rows, in double and in float

  KOKKOS_FUNCTION static constexpr std::size_t bytes(std::size_t symbols) {
    return SmallWeights<double>::size(symbols) * sizeof(double) + 2 * rows * sizeof(double) +
           words * sizeof(std::uint32_t) + (is_float<Score> ? SmallWeights<float>::size(symbols) * sizeof(float) : 0);
  }

  KOKKOS_FUNCTION SmallModel(std::byte* memory, std::int64_t symbols)
      : in_double(memory), in_float(memory + SmallWeights<double>::size(symbols) * sizeof(double)) {
    std::byte* const behind = memory + SmallWeights<double>::size(symbols) * sizeof(double) +
                              (is_float<Score> ? SmallWeights<float>::size(symbols) * sizeof(float) : 0);
    normaliser = reinterpret_cast<double*>(behind);
    sum = normaliser + rows;
    into = reinterpret_cast<std::uint32_t*>(sum + rows);
    out_of = into + small_states;
    flags = out_of + small_states;
  }

  template <class Real>
  KOKKOS_FUNCTION const SmallWeights<Real>& weights() const {
    if constexpr (is_float<Real>) {
      return in_float;
    } else {
      return in_double;
    }
  }
  template <class Real>
  KOKKOS_FUNCTION std::uint32_t flags_of() const {
    return flags[is_float<Real> ? 1 : 0];
  }
};

/// The rows of a small model are taken a tile at a time: a warp takes a tile, some of its lanes a row. Each lane holds a few
/// logits at a time, interleaved with those of its neighbours. Tiles do not depend on the size of the team, nor do sums.
template <class ExecutionSpace, class Score>
struct SmallRows {
  using Warp = LaneGroup<ExecutionSpace>;
  static constexpr int held = 4;  ///< logits a lane holds at a time
  static constexpr int emit_lanes = Warp::size > 1 ? 16 : 1;
  static constexpr int other_lanes = Warp::size > 1 ? small_states / held : 1;

  bool is_emit;
  int lanes;  ///< that share a row
  int part;   ///< of this lane among them
  int index;  ///< of the row, as in SmallModel
  int state;
  int length;           ///< 0: this lane has no row
  const Score* logits;  ///< those of some row at least
  std::int64_t stride;

  KOKKOS_FORCEINLINE_FUNCTION static int emit_tiles(int states) { return tiles_of<emit_lanes>(states); }
  KOKKOS_FORCEINLINE_FUNCTION static int tiles(int states) {
    return emit_tiles(states) + tiles_of<other_lanes>(1 + states);
  }

  KOKKOS_FORCEINLINE_FUNCTION SmallRows(const HmmParameters<ExecutionSpace, Score>& parameters, int tile) {
    const auto states = static_cast<int>(parameters.states());
    const int before = emit_tiles(states);
    is_emit = tile < before;
    lanes = is_emit ? emit_lanes : other_lanes;
    part = Warp::rank() & (lanes - 1);
    const auto place = static_cast<unsigned>((is_emit ? tile : tile - before) * Warp::size + Warp::rank());
    const auto row = static_cast<int>(is_emit ? place / emit_lanes : place / other_lanes);
    index = is_emit ? row + 1 + states : row;
    const bool is_row = is_emit ? row < states : row <= states;
    state = is_emit || row == 0 ? row : row - 1;
    length = !is_row ? 0 : static_cast<int>(is_emit ? parameters.symbols() : parameters.states());
    if (!is_row) state = 0;
    if (is_emit) {
      logits = parameters.emit.data() + state * parameters.emit.stride(0);
      stride = static_cast<std::int64_t>(parameters.emit.stride(1));
    } else if (row == 0) {
      logits = parameters.init.data();
      stride = static_cast<std::int64_t>(parameters.init.stride(0));
    } else {
      logits = parameters.trans.data() + state * parameters.trans.stride(0);
      stride = static_cast<std::int64_t>(parameters.trans.stride(1));
    }
  }

  /// Steps that take a lane through its row, the same for all lanes of the tile.
  KOKKOS_FORCEINLINE_FUNCTION int steps(const HmmParameters<ExecutionSpace, Score>& parameters) const {
    return is_emit ? quotient<held * emit_lanes>(parameters.symbols())
                   : quotient<held * other_lanes>(parameters.states());
  }
  KOKKOS_FORCEINLINE_FUNCTION bool is_trans() const { return !is_emit && index > 0; }

  /// Where weight 0 of the row lies, and how far apart the others are; those of a transition lie in the transposed matrix
  /// as well.
  template <class Real>
  KOKKOS_FORCEINLINE_FUNCTION Real* first(const SmallWeights<Real>& weights) const {
    return is_emit ? weights.emit + state : index == 0 ? weights.init : weights.trans + state * small_states;
  }
  template <class Real>
  KOKKOS_FORCEINLINE_FUNCTION int pitch() const {
    return is_emit ? SmallWeights<Real>::emit_pitch : 1;
  }

  /// Stores the weights that a lane holds, from weight \p from on.
  template <class Real>
  KOKKOS_FORCEINLINE_FUNCTION void store(const SmallWeights<Real>& weights, int from,
                                         const double (&values)[held]) const {
    Real* const place = first(weights) + from * pitch<Real>();
    Real* const transposed = weights.transposed + from * small_states + state;
    BELLMAN_UNROLL
    for (int u = 0; u < held; ++u) {
      if (from + u * lanes >= length) continue;
      place[u * lanes * pitch<Real>()] = static_cast<Real>(values[u]);
      if (is_trans()) transposed[u * lanes * small_states] = static_cast<Real>(values[u]);
    }
  }

  /// Copies the weights that a lane has stored into the places of the copies of their states (small_states).
  template <class Real>
  KOKKOS_FORCEINLINE_FUNCTION void store_copies(const SmallWeights<Real>& weights, int states) const {
    BELLMAN_ROLLED
    for (int k = part; k < length; k += lanes) {
      Real* const place = first(weights) + k * pitch<Real>();
      BELLMAN_ROLLED
      for (int copy = states; (is_emit ? state : k) + copy < small_states; copy += states) place[copy] = *place;
      if (!is_trans()) continue;
      BELLMAN_ROLLED
      for (int copy = state + states; copy < small_states; copy += states) {
        weights.transposed[k * small_states + copy] = *place;
      }
    }
  }

 private:
  /// Rounded up.
  template <unsigned divisor>
  KOKKOS_FORCEINLINE_FUNCTION static int quotient(std::int64_t number) {
    return static_cast<int>((static_cast<unsigned>(number) + divisor - 1) / divisor);
  }
  template <int lanes_of_row>
  KOKKOS_FORCEINLINE_FUNCTION static int tiles_of(int rows) {
    return quotient<Warp::size / lanes_of_row>(rows);
  }
};

/// Fills the places that no row of the model fills: rows of copies with zeros, that of a missing symbol with ones, and where
/// there are no states all the rest with zeros.
template <class Real>
KOKKOS_FORCEINLINE_FUNCTION void fill_small_padding(const SmallWeights<Real>& weights, int states, int symbols,
                                                    int member, int members) {
  constexpr int pitch = SmallWeights<Real>::emit_pitch;
  BELLMAN_ROLLED
  for (int k = member; k < small_states; k += members) weights.emit[symbols * pitch + k] = 1;
  if (states == small_states) return;
  BELLMAN_ROLLED
  for (int k = states * small_states + member; k < small_states * small_states; k += members) {
    weights.trans[k] = weights.transposed[k] = 0;
  }
  if (states > 0) return;
  BELLMAN_ROLLED
  for (int k = member; k < small_states; k += members) weights.init[k] = 0;
  BELLMAN_ROLLED
  for (int k = member; k < symbols * pitch; k += members) weights.emit[k] = 0;
}

/// The weights of a model by warp \p warp of \p warps, in each of the given types at once. They are e^logit over the sum of
/// all of the row. Where that is beyond the range of double, e^(logit - largest) takes the place of e^logit.
template <class ExecutionSpace, class Score, class... Reals>
KOKKOS_FORCEINLINE_FUNCTION void fill_small_weights(const HmmParameters<ExecutionSpace, Score>& parameters,
                                                    const SmallModel<Score>& model, int warp, int warps,
                                                    const SmallWeights<Reals>&... weights) {
  using Rows = SmallRows<ExecutionSpace, Score>;
  using Warp = LaneGroup<ExecutionSpace>;
  constexpr int held = Rows::held;
  const auto states = static_cast<int>(parameters.states());
  const auto symbols = static_cast<int>(parameters.symbols());
  const int tiles = Rows::tiles(states);

  BELLMAN_ROLLED
  for (int tile = warp; tile < tiles; tile += warps) {
    const Rows row(parameters, tile);
    const int last = row.steps(parameters) - 1;
    double powers[held] = {};
    double sum = 0;
    double shift = 0;
    double factor = 1;
    bool is_shifted = parameters.normalised;
    // Once through the row for the sum, and back for the weights. Powers wait in the places of the weights in double, but
    // for those of the last step, which are all of them where the row is short.
    BELLMAN_ROLLED
    for (int step = 0; step <= 2 * last; ++step) {
      const int from = (step <= last ? step : 2 * last - step) * held * row.lanes + row.part;
      double* const place = row.first(model.in_double) + from * row.template pitch<double>();
      const int apart = row.lanes * row.template pitch<double>();
      if (step > last) {
        BELLMAN_UNROLL
        for (int u = 0; u < held; ++u) powers[u] = from + u * row.lanes < row.length ? place[u * apart] : 0;
      } else {
        Score logits[held];
        const Score* next = from < row.length ? row.logits + from * row.stride : row.logits;
        BELLMAN_UNROLL
        for (int u = 0; u < held; ++u) {
          logits[u] = *next;
          if (from + (u + 1) * row.lanes < row.length) next += row.lanes * row.stride;
        }
        Warp::sync();  // all are on their way before the first is waited for
        double x[held];
        BELLMAN_UNROLL
        for (int u = 0; u < held; ++u) x[u] = static_cast<double>(logits[u]) - shift;
        exp_or_nan<double>(x, is_shifted, powers);
        BELLMAN_UNROLL
        for (int u = 0; u < held; ++u) powers[u] = from + u * row.lanes < row.length ? powers[u] : 0;
        if (step < last) {
          BELLMAN_UNROLL
          for (int u = 0; u < held; ++u) {
            if (from + u * row.lanes < row.length) place[u * apart] = powers[u];
          }
        }
        sum += (powers[0] + powers[1]) + (powers[2] + powers[3]);
      }
      if (step < last) continue;
      if (step == last) {
        BELLMAN_ROLLED
        for (int bit = 1; bit < row.lanes; bit *= 2) sum += Warp::from_partner(sum, bit);
        if (!is_shifted && Warp::ballot(!(sum < infinity<double>())) != 0) {
          // A row of the tile is beyond the range: again, relative to its largest logit.
          double high = -infinity<double>();
          BELLMAN_ROLLED
          for (int k = row.part; k < row.length; k += row.lanes) {
            const auto logit = static_cast<double>(row.logits[k * row.stride]);
            high = logit > high ? logit : high;
          }
          BELLMAN_ROLLED
          for (int bit = 1; bit < row.lanes; bit *= 2) {
            const double other = Warp::from_partner(high, bit);
            high = other > high ? other : high;
          }
          if (!(sum < infinity<double>()) && high > -infinity<double>()) shift = high;
          is_shifted = true;
          sum = 0;
          step = -1;
          continue;
        }
        factor = parameters.normalised || sum == 0 ? 1 : 1 / sum;
      }
      double values[held];
      BELLMAN_UNROLL
      for (int u = 0; u < held; ++u) values[u] = powers[u] * factor;
      (row.store(weights, from, values), ...);
    }
    if (states < small_states) (row.store_copies(weights, states), ...);
    if (row.part == 0 && row.length > 0) {
      model.normaliser[row.index] = shift;
      model.sum[row.index] = sum;
    }
  }
  const int member = (warps - 1 - warp) * Warp::size + Warp::rank();  // the last warps have the fewest tiles
  (fill_small_padding(weights, states, symbols, member, warps * Warp::size), ...);
}

/// Makes ready for describe_small_model(); a barrier has to lie between.
template <class Score>
KOKKOS_FORCEINLINE_FUNCTION void clear_small_description(const SmallModel<Score>& model, int member, int members) {
  BELLMAN_ROLLED
  for (int k = member; k < SmallModel<Score>::words; k += members) model.into[k] = 0;
}

/// What else is known of a model, by warp \p warp of \p warps, which has to have filled its weights in double: masks, flags,
/// normalisers.
template <class ExecutionSpace, class Score>
KOKKOS_FORCEINLINE_FUNCTION void describe_small_model(const HmmParameters<ExecutionSpace, Score>& parameters,
                                                      const SmallModel<Score>& model, int warp, int warps) {
  using Rows = SmallRows<ExecutionSpace, Score>;
  using Warp = LaneGroup<ExecutionSpace>;
  constexpr int bias = 1023;
  constexpr int in_float = 8;  // the flags in float are shifted by as much
  const auto states = static_cast<int>(parameters.states());
  const int tiles = Rows::tiles(states);
  std::uint32_t flags = row_is_fine;
  BELLMAN_ROLLED
  for (int tile = warp; tile < tiles; tile += warps) {
    const Rows row(parameters, tile);
    int lowest = bias;  // the lowest and the highest exponent of the weights that are not 0
    int highest = 0;
    std::uint32_t out_of = 0;
    BELLMAN_ROLLED
    for (int k = row.part; k < row.length; k += row.lanes) {
      const Score logit = row.logits[k * row.stride];
      const double weight = row.first(model.in_double)[k * row.template pitch<double>()];
      const auto exponent = static_cast<int>(Kokkos::bit_cast<std::uint64_t>(weight) >> 52);
      highest = exponent > highest ? exponent : highest;
      if (logit == -infinity<Score>()) {
        flags |= row_has_zero | row_has_zero << in_float;
        continue;
      }
      lowest = exponent < lowest ? exponent : lowest;
      if (!(logit < infinity<Score>())) flags |= row_has_nan | row_has_nan << in_float;
      if (weight == 0 || !row.is_trans()) continue;
      out_of |= std::uint32_t{1} << k;
      BELLMAN_ROLLED
      for (int copy = k; copy < small_states; copy += states) {
        Warp::set_bits(model.into[copy], std::uint32_t{1} << row.state);
      }
    }
    if (lowest < bias + Linear<double>::lowest_exponent || highest >= bias + Linear<double>::highest_exponent) {
      flags |= row_is_out_of_range;
    }
    if (lowest < bias + Linear<float>::lowest_exponent || highest >= bias + Linear<float>::highest_exponent) {
      flags |= row_is_out_of_range << in_float;
    }
    if (lowest < bias + lowest_even_exponent<double>) flags |= row_is_steep;
    if (lowest < bias + lowest_even_exponent<float>) flags |= row_is_steep << in_float;
    BELLMAN_ROLLED
    for (int bit = 1; bit < row.lanes; bit *= 2) out_of |= Warp::from_partner(out_of, bit);
    if (row.part == 0 && row.length > 0) {
      BELLMAN_ROLLED
      for (int copy = row.state; row.is_trans() && copy < small_states; copy += states) model.out_of[copy] = out_of;
      const double sum = model.sum[row.index];
      if (parameters.normalised && sum > 1 + 0x1p-10) flags |= row_is_dense | row_is_dense << in_float;
      const bool is_divided = !parameters.normalised && sum > 0;
      model.normaliser[row.index] = is_divided ? model.normaliser[row.index] + Kokkos::log(sum) : 0;
    }
  }
  flags = Warp::reduce(flags, [](std::uint32_t a, std::uint32_t b) { return a | b; });
  if (Warp::rank() != 0) return;
  Warp::set_bits(model.flags[0], flags & ((1u << in_float) - 1));
  Warp::set_bits(model.flags[1], flags >> in_float);
}

}  // namespace bellman::impl

#endif
