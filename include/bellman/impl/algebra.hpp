// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_ALGEBRA_HPP
#define BELLMAN_IMPL_ALGEBRA_HPP

/// \file
/// Algebras: how path sums are represented and combined. Each is a semiring over the scores of paths in units of the
/// temperature t:
///
///     MaxPlus     the best path                        plus = max                times = +
///     LogSumExp   t log sum e^(score/t)                plus = log-sum-exp        times = +
///     Linear      sum e^(score/t), times a power of 2  plus = +                  times = *
///
/// A Value is a path sum, a Weight what one step contributes. Linear is an approximation where its range ends; it sees that
/// itself: a Watch notes what a single step may have lost, and judge() says whether the result keeps the promised error. The
/// bounds behind its certificate are proven in docs/accuracy.md.

#include <Kokkos_Core.hpp>
#include <bellman/impl/floating_point.hpp>
#include <cstdint>

namespace bellman::impl {

/// The result of one problem on one rung, before it is written.
struct Judgement {
  double score = 0;        ///< in the unit of the input scores
  bool certified = false;  ///< the score keeps the promised error; false: the next rung has to compute it
};

/// Notes NaN scores, which the comparisons of MaxPlus and LogSumExp would pass over.
struct NanWatch {
  bool nan = false;

  template <class Score>
  KOKKOS_FUNCTION void see(Score score) {
    nan = nan || score != score;
  }
  /// What all lanes of a group noted.
  template <class Lanes>
  KOKKOS_FUNCTION NanWatch across() const {
    return {Lanes::reduce(static_cast<int>(nan), [](int a, int b) { return a | b; }) != 0};
  }
  KOKKOS_FUNCTION Judgement judge(double score) const { return {nan ? quiet_nan<double>() : score, true}; }
};

/// The exact limit t = 0. -inf absorbs, also against +inf: the comparisons are false for the NaN of (-inf) + (+inf).
template <class Real>
class MaxPlus {
 public:
  using Value = Real;
  using Weight = Real;
  using Watch = NanWatch;

  KOKKOS_FUNCTION MaxPlus(double /*temperature*/, double gap) : gap_(static_cast<Real>(gap)) {}

  KOKKOS_FUNCTION Value one() const { return 0; }
  KOKKOS_FUNCTION Weight gap() const { return gap_; }
  KOKKOS_FUNCTION Watch watch() const { return {}; }

  /// The weight of a step with this score.
  template <class Score>
  KOKKOS_FUNCTION Weight weight(Score score, Watch& watch) const {
    watch.see(score);
    return static_cast<Real>(score);
  }
  KOKKOS_FUNCTION Value plus(Value a, Value b) const { return b > a ? b : a; }
  /// plus(addend, times(value, weight))
  KOKKOS_FUNCTION Value plus_times(Value addend, Value value, Weight weight) const {
    return plus(addend, value + weight);
  }
  /// The larger of two path sums.
  KOKKOS_FUNCTION Value larger(Value a, Value b) const { return plus(a, b); }
  /// True once no certificate can be had, so that the rest of the problem need not be visited.
  KOKKOS_FUNCTION bool is_lost(Value) const { return false; }
  KOKKOS_FUNCTION Judgement judge(Value best, Watch watch, std::int64_t /*longest_path*/, double /*tolerance*/) const {
    return watch.judge(best);
  }

 private:
  Real gap_;
};

/// Logarithms of path sums, in the unit of the scores, so that any t > 0 is right: differences are divided by t, never
/// multiplied by 1/t, which may overflow.
class LogSumExp {
 public:
  using Value = double;
  using Weight = double;
  using Watch = NanWatch;

  KOKKOS_FUNCTION LogSumExp(double temperature, double gap) : temperature_(temperature), gap_(gap) {}

  KOKKOS_FUNCTION Value one() const { return 0; }
  KOKKOS_FUNCTION Weight gap() const { return gap_; }
  KOKKOS_FUNCTION Watch watch() const { return {}; }

  template <class Score>
  KOKKOS_FUNCTION Weight weight(Score score, Watch& watch) const {
    watch.see(score);
    return static_cast<double>(score);
  }
  KOKKOS_FUNCTION Value plus(Value a, Value b) const {
    const double high = b > a ? b : a;
    const double low = b > a ? a : b;
    // low is -inf, or NaN from (-inf) + (+inf), for a forbidden term; high is infinite only where nothing finite matters.
    if (!(low > -infinity<double>()) || high == infinity<double>()) return high;
    return high + temperature_ * Kokkos::log1p(Kokkos::exp((low - high) / temperature_));
  }
  KOKKOS_FUNCTION Value plus_times(Value addend, Value value, Weight weight) const {
    return plus(addend, value + weight);
  }
  KOKKOS_FUNCTION Value larger(Value a, Value b) const { return b > a ? b : a; }
  KOKKOS_FUNCTION bool is_lost(Value) const { return false; }
  KOKKOS_FUNCTION Judgement judge(Value best, Watch watch, std::int64_t /*longest_path*/, double /*tolerance*/) const {
    return watch.judge(best);
  }

 private:
  double temperature_;
  double gap_;
};

/// Path sums X = sum e^(score/t) of local alignments, stored as x = X 2^-shift. Every sum holds the empty path, so X >= 1
/// and one static shift serves: x >= 2^-shift is far above the smallest normal number, and what underflows is far below
/// it.
template <class Real>
class Linear {
 public:
  using Value = Real;
  using Weight = Real;
  /// The largest log2 of a non-zero weight that was too small to be represented.
  struct Watch {
    Real flushed;

    template <class Lanes>
    KOKKOS_FUNCTION Watch across() const {
      return {Lanes::reduce(flushed, [](Real a, Real b) { return b > a ? b : a; })};
    }
  };

  static constexpr int shift = is_float<Real> ? 90 : 960;                ///< x = X 2^-shift
  static constexpr int lowest_exponent = is_float<Real> ? -126 : -1022;  ///< of a normal number
  static constexpr int highest_exponent = is_float<Real> ? 126 : 1022;   ///< of a sum that is still trusted
  static constexpr int lost_bits = -(shift + lowest_exponent);  ///< an underflow loses at most 2^-lost_bits of a sum
  static constexpr double roundings_per_step = 7;               ///< relative error of a step, in units of roundoff

  /// Whether scores over this temperature can be scaled to exponents of 2 in Real at all.
  static bool is_usable(double temperature, double gap) {
    return temperature >= 1e-30 && temperature <= 1e30 && gap / temperature * log2_e < highest_exponent;
  }

  KOKKOS_FUNCTION Linear(double temperature, double gap)
      : temperature_(temperature),
        scale_(static_cast<Real>(log2_e / temperature)),
        scale_rest_(static_cast<Real>(log2_e / temperature - static_cast<double>(scale_))),
        gap_exponent_(gap / temperature * log2_e),
        gap_(gap_exponent_ < lowest_exponent ? Real(0) : static_cast<Real>(Kokkos::exp2(gap_exponent_))) {}

  KOKKOS_FUNCTION Value one() const { return power_of_two<Real>(-shift); }
  KOKKOS_FUNCTION Weight gap() const { return gap_; }
  KOKKOS_FUNCTION Watch watch() const {
    return {gap_exponent_ < lowest_exponent ? static_cast<Real>(gap_exponent_) : -infinity<Real>()};
  }

  /// e^(score/t) to 5 units of roundoff for any exponent: the rounding of score * scale is put back to first order.
  template <class Score>
  KOKKOS_FUNCTION Weight weight(Score score, Watch& watch) const {
    const Real s = static_cast<Real>(score);
    const Real exponent = s * scale_;
    if (exponent < lowest_exponent) {
      watch.flushed = exponent > watch.flushed ? exponent : watch.flushed;
      return 0;
    }
    const Real rest = Kokkos::fma(s, scale_, -exponent) + s * scale_rest_;
    const Real power = Kokkos::exp2(exponent);
    return Kokkos::fma(power, rest * static_cast<Real>(ln_2), power);
  }
  KOKKOS_FUNCTION Value plus(Value a, Value b) const { return a + b; }
  KOKKOS_FUNCTION Value plus_times(Value addend, Value value, Weight weight) const {
    return Kokkos::fma(value, weight, addend);
  }
  /// NaN, from a NaN score or an overflow, wins.
  KOKKOS_FUNCTION Value larger(Value a, Value b) const { return b > a || b != b ? b : a; }
  KOKKOS_FUNCTION bool is_lost(Value best) const { return !(best < power_of_two<Real>(highest_exponent)); }

  /// \param longest_path  the most steps that a path can have
  /// \param tolerance     the error allowed is tolerance (|score| + t)
  KOKKOS_FUNCTION Judgement judge(Value best, Watch watch, std::int64_t longest_path, double tolerance) const {
    if (is_lost(best)) return {};
    const double log2_sum = Kokkos::log2(static_cast<double>(best)) + shift;
    const double log_sum = log2_sum * ln_2;
    // A flushed weight lost at most 2^flushed X of a sum that is at least 1.
    const bool factors_kept = static_cast<double>(watch.flushed) + log2_sum <= -lost_bits;
    // A path of n steps carries n rounding errors, and paths have at most X steps on average.
    const double steps = Kokkos::fmin(static_cast<double>(longest_path), Kokkos::exp2(log2_sum));
    const double step_error = roundings_per_step * roundoff<Real>() + 4 * Kokkos::exp2(-1.0 * lost_bits);
    const bool rounding_small = steps * step_error <= 0.9 * tolerance * (1 + log_sum);
    return {temperature_ * log_sum, factors_kept && rounding_small};
  }

 private:
  double temperature_;
  Real scale_;       // log2(e) / t
  Real scale_rest_;  // what rounding took from scale_
  double gap_exponent_;
  Real gap_;
};

}  // namespace bellman::impl

#endif
