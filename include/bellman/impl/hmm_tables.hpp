// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_TABLES_HPP
#define BELLMAN_IMPL_HMM_TABLES_HPP

/// \file
/// A normalised model in memory, and the working vectors of one sequence.

#include <Kokkos_Core.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// What a row of the model holds that a rung must know of.
enum RowFlags : std::uint32_t {
  row_is_fine = 0,
  row_has_nan = 1,          ///< a NaN or +inf logit
  row_is_out_of_range = 2,  ///< a probability that is not 0 but below the normal numbers, or a density beyond the range
  row_is_wide = 4  ///< a transition that is not 0 but below TileArithmetic::wide_exponent: for tiled sweeps alone
};

/// The model as weights e^(log-probability) in Real, with what normalises each row. Row 0 is init, rows 1..S are trans, rows
/// S+1..2S are emit.
template <class Real>
struct HmmTables {
  Real* init;
  Real* trans;
  Real* emit;
  double* normaliser;    ///< log-sum-exp of each row of logits, 0 for rows of log-probabilities
  std::uint32_t* flags;  ///< RowFlags of each row

  /// The same for float and double, so that a team can change rungs in place.
  KOKKOS_FUNCTION static constexpr std::size_t bytes(std::size_t states, std::size_t symbols) {
    const std::size_t rows = 1 + 2 * states;
    const std::size_t weights = states + states * states + states * symbols;
    return (weights + rows + (rows + 1) / 2) * sizeof(double);
  }

  KOKKOS_FUNCTION HmmTables(std::byte* memory, std::int64_t states, std::int64_t symbols) {
    normaliser = reinterpret_cast<double*>(memory);
    double* const weights = normaliser + 1 + 2 * states;
    init = reinterpret_cast<Real*>(weights);
    trans = init + states;
    emit = trans + states * states;
    flags = reinterpret_cast<std::uint32_t*>(weights + states + states * states + states * symbols);
  }
};

/// Row \p index of a model: init, then the rows of trans, then those of emit.
template <class ExecutionSpace, class Score>
struct HmmRow {
  const HmmParameters<ExecutionSpace, Score>& parameters;
  bool is_init;
  bool is_trans;
  std::int64_t state;
  std::int64_t length;

  KOKKOS_FUNCTION HmmRow(const HmmParameters<ExecutionSpace, Score>& all, std::int64_t index) : parameters(all) {
    const std::int64_t states = all.states();
    is_init = index == 0;
    is_trans = index > 0 && index <= states;
    state = is_init ? 0 : is_trans ? index - 1 : index - 1 - states;
    length = is_init || is_trans ? states : all.symbols();
  }

  KOKKOS_FUNCTION double logit(std::int64_t k) const {
    return static_cast<double>(is_init    ? parameters.init(k)
                               : is_trans ? parameters.trans(state, k)
                                          : parameters.emit(state, k));
  }
  /// Where the weights go.
  template <class Real>
  KOKKOS_FUNCTION Real* weights(const HmmTables<Real>& tables) const {
    return is_init ? tables.init : (is_trans ? tables.trans : tables.emit) + state * length;
  }
};

/// Computes the normaliser, the weights and the flags of one row. Serial over the row, so that its sum has a fixed order.
template <class ExecutionSpace, class Score, class Real>
KOKKOS_FUNCTION void fill_row(const HmmParameters<ExecutionSpace, Score>& parameters, const HmmTables<Real>& tables,
                              std::int64_t index) {
  const HmmRow<ExecutionSpace, Score> row(parameters, index);
  Real* const weights = row.weights(tables);

  std::uint32_t flags = row_is_fine;
  double high = -infinity<double>();
  for (std::int64_t k = 0; k < row.length; ++k) {
    const double value = row.logit(k);
    if (!(value < infinity<double>())) flags |= row_has_nan;
    if (value > high) high = value;
  }
  double normaliser = 0;
  if (!parameters.normalised && high > -infinity<double>()) {
    double sum = 0;
    for (std::int64_t k = 0; k < row.length; ++k) sum += Kokkos::exp(row.logit(k) - high);
    normaliser = high + Kokkos::log(sum);
  }
  for (std::int64_t k = 0; k < row.length; ++k) {
    const double log_weight = row.logit(k) - normaliser;
    const double weight = Kokkos::exp(log_weight);
    const bool is_in_range = weight >= power_of_two<Real>(Linear<Real>::lowest_exponent) &&
                             weight <= power_of_two<Real>(Linear<Real>::highest_exponent);
    if (!is_in_range && log_weight > -infinity<double>()) flags |= row_is_out_of_range;
    weights[k] = is_in_range ? static_cast<Real>(weight) : Real(0);
  }
  tables.normaliser[index] = normaliser;
  tables.flags[index] = flags;
}

/// The flags of all rows together.
template <class Real>
KOKKOS_FUNCTION std::uint32_t model_flags(const HmmTables<Real>& tables, std::int64_t states) {
  std::uint32_t flags = row_is_fine;
  for (std::int64_t row = 0; row < 1 + 2 * states; ++row) flags |= tables.flags[row];
  return flags;
}

/// The alpha vectors of two steps, and what the threads of a team tell each other.
template <class Value>
struct HmmVectors {
  Value* current;
  Value* previous;
  Judgement* verdict;
  int* lost;  ///< one flag for even and one for odd steps: a thread may set one while another still reads the other

  KOKKOS_FUNCTION static constexpr std::size_t bytes(std::size_t states) {
    return 2 * states * sizeof(double) + sizeof(Judgement) + 2 * sizeof(int);
  }

  KOKKOS_FUNCTION HmmVectors(std::byte* memory, std::int64_t states) {
    verdict = reinterpret_cast<Judgement*>(memory);
    lost = reinterpret_cast<int*>(verdict + 1);
    current = reinterpret_cast<Value*>(lost + 2);
    previous = current + states;
  }
};

}  // namespace bellman::impl

#endif
