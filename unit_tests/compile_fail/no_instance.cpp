// SPDX-License-Identifier: Apache-2.0
// expected: the first argument must be an instance of
#include <bellman/alignment.hpp>

#ifdef ACCEPTED
using First = Kokkos::DefaultExecutionSpace;
#else
using First = int;
#endif

void call(const Kokkos::View<float***>& scores, const Kokkos::View<float*>& score) {
  bellman::smith_waterman_score(First(), scores, score);
}
