// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HOST_PACK_ALGEBRA_HPP
#define BELLMAN_SRC_HOST_PACK_ALGEBRA_HPP

/// \file
/// The algebras of impl/algebra.hpp for packs: a lane is a problem. What they note is judged there, lane by lane.

#include <bellman/impl/host_kernels.hpp>

#include "pack.hpp"

namespace bellman::impl::BELLMAN_INSTRUCTIONS {

template <class To, class From>
To converted(From from) {
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else {
    return __builtin_convertvector(from, To);
  }
}

/// Linear<Real, Factor>.
template <class Real, class Factor, int lane_count>
class PackLinear {
  using Sums = PackMath<Real, lane_count>;
  using Factors = PackMath<Factor, lane_count>;

 public:
  static constexpr int lanes = lane_count;
  using Value = typename Sums::Values;
  using Weight = typename Factors::Values;

  struct Watch {
    Weight within = Factors::zero();
    Weight beyond = Factors::all(infinity<Factor>);

    void write(HostFound& found) const {
      for (int k = 0; k < lanes; ++k) {
        found.largest_within[k] = within[k];
        found.smallest_beyond[k] = beyond[k];
      }
    }
  };

  explicit PackLinear(const HostAlgebra& algebra)
      : one_(Sums::all(sizeof(Real) == 4 ? Real(0x1p-90) : Real(0x1p-960))),
        gap_(Sums::all(static_cast<Real>(algebra.gap))),
        scale_(Factors::all(static_cast<Factor>(algebra.scale))) {}

  Value one() const { return one_; }
  Value gap() const { return gap_; }

  /// Beyond the range 0 for a negative exponent and NaN for any other: the watch then refuses the result, or the factor is too
  /// small to matter.
  template <class Scores>
  Weight weight(Scores scores, Watch& watch) const {
    const Weight exponent = converted<Weight>(scores) * scale_;
    const Weight magnitude = Factors::magnitude(exponent);
    const auto is_within = magnitude < Format<Factor>::largest_exponent;
    watch.within = Factors::larger(is_within ? magnitude : Factors::zero(), watch.within);
    watch.beyond = Factors::smaller(is_within ? watch.beyond : magnitude, watch.beyond);
    const Weight beyond = exponent < 0 ? Factors::zero() : Factors::all(infinity<Factor> - infinity<Factor>);
    return is_within ? Factors::exp2(exponent) : beyond;
  }
  Value plus(Value a, Value b) const { return a + b; }
  template <class AnyWeight>
  Value plus_times(Value addend, Value value, AnyWeight weight) const {
    return Sums::multiply_add(value, converted<Value>(weight), addend);
  }
  Value larger_so_far(Value before, Value next) const { return next <= before ? before : next; }
  /// True once no lane can have a certificate.
  bool is_lost(Value best) const {
    for (int k = 0; k < lanes; ++k) {
      if (best[k] < (sizeof(Real) == 4 ? Real(0x1p126) : Real(0x1p1022))) return false;
    }
    return true;
  }

 private:
  Value one_;
  Value gap_;
  Weight scale_;
};

/// MaxPlus<Real>.
template <class Real, int lane_count>
class PackMax {
  using Math = PackMath<Real, lane_count>;

 public:
  static constexpr int lanes = lane_count;
  using Value = typename Math::Values;
  using Weight = Value;

  struct Watch {
    decltype(Value{} != Value{}) nan = {};

    void write(HostFound& found) const {
      for (int k = 0; k < lanes; ++k) found.nan[k] = nan[k] != 0;
    }
  };

  explicit PackMax(const HostAlgebra& algebra) : gap_(Math::all(static_cast<Real>(algebra.gap))) {}

  Value one() const { return Math::zero(); }
  Value gap() const { return gap_; }

  template <class Scores>
  Weight weight(Scores scores, Watch& watch) const {
    const Weight value = converted<Weight>(scores);
    watch.nan |= value != value;
    return value;
  }
  Value plus(Value a, Value b) const { return Math::larger(b, a); }
  Value plus_times(Value addend, Value value, Weight weight) const { return plus(addend, value + weight); }
  Value larger_so_far(Value before, Value next) const { return plus(before, next); }
  bool is_lost(Value) const { return false; }

 private:
  Value gap_;
};

}  // namespace bellman::impl::BELLMAN_INSTRUCTIONS

#endif
