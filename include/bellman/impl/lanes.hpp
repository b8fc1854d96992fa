// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_LANES_HPP
#define BELLMAN_IMPL_LANES_HPP

/// \file
/// Lane-group operations: the only place that names backend intrinsics. A lane group is the vector lanes of one thread of
/// a team, or an equal part of them: a warp on CUDA, a single lane elsewhere. All lanes of a thread call an operation
/// together, each for its own group.

#include <Kokkos_Core.hpp>
#include <bellman/impl/exp2_polynomial.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstdint>
#include <cstring>

/// For what runs rarely: its registers are not those of its caller.
#if defined(KOKKOS_COMPILER_NVCC) || defined(__CUDACC__)
#define BELLMAN_NOINLINE __noinline__
#else
#define BELLMAN_NOINLINE
#endif

namespace bellman::impl {

/// The portable form: a group of one lane.
template <class ExecutionSpace, int lanes = 0>
struct LaneGroup {
  static constexpr int size = 1;

  /// This lane's place in the group, 0 .. size - 1.
  KOKKOS_FUNCTION static int rank() { return 0; }

  /// The value that the lane before this one holds; lane 0 gets its own.
  template <class T>
  KOKKOS_FUNCTION static T from_previous(const T& value) {
    return value;
  }

  /// The value that one lane of the group holds.
  template <class T>
  KOKKOS_FUNCTION static T from_lane(const T& value, int /*lane*/) {
    return value;
  }

  /// The value that the lane with this bit of the rank flipped holds; \p bit is a power of two below size.
  template <class T>
  KOKKOS_FUNCTION static T from_partner(const T& value, int /*bit*/) {
    return value;
  }

  /// op over the values of all lanes, given to every lane. op is commutative, bitwise.
  template <class T, class Op>
  KOKKOS_FUNCTION static T reduce(const T& value, const Op&) {
    return value;
  }

  /// Memory written by a lane before is seen by all lanes after.
  KOKKOS_FUNCTION static void sync() {}

  /// Bit k: whether lane k of the whole thread says so.
  KOKKOS_FUNCTION static std::uint32_t ballot(bool yes) { return yes; }

  /// Copies 16 bytes, both ends aligned to 16, into team scratch, or writes zeros there and reads nothing; they may arrive
  /// as late as wait_copies() returns.
  KOKKOS_FUNCTION static void copy_16_bytes_or_zeros(void* to, const void* from, bool exists) {
    if (exists) {
      std::memcpy(to, from, 16);
    } else {
      std::memset(to, 0, 16);
    }
  }
  /// Ends a batch of copies of this lane, perhaps an empty one.
  KOKKOS_FUNCTION static void commit_copies() {}
  /// Waits until at most \p pending batches of this lane, the latest, are on their way; sync() shows them to the others.
  template <int pending>
  KOKKOS_FUNCTION static void wait_copies() {}
};

#ifdef KOKKOS_ENABLE_CUDA
template <int lanes>
struct LaneGroup<Kokkos::Cuda, lanes> {
  static constexpr int size = lanes == 0 ? 32 : lanes;
  static constexpr unsigned all_lanes = 0xffffffffu;

  KOKKOS_FUNCTION static int rank() {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(threadIdx.x % size);))
    KOKKOS_IF_ON_HOST((return 0;))
  }

  template <class T>
  KOKKOS_FUNCTION static T from_previous(const T& value) {
    KOKKOS_IF_ON_DEVICE((return __shfl_up_sync(all_lanes, value, 1, size);))
    KOKKOS_IF_ON_HOST((return value;))
  }

  template <class T>
  KOKKOS_FUNCTION static T from_lane(const T& value, [[maybe_unused]] int lane) {
    KOKKOS_IF_ON_DEVICE((return __shfl_sync(all_lanes, value, lane);))
    KOKKOS_IF_ON_HOST((return value;))
  }

  template <class T>
  KOKKOS_FUNCTION static T from_partner(const T& value, [[maybe_unused]] int bit) {
    KOKKOS_IF_ON_DEVICE((return __shfl_xor_sync(all_lanes, value, bit);))
    KOKKOS_IF_ON_HOST((return value;))
  }

  template <class T, class Op>
  KOKKOS_FUNCTION static T reduce(T value, const Op& op) {
    KOKKOS_IF_ON_DEVICE((for (int distance = size / 2; distance > 0;
                              distance /= 2) { value = op(value, __shfl_xor_sync(all_lanes, value, distance)); }))
    return value;
  }

  KOKKOS_FUNCTION static void sync() { KOKKOS_IF_ON_DEVICE((__syncwarp();)) }

  KOKKOS_FUNCTION static std::uint32_t ballot(bool yes) {
    KOKKOS_IF_ON_DEVICE((return __ballot_sync(all_lanes, yes);))
    KOKKOS_IF_ON_HOST((return yes;))
  }

  KOKKOS_FUNCTION static void copy_16_bytes_or_zeros([[maybe_unused]] void* to, [[maybe_unused]] const void* from,
                                                     [[maybe_unused]] bool exists) {
    KOKKOS_IF_ON_DEVICE((asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                                          static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
                                      "l"(__cvta_generic_to_global(from)), "r"(exists ? 16 : 0)
                                      : "memory");))
  }
  KOKKOS_FUNCTION static void commit_copies() {
    KOKKOS_IF_ON_DEVICE((asm volatile("cp.async.commit_group;" ::: "memory");))
  }
  template <int pending>
  KOKKOS_FUNCTION static void wait_copies() {
    KOKKOS_IF_ON_DEVICE((asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");))
  }
};
#endif

/// 2^x with a relative error of at most 2^-22; below 2^-126 zero may be given.
KOKKOS_FUNCTION inline float fast_exp2(float x) {
#ifdef KOKKOS_ENABLE_CUDA
  KOKKOS_IF_ON_DEVICE((float power; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x)); return power;))
#else
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp2(x);))
#endif
  KOKKOS_IF_ON_HOST((return Kokkos::exp2(x);))
}

/// 2^(n + r) of several numbers, each with a relative error of at most 2^-51, step by step for all of them, so that they
/// overlap: for integers n, given as n + 0x1.8p52, and |r| <= 1/2. The exponent is written as bits: n has to be that of a
/// normal number.
template <int count>
KOKKOS_FUNCTION void powers_in_two_parts(const double (&shifted_n)[count], const double (&r)[count],
                                         double (&power)[count]) {
  constexpr Exp2Polynomial polynomial;
  constexpr int degree = Exp2Polynomial::degree;
  const auto& c = polynomial.coefficients;
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) power[n] = Kokkos::fma(c[degree], r[n], c[degree - 1]);
  BELLMAN_UNROLL
  for (int k = degree - 2; k >= 0; --k) {
    BELLMAN_UNROLL
    for (int n = 0; n < count; ++n) power[n] = Kokkos::fma(power[n], r[n], c[k]);
  }
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) {
    const auto exponent = Kokkos::bit_cast<std::uint64_t>(shifted_n[n]) << 52;
    power[n] = Kokkos::bit_cast<double>(Kokkos::bit_cast<std::uint64_t>(power[n]) + exponent);
  }
}

/// \p power, which is 2^x, for |x| < 1022. Beyond: 0 for negative x, NaN for all else. Integers leave the unit for doubles
/// to the polynomial.
KOKKOS_FUNCTION inline double power_within_range(double x, double power) {
  const auto upper = static_cast<std::uint32_t>(Kokkos::bit_cast<std::uint64_t>(x) >> 32);
  const bool is_negative = upper - 0x80000000u <= 0x7ff00000u;
  const double beyond = Kokkos::bit_cast<double>(is_negative ? std::uint64_t{0} : std::uint64_t{0x7ff80000u} << 32);
  return (upper & 0x7fffffffu) < 0x408ff000u ? power : beyond;
}

/// 2^x of several numbers, each with a relative error of at most 2^-51, without a branch, so that they overlap. From 1022 on,
/// where a sum is no longer trusted, NaN; from -1022 down, zero.
template <int count>
KOKKOS_FUNCTION void branch_free_exp2(const double (&x)[count], double (&result)[count]) {
  constexpr double to_integer = 0x1.8p52;  // x + to_integer has no fraction, and ends in the integer's bits
  double shifted[count], r[count];
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) shifted[n] = x[n] + to_integer;
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) r[n] = x[n] - (shifted[n] - to_integer);
  powers_in_two_parts(shifted, r, result);
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) result[n] = power_within_range(x[n], result[n]);
}
KOKKOS_FUNCTION inline double branch_free_exp2(double x) {
  const double in[] = {x};
  double out[1];
  branch_free_exp2(in, out);
  return out[0];
}

/// e^x, likewise: zero from 2^-1022 down, NaN from 2^1022 on. log2(e) in two parts keeps the error from growing with |x|.
KOKKOS_FUNCTION inline double branch_free_exp(double x) {
  constexpr double to_integer = 0x1.8p52;
  constexpr double log2_e_high = 0x1.71547652b82fep0;
  constexpr double log2_e_low = 0x1.777d0ffda0d24p-56;
  const double rough = x * log2_e_high;
  const double shifted[] = {rough + to_integer};
  const double r[] = {Kokkos::fma(x, log2_e_low, Kokkos::fma(x, log2_e_high, to_integer - shifted[0]))};
  double power[1];
  powers_in_two_parts(shifted, r, power);
  return power_within_range(rough, power[0]);
}

/// On hosts, where a fused operation may be a call, the library's function is the quicker one.
KOKKOS_FUNCTION inline double fast_exp2(double x) {
  KOKKOS_IF_ON_DEVICE((return branch_free_exp2(x);))
  KOKKOS_IF_ON_HOST((return Kokkos::exp2(x);))
}
/// fast_exp2 of several numbers, bitwise.
template <int count>
KOKKOS_FUNCTION void fast_exp2(const double (&x)[count], double (&result)[count]) {
  KOKKOS_IF_ON_DEVICE((branch_free_exp2(x, result);))
  KOKKOS_IF_ON_HOST((for (int n = 0; n < count; ++n) result[n] = Kokkos::exp2(x[n]);))
}
template <int count>
KOKKOS_FUNCTION void fast_exp2(const float (&x)[count], float (&result)[count]) {
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) result[n] = fast_exp2(x[n]);
}
KOKKOS_FUNCTION inline double fast_exp(double x) {
  KOKKOS_IF_ON_DEVICE((return branch_free_exp(x);))
  KOKKOS_IF_ON_HOST((return Kokkos::exp(x);))
}

}  // namespace bellman::impl

#endif
