// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_STATE_TILE_HPP
#define BELLMAN_IMPL_STATE_TILE_HPP

/// \file
/// Tiles of (sequences x states) in registers: what the sweeps of large hidden Markov models share. A step is a product
///
///     sums(sequence, to) = sum_from vectors(from, sequence) weights(from, to)
///
/// and a thread owns a few rows (sequences) and columns (states) of it, which it reads in pieces of 16 bytes.

#include <Kokkos_Core.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstdint>

namespace bellman::impl {

template <class Real, int size>
struct alignas(size * sizeof(Real)) StateChunk {
  Real value[size];
};

/// Elements of one read.
template <class Real, int count>
inline constexpr int piece_size = count* static_cast<int>(sizeof(Real)) <= 16 ? count
                                                                              : 16 / static_cast<int>(sizeof(Real));

/// Where element i of the `count` elements of a member lies among all `extent`: the pieces of neighbours are neighbours.
template <class Real, int count>
KOKKOS_FORCEINLINE_FUNCTION int place_in_tile(int member, int i, int extent) {
  constexpr int piece = piece_size<Real, count>;
  return i / piece * (extent / (count / piece)) + member * piece + i % piece;
}

/// Reads the elements of a member.
template <class Real, int count>
KOKKOS_FORCEINLINE_FUNCTION void load_pieces(const Real* all, int member, int extent, Real (&values)[count]) {
  constexpr int piece = piece_size<Real, count>;
  BELLMAN_UNROLL
  for (int first = 0; first < count; first += piece) {
    const auto loaded =
        *reinterpret_cast<const StateChunk<Real, piece>*>(all + place_in_tile<Real, count>(member, first, extent));
    BELLMAN_UNROLL
    for (int i = 0; i < piece; ++i) values[first + i] = loaded.value[i];
  }
}

/// sums += a b^T
template <class Real, int rows, int columns>
KOKKOS_FORCEINLINE_FUNCTION void add_products(const Real (&a)[rows], const Real (&b)[columns],
                                              Real (&sums)[rows][columns]) {
  BELLMAN_UNROLL
  for (int i = 0; i < rows; ++i) {
    BELLMAN_UNROLL
    for (int j = 0; j < columns; ++j) sums[i][j] = Kokkos::fma(a[i], b[j], sums[i][j]);
  }
}

/// The arithmetic of a state in the tiled sweeps, and its certificate.
template <class Real>
struct TileArithmetic {
  static constexpr int lowest_exponent = Linear<Real>::lowest_exponent;
  static constexpr int lost_bits = is_float<Real> ? 30 : 60;
  static constexpr int longest_sum = 32;    ///< terms summed one after the other; such sums are then summed themselves
  static constexpr int rescale_period = 4;  ///< steps between two changes of the scale
  static constexpr int no_peak = -100000;   ///< exponent of a vector that is not known yet

  /// While no element of a vector and no transition are so small without being 0, no product of theirs underflows.
  static constexpr int low_exponent = is_float<Real> ? -70 : -500;
  static constexpr int wide_exponent = is_float<Real> ? -50 : -400;

  /// Entries and transitions that are not 0 are not lower: so the low part of a float, as tensor cores take it, is a normal
  /// number.
  static constexpr int lowest_entry_exponent = is_float<Real> ? -100 : lowest_exponent;
  /// Products that a state adds to a sum: of floats on tensor cores three, which are added up in parts.
  static constexpr int products = is_float<Real> ? 4 : 1;

  /// A sum of the products of so many states that is at least this large has lost less than 2^-lost_bits of itself.
  KOKKOS_FUNCTION static Real lowest_sum(std::int64_t states) {
    return static_cast<Real>(products * states) * power_of_two<Real>(lowest_exponent + lost_bits);
  }
  /// Elements at least this large need no look.
  KOKKOS_FUNCTION static Real low_value() { return power_of_two<Real>(low_exponent); }
  KOKKOS_FUNCTION static Real lowest_value() { return power_of_two<Real>(lowest_entry_exponent); }

  /// The power of two to divide by, from the exponent of the largest element.
  KOKKOS_FUNCTION static int shift_of(int peak) {
    constexpr int largest = Linear<Real>::highest_exponent - 1;
    return peak < lowest_exponent ? 0 : peak > largest ? largest : peak < -largest ? -largest : peak;
  }

  /// Whether no transition that is not 0 leads to the state from an element that is not 0.
  /// \param vector, column  the element of state 0; those of the next states are a stride apart
  BELLMAN_NOINLINE KOKKOS_FUNCTION static bool is_structural_zero(const Real* vector, std::int64_t vector_stride,
                                                                  const Real* column, std::int64_t column_stride,
                                                                  std::int64_t states) {
    for (std::int64_t i = 0; i < states; ++i) {
      if (vector[i * vector_stride] != 0 && column[i * column_stride] != 0) return false;
    }
    return true;
  }

  /// The log-likelihood of a total and its scale. The total is brought to 1..2 first.
  /// \param step_roundings  the most that a path suffers in a step
  KOKKOS_FUNCTION static Judgement finish(double total, std::int64_t exponent, std::int64_t steps,
                                          double step_roundings, double tolerance) {
    if (total == 0) return {-infinity<double>(), true};
    if (!(total < infinity<double>())) return {};
    const int rest = exponent_of(total);
    const double value =
        Kokkos::fma(static_cast<double>(exponent + rest), ln_2, Kokkos::log(total * power_of_two<double>(-rest)));
    const double step_error = step_roundings * roundoff<Real>() + power_of_two<double>(-lost_bits);
    const bool rounding_small =
        !is_float<Real> || static_cast<double>(steps) * step_error <= 0.9 * tolerance * (1 + Kokkos::abs(value));
    return {value, rounding_small};
  }
};

/// What stands for a result that no sweep has certified yet, until a wider rung replaces it: a NaN like no other.
template <class Real>
KOKKOS_FUNCTION Real uncertified_mark() {
  if constexpr (is_float<Real>) {
    return Kokkos::bit_cast<float>(std::uint32_t{0x7fc0be11u});
  } else {
    return Kokkos::bit_cast<double>(std::uint64_t{0x7ff80000be11be11u});
  }
}
template <class Real>
KOKKOS_FUNCTION bool is_uncertified(Real result) {
  if constexpr (is_float<Real>) {
    return Kokkos::bit_cast<std::uint32_t>(result) == 0x7fc0be11u;
  } else {
    return Kokkos::bit_cast<std::uint64_t>(result) == 0x7ff80000be11be11u;
  }
}

}  // namespace bellman::impl

#endif
