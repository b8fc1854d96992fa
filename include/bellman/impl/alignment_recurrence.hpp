// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_ALIGNMENT_RECURRENCE_HPP
#define BELLMAN_IMPL_ALIGNMENT_RECURRENCE_HPP

#include <bellman/impl/function.hpp>

namespace bellman::impl {

/// Local alignment with a linear gap: what a cell is in terms of its neighbours, over any algebra.
///
///     H = 1 + H_diagonal * weight + (H_up + H_left) * gap;   borders are 1;   the score is the largest H
///
/// A recurrence gives the sweep its Cell (what a cell hands to its neighbours), the cells of the borders, the cell itself,
/// and what it contributes to the result.
template <class Algebra>
struct LocalLinearGap {
  using Cell = typename Algebra::Value;
  using Result = typename Algebra::Value;
  using Weight = typename Algebra::Weight;

  Algebra algebra;

  KOKKOS_FUNCTION Cell border() const { return algebra.one(); }
  KOKKOS_FUNCTION Result empty_result() const { return algebra.one(); }

  KOKKOS_FUNCTION Cell cell(const Cell& diagonal, const Cell& up, const Cell& left, Weight weight) const {
    const auto gapped = algebra.plus_times(algebra.one(), algebra.plus(up, left), algebra.gap());
    return algebra.plus_times(gapped, diagonal, weight);
  }
  /// To be called for the last cell of all after the others of its row.
  KOKKOS_FUNCTION Result collect(const Result& result, const Cell& cell) const {
    return algebra.larger_so_far(result, cell);
  }
  KOKKOS_FUNCTION Result join(const Result& a, const Result& b) const { return algebra.larger(a, b); }
};

}  // namespace bellman::impl

#endif
