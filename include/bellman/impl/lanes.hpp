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
#include <type_traits>

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
  KOKKOS_FUNCTION static std::uint32_t largest(std::uint32_t value) { return value; }
  KOKKOS_FUNCTION static std::uint32_t smallest(std::uint32_t value) { return value; }

  /// Memory written by a lane before is seen by all lanes after.
  KOKKOS_FUNCTION static void sync() {}

  /// Bit k: whether lane k of the whole thread says so.
  KOKKOS_FUNCTION static std::uint32_t ballot(bool yes) { return yes; }

  /// Sets bits of a word in team scratch that other threads may set bits of as well.
  KOKKOS_FUNCTION static void set_bits(std::uint32_t& word, std::uint32_t bits) { word |= bits; }

  /// Copies 16 bytes, both ends aligned to 16, into team scratch, or writes zeros there and reads nothing; they may arrive
  /// as late as wait_copies() returns.
  KOKKOS_FUNCTION static void copy_16_bytes_or_zeros(void* to, const void* from, bool exists) {
    if (exists) {
      std::memcpy(to, from, 16);
    } else {
      std::memset(to, 0, 16);
    }
  }
  /// Likewise for one element of 4 or 8 bytes.
  template <class T>
  KOKKOS_FUNCTION static void copy_or_zero(T* to, const T* from, bool exists) {
    *to = exists ? *from : T(0);
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
  KOKKOS_FUNCTION static std::uint32_t largest(std::uint32_t value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (size == 32) return __reduce_max_sync(all_lanes, value);
#endif
    return reduce(value, [](std::uint32_t a, std::uint32_t b) { return b > a ? b : a; });
  }
  KOKKOS_FUNCTION static std::uint32_t smallest(std::uint32_t value) { return ~largest(~value); }

  KOKKOS_FUNCTION static void sync() { KOKKOS_IF_ON_DEVICE((__syncwarp();)) }

  KOKKOS_FUNCTION static std::uint32_t ballot(bool yes) {
    KOKKOS_IF_ON_DEVICE((return __ballot_sync(all_lanes, yes);))
    KOKKOS_IF_ON_HOST((return yes;))
  }

  KOKKOS_FUNCTION static void set_bits(std::uint32_t& word, std::uint32_t bits) {
    KOKKOS_IF_ON_DEVICE((atomicOr(&word, bits);))
    KOKKOS_IF_ON_HOST((word |= bits;))
  }

  KOKKOS_FUNCTION static void copy_16_bytes_or_zeros([[maybe_unused]] void* to, [[maybe_unused]] const void* from,
                                                     [[maybe_unused]] bool exists) {
    KOKKOS_IF_ON_DEVICE((asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(
                                          static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
                                      "l"(__cvta_generic_to_global(from)), "r"(exists ? 16 : 0)
                                      : "memory");))
  }
  template <class T>
  KOKKOS_FUNCTION static void copy_or_zero([[maybe_unused]] T* to, [[maybe_unused]] const T* from,
                                           [[maybe_unused]] bool exists) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    KOKKOS_IF_ON_DEVICE((constexpr int bytes = sizeof(T);
                         asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(
                                          static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
                                      "l"(__cvta_generic_to_global(from)), "n"(bytes), "r"(exists ? bytes : 0)
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

/// Written at once, past the caches that teams do not share. Says nothing of what else was written.
template <class Bits>
KOKKOS_FUNCTION void store_for_other_teams(Bits* to, Bits bits) {
  static_assert(sizeof(Bits) == 4 || sizeof(Bits) == 8);
#ifdef KOKKOS_ENABLE_CUDA
  KOKKOS_IF_ON_DEVICE((
      if constexpr (sizeof(Bits) == 4) {
        asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "r"(bits) : "memory");
      } else {
        asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "l"(bits) : "memory");
      }))
#else
  KOKKOS_IF_ON_DEVICE((Kokkos::atomic_store(to, bits);))
#endif
  KOKKOS_IF_ON_HOST((Kokkos::atomic_store(to, bits);))
}
/// What such a store has left, or what was there before it.
template <class Bits>
KOKKOS_FUNCTION Bits load_of_other_teams(const Bits* from) {
  static_assert(sizeof(Bits) == 4 || sizeof(Bits) == 8);
#ifdef KOKKOS_ENABLE_CUDA
  KOKKOS_IF_ON_DEVICE((
      Bits bits; if constexpr (sizeof(Bits) == 4) {
        asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];"
                     : "=r"(bits)
                     : "l"(__cvta_generic_to_global(from))
                     : "memory");
      } else {
        asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                     : "=l"(bits)
                     : "l"(__cvta_generic_to_global(from))
                     : "memory");
      } return bits;))
#else
  KOKKOS_IF_ON_DEVICE((return Kokkos::atomic_load(from);))
#endif
  KOKKOS_IF_ON_HOST((return Kokkos::atomic_load(from);))
}

/// 2^x with a relative error of at most 2^-22; below 2^-126 zero may be given.
KOKKOS_FUNCTION inline float fast_exp2(float x) {
#ifdef KOKKOS_ENABLE_CUDA
  KOKKOS_IF_ON_DEVICE((float power; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x)); return power;))
#else
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp2(x);))
#endif
  KOKKOS_IF_ON_HOST((return Kokkos::exp2(x);))
}

/// 2^(n + r) of several numbers, with a relative error of at most 2^-51 or that of another polynomial, step by step for all
/// of them, so that they overlap: for integers n, given as n + 0x1.8p52, and |r| <= 1/2. The exponent is written as bits: n has to be that of a
/// normal number.
template <class Polynomial = Exp2Polynomial, int count>
KOKKOS_FUNCTION void powers_in_two_parts(const double (&shifted_n)[count], const double (&r)[count],
                                         double (&power)[count]) {
  constexpr Polynomial polynomial;
  constexpr int degree = Polynomial::degree;
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

/// Numbers of which e^x is a normal double: those of smaller magnitude.
inline constexpr double exp_range = 700;

/// e^x of several numbers within exp_range, step by step for all of them, so that they overlap. The relative error is at
/// most 2^-51, or 2^-33 where Precision is float: then there is a third less to do. log2(e) in two parts keeps the error
/// from growing with |x|.
template <class Precision, int count>
KOKKOS_FORCEINLINE_FUNCTION void exp_within_range(const double (&x)[count], double (&power)[count]) {
  constexpr double to_integer = 0x1.8p52;
  constexpr double log2_e_high = 0x1.71547652b82fep0;
  constexpr double log2_e_low = 0x1.777d0ffda0d24p-56;
  double shifted[count], r[count];
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) shifted[n] = Kokkos::fma(x[n], log2_e_high, to_integer);
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) r[n] = Kokkos::fma(x[n], log2_e_high, to_integer - shifted[n]);
  if constexpr (std::is_same_v<Precision, float>) {
    powers_in_two_parts<Exp2PolynomialForFloat>(shifted, r, power);
  } else {
    BELLMAN_UNROLL
    for (int n = 0; n < count; ++n) r[n] = Kokkos::fma(x[n], log2_e_low, r[n]);
    powers_in_two_parts<Exp2Polynomial>(shifted, r, power);
  }
}

/// e^x of any numbers. From -exp_range down it is 0 if that is small enough to be nothing, and else NaN, but for -infinity;
/// from exp_range on it may be NaN.
template <class Precision, int count>
KOKKOS_FUNCTION void exp_or_nan(const double (&x)[count], bool small_is_nothing, double (&power)[count]) {
  KOKKOS_IF_ON_DEVICE((exp_within_range<Precision>(x, power);))
  KOKKOS_IF_ON_HOST((for (int n = 0; n < count; ++n) power[n] = Kokkos::exp(x[n]);))
  constexpr std::uint32_t range = 0x4085e000u;         // upper half of exp_range
  constexpr std::uint32_t highest_zero = 0xfff00000u;  // of -infinity
  const std::uint32_t lowest_zero = small_is_nothing ? 0x80000000u : highest_zero;
  BELLMAN_UNROLL
  for (int n = 0; n < count; ++n) {
    const auto upper = static_cast<std::uint32_t>(Kokkos::bit_cast<std::uint64_t>(x[n]) >> 32);
    const bool is_zero = upper - lowest_zero <= highest_zero - lowest_zero;
    const double beyond = Kokkos::bit_cast<double>(is_zero ? std::uint64_t{0} : std::uint64_t{0x7ff80000u} << 32);
    power[n] = (upper & 0x7fffffffu) < range ? power[n] : beyond;
  }
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

}  // namespace bellman::impl

#endif
