// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_PADDED_MODEL_HPP
#define BELLMAN_IMPL_HMM_PADDED_MODEL_HPP

/// \file
/// A normalised model of many states as the tiled sweeps read it: rows padded to whole tiles, emissions by symbol.
///
/// A state of the padding copies the last state but leads nowhere: its column of the transitions is that of the last state,
/// its row is 0. So it adds nothing to any sum, and no test of a state needs to know of the padding.

#include <Kokkos_Core.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/state_tile.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

template <class Real>
struct PaddedModel {
  static constexpr std::size_t read_ahead = 8;  ///< rows beyond the last transition that may be read, for nothing

  std::int64_t states;
  std::int64_t stride;  ///< states with the padding: the length of a row
  std::int64_t symbols;
  Real* init;            ///< (stride)
  Real* trans;           ///< (from, to)
  Real* transposed;      ///< (to, from), or null where the chain is not taken from behind
  Real* emit;            ///< (symbol, state); row `symbols` is all 1, for a missing symbol
  std::uint32_t* flags;  ///< RowFlags in Real of each row of the model, as in HmmTables

  KOKKOS_FUNCTION static constexpr std::size_t bytes(std::size_t states, std::size_t stride, std::size_t symbols,
                                                     bool with_transposed) {
    const std::size_t weights = stride * (1 + stride * (with_transposed ? 2 : 1) + symbols + 1 + read_ahead);
    return weights * sizeof(Real) + (1 + 2 * states + 3) / 4 * 4 * sizeof(std::uint32_t);
  }

  /// \param memory  aligned to 16 bytes
  PaddedModel(std::byte* memory, std::int64_t states_, std::int64_t stride_, std::int64_t symbols_,
              bool with_transposed)
      : states(states_), stride(stride_), symbols(symbols_) {
    init = reinterpret_cast<Real*>(memory);
    trans = init + stride;
    Real* const behind = trans + stride * stride;
    transposed = with_transposed ? behind : nullptr;
    emit = with_transposed ? behind + stride * stride : behind;
    flags = reinterpret_cast<std::uint32_t*>(emit + (symbols + 1) * stride);
  }

  KOKKOS_FUNCTION std::int64_t rows() const { return 1 + 2 * states; }

  /// The row of emit for an observed symbol that is in range or missing.
  KOKKOS_FUNCTION std::int64_t emission_row(std::int64_t symbol) const { return symbol < 0 ? symbols : symbol; }
};

/// The lanes of a group normalise one row of a model, into both tables. Rows beyond those of the model are padding.
template <class Lanes, class ExecutionSpace, class Real>
KOKKOS_FUNCTION void fill_padded_row(const HmmParameters<ExecutionSpace, Real>& parameters,
                                     const HmmTables<double>& tables, const PaddedModel<Real>& model,
                                     std::int64_t index) {
  const std::int64_t states = model.states;
  const std::int64_t stride = model.stride;
  if (index >= model.rows()) {
    const std::int64_t from = states + (index - model.rows());
    for (std::int64_t k = Lanes::rank(); k < stride; k += Lanes::size) {
      model.trans[from * stride + k] = 0;
      if (model.transposed != nullptr) model.transposed[from * stride + k] = 0;
    }
    return;
  }
  const HmmRow<ExecutionSpace, Real> row(parameters, index);
  const std::int64_t state = row.state;

  std::uint32_t flags = row_is_fine;
  double high = -infinity<double>();
  for (std::int64_t k = Lanes::rank(); k < row.length; k += Lanes::size) {
    const double value = row.logit(k);
    if (!(value < infinity<double>())) flags |= row_has_nan;
    if (value > high) high = value;
  }
  high = Lanes::reduce(high, [](double a, double b) { return b > a ? b : a; });
  double normaliser = 0;
  if (!parameters.normalised && high > -infinity<double>()) {
    double sum = 0;
    for (std::int64_t k = Lanes::rank(); k < row.length; k += Lanes::size) sum += Kokkos::exp(row.logit(k) - high);
    sum = Lanes::reduce(sum, [](double a, double b) { return a + b; });
    normaliser = high + Kokkos::log(sum);
  }

  std::uint32_t flags_in_real = flags;
  const auto is_in_range = [](double weight, int lowest, int highest) {
    return weight >= power_of_two<double>(lowest) && weight <= power_of_two<double>(highest);
  };
  const int lowest_in_real = row.is_trans ? TileArithmetic<Real>::lowest_entry_exponent : Linear<Real>::lowest_exponent;
  double* const weights = row.weights(tables);
  const std::int64_t copies = state == states - 1 ? stride - states : 0;  // of this state, as padding
  for (std::int64_t k = Lanes::rank(); k < row.length; k += Lanes::size) {
    const double log_weight = row.logit(k) - normaliser;
    const double weight = Kokkos::exp(log_weight);
    const bool is_zero = log_weight == -infinity<double>();
    const bool in_double = is_in_range(weight, Linear<double>::lowest_exponent, Linear<double>::highest_exponent);
    const bool in_real = is_in_range(weight, lowest_in_real, Linear<Real>::highest_exponent);
    if (!in_double && !is_zero) flags |= row_is_out_of_range;
    if (!in_real && !is_zero) flags_in_real |= row_is_out_of_range;
    if (row.is_trans && !is_zero && weight < power_of_two<double>(TileArithmetic<Real>::wide_exponent)) {
      flags_in_real |= row_is_wide;
    }
    weights[k] = in_double ? weight : 0;
    const Real stored = in_real ? static_cast<Real>(weight) : Real(0);
    const std::int64_t copies_of_k = k == states - 1 ? stride - states : 0;
    if (row.is_init) {
      for (std::int64_t c = 0; c <= copies_of_k; ++c) model.init[k + c] = stored;
    } else if (row.is_trans) {
      for (std::int64_t c = 0; c <= copies_of_k; ++c) model.trans[state * stride + k + c] = stored;
      if (model.transposed != nullptr) {
        for (std::int64_t c = 0; c <= copies; ++c) model.transposed[k * stride + state + c] = stored;
      }
    } else {
      for (std::int64_t c = 0; c <= copies; ++c) model.emit[k * stride + state + c] = stored;
    }
  }
  if (!row.is_init && !row.is_trans && Lanes::rank() == 0) {
    for (std::int64_t c = 0; c <= copies; ++c) model.emit[model.symbols * stride + state + c] = 1;
  }
  const auto both = [](std::uint32_t a, std::uint32_t b) { return a | b; };
  flags = Lanes::reduce(flags, both);
  flags_in_real = Lanes::reduce(flags_in_real, both);
  if (Lanes::rank() == 0) {
    tables.normaliser[index] = normaliser;
    tables.flags[index] = flags;
    model.flags[index] = flags_in_real;
  }
}

}  // namespace bellman::impl

#endif
