// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_TENSOR_PRODUCT_HPP
#define BELLMAN_IMPL_TENSOR_PRODUCT_HPP

/// \file
/// Products of small matrices of floats on the 32 lanes of a warp, by tensor cores where there are some. These take factors
/// of 11 significant bits (TF32). A float is the sum of two of them but for 2^-23 of it, so a product of floats is that of the
/// high parts and the two of a high and a low part. Needs NVIDIA GPUs from 8.0 on; elsewhere lanes tell each other their entries.

#include <Kokkos_Core.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstdint>

namespace bellman::impl {

/// A float as the sum of two floats of 11 significant bits each, the higher one rounded to nearest.
struct TensorParts {
  float high;
  float low;

  KOKKOS_FORCEINLINE_FUNCTION explicit TensorParts(float value)
      : high(Kokkos::bit_cast<float>((Kokkos::bit_cast<std::uint32_t>(value) + 0x1000u) & ~0x1fffu)),
        low(Kokkos::bit_cast<float>(Kokkos::bit_cast<std::uint32_t>(value - high) & ~0x1fffu)) {}
};

/// c (16 x 8) += a (16 x 8) b (8 x 8). With g = lane / 4 and t = lane % 4 a lane holds
///
///     a[0..3]  (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
///     b[0..1]  (t, g), (t + 4, g)
///     c[0..3]  (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
///
/// so that a c is an a whose columns 0 to 7 are taken in the order 0, 2, 4, 6, 1, 3, 5, 7, in the registers 0, 2, 1, 3. Of a
/// and b only 11 significant bits count. Source: NVIDIA, PTX ISA, mma.m16n8k8 with .tf32.
template <class Warp>
KOKKOS_FORCEINLINE_FUNCTION void add_tensor_product(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
  static_assert(Warp::size == 32, "a product takes 32 lanes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#else
  const int row = Warp::rank() / 4;
  const int column = Warp::rank() % 4 * 2;
  BELLMAN_UNROLL
  for (int k = 0; k < 8; ++k) {
    BELLMAN_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float left = Warp::from_lane(a[half + k / 4 * 2], row * 4 + k % 4);
      BELLMAN_UNROLL
      for (int n = 0; n < 2; ++n) {
        const float right = Warp::from_lane(b[k / 4], (column + n) * 4 + k % 4);
        c[half * 2 + n] = Kokkos::fma(left, right, c[half * 2 + n]);
      }
    }
  }
#endif
}

}  // namespace bellman::impl

#endif
