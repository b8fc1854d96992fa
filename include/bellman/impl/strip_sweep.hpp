// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_STRIP_SWEEP_HPP
#define BELLMAN_IMPL_STRIP_SWEEP_HPP

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace bellman::impl {

/// What a sweep over all cells of one problem found.
template <class Recurrence, class Watch>
struct SweepResult {
  typename Recurrence::Result result;
  Watch watch;
};

/// Visits the cells of one problem in strips of rows, each along its anti-diagonals.
///
/// A strip is Lanes::size * rows_per_lane rows. A lane owns rows_per_lane consecutive rows in registers. In step k lane l is
/// at column k - l: what it needs from above is what the lane before it computed in the step before. Lane 0 takes it from
/// \p row, N cells of scratch in which the last lane of the strip above left its bottom row. With one lane this is the
/// plain loop over rows.
///
/// \param score  score(i, j), read once a cell
/// \param row    N cells; not touched when one strip holds all rows
/// \return       the same on every lane
template <class Lanes, int rows_per_lane, class Recurrence, class ScoreSource>
KOKKOS_FUNCTION auto sweep_strips(const Recurrence& recurrence, const ScoreSource& score, std::int64_t rows,
                                  std::int64_t columns, typename Recurrence::Cell* row) {
  using Cell = typename Recurrence::Cell;
  const auto& algebra = recurrence.algebra;
  auto watch = algebra.watch();
  auto result = recurrence.empty_result();
  constexpr std::int64_t strip_rows = Lanes::size * rows_per_lane;
  const int lane = Lanes::rank();
  const bool is_last_lane = lane == Lanes::size - 1;

  const auto join = [&](const auto& a, const auto& b) { return recurrence.join(a, b); };

  for (std::int64_t top = 0; top < rows; top += strip_rows) {
    const std::int64_t first_row = top + lane * rows_per_lane;
    const bool is_last_strip = top + strip_rows >= rows;
    const int owned = static_cast<int>(rows - first_row < rows_per_lane ? rows - first_row : rows_per_lane);
    Cell left[rows_per_lane];
    for (int r = 0; r < rows_per_lane; ++r) left[r] = recurrence.border();
    Cell diagonal_of_next = recurrence.border();  // above the first row, one column to the left

    for (std::int64_t step = 0; step < columns + Lanes::size - 1; ++step) {
      const std::int64_t column = step - lane;
      Cell above = Lanes::from_previous(left[rows_per_lane - 1]);
      if (column >= 0 && column < columns) {
        if (lane == 0) above = top == 0 ? recurrence.border() : row[column];
        Cell diagonal = diagonal_of_next;
        Cell up = above;
        diagonal_of_next = above;
        for (int r = 0; r < rows_per_lane; ++r) {
          if (r < owned) {
            const auto weight = algebra.weight(score(first_row + r, column), watch);
            const Cell cell = recurrence.cell(diagonal, up, left[r], weight);
            result = recurrence.collect(result, cell);
            diagonal = left[r];
            left[r] = cell;
            up = cell;
          }
        }
        if (is_last_lane && !is_last_strip) row[column] = left[rows_per_lane - 1];
      }
      Lanes::sync();  // row[column] is written before lane 0 of the next strip reads it
    }
    if (algebra.is_lost(Lanes::reduce(result, join))) break;
  }
  return SweepResult<Recurrence, decltype(watch)>{Lanes::reduce(result, join), watch.template across<Lanes>()};
}

}  // namespace bellman::impl

#endif
