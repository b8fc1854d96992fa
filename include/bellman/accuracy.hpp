// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_ACCURACY_HPP
#define BELLMAN_ACCURACY_HPP

/// \file
/// The promised errors, as functions: the kernels certify against them, and the tests and bellman_compare assert them. How
/// they are kept is in docs/accuracy.md.

#include <Kokkos_Core.hpp>
#include <type_traits>

namespace bellman {

/// \brief smith_waterman_score is within score_tolerance (|score| + t) of the exact value.
template <class Real>
inline constexpr double score_tolerance = std::is_same_v<Real, float> ? 1e-5 : 1e-11;

/// \brief hmm_log_likelihood is within log_likelihood_tolerance (1 + |value|) of the exact value.
template <class Real>
inline constexpr double log_likelihood_tolerance = std::is_same_v<Real, float> ? 1e-6 : 1e-12;

template <class Real>
double score_error_bound(double score, double temperature) {
  return score_tolerance<Real> * (Kokkos::abs(score) + temperature);
}

template <class Real>
double log_likelihood_error_bound(double value) {
  return log_likelihood_tolerance<Real> * (1 + Kokkos::abs(value));
}

/// \brief Bound of a masked sum or mean over \p ranks cells. Sums are accumulated in double and rounded once to Real.
///
/// \param value          the exact sum (or mean)
/// \param absolute_value the sum (or mean) of the absolute values
template <class Real>
double masked_sum_error_bound(double value, double absolute_value, double ranks) {
  const double rounding = std::is_same_v<Real, float> ? 0x1p-24 : 0x1p-53;
  return rounding * Kokkos::abs(value) + ranks * 0x1p-52 * absolute_value;
}

}  // namespace bellman

#endif
