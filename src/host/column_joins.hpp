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
  static double joined(double a, double b) { return ((b < a) | (b != b)) ? b : a; }
};
struct JoinMax {
  static constexpr double neutral = -infinity<double>;
  static double joined(double a, double b) { return ((b > a) | (b != b)) ? b : a; }
};

template <class Join, class Real>
double join_cell(double joined, Real value, bool is_valid) {
  // By bits: a choice between two numbers becomes a branch, which a random mask makes slow.
  using Bits = typename Format<Real>::Bits;
  const Bits neutral = __builtin_bit_cast(Bits, static_cast<Real>(Join::neutral));
  const Bits keep = -static_cast<Bits>(is_valid);
  const Bits used = (__builtin_bit_cast(Bits, value) & keep) | (neutral & ~keep);
  return Join::joined(joined, static_cast<double>(__builtin_bit_cast(Real, used)));
}

template <int rank_count, class Join, class Real>
void join_ranks(double* __restrict columns, const HostCells<Real>* ranks, std::int64_t count) {
  const Real* values[rank_count];
  const std::uint8_t* mask[rank_count];
  for (int r = 0; r < rank_count; ++r) {
    values[r] = ranks[r].values;
    mask[r] = ranks[r].mask;
  }
  if (mask[0] == nullptr) {
    for (std::int64_t c = 0; c < count; ++c) {
      double joined = columns[c];
#pragma GCC unroll 4
      for (int r = 0; r < rank_count; ++r) joined = Join::joined(joined, static_cast<double>(values[r][c]));
      columns[c] = joined;
    }
  } else {
    for (std::int64_t c = 0; c < count; ++c) {
      double joined = columns[c];
#pragma GCC unroll 4
      for (int r = 0; r < rank_count; ++r) joined = join_cell<Join>(joined, values[r][c], mask[r][c] != 0);
      columns[c] = joined;
    }
  }
}

template <class Join, class Real>
void join_values(double* columns, const HostCells<Real>* ranks, int rank_count, std::int64_t count) {
  if (rank_count == most_ranks_together) return join_ranks<most_ranks_together, Join>(columns, ranks, count);
  for (int r = 0; r < rank_count; ++r) join_ranks<1, Join>(columns, ranks + r, count);
}

template <class Real>
void join_counts(double* __restrict columns, const HostCells<Real>* ranks, int rank_count, std::int64_t count) {
  for (int r = 0; r < rank_count; ++r) {
    const std::uint8_t* const mask = ranks[r].mask;
    for (std::int64_t c = 0; c < count; ++c) columns[c] += mask == nullptr || mask[c] != 0 ? 1.0 : 0.0;
  }
}

template <class Real>
void store_columns(const double* columns, Real* out, std::int64_t count, bool streams) {
  constexpr int lanes = register_bytes / static_cast<int>(sizeof(Real));
  std::int64_t c = 0;
  if (streams && reinterpret_cast<std::uintptr_t>(out) % register_bytes == 0) {
    for (; c + lanes <= count; c += lanes) {
      Pack<Real, lanes> rounded;
      for (int k = 0; k < lanes; ++k) rounded[k] = static_cast<Real>(columns[c + k]);
      PackMath<Real, lanes>::stream(out + c, rounded);
    }
    PackMath<Real, lanes>::end_streams();
  }
  for (; c < count; ++c) out[c] = static_cast<Real>(columns[c]);
}

template <class Real>
constexpr HostJoins<Real> make_joins() {
  return {join_values<JoinSum, Real>, join_values<JoinMin, Real>, join_values<JoinMax, Real>, join_counts<Real>,
          store_columns<Real>};
}

}  // namespace bellman::impl::BELLMAN_INSTRUCTIONS

#endif
