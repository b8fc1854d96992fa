// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_TENSOR_TILE_HPP
#define BELLMAN_IMPL_TENSOR_TILE_HPP

/// \file
/// Products of (sequences x states) and (states x states) on tensor cores, with the accuracy of floats: what the sweeps of
/// large hidden Markov models share. Floats are taken in two parts each; docs/accuracy.md says what a step then costs.

#include <Kokkos_Core.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/tensor_product.hpp>
#include <bellman/impl/unroll.hpp>

namespace bellman::impl {

/// What a lane holds of a factor, in parts.
template <int size>
struct alignas(16) TensorFactor {
  float high[size];
  float low[size];

  KOKKOS_FORCEINLINE_FUNCTION void set(int i, float value) {
    const TensorParts parts(value);
    high[i] = parts.high;
    low[i] = parts.low;
  }
};

/// The most that a sum of 8 products of positive floats loses, in units of 2^-24 of it: 4 for the two parts of each that are
/// rounded, 4 for the products of two low parts, 10 for adding up, since tensor cores cut off what of a term is below the
/// largest one, and 1 for the same in the products with a low part, which are small.
inline constexpr int tensor_product_roundings = 19;

/// Product 0, 1 and 2 of the three that make sum += a b, from the small ones to the large one: tensor cores cut off.
template <class Warp>
KOKKOS_FORCEINLINE_FUNCTION void add_part_product(int product, float (&sum)[4], const TensorFactor<4>& a,
                                                  const TensorFactor<2>& b) {
  add_tensor_product<Warp>(sum, product == 0 ? a.low : a.high, product == 1 ? b.low : b.high);
}

/// sums (16 x 8) += a (16 x 8) b (8 x 8), in the layout of add_tensor_product(). The products add up among themselves first:
/// sums of floats round to nearest.
template <class Warp>
KOKKOS_FORCEINLINE_FUNCTION void add_tensor_products(float (&sums)[4], const TensorFactor<4>& a,
                                                     const TensorFactor<2>& b) {
  float part[4] = {};
  BELLMAN_UNROLL
  for (int product = 0; product < 3; ++product) add_part_product<Warp>(product, part, a, b);
  BELLMAN_UNROLL
  for (int i = 0; i < 4; ++i) sums[i] += part[i];
}

}  // namespace bellman::impl

#endif
