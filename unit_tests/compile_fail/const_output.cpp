// SPDX-License-Identifier: Apache-2.0
// expected: an output view must not be const
#include <bellman/alignment.hpp>

#ifdef ACCEPTED
using Score = Kokkos::View<float*>;
#else
using Score = Kokkos::View<const float*>;
#endif

void call(const Kokkos::View<float***>& scores, const Score& score) {
  bellman::smith_waterman_score(Kokkos::DefaultExecutionSpace(), scores, score);
}
