// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_SMALL_MODEL_HPP
#define BELLMAN_IMPL_HMM_SMALL_MODEL_HPP

/// \file
/// A model of few states, normalised by a team into its scratch in the form that the register sweeps read.

#include <Kokkos_Core.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// The most states that a model for the register sweeps has. Fewer are padded with states that nothing leads to.
inline constexpr int small_states = 16;

/// The model as weights in Real. Rows are small_states long, so that they can be read in whole chunks.
template <class Real>
struct SmallWeights {
  Real* init;
  Real* trans;       ///< (from, to)
  Real* transposed;  ///< (to, from)
  Real* emit;        ///< (symbol, state); the row behind the last symbol is 1, for missing ones

  KOKKOS_FUNCTION static constexpr std::size_t size(std::size_t symbols) {
    return small_states * (1 + 2 * small_states + symbols + 1);
  }

  KOKKOS_FUNCTION explicit SmallWeights(std::byte* memory) {
    init = reinterpret_cast<Real*>(memory);
    trans = init + small_states;
    transposed = trans + small_states * small_states;
    emit = transposed + small_states * small_states;
  }
};

/// What a team keeps of a small model: weights in double, in float where the results are float, and the normalisers.
template <class Score>
struct SmallModel {
  static constexpr int parts = 8;  ///< a row is summed in this many interleaved parts
  static constexpr std::size_t rows = 1 + 2 * small_states;

  SmallWeights<double> in_double;
  SmallWeights<float> in_float;
  double* normaliser;     ///< of each row, as HmmTables has them: init, trans, emit
  double* part;           ///< (rows, parts), while normalising
  std::uint32_t* into;    ///< bit i of entry j: trans(i,j) is not 0
  std::uint32_t* out_of;  ///< bit j of entry i: trans(i,j) is not 0
  std::uint32_t* flags;   ///< RowFlags of the whole model in double, then in float

  KOKKOS_FUNCTION static constexpr std::size_t bytes(std::size_t symbols) {
    return SmallWeights<double>::size(symbols) * sizeof(double) + rows * (1 + parts) * sizeof(double) +
           (2 * small_states + 2) * sizeof(std::uint32_t) +
           (is_float<Score> ? SmallWeights<float>::size(symbols) * sizeof(float) : 0);
  }

  KOKKOS_FUNCTION SmallModel(std::byte* memory, std::int64_t symbols)
      : in_double(memory), in_float(memory + SmallWeights<double>::size(symbols) * sizeof(double)) {
    std::byte* const behind = memory + SmallWeights<double>::size(symbols) * sizeof(double) +
                              (is_float<Score> ? SmallWeights<float>::size(symbols) * sizeof(float) : 0);
    normaliser = reinterpret_cast<double*>(behind);
    part = normaliser + rows;
    into = reinterpret_cast<std::uint32_t*>(part + rows * parts);
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

/// Normalises the model with all members of a team, \p member of \p members; sync() is a barrier among them. Every sum has
/// a fixed order, whatever the size of the team.
template <class ExecutionSpace, class Score, class Sync>
KOKKOS_FORCEINLINE_FUNCTION void fill_small_model(const HmmParameters<ExecutionSpace, Score>& parameters,
                                                  const SmallModel<Score>& model, int member, int members,
                                                  const Sync& sync) {
  constexpr int parts = SmallModel<Score>::parts;
  const auto states = static_cast<int>(parameters.states());
  const std::int64_t symbols = parameters.symbols();
  const int rows = 1 + 2 * states;
  const auto logit = [&](int row, std::int64_t k) {
    return static_cast<double>(row == 0        ? parameters.init(k)
                               : row <= states ? parameters.trans(row - 1, k)
                                               : parameters.emit(row - 1 - states, k));
  };
  const auto length = [&](int row) { return row <= states ? std::int64_t{states} : symbols; };
  const auto largest = [&](int row) {
    double high = -infinity<double>();
    for (int p = 0; p < parts; ++p) high = model.part[row * parts + p] > high ? model.part[row * parts + p] : high;
    return high;
  };

  if (member == 0) model.flags[0] = model.flags[1] = row_is_fine;
  for (int k = member; k < 2 * small_states; k += members) model.into[k] = 0;
  sync();  // flags and masks are clear

  if (!parameters.normalised) {
    for (int task = member; task < rows * parts; task += members) {
      const int row = task / parts;
      double high = -infinity<double>();
      for (std::int64_t k = task % parts; k < length(row); k += parts)
        high = logit(row, k) > high ? logit(row, k) : high;
      model.part[task] = high;
    }
    sync();  // the largest logit of each part is there
    for (int row = member; row < rows; row += members) model.normaliser[row] = largest(row);
    sync();  // everybody has read the parts
    for (int task = member; task < rows * parts; task += members) {
      const int row = task / parts;
      const double high = model.normaliser[row];
      double sum = 0;
      if (high > -infinity<double>()) {
        for (std::int64_t k = task % parts; k < length(row); k += parts) sum += Kokkos::exp(logit(row, k) - high);
      }
      model.part[task] = sum;
    }
    sync();  // the sum of each part is there
    for (int row = member; row < rows; row += members) {
      double sum = 0;
      for (int p = 0; p < parts; ++p) sum += model.part[row * parts + p];
      model.normaliser[row] =
          model.normaliser[row] > -infinity<double>() ? model.normaliser[row] + Kokkos::log(sum) : 0;
    }
  } else {
    for (int row = member; row < rows; row += members) model.normaliser[row] = 0;
  }
  sync();  // the normalisers are there

  std::uint32_t flags_in_double = row_is_fine;
  std::uint32_t flags_in_float = row_is_fine;
  /// Stores e^(logit - normaliser) at the same place of both tables, 0 for padding, and says whether it is above 0.
  const auto store = [&](bool is_real, int row, std::int64_t k, std::int64_t place) {
    double weight = 0;
    double log_weight = -infinity<double>();
    if (is_real) {
      const double value = logit(row, k);
      if (!(value < infinity<double>())) flags_in_double |= row_has_nan;
      log_weight = value - model.normaliser[row];
      weight = Kokkos::exp(log_weight);
    }
    const bool is_zero = log_weight == -infinity<double>();
    const auto is_in_range = [&](int lowest, int highest) {
      return is_zero || (weight >= power_of_two<double>(lowest) && weight <= power_of_two<double>(highest));
    };
    if (!is_in_range(Linear<double>::lowest_exponent, Linear<double>::highest_exponent)) {
      flags_in_double |= row_is_out_of_range;
    }
    model.in_double.init[place] = weight;
    if constexpr (is_float<Score>) {
      if (!is_in_range(Linear<float>::lowest_exponent, Linear<float>::highest_exponent)) {
        flags_in_float |= row_is_out_of_range;
      }
      model.in_float.init[place] = static_cast<float>(weight);
    }
    return !is_zero;
  };
  constexpr int trans_place = small_states;
  constexpr int transposed_place = trans_place + small_states * small_states;
  constexpr int emit_place = transposed_place + small_states * small_states;
  for (int k = member; k < small_states; k += members) store(k < states, 0, k, k);
  for (int k = member; k < small_states * small_states; k += members) {
    const int from = k / small_states;
    const int to = k % small_states;
    const bool is_real = from < states && to < states;
    if (store(is_real, 1 + from, to, trans_place + k)) {
      Kokkos::atomic_or(&model.into[to], std::uint32_t{1} << from);
      Kokkos::atomic_or(&model.out_of[from], std::uint32_t{1} << to);
    }
    store(is_real, 1 + from, to, transposed_place + to * small_states + from);
  }
  for (std::int64_t k = member; k < (symbols + 1) * small_states; k += members) {
    const std::int64_t symbol = k / small_states;
    const auto state = static_cast<int>(k % small_states);
    if (symbol < symbols) {
      store(state < states, 1 + states + state, symbol, emit_place + k);
    } else {
      model.in_double.emit[k] = 1;
      if constexpr (is_float<Score>) model.in_float.emit[k] = 1;
    }
  }
  if (flags_in_double != row_is_fine) Kokkos::atomic_or(&model.flags[0], flags_in_double);
  if ((flags_in_double | flags_in_float) != row_is_fine) {
    Kokkos::atomic_or(&model.flags[1], flags_in_double | flags_in_float);
  }
  sync();  // the model is complete
}

}  // namespace bellman::impl

#endif
