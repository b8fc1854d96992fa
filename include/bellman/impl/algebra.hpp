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
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/unroll.hpp>
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
  /// The larger of the sums seen before and the next one, in any order of visit in which the last cell comes last.
  KOKKOS_FUNCTION Value larger_so_far(Value before, Value next) const { return plus(before, next); }
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
  KOKKOS_FUNCTION Value larger_so_far(Value before, Value next) const { return larger(before, next); }
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
///
/// \tparam Real    type of the path sums
/// \tparam Factor  type of the weights of scores: float is as good as the scores of float problems deserve, and quicker
template <class Real, class Factor = Real>
class Linear {
  using Bits = std::uint32_t;

 public:
  using Value = Real;
  using Weight = Factor;

  static constexpr int shift = is_float<Real> ? 90 : 960;                 ///< x = X 2^-shift
  static constexpr int lowest_exponent = is_float<Real> ? -126 : -1022;   ///< of a normal number
  static constexpr int highest_exponent = is_float<Real> ? 126 : 1022;    ///< of a sum that is still trusted
  static constexpr int largest_exponent = is_float<Factor> ? 126 : 1022;  ///< of a weight, in magnitude
  static constexpr int lost_bits = is_float<Factor> ? 36 : 62;            ///< an underflow loses 2^-lost_bits of a sum
  static constexpr double roundings_per_step = 7;                         ///< units of roundoff that any step costs
  static constexpr double roundings_per_exponent = 1.4;                   ///< and for each binary order of its weight

  /// Keeps the largest |exponent| within the range of Factor and the smallest beyond it, of all finite exponents, in a form
  /// that costs three integer operations: a key is the bits of |exponent|, rotated so that those beyond the range begin at
  /// 0 and those within end at the largest integer. Infinities and NaN lie in between, and leave the watch as it is.
  struct Watch {
    Bits within = key(Factor(0));
    Bits beyond = key(infinity<Factor>());

    KOKKOS_FUNCTION void see(Factor exponent) {
      const Bits seen = key(exponent);
      within = seen > within ? seen : within;
      beyond = seen < beyond ? seen : beyond;
    }
    template <class Lanes>
    KOKKOS_FUNCTION Watch across() const {
      return {Lanes::reduce(within, [](Bits a, Bits b) { return b > a ? b : a; }),
              Lanes::reduce(beyond, [](Bits a, Bits b) { return b < a ? b : a; })};
    }
    /// At least every |exponent| within the range.
    KOKKOS_FUNCTION double largest_within() const { return magnitude(within, 1); }
    /// At most every |exponent| beyond the range; infinite if there is none.
    KOKKOS_FUNCTION double smallest_beyond() const { return magnitude(beyond, 0); }

   private:
    /// A double gives its upper half.
    KOKKOS_FUNCTION static Bits twice_upper_bits(Factor exponent) {
      if constexpr (is_float<Factor>) {
        return Kokkos::bit_cast<std::uint32_t>(exponent) * 2;
      } else {
        return static_cast<Bits>(Kokkos::bit_cast<std::uint64_t>(exponent) >> 32) * 2;
      }
    }
    static constexpr Bits first_beyond = is_float<Factor> ? 2 * 0x42fc0000u : 2 * 0x408ff000u;  // of largest_exponent
    KOKKOS_FUNCTION static Bits key(Factor exponent) { return twice_upper_bits(exponent) - first_beyond; }
    KOKKOS_FUNCTION static double magnitude(Bits key, Bits round_up) {
      const Bits upper = (key + first_beyond) / 2 & 0x7fffffffu;
      if constexpr (is_float<Factor>) {
        return static_cast<double>(Kokkos::bit_cast<float>(upper));
      } else {
        return Kokkos::bit_cast<double>(static_cast<std::uint64_t>(upper + round_up) << 32);
      }
    }
  };

  /// Whether scores over this temperature can be scaled to exponents of 2 at all.
  static bool is_usable(double temperature, double gap) {
    return temperature >= 1e-30 && temperature <= 1e30 && gap / temperature * log2_e < largest_exponent;
  }

  Linear(double temperature, double gap)
      : temperature_(temperature),
        gap_exponent_(gap / temperature * log2_e),
        scale_(static_cast<Factor>(log2_e / temperature)),
        gap_(gap_exponent_ < lowest_exponent ? Real(0) : static_cast<Real>(Kokkos::exp2(gap_exponent_))) {}

  KOKKOS_FUNCTION Value one() const { return power_of_two<Real>(-shift); }
  KOKKOS_FUNCTION Value gap() const { return gap_; }
  /// From scores to exponents of 2.
  KOKKOS_FUNCTION Factor scale() const { return scale_; }
  KOKKOS_FUNCTION Watch watch() const { return {}; }

  /// e^(score/t). Its relative error grows with |score/t|, which the watch therefore sees.
  template <class Score>
  KOKKOS_FUNCTION Weight weight(Score score, Watch& watch) const {
    const Factor exponent = static_cast<Factor>(score) * scale_;
    watch.see(exponent);
    return fast_exp2(exponent);
  }
  /// The weights of several steps.
  template <class Score, int count>
  KOKKOS_FUNCTION void weights(const Score (&scores)[count], Weight (&weights)[count], Watch& watch) const {
    Factor exponents[count];
    BELLMAN_UNROLL
    for (int n = 0; n < count; ++n) exponents[n] = static_cast<Factor>(scores[n]) * scale_;
    BELLMAN_UNROLL
    for (int n = 0; n < count; ++n) watch.see(exponents[n]);
    fast_exp2(exponents, weights);
  }
  KOKKOS_FUNCTION Value plus(Value a, Value b) const { return a + b; }
  template <class AnyWeight>
  KOKKOS_FUNCTION Value plus_times(Value addend, Value value, AnyWeight weight) const {
    return Kokkos::fma(value, static_cast<Value>(weight), addend);
  }
  /// A NaN, from a NaN score or an overflow, wins. For floats, which are positive here, that is the order of their bits.
  KOKKOS_FUNCTION Value larger(Value a, Value b) const {
    if constexpr (is_float<Real>) {
      const auto a_bits = Kokkos::bit_cast<std::uint32_t>(a), b_bits = Kokkos::bit_cast<std::uint32_t>(b);
      return Kokkos::bit_cast<float>(a_bits > b_bits ? a_bits : b_bits);
    } else {
      return b > a || b != b ? b : a;
    }
  }
  /// An infinity or NaN need not win here: all cells below and to the right of one, the last cell of all, are like it.
  KOKKOS_FUNCTION Value larger_so_far(Value before, Value next) const {
    if constexpr (is_float<Real>) {
      return larger(before, next);
    } else {
      return next <= before ? before : next;
    }
  }
  KOKKOS_FUNCTION bool is_lost(Value best) const { return !(best < power_of_two<Real>(highest_exponent)); }

  /// \param longest_path  the most steps that a path can have
  /// \param tolerance     the error allowed is tolerance (|score| + t)
  KOKKOS_FUNCTION Judgement judge(Value best, const Watch& watch, std::int64_t longest_path, double tolerance) const {
    if (is_lost(best)) return {};
    const double log2_sum = Kokkos::log2(static_cast<double>(best)) + shift;
    const double log_sum = log2_sum * ln_2;
    // A flushed factor lost at most 2^exponent X of a sum that is at least 1.
    double flushed = -watch.smallest_beyond();
    if (gap_exponent_ < lowest_exponent && gap_exponent_ > flushed) flushed = gap_exponent_;
    const bool factors_kept = flushed + log2_sum <= -lost_bits;
    // A path of n steps carries n rounding errors, and paths have at most X steps on average.
    const double steps =
        Kokkos::fmin(static_cast<double>(longest_path), static_cast<double>(best) * power_of_two<double>(shift));
    const double step_error =
        (roundings_per_step + roundings_per_exponent * watch.largest_within()) * roundoff<Factor>() +
        4 * power_of_two<double>(-lost_bits);
    const bool rounding_small = steps * step_error <= 0.9 * tolerance * (1 + log_sum);
    return {temperature_ * log_sum, factors_kept && rounding_small};
  }

 private:
  double temperature_;
  double gap_exponent_;
  Factor scale_;  // log2(e) / t
  Real gap_;
};

}  // namespace bellman::impl

#endif
