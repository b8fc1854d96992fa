// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HOST_COLUMN_JOINS_HPP
#define BELLMAN_SRC_HOST_COLUMN_JOINS_HPP

/// \file
/// Masked reductions: plain loops over neighbouring columns, which compilers turn into SIMD. They have no branch: a cell that is
/// not valid counts as the neutral value, whatever it holds.

#include <bellman/impl/host_kernels.hpp>

#include "pack.hpp"

namespace bellman::impl::BELLMAN_INSTRUCTIONS {

struct JoinSum {
  static constexpr double neutral = 0;
  static double joined(double a, double b) { return a + b; }
};
struct JoinMin {
  static constexpr double neutral = infinity<double>;
  static double joined(double a, double b) { return (b < a) | (b != b) ? b : a; }
};
struct JoinMax {
  static constexpr double neutral = -infinity<double>;
  static double joined(double a, double b) { return (b > a) | (b != b) ? b : a; }
};

template <class Join, class Real>
void join_values(double* __restrict columns, const Real* __restrict values, const std::uint8_t* __restrict mask,
                 std::int64_t count) {
  using Bits = typename Format<Real>::Bits;
  if (mask == nullptr) {
    for (std::int64_t c = 0; c < count; ++c) columns[c] = Join::joined(columns[c], static_cast<double>(values[c]));
    return;
  }
  // By bits: a choice between two numbers becomes a branch, which a random mask makes slow.
  const Bits neutral = __builtin_bit_cast(Bits, static_cast<Real>(Join::neutral));
  for (std::int64_t c = 0; c < count; ++c) {
    const Bits keep = -static_cast<Bits>(mask[c] != 0);
    const Bits used = (__builtin_bit_cast(Bits, values[c]) & keep) | (neutral & ~keep);
    columns[c] = Join::joined(columns[c], static_cast<double>(__builtin_bit_cast(Real, used)));
  }
}

template <class Real>
void join_counts(double* __restrict columns, const Real*, const std::uint8_t* __restrict mask, std::int64_t count) {
  if (mask == nullptr) {
    for (std::int64_t c = 0; c < count; ++c) columns[c] += 1;
    return;
  }
  for (std::int64_t c = 0; c < count; ++c) columns[c] += mask[c] != 0 ? 1.0 : 0.0;
}

template <class Real>
constexpr HostJoins<Real> make_joins() {
  return {join_values<JoinSum, Real>, join_values<JoinMin, Real>, join_values<JoinMax, Real>, join_counts<Real>};
}

}  // namespace bellman::impl::BELLMAN_INSTRUCTIONS

#endif
