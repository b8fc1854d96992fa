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
/// Both are the same chain: a start, a matrix, and the symbols in the order of the steps. Here a warp runs both, a state per
/// lane, and looks at each sum; matrix_sweep.hpp has faster forms, which take this one where theirs do not certify.

#include <Kokkos_Core.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstdint>

namespace bellman::impl {

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

/// 16 bytes of a row, read at once.
template <class Real>
struct alignas(16) RowChunk {
  static constexpr int size = 16 / sizeof(Real);
  Real value[size];
};

/// The vector of a direction of the chain, an entry per lane.
template <class Warp, class Real>
struct LaneVector {
  int first;  ///< the lane of entry 0
  Real value;

  KOKKOS_FORCEINLINE_FUNCTION Real at(int i) const { return Warp::from_lane(value, first + i); }
  /// Bit i: entry i is not 0.
  KOKKOS_FORCEINLINE_FUNCTION std::uint32_t alive() const {
    return Warp::ballot(value != 0) >> first & ((1u << small_states) - 1);
  }
  /// The sum of the vector, and its product with a column of the matrix: even and odd entries apart and joined at the end.
  KOKKOS_FORCEINLINE_FUNCTION Real multiply(const Real* column, Real& total) const {
    Real sum[2] = {0, 0};
    Real of_all[2] = {0, 0};
    for (int i = 0; i < small_states; i += 2) {
      BELLMAN_UNROLL
      for (int odd = 0; odd < 2; ++odd) {
        const Real entry = at(i + odd);
        of_all[odd] += entry;
        sum[odd] = Kokkos::fma(entry, column[(i + odd) * small_states], sum[odd]);
      }
    }
    total = of_all[0] + of_all[1];
    return sum[0] + sum[1];
  }
};

/// Log-likelihood of one sequence, the same for all lanes of a warp: one half goes forward, the other backward.
/// \param row_at  row_at(t): the row of emit for step t, 0 <= t < length; length >= 1
template <class Warp, class Real, class Score, class RowAt>
KOKKOS_FORCEINLINE_FUNCTION Judgement sweep_with_care(const SmallModel<Score>& model, int states, const RowAt& row_at,
                                                      std::int64_t length, double tolerance) {
  using Arithmetic = ChainArithmetic<Real>;
  static_assert(Warp::size == 2 * small_states);
  const auto& weights = model.template weights<Real>();
  const int state = Warp::rank() % small_states;
  const bool goes_back = Warp::rank() >= small_states;
  const Real* const column = (goes_back ? weights.transposed : weights.trans) + state;
  const Real* const emit = weights.emit + state;
  const std::uint32_t into = goes_back ? model.out_of[state] : model.into[state];
  const std::int64_t forward_steps = (length + 1) / 2;
  const std::int64_t steps = goes_back ? length - forward_steps : forward_steps;
  const auto emission_at = [&](std::int64_t k) {
    return k < steps ? emit[row_at(goes_back ? length - 1 - k : k) * SmallWeights<Real>::emit_pitch] : Real(1);
  };

  const Real start = goes_back ? Real(1) : weights.init[state];
  Real emission = emission_at(0);
  LaneVector<Warp, Real> now{goes_back ? small_states : 0, start * emission};
  bool kept = start == 0 || emission == 0 || now.value >= Arithmetic::lowest_value();
  std::int64_t exponent = 0;
  Real next_emission = emission_at(1);
  for (std::int64_t k = 1; k < forward_steps; ++k) {
    emission = next_emission;
    next_emission = emission_at(k + 1);  // early: its symbol comes from far away
    Real total;
    const Real sum = now.multiply(column, total);
    const int shift = k % Arithmetic::rescale_period == 0 ? Arithmetic::shift_of(total) : 0;
    const Real next = sum * power_of_two<Real>(-shift) * emission;
    const std::uint32_t alive = now.alive();
    if (k >= steps) continue;  // the way back may be a step shorter: its last vector stays
    kept = kept && Arithmetic::is_kept(sum, emission, next, alive, into);
    now.value = next;
    exponent += shift;
  }

  // The forward half is taken one transition further and joined with the other; where there is one step, there is no other.
  Real total_of_vector;
  const Real ahead = now.multiply(column, total_of_vector);
  const Real behind = Warp::from_partner(now.value, small_states);
  double product = static_cast<double>(now.value);
  if (length > 1) {
    product = static_cast<double>(ahead) * static_cast<double>(behind);
    const std::uint32_t alive = now.alive();
    if (!goes_back && state < states) {
      kept = kept && (ahead >= Arithmetic::lowest_sum() || (alive & into) == 0);
      kept = kept && (ahead == 0 || behind == 0 || product >= ChainArithmetic<double>::lowest_sum());
    }
  }
  double total = 0;
  for (int j = 0; j < states; ++j) total += Warp::from_lane(product, j);
  exponent += Warp::from_partner(exponent, small_states);
  return Arithmetic::finish(total, exponent, Warp::ballot(!kept) == 0, length, tolerance);
}

}  // namespace bellman::impl

#endif
