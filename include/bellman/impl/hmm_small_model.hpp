// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_SMALL_MODEL_HPP
#define BELLMAN_IMPL_HMM_SMALL_MODEL_HPP

/// \file
/// A model of few states, normalised by a team into its scratch in the form that the sweeps of small models read.

#include <Kokkos_Core.hpp>
#include <bellman/impl/execution_spaces.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// The most states that a small model has. Where there are fewer, the places behind them hold zeros on hosts; on GPUs copies of the states, state j
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
  static constexpr int emit_pitch = small_states;

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

  SmallWeights<double> in_double;
  SmallWeights<float> in_float;
  double* normaliser;  ///< of each row, as HmmTables has them: init, trans, emit; describe_small_model() completes them
  double* sum;         ///< of the e^(logit - largest) of each row
  std::uint32_t* flags_in_double;  ///< RowFlags and SmallRowFlags of each row
  std::uint32_t* flags_in_float;
  std::uint32_t* into;    ///< bit i of entry j: trans(i,j) is not 0
  std::uint32_t* out_of;  ///< bit j of entry i: trans(i,j) is not 0
  std::uint32_t* flags;   ///< those of all rows, in double and in float

  KOKKOS_FUNCTION static constexpr std::size_t bytes(std::size_t symbols) {
    return SmallWeights<double>::size(symbols) * sizeof(double) + 2 * rows * sizeof(double) +
           2 * (rows + small_states + 1) * sizeof(std::uint32_t) +
           (is_float<Score> ? SmallWeights<float>::size(symbols) * sizeof(float) : 0);
  }

  KOKKOS_FUNCTION SmallModel(std::byte* memory, std::int64_t symbols)
      : in_double(memory), in_float(memory + SmallWeights<double>::size(symbols) * sizeof(double)) {
    std::byte* const behind = memory + SmallWeights<double>::size(symbols) * sizeof(double) +
                              (is_float<Score> ? SmallWeights<float>::size(symbols) * sizeof(float) : 0);
    normaliser = reinterpret_cast<double*>(behind);
    sum = normaliser + rows;
    flags_in_double = reinterpret_cast<std::uint32_t*>(sum + rows);
    flags_in_float = flags_in_double + rows;
    into = flags_in_float + rows;
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

/// The places of the weights of one row: weight k lies at first + k * stride, and that of a transition in the transposed
/// matrix as well.
template <class Real>
struct SmallRow {
  Real* first;
  Real* transposed;  ///< for other rows the same as first
  int stride;
  int transposed_stride;
  KOKKOS_FORCEINLINE_FUNCTION void store(std::int64_t k, double weight) const {
    first[k * stride] = static_cast<Real>(weight);
    transposed[k * transposed_stride] = static_cast<Real>(weight);
  }
};

template <class Real>
KOKKOS_FORCEINLINE_FUNCTION SmallRow<Real> small_row(const SmallWeights<Real>& weights, bool is_init, bool is_trans,
                                                     int state) {
  constexpr int pitch = SmallWeights<Real>::emit_pitch;
  if (is_init) return {weights.init, weights.init, 1, 1};
  if (is_trans) return {weights.trans + state * small_states, weights.transposed + state, 1, small_states};
  return {weights.emit + state, weights.emit + state, pitch, pitch};
}

/// Fills the places that no row of the model fills: rows of copies with zeros, that of a missing symbol with ones, and where
/// there are no states all the rest with zeros.
template <class Real>
KOKKOS_FORCEINLINE_FUNCTION void fill_small_padding(const SmallWeights<Real>& weights, int states, std::int64_t symbols,
                                                    int member, int members) {
  constexpr int pitch = SmallWeights<Real>::emit_pitch;
  for (int k = states * small_states + member; k < small_states * small_states; k += members) {
    weights.trans[k] = weights.transposed[k] = 0;
  }
  for (int k = member; k < small_states; k += members) weights.emit[symbols * pitch + k] = 1;
  if (states > 0) return;
  for (int k = member; k < small_states; k += members) weights.init[k] = 0;
  for (std::int64_t k = member; k < symbols * pitch; k += members) weights.emit[k] = 0;
}

/// Copies the states into the places behind them (small_states), or fills these with zeros. The rows of the model have to be
/// complete.
template <bool has_copies, class Real>
KOKKOS_FORCEINLINE_FUNCTION void fill_small_copies(const SmallWeights<Real>& weights, int states, std::int64_t symbols,
                                                   int member, int members) {
  constexpr int pitch = SmallWeights<Real>::emit_pitch;
  const int copies = small_states - states;
  if (states == 0) return;
  for (std::int64_t k = member; k < (1 + 2 * states + symbols) * copies; k += members) {
    const std::int64_t row = k / copies;
    Real* const first = row == 0            ? weights.init
                        : row <= states     ? weights.trans + (row - 1) * small_states
                        : row <= 2 * states ? weights.transposed + (row - 1 - states) * small_states
                                            : weights.emit + (row - 1 - 2 * states) * pitch;
    const auto copy = static_cast<int>(states + k % copies);
    first[copy] = has_copies ? first[copy % states] : Real(0);
  }
}

/// Normalises the model with all members of a team, \p member of \p members; on devices the members are the lanes of full
/// warps. Every sum has a fixed order, whatever the size of the team. sync() is a barrier of the team; the caller has to put
/// another one behind. What describe_small_model() adds is still missing.
template <class ExecutionSpace, class Score, class Sync>
KOKKOS_FORCEINLINE_FUNCTION void fill_small_model(const HmmParameters<ExecutionSpace, Score>& parameters,
                                                  const SmallModel<Score>& model, int member, int members,
                                                  const Sync& sync) {
  using Parts = LaneGroup<ExecutionSpace, 8>;  // they share a row, interleaved
  constexpr int loads = 8;                     // logits on their way at a time
  constexpr int unroll = 4;                    // powers that overlap
  constexpr int not_a_number = 0x1000;         // above all exponents
  const auto states = static_cast<int>(parameters.states());
  const auto symbols = static_cast<int>(parameters.symbols());
  const int rows = 1 + 2 * states;
  const int groups = members / Parts::size;
  const int part = Parts::rank();

  for (int base = 0; base < rows; base += groups) {  // all lanes of a warp stay together
    const int row = base + member / Parts::size;
    const bool is_row = row < rows;
    const bool is_init = row == 0;
    const bool is_trans = row > 0 && row <= states;
    const int state = !is_row || is_init ? 0 : is_trans ? row - 1 : row - 1 - states;
    const int length = !is_row ? 0 : is_init || is_trans ? states : symbols;
    const Score* const logits = is_init    ? parameters.init.data()
                                : is_trans ? parameters.trans.data() + state * parameters.trans.stride(0)
                                           : parameters.emit.data() + state * parameters.emit.stride(0);
    const auto stride = static_cast<std::int64_t>(is_init    ? parameters.init.stride(0)
                                                  : is_trans ? parameters.trans.stride(1)
                                                             : parameters.emit.stride(1));
    const auto logit = [&](int k) { return k < length ? logits[k * stride] : -infinity<Score>(); };

    Score high = -infinity<Score>();
    for (int from = part; from < length; from += loads * Parts::size) {
      Score values[loads];
      BELLMAN_UNROLL
      for (int u = 0; u < loads; ++u) values[u] = logit(from + u * Parts::size);
      BELLMAN_UNROLL
      for (int u = 0; u < loads; ++u) high = values[u] > high ? values[u] : high;
    }
    high = Parts::reduce(high, [](Score a, Score b) { return b > a ? b : a; });

    // The row keeps its powers in the places of its weights in double, until their sum is known.
    const SmallRow<double> in_double = small_row(model.in_double, is_init, is_trans, state);
    const double shift = parameters.normalised || high == -infinity<Score>() ? 0 : static_cast<double>(high);
    double sum = 0;
    int lowest = not_a_number;  // the lowest and the highest exponent of the weights that are not 0, as stored
    int highest = 0;
    bool has_zero = false;
    for (int from = part; from < length; from += unroll * Parts::size) {
      Score values[unroll];
      double powers[unroll];
      BELLMAN_UNROLL
      for (int u = 0; u < unroll; ++u) values[u] = logit(from + u * Parts::size);
      BELLMAN_UNROLL
      for (int u = 0; u < unroll; ++u) powers[u] = fast_exp(static_cast<double>(values[u]) - shift);
      BELLMAN_UNROLL
      for (int u = 0; u < unroll; ++u) {
        const int k = from + u * Parts::size;
        if (k < length) in_double.first[k * in_double.stride] = powers[u];
        sum += powers[u];
        if (!(values[u] < infinity<Score>())) highest = not_a_number;
        const bool is_zero = values[u] == -infinity<Score>();
        if (powers[u] == 0 && !is_zero) lowest = 0;
        has_zero = has_zero || (is_zero && k < length);
      }
    }
    sum = Parts::reduce(sum, [](double a, double b) { return a + b; });

    const bool is_divided = !parameters.normalised && sum > 0;
    const double factor = is_divided ? 1 / sum : 1;
    for (int from = part; from < length; from += unroll * Parts::size) {
      double weights[unroll];
      BELLMAN_UNROLL
      for (int u = 0; u < unroll; ++u) {
        const int k = from + u * Parts::size;
        weights[u] = k < length ? in_double.first[k * in_double.stride] * factor : 0;
      }
      BELLMAN_UNROLL
      for (int u = 0; u < unroll; ++u) {
        const int k = from + u * Parts::size;
        const auto exponent = static_cast<int>(Kokkos::bit_cast<std::uint64_t>(weights[u]) >> 52);
        lowest = weights[u] != 0 && exponent < lowest ? exponent : lowest;
        highest = exponent > highest ? exponent : highest;
        if (k < length) {
          in_double.store(k, weights[u]);
          if constexpr (is_float<Score>) small_row(model.in_float, is_init, is_trans, state).store(k, weights[u]);
        }
      }
    }

    constexpr int bias = 1023;
    constexpr int in_float = 8;  // the flags in float are shifted by as much
    std::uint32_t flags = row_is_fine;
    if (has_zero) flags |= row_has_zero | row_has_zero << in_float;
    if (highest == not_a_number) flags |= row_has_nan | row_has_nan << in_float;
    if (parameters.normalised && sum > 1 + 0x1p-10) flags |= row_is_dense | row_is_dense << in_float;
    if (lowest < bias + Linear<double>::lowest_exponent || highest >= bias + Linear<double>::highest_exponent) {
      flags |= row_is_out_of_range;
    }
    if (lowest < bias + Linear<float>::lowest_exponent || highest >= bias + Linear<float>::highest_exponent) {
      flags |= row_is_out_of_range << in_float;
    }
    if (lowest < bias + lowest_even_exponent<double>) flags |= row_is_steep;
    if (lowest < bias + lowest_even_exponent<float>) flags |= row_is_steep << in_float;
    flags = Parts::reduce(flags, [](std::uint32_t a, std::uint32_t b) { return a | b; });
    if (is_row && part == 0) {
      model.normaliser[row] = is_divided ? static_cast<double>(high) : 0;
      model.sum[row] = is_divided ? sum : 1;
      model.flags_in_double[row] = flags & ((1u << in_float) - 1);
      model.flags_in_float[row] = flags >> in_float;
    }
  }
  fill_small_padding(model.in_double, states, symbols, member, members);
  if constexpr (is_float<Score>) fill_small_padding(model.in_float, states, symbols, member, members);
  if (states == small_states) return;
  sync();  // the rows of the model are complete
  constexpr bool has_copies = has_warps<ExecutionSpace>();
  fill_small_copies<has_copies>(model.in_double, states, symbols, member, members);
  if constexpr (is_float<Score>) fill_small_copies<has_copies>(model.in_float, states, symbols, member, members);
}

/// Adds the normalisers, the masks and the flags of the whole model, which the weights do not need. Barriers before and
/// behind are the caller's.
template <class Score>
KOKKOS_FORCEINLINE_FUNCTION void describe_small_model(const SmallModel<Score>& model, std::int64_t states, int member,
                                                      int members) {
  const int rows = 1 + 2 * static_cast<int>(states);
  for (int type = member; type < 2; type += members) {
    const std::uint32_t* const of_rows = type == 0 ? model.flags_in_double : model.flags_in_float;
    std::uint32_t flags = row_is_fine;
    for (int row = 0; row < rows; ++row) flags |= of_rows[row];
    model.flags[type] = flags;
  }
  for (int k = member; k < 2 * small_states; k += members) {
    const double* const matrix = k < small_states ? model.in_double.trans : model.in_double.transposed;
    std::uint32_t mask = 0;
    for (int i = 0; i < small_states; ++i) {
      mask |= matrix[i * small_states + k % small_states] != 0 ? std::uint32_t{1} << i : 0u;
    }
    model.into[k] = mask;  // out_of lies behind into
  }
  for (int row = member; row < rows; row += members) model.normaliser[row] += Kokkos::log(model.sum[row]);
}

}  // namespace bellman::impl

#endif
