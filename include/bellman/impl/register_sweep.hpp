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
/// Both are the same chain: a start, a matrix, and the symbols in the order of the steps. Two forms run it: one thread per
/// sequence, or one lane per state. They round alike, so that a result is the same bitwise whichever the plan chooses.

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
  const Real* emit;           ///< (symbol, state)
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
    const double step_error = roundings * roundoff<Real>() + Kokkos::exp2(-1.0 * lost_bits);
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
    const Real emission = weights.emit[row * small_states + j];
    now.value[j] = start * emission;
    now.kept = now.kept && (start == 0 || emission == 0 || now.value[j] >= Arithmetic::lowest_value());
  }
  if (steps > 1) row = symbol_at(1);
  for (std::int64_t k = 1; k < steps; ++k) {
    forget_memory();
    const Real* const emit = weights.emit + row * small_states;
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
KOKKOS_FORCEINLINE_FUNCTION Judgement sweep_in_registers(const SmallModel<Score>& model, const SymbolAt& symbol_at,
                                                         std::int64_t length, double tolerance) {
  using Arithmetic = ChainArithmetic<Real>;
  const std::int64_t forward_steps = (length + 1) / 2;
  const auto forward = chain_in_registers(forward_chain<Real>(model), symbol_at, forward_steps);
  double total = 0;
  if (length == 1) {
    BELLMAN_UNROLL
    for (int j = 0; j < small_states; ++j) total += static_cast<double>(forward.value[j]);
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
    kept = kept && (sums[j] >= Arithmetic::lowest_sum() || (alive & model.into[j]) == 0);
    total = Kokkos::fma(static_cast<double>(sums[j]), static_cast<double>(backward.value[j]), total);
  }
  return Arithmetic::finish(total, forward.exponent + backward.exponent, kept, length, tolerance);
}

/// What the two directions of a chain in lanes tell each other through scratch.
template <class Real>
struct alignas(16) ChainExchange {
  Real vectors[2][2][small_states];  ///< direction, parity of the step
  double ahead[small_states];        ///< the forward vector, taken one transition further
  std::int64_t exponent[2];
  int kept[2];
  int is_bad[2];
};

/// What lanes know of a vector whose states are spread over them.
struct LaneChain {
  std::int64_t exponent;
  bool kept;
};

/// The vector in scratch, read by every lane.
template <class Real>
KOKKOS_FORCEINLINE_FUNCTION void read_vector(const Real* memory, Real (&vector)[small_states]) {
  BELLMAN_UNROLL
  for (int chunk = 0; chunk < small_states; chunk += RowChunk<Real>::size) {
    const auto part = *reinterpret_cast<const RowChunk<Real>*>(memory + chunk);
    BELLMAN_UNROLL
    for (int k = 0; k < RowChunk<Real>::size; ++k) vector[chunk + k] = part.value[k];
  }
}

/// sum_i vector(i) column(i), rounded as multiply() does.
template <class Real>
KOKKOS_FORCEINLINE_FUNCTION Real dot(const Real (&vector)[small_states], const Real (&column)[small_states]) {
  Real even = vector[0] * column[0];
  Real odd = vector[1] * column[1];
  BELLMAN_UNROLL
  for (int i = 2; i < small_states; i += 2) {
    even = Kokkos::fma(vector[i], column[i], even);
    odd = Kokkos::fma(vector[i + 1], column[i + 1], odd);
  }
  return even + odd;
}

/// The chain with a state per lane; lanes beyond the states do the same work again and write nothing.
///
/// \param exchange  two vectors of scratch; the last vector ends up in the one of (steps - 1) % 2
template <class Lanes, class Real, class SymbolAt>
KOKKOS_FORCEINLINE_FUNCTION LaneChain chain_in_lanes(const ChainWeights<Real>& weights, const SymbolAt& symbol_at,
                                                     std::int64_t steps, Real* exchange) {
  using Arithmetic = ChainArithmetic<Real>;
  const int lane = Lanes::rank();
  const int state = lane % small_states;
  const std::uint32_t into = weights.into[state];
  Real column[small_states];
  BELLMAN_UNROLL
  for (int i = 0; i < small_states; ++i) column[i] = weights.matrix[i * small_states + state];

  // Each lane fetches the symbol of one step in Lanes::size, and the emission of a step is read one step early.
  std::int64_t fetched = lane < steps ? symbol_at(lane) : 0;
  LaneChain now{0, true};
  Real emission = weights.emit[Lanes::from_lane(fetched, 0) * small_states + state];
  {
    const Real start = weights.start == nullptr ? Real(1) : weights.start[state];
    const Real value = start * emission;
    now.kept = start == 0 || emission == 0 || value >= Arithmetic::lowest_value();
    if (lane < small_states) exchange[state] = value;
  }
  const auto fetch_emission = [&](std::int64_t k) {
    if (k >= steps) return;
    if (k % Lanes::size == 0) fetched = k + lane < steps ? symbol_at(k + lane) : 0;
    emission = weights.emit[Lanes::from_lane(fetched, static_cast<int>(k % Lanes::size)) * small_states + state];
  };
  fetch_emission(1);
  for (std::int64_t k = 1; k < steps; ++k) {
    Lanes::sync();  // the vector of step k - 1 is there, and nobody reads that of step k - 2 any more
    Real vector[small_states];
    read_vector(exchange + (k - 1) % 2 * small_states, vector);
    const Real emission_now = emission;
    fetch_emission(k + 1);
    Real scale = 1;
    if (k % Arithmetic::rescale_period == 0) {
      const int shift = Arithmetic::shift_of(sum_of(vector));
      scale = power_of_two<Real>(-shift);
      now.exponent += shift;
    }
    const Real sum = dot(vector, column);
    const Real value = sum * scale * emission_now;
    if (sum < Arithmetic::lowest_sum() || value < Arithmetic::lowest_sum()) {
      now.kept = now.kept && Arithmetic::is_kept(sum, emission_now, value, alive_states(vector), into);
    }
    if (lane < small_states) exchange[k % 2 * small_states + state] = value;
  }
  Lanes::sync();  // the last vector is there
  now.kept = Lanes::reduce(static_cast<int>(now.kept), [](int a, int b) { return a & b; }) != 0;
  return now;
}

}  // namespace bellman::impl

#endif
