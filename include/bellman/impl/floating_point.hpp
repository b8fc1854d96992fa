// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_FLOATING_POINT_HPP
#define BELLMAN_IMPL_FLOATING_POINT_HPP

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <type_traits>

namespace bellman::impl {

inline constexpr double log2_e = 1.4426950408889634074;
inline constexpr double ln_2 = 0.69314718055994530942;

template <class Real>
inline constexpr bool is_float = std::is_same_v<Real, float>;

template <class Real>
KOKKOS_FUNCTION constexpr Real infinity() {
  return Kokkos::Experimental::infinity_v<Real>;
}

template <class Real>
KOKKOS_FUNCTION constexpr Real quiet_nan() {
  return Kokkos::Experimental::quiet_NaN_v<Real>;
}

/// The largest relative error of one rounding: 2^-24 or 2^-53.
template <class Real>
KOKKOS_FUNCTION constexpr double roundoff() {
  return is_float<Real> ? 0x1p-24 : 0x1p-53;
}

/// 2^exponent, for the exponents of normal numbers.
template <class Real>
KOKKOS_FUNCTION Real power_of_two(int exponent) {
  if constexpr (is_float<Real>) {
    return Kokkos::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
  } else {
    return Kokkos::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  }
}

/// The exponent e with 2^e <= value < 2^(e+1), for positive normal numbers; the lowest exponent less 1 below them.
template <class Real>
KOKKOS_FUNCTION int exponent_of(Real value) {
  if constexpr (is_float<Real>) {
    return static_cast<int>(Kokkos::bit_cast<std::uint32_t>(value) >> 23) - 127;
  } else {
    return static_cast<int>(Kokkos::bit_cast<std::uint64_t>(value) >> 52) - 1023;
  }
}

}  // namespace bellman::impl

#endif
