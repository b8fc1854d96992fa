// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HOST_KERNELS_HPP
#define BELLMAN_SRC_HOST_KERNELS_HPP

/// \file
/// The kernels for one instruction set. A unit that includes this defines BELLMAN_INSTRUCTIONS first, and is compiled with the
/// options that go with it.

#include <bellman/impl/host_kernels.hpp>

#include "column_joins.hpp"
#include "pack.hpp"
#include "pack_algebra.hpp"
#include "pack_chain.hpp"
#include "pack_sweep.hpp"

namespace bellman::impl::BELLMAN_INSTRUCTIONS {

template <class T>
void exp2_of_register(const T* x, T* power) {
  using Math = PackMath<T, register_bytes / sizeof(T)>;
  typename Math::Values values;
  __builtin_memcpy(&values, x, sizeof(values));
  values = Math::exp2(values);
  __builtin_memcpy(power, &values, sizeof(values));
}

constexpr HostKernels make_kernels(const char* name) {
  constexpr int floats = register_bytes / sizeof(float);
  constexpr int doubles = register_bytes / sizeof(double);
  HostKernels kernels{};
  kernels.name = name;
  kernels.register_bytes = register_bytes;
  kernels.linear_float = sweep_packs<PackLinear<float, float, floats>, float>;
  kernels.linear_mixed = sweep_packs<PackLinear<double, float, doubles>, float>;
  kernels.linear_double_of_float = sweep_packs<PackLinear<double, double, doubles>, float>;
  kernels.max_float = sweep_packs<PackMax<float, floats>, float>;
  kernels.max_double_of_float = sweep_packs<PackMax<double, doubles>, float>;
  kernels.linear_double = sweep_packs<PackLinear<double, double, doubles>, double>;
  kernels.max_double = sweep_packs<PackMax<double, doubles>, double>;
  kernels.floats_together = chains_together<float>;
  kernels.doubles_together = chains_together<double>;
  kernels.advance_floats = advance_chains<float, chains_together<float>>;
  kernels.advance_doubles = advance_chains<double, chains_together<double>>;
  kernels.emission_rows = emission_rows;
  kernels.joins_of_floats = make_joins<float>();
  kernels.joins_of_doubles = make_joins<double>();
  kernels.exp2_of_floats = exp2_of_register<float>;
  kernels.exp2_of_doubles = exp2_of_register<double>;
  return kernels;
}

}  // namespace bellman::impl::BELLMAN_INSTRUCTIONS

#endif
