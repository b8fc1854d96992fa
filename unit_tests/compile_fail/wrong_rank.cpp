// SPDX-License-Identifier: Apache-2.0
// expected: a view has the wrong rank
#include <bellman/alignment.hpp>

#ifdef ACCEPTED
using Scores = Kokkos::View<float***>;
#else
using Scores = Kokkos::View<float**>;
#endif

void call(const Scores& scores, const Kokkos::View<float*>& score) {
  bellman::smith_waterman_score(Kokkos::DefaultExecutionSpace(), scores, score);
}
