// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HOST_PACK_HPP
#define BELLMAN_SRC_HOST_PACK_HPP

/// \file
/// A pack is a SIMD register as a value, by the vector extensions of GCC and Clang: + - * < and ?: work lane by lane. Everything
/// is in a namespace of the instruction set, so that no linker takes a function of one for the same of another.

#include <bellman/impl/exp2_polynomial.hpp>
#include <cstdint>
#include <utility>

#if defined(__SSE2__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace bellman::impl::BELLMAN_INSTRUCTIONS {

#if defined(__AVX512F__)
inline constexpr int register_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int register_bytes = 32;
#else
inline constexpr int register_bytes = 16;
#endif

template <class T, int lanes>
struct PackOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};
template <class T, int lanes>
using Pack = typename PackOf<T, lanes>::type;

/// What belongs to a type of floating-point numbers.
template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = std::uint32_t;
  static constexpr int fraction_bits = 23;
  static constexpr float largest_exponent = 126;  // of normal numbers, in magnitude
  static constexpr float to_integer = 0x1.8p23f;  // x + to_integer has no fraction, and ends in the integer's bits
  // 2^r for |r| <= 1/2, interpolated at Chebyshev nodes.
  static constexpr float exp2_coefficients[] = {0x1p0f,         0x1.62e430p-1f,  0x1.ebfbe0p-3f, 0x1.c6aeccp-5f,
                                                0x1.3b2a1cp-7f, 0x1.5f48c0p-10f, 0x1.444000p-13f};
};
template <>
struct Format<double> {
  using Bits = std::uint64_t;
  static constexpr int fraction_bits = 52;
  static constexpr double largest_exponent = 1022;
  static constexpr double to_integer = 0x1.8p52;
  static constexpr Exp2Polynomial polynomial{};
  static constexpr auto& exp2_coefficients = polynomial.coefficients;
};

template <class T>
inline constexpr T infinity = static_cast<T>(__builtin_inf());

/// The operations on packs of one type and length.
template <class T, int lane_count>
struct PackMath {
  static constexpr int lanes = lane_count;
  using Values = Pack<T, lanes>;
  using Bits = Pack<typename Format<T>::Bits, lanes>;

  static Values all(T value) { return value - Values{}; }
  static Values zero() { return Values{}; }
  static Values larger(Values a, Values b) { return a > b ? a : b; }
  static Values smaller(Values a, Values b) { return a < b ? a : b; }
  static Values magnitude(Values x) {
    const auto without_sign = static_cast<typename Format<T>::Bits>(~(std::uint64_t{1} << (8 * sizeof(T) - 1)));
    return reinterpret_cast<Values>(reinterpret_cast<Bits>(x) & without_sign);
  }

  /// Writes past the caches where the instruction set allows; \p memory is aligned to the pack.
  static void stream(T* memory, Values values) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Values) == 64) return _mm512_stream_si512((__m512i*)memory, (__m512i)values);
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(Values) == 32) return _mm256_stream_si256((__m256i*)memory, (__m256i)values);
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(Values) == 16) return _mm_stream_si128((__m128i*)memory, (__m128i)values);
#endif
    __builtin_memcpy(memory, &values, sizeof(values));
  }
  /// Others who are told so later see what was streamed.
  static void end_streams() {
#if defined(__SSE2__)
    _mm_sfence();
#endif
  }

  /// Whether any lane of a comparison holds.
  template <class Mask>
  static bool any(Mask mask) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Mask) == 64) return _mm512_movepi32_mask((__m512i)mask) != 0;
#endif
#if defined(__AVX2__)
    if constexpr (sizeof(Mask) == 32) return _mm256_movemask_epi8((__m256i)mask) != 0;
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(Mask) == 16) return _mm_movemask_epi8((__m128i)mask) != 0;
#endif
    bool found = false;
    for (int k = 0; k < lanes; ++k) found = found || mask[k] != 0;
    return found;
  }

  /// op over all lanes, in every lane.
  template <class AnyPack, class Op>
  static AnyPack reduced(AnyPack x, const Op& op) {
    return reduce_halves<lanes / 2>(x, op);
  }

  /// a b + c; fused where the instruction set has that.
  static Values multiply_add(Values a, Values b, Values c) {
#if defined(__AVX512F__)
    if constexpr (sizeof(Values) == 64 && sizeof(T) == 4) {
      return reinterpret_cast<Values>(_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c));
    }
    if constexpr (sizeof(Values) == 64 && sizeof(T) == 8) {
      return reinterpret_cast<Values>(_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c));
    }
#endif
#if defined(__FMA__)
    if constexpr (sizeof(Values) == 32 && sizeof(T) == 4) return _mm256_fmadd_ps(a, b, c);
    if constexpr (sizeof(Values) == 32 && sizeof(T) == 8) return _mm256_fmadd_pd(a, b, c);
    if constexpr (sizeof(Values) == 16 && sizeof(T) == 4) return _mm_fmadd_ps(a, b, c);
    if constexpr (sizeof(Values) == 16 && sizeof(T) == 8) return _mm_fmadd_pd(a, b, c);
#elif defined(__aarch64__)
    if constexpr (sizeof(Values) == 16 && sizeof(T) == 4) return vfmaq_f32(c, a, b);
    if constexpr (sizeof(Values) == 16 && sizeof(T) == 8) return vfmaq_f64(c, a, b);
#endif
    return a * b + c;
  }

  /// 2^x with a relative error of at most 4 roundoffs, for |x| < largest_exponent; anything beyond.
  static Values exp2(Values x) {
    constexpr const auto& c = Format<T>::exp2_coefficients;
    constexpr int degree = sizeof(c) / sizeof(c[0]) - 1;
    const Values shifted = x + Format<T>::to_integer;
    const Values r = x - (shifted - Format<T>::to_integer);
    Values power = all(c[degree]);
    for (int k = degree - 1; k >= 0; --k) power = multiply_add(power, r, all(c[k]));
    const Bits exponent = reinterpret_cast<Bits>(shifted) << Format<T>::fraction_bits;
    return reinterpret_cast<Values>(reinterpret_cast<Bits>(power) + exponent);
  }

 private:
  template <int distance, class AnyPack, class Op, int... k>
  static AnyPack fold(AnyPack x, const Op& op, std::integer_sequence<int, k...>) {
    return op(x, AnyPack(__builtin_shufflevector(x, x, (k ^ distance)...)));
  }
  template <int distance, class AnyPack, class Op>
  static AnyPack reduce_halves(AnyPack x, const Op& op) {
    if constexpr (distance == 0) {
      return x;
    } else {
      return reduce_halves<distance / 2>(fold<distance>(x, op, std::make_integer_sequence<int, lanes>()), op);
    }
  }
  template <int... k>
  static void interleave(Values a, Values b, Values& low, Values& high, std::integer_sequence<int, k...>) {
    low = __builtin_shufflevector(a, b, k / 2 + (k % 2 == 0 ? 0 : lanes)...);
    high = __builtin_shufflevector(a, b, lanes / 2 + k / 2 + (k % 2 == 0 ? 0 : lanes)...);
  }

 public:
  /// Entry k of row r goes to entry r of row k.
  static void transpose(Values (&rows)[lanes]) {
    for (int round = 1; round < lanes; round *= 2) {
      Values next[lanes];
      for (int r = 0; r < lanes / 2; ++r) {
        interleave(rows[r], rows[r + lanes / 2], next[2 * r], next[2 * r + 1],
                   std::make_integer_sequence<int, lanes>());
      }
      for (int r = 0; r < lanes; ++r) rows[r] = next[r];
    }
  }
};

}  // namespace bellman::impl::BELLMAN_INSTRUCTIONS

#endif
