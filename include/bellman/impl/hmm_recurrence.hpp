// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_RECURRENCE_HPP
#define BELLMAN_IMPL_HMM_RECURRENCE_HPP

/// \file
/// The forward step of a hidden Markov model, over the two algebras that sum paths:
///
///     alpha(t,j) = (sum_i alpha(t-1,i) trans(i,j)) emit(j, o_t),  carried relative to a scale that each step renews
///
/// A recurrence gives the sweep its Value, start(), next() and finish(). next() reads the whole previous vector, so each
/// state finds the same new scale by itself, and a step needs one barrier.

#include <Kokkos_Core.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <cstdint>

namespace bellman::impl {

/// One state after a step.
template <class Value, class Shift>
struct HmmState {
  Value value;  ///< alpha over the new scale
  Shift shift;  ///< new scale over the old one; the same for all states
  bool kept;    ///< nothing that matters was lost to the range of Value
};

/// The step over Linear<Real>, with powers of two as scales. A state is kept when its sum is a structural zero, or so large
/// that all which underflowed is below 2^-lost_bits of it: relative accuracy of every entry then survives every later step.
template <class Real>
class LinearHmmStep {
 public:
  using Value = Real;
  using Shift = int;
  using State = HmmState<Value, Shift>;
  using Scale = std::int64_t;

  KOKKOS_FUNCTION LinearHmmStep(const HmmTables<Real>& tables, std::int64_t states, std::int64_t symbols)
      : tables_(tables), states_(states), symbols_(symbols) {}

  KOKKOS_FUNCTION static Scale no_scale() { return 0; }
  KOKKOS_FUNCTION static void rescale(Scale& scale, Shift shift) { scale += shift; }

  KOKKOS_FUNCTION State start(std::int64_t state, std::int64_t symbol) const {
    return emitted(tables_.init[state], 0, state, symbol);
  }

  KOKKOS_FUNCTION State next(const Value* previous, std::int64_t state, std::int64_t symbol) const {
    // Four partial sums in a fixed order: shorter dependency chains and a smaller rounding error. The inner loop has a
    // fixed length, so that the sums stay in registers.
    constexpr int parts = 4;
    Real dots[parts] = {};
    Real totals[parts] = {};
    const Real* column = tables_.trans + state;
    for (std::int64_t first = 0; first < states_; first += parts) {
      for (int part = 0; part < parts; ++part) {
        const std::int64_t i = first + part;
        if (i < states_) {
          dots[part] = Kokkos::fma(previous[i], column[i * states_], dots[part]);
          totals[part] += previous[i];
        }
      }
    }
    const Real dot = (dots[0] + dots[1]) + (dots[2] + dots[3]);
    const Real total = (totals[0] + totals[1]) + (totals[2] + totals[3]);
    const int exponent = exponent_of(total);
    const int shift = total == 0                    ? 0
                      : exponent < -largest_shift() ? -largest_shift()
                      : exponent > largest_shift()  ? largest_shift()
                                                    : exponent;
    State result = emitted(dot * power_of_two<Real>(-shift), shift, state, symbol);
    const bool dot_kept = (dot >= static_cast<Real>(states_) * power_of_two<Real>(lowest_exponent + lost_bits) &&
                           dot <= power_of_two<Real>(highest_exponent)) ||
                          is_structural_zero(previous, state);
    result.kept = result.kept && dot_kept;
    return result;
  }

  KOKKOS_FUNCTION Judgement finish(const Value* last, Scale scale, std::int64_t steps, double tolerance) const {
    double total = 0;
    for (std::int64_t j = 0; j < states_; ++j) total += static_cast<double>(last[j]);
    if (total == 0) return {-infinity<double>(), true};
    const double value = Kokkos::log(total) + static_cast<double>(scale) * ln_2;
    // Per step: the longest of the four sums, their joining, and trans, emit and their product. In double this is as small
    // as that of any other form, so only float is held to it.
    const double roundings = static_cast<double>((states_ + 3) / 4 + 6);
    const double step_error = roundings * roundoff<Real>() + Kokkos::exp2(-1.0 * lost_bits);
    const bool rounding_small =
        !is_float<Real> || static_cast<double>(steps) * step_error <= 0.9 * tolerance * (1 + Kokkos::abs(value));
    return {value, rounding_small};
  }

 private:
  static constexpr int lowest_exponent = Linear<Real>::lowest_exponent;
  static constexpr int highest_exponent = Linear<Real>::highest_exponent;
  static constexpr int lost_bits = is_float<Real> ? 30 : 60;
  KOKKOS_FUNCTION static constexpr int largest_shift() { return highest_exponent - 1; }

  KOKKOS_FUNCTION State emitted(Real sum, int shift, std::int64_t state, std::int64_t symbol) const {
    const Real emission = symbol < 0 ? Real(1) : tables_.emit[state * symbols_ + symbol];
    const Real value = sum * emission;
    const bool is_zero = sum == 0 || emission == 0;
    const bool is_normal =
        value >= power_of_two<Real>(lowest_exponent) && value <= power_of_two<Real>(highest_exponent);
    return {value, shift, is_zero || is_normal};
  }

  /// No path of probability above 0 leads to the state.
  KOKKOS_FUNCTION bool is_structural_zero(const Value* previous, std::int64_t state) const {
    for (std::int64_t i = 0; i < states_; ++i) {
      if (previous[i] != 0 && tables_.trans[i * states_ + state] != 0) return false;
    }
    return true;
  }

  HmmTables<Real> tables_;
  std::int64_t states_;
  std::int64_t symbols_;
};

/// The step over LogSumExp, in double: the range never ends. Weights are taken from the caller's logits, so that a
/// log-probability of any size is right. Scales are the largest alpha, summed with compensation.
template <class ExecutionSpace, class Score>
class LogHmmStep {
 public:
  using Value = double;
  using Shift = double;
  using State = HmmState<Value, Shift>;

  /// A sum with Neumaier's compensation.
  struct Scale {
    double sum;
    double rest;
  };

  KOKKOS_FUNCTION LogHmmStep(const HmmParameters<ExecutionSpace, Score>& parameters, const double* normaliser)
      : parameters_(parameters), normaliser_(normaliser) {}

  KOKKOS_FUNCTION static Scale no_scale() { return {0, 0}; }
  KOKKOS_FUNCTION static void rescale(Scale& scale, Shift shift) {
    const double sum = scale.sum + shift;
    const bool sum_is_larger = Kokkos::abs(scale.sum) >= Kokkos::abs(shift);
    scale.rest += sum_is_larger ? (scale.sum - sum) + shift : (shift - sum) + scale.sum;
    scale.sum = sum;
  }

  KOKKOS_FUNCTION State start(std::int64_t state, std::int64_t symbol) const {
    return {log_weight(parameters_.init(state), 0) + log_emission(state, symbol), 0, true};
  }

  KOKKOS_FUNCTION State next(const Value* previous, std::int64_t state, std::int64_t symbol) const {
    const std::int64_t states = parameters_.states();
    double high = -infinity<double>();
    double top = -infinity<double>();
    for (std::int64_t i = 0; i < states; ++i) {
      const double term = previous[i] + log_weight(parameters_.trans(i, state), 1 + i);
      if (term > high) high = term;
      if (previous[i] > top) top = previous[i];
    }
    const double shift = top > -infinity<double>() ? top : 0;
    if (high == -infinity<double>()) return {high, shift, true};
    double sum = 0;
    for (std::int64_t i = 0; i < states; ++i) {
      sum += Kokkos::exp(previous[i] + log_weight(parameters_.trans(i, state), 1 + i) - high);
    }
    return {high - shift + Kokkos::log(sum) + log_emission(state, symbol), shift, true};
  }

  KOKKOS_FUNCTION Judgement finish(const Value* last, Scale scale, std::int64_t /*steps*/, double /*tolerance*/) const {
    const std::int64_t states = parameters_.states();
    double high = -infinity<double>();
    for (std::int64_t j = 0; j < states; ++j) {
      if (last[j] > high) high = last[j];
    }
    if (high == -infinity<double>()) return {high, true};
    double sum = 0;
    for (std::int64_t j = 0; j < states; ++j) sum += Kokkos::exp(last[j] - high);
    return {(scale.rest + high + Kokkos::log(sum)) + scale.sum, true};
  }

 private:
  KOKKOS_FUNCTION double log_weight(Score logit, std::int64_t row) const {
    return static_cast<double>(logit) - normaliser_[row];
  }
  KOKKOS_FUNCTION double log_emission(std::int64_t state, std::int64_t symbol) const {
    return symbol < 0 ? 0 : log_weight(parameters_.emit(state, symbol), 1 + parameters_.states() + state);
  }

  HmmParameters<ExecutionSpace, Score> parameters_;
  const double* normaliser_;
};

}  // namespace bellman::impl

#endif
