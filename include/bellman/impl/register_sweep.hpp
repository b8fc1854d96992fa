// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_REGISTER_SWEEP_HPP
#define BELLMAN_IMPL_REGISTER_SWEEP_HPP

/// \file
/// The chain of a small hidden Markov model with its states in registers, from both ends at once:
///
///     L = sum_j (sum_i alpha_m(i) trans(i,j)) v_(m+1)(j)
///     alpha_t(j) = (sum_i alpha_(t-1)(i) trans(i,j)) b_t(j)   forward from alpha_0 = init b_0
///     v_t(i)     = (sum_j trans(i,j) v_(t+1)(j)) b_t(i)       backward from v_(T-1) = b_(T-1)
///
/// Both are the same chain: a start, a matrix, and the symbols in the order of the steps. Here one thread runs it, and looks
/// at each sum; matrix_sweep.hpp has the forms for GPUs, which take this one where theirs does not certify.

#include <Kokkos_Core.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstdint>

namespace bellman::impl {

/// A direction of the chain.
template <class Real>
struct ChainWeights {
  const Real* start;          ///< small_states, or null: all 1
  const Real* matrix;         ///< (from, to) in the direction of the chain
  const Real* emit;           ///< (symbol, state), SmallWeights::emit_pitch apart
  const std::uint32_t* into;  ///< bit i of entry j: matrix(i,j) is not 0
};

template <class Real, class Score>
KOKKOS_FORCEINLINE_FUNCTION ChainWeights<Real> forward_chain(const SmallModel<Score>& model) {
  const auto& weights = model.template weights<Real>();
  return {weights.init, weights.trans, weights.emit, model.into};
}
template <class Real, class Score>
KOKKOS_FORCEINLINE_FUNCTION ChainWeights<Real> backward_chain(const SmallModel<Score>& model) {
  const auto& weights = model.template weights<Real>();
  return {nullptr, weights.transposed, weights.emit, model.out_of};
}

template <class Real>
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t alive_states(const Real (&vector)[small_states]) {
  std::uint32_t alive = 0;
  BELLMAN_UNROLL
  for (int j = 0; j < small_states; ++j) alive |= vector[j] != 0 ? std::uint32_t{1} << j : 0u;
  return alive;
}

/// The sum of a vector, even and odd entries apart and joined at the end.
template <class Real>
KOKKOS_FORCEINLINE_FUNCTION Real sum_of(const Real (&vector)[small_states]) {
  Real even = 0;
  Real odd = 0;
  BELLMAN_UNROLL
  for (int i = 0; i < small_states; i += 2) {
    even += vector[i];
    odd += vector[i + 1];
  }
  return even + odd;
}

/// The arithmetic of one state in one step, the same in every form of the sweep.
template <class Real>
struct ChainArithmetic {
  static constexpr int lost_bits = is_float<Real> ? 30 : 60;
  static constexpr int rescale_period = 4;  ///< steps between two changes of the scale

  /// A sum at least this large has lost less than 2^-lost_bits of itself to underflow.
  KOKKOS_FUNCTION static Real lowest_sum() {
    return small_states * power_of_two<Real>(Linear<Real>::lowest_exponent + lost_bits);
  }
  KOKKOS_FUNCTION static Real lowest_value() { return power_of_two<Real>(Linear<Real>::lowest_exponent); }

  /// The power of two to divide by, from the sum of the vector.
  KOKKOS_FUNCTION static int shift_of(Real total) {
    constexpr int largest = Linear<Real>::highest_exponent - 1;
    const int exponent = exponent_of(total);
    return total == 0 ? 0 : exponent < -largest ? -largest : exponent > largest ? largest : exponent;
  }

  /// Of a state whose sum or value is small: whether all the same nothing was lost, because it is a structural zero.
  KOKKOS_FUNCTION static bool is_kept(Real sum, Real emission, Real value, std::uint32_t alive, std::uint32_t into) {
    return emission == 0 || (alive & into) == 0 || (sum >= lowest_sum() && value >= lowest_value());
  }

  /// The log-likelihood of a total and its scale. The total is brought to 1..2 first: how the two share the exponent must
  /// not show.
  KOKKOS_FUNCTION static Judgement finish(double total, std::int64_t exponent, bool kept, std::int64_t steps,
                                          double tolerance) {
    if (!kept) return {};
    if (total == 0) return {-infinity<double>(), true};
    if (!(total < infinity<double>())) return {};
    const int rest = exponent_of(total);
    const double value =
        Kokkos::fma(static_cast<double>(exponent + rest), ln_2, Kokkos::log(total * power_of_two<double>(-rest)));
    // Per step: the longer of two sums, their joining, and the roundings of trans, emit and their product.
    const double roundings = small_states / 2 + 6;
    const double step_error = roundings * roundoff<Real>() + power_of_two<double>(-lost_bits);
    const bool rounding_small =
        !is_float<Real> || static_cast<double>(steps + 1) * step_error <= 0.9 * tolerance * (1 + Kokkos::abs(value));
    return {value, rounding_small};
  }
};

/// A vector of the chain held by one thread.
template <class Real>
struct ChainVector {
  Real value[small_states];
  std::int64_t exponent;
  bool kept;
};

/// 16 bytes of a row, read at once.
template <class Real>
struct alignas(16) RowChunk {
  static constexpr int size = 16 / sizeof(Real);
  Real value[size];
};

/// sums(j) = sum_i vector(i) matrix(i,j), even and odd i apart and joined at the end.
template <class Real>
KOKKOS_FORCEINLINE_FUNCTION void multiply(const Real (&vector)[small_states], const Real* matrix,
                                          Real (&sums)[small_states]) {
  Real odd[small_states];
  BELLMAN_UNROLL
  for (int i = 0; i < small_states; ++i) {
    if (i % 4 == 0) forget_memory();  // four rows at a time are enough to hide the latency
    BELLMAN_UNROLL
    for (int chunk = 0; chunk < small_states; chunk += RowChunk<Real>::size) {
      const auto weights = *reinterpret_cast<const RowChunk<Real>*>(matrix + i * small_states + chunk);
      BELLMAN_UNROLL
      for (int k = 0; k < RowChunk<Real>::size; ++k) {
        const int j = chunk + k;
        Real& sum = i % 2 == 0 ? sums[j] : odd[j];
        sum = i < 2 ? vector[i] * weights.value[k] : Kokkos::fma(vector[i], weights.value[k], sum);
      }
    }
  }
  BELLMAN_UNROLL
  for (int j = 0; j < small_states; ++j) sums[j] += odd[j];
}

/// The chain in one thread.
/// \param symbol_at  symbol_at(k): the row of emit for step k, 0 <= k < steps; steps >= 1
template <class Real, class SymbolAt>
KOKKOS_FORCEINLINE_FUNCTION ChainVector<Real> chain_in_registers(const ChainWeights<Real>& weights,
                                                                 const SymbolAt& symbol_at, std::int64_t steps) {
  using Arithmetic = ChainArithmetic<Real>;
  ChainVector<Real> now;
  now.exponent = 0;
  now.kept = true;
  std::int64_t row = symbol_at(0);
  BELLMAN_UNROLL
  for (int j = 0; j < small_states; ++j) {
    const Real start = weights.start == nullptr ? Real(1) : weights.start[j];
    const Real emission = weights.emit[row * SmallWeights<Real>::emit_pitch + j];
    now.value[j] = start * emission;
    now.kept = now.kept && (start == 0 || emission == 0 || now.value[j] >= Arithmetic::lowest_value());
  }
  if (steps > 1) row = symbol_at(1);
  for (std::int64_t k = 1; k < steps; ++k) {
    forget_memory();
    const Real* const emit = weights.emit + row * SmallWeights<Real>::emit_pitch;
    if (k + 1 < steps) row = symbol_at(k + 1);  // early: it comes from far away
    Real scale = 1;
    if (k % Arithmetic::rescale_period == 0) {
      const int shift = Arithmetic::shift_of(sum_of(now.value));
      scale = power_of_two<Real>(-shift);
      now.exponent += shift;
    }
    Real sums[small_states];
    multiply(now.value, weights.matrix, sums);
    Real next[small_states];
    Real lowest = infinity<Real>();
    BELLMAN_UNROLL
    for (int chunk = 0; chunk < small_states; chunk += RowChunk<Real>::size) {
      const auto emission = *reinterpret_cast<const RowChunk<Real>*>(emit + chunk);
      BELLMAN_UNROLL
      for (int c = 0; c < RowChunk<Real>::size; ++c) {
        const int j = chunk + c;
        next[j] = sums[j] * scale * emission.value[c];
        lowest = sums[j] < lowest ? sums[j] : lowest;
        lowest = next[j] < lowest ? next[j] : lowest;
      }
    }
    if (lowest < Arithmetic::lowest_sum()) {
      const std::uint32_t alive = alive_states(now.value);
      BELLMAN_UNROLL
      for (int j = 0; j < small_states; ++j) {
        now.kept = now.kept && Arithmetic::is_kept(sums[j], emit[j], next[j], alive, weights.into[j]);
      }
    }
    BELLMAN_UNROLL
    for (int j = 0; j < small_states; ++j) now.value[j] = next[j];
  }
  return now;
}

/// Log-likelihood of one sequence in one thread.
/// \param symbol_at  symbol_at(t), 0 <= t < length; length >= 1
template <class Real, class Score, class SymbolAt>
KOKKOS_FORCEINLINE_FUNCTION Judgement sweep_in_registers(const SmallModel<Score>& model, int states,
                                                         const SymbolAt& symbol_at, std::int64_t length,
                                                         double tolerance) {
  using Arithmetic = ChainArithmetic<Real>;
  const std::int64_t forward_steps = (length + 1) / 2;
  const auto forward = chain_in_registers(forward_chain<Real>(model), symbol_at, forward_steps);
  double total = 0;
  if (length == 1) {
    BELLMAN_UNROLL
    for (int j = 0; j < small_states; ++j) total += j < states ? static_cast<double>(forward.value[j]) : 0.0;
    return Arithmetic::finish(total, forward.exponent, forward.kept, length, tolerance);
  }
  const auto from_behind = [&](std::int64_t k) { return symbol_at(length - 1 - k); };
  const auto backward = chain_in_registers(backward_chain<Real>(model), from_behind, length - forward_steps);
  Real sums[small_states];
  multiply(forward.value, model.template weights<Real>().trans, sums);
  bool kept = forward.kept && backward.kept;
  const std::uint32_t alive = alive_states(forward.value);
  BELLMAN_UNROLL
  for (int j = 0; j < small_states; ++j) {
    if (j >= states) break;
    kept = kept && (sums[j] >= Arithmetic::lowest_sum() || (alive & model.into[j]) == 0);
    const double product = static_cast<double>(sums[j]) * static_cast<double>(backward.value[j]);
    kept = kept && (sums[j] == 0 || backward.value[j] == 0 || product >= ChainArithmetic<double>::lowest_sum());
    total += product;
  }
  return Arithmetic::finish(total, forward.exponent + backward.exponent, kept, length, tolerance);
}

}  // namespace bellman::impl

#endif
