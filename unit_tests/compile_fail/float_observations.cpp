// SPDX-License-Identifier: Apache-2.0
// expected: floating-point observations are not accepted
#include <bellman/hmm.hpp>

#ifdef ACCEPTED
using Symbol = int;
#else
using Symbol = float;
#endif

void call(const Kokkos::View<double*>& init, const Kokkos::View<double**>& trans, const Kokkos::View<double**>& emit,
          const Kokkos::View<Symbol**>& symbols, const Kokkos::View<double*>& result) {
  bellman::hmm_log_likelihood(Kokkos::DefaultExecutionSpace(), bellman::HmmModel{init, trans, emit},
                              bellman::HmmObservations{symbols}, result);
}
