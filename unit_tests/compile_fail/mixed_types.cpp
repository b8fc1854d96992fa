// SPDX-License-Identifier: Apache-2.0
// expected: must hold the same type, float or double
#include <bellman/masked_reduce.hpp>

#ifdef ACCEPTED
using Values = Kokkos::View<float**>;
#else
using Values = Kokkos::View<double**>;
#endif

void call(const Values& values, const Kokkos::View<bool**>& valid, const Kokkos::View<float*>& out) {
  bellman::masked_reduce(Kokkos::DefaultExecutionSpace(), values, valid, out);
}
