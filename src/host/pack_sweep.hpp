// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HOST_PACK_SWEEP_HPP
#define BELLMAN_SRC_HOST_PACK_SWEEP_HPP

/// \file
/// The sweep over alignments side by side, one a SIMD lane.

#include <bellman/impl/alignment_recurrence.hpp>
#include <bellman/impl/host_kernels.hpp>

#include "pack.hpp"
#include "pack_algebra.hpp"

namespace bellman::impl::BELLMAN_INSTRUCTIONS {

/// Reads \p count cells of one row, at most a register's worth, as packs: lane k is problem k.
template <class Score, int lanes>
void read_scores(const HostScores<Score>& scores, std::int64_t row, std::int64_t column, int count,
                 Pack<Score, lanes> (&cells)[lanes]) {
  const std::int64_t first = row * scores.row_stride + column * scores.column_stride;
  if (count == lanes && scores.column_stride == 1) {
    for (int k = 0; k < lanes; ++k) __builtin_memcpy(&cells[k], scores.problem[k] + first, sizeof(cells[k]));
    PackMath<Score, lanes>::transpose(cells);
    return;
  }
  for (int c = 0; c < count; ++c) {
    for (int k = 0; k < lanes; ++k) cells[c][k] = scores.problem[k][first + c * scores.column_stride];
  }
}

/// The cells of consecutive rows, column by column: each column waits for the one before it, and the rows of a column can
/// overlap with those of the next.
/// \param row  the row above on entry, the last row on return
template <int strip_rows, class Recurrence, class Score, class Watch>
void sweep_pack_strip(const Recurrence& recurrence, const HostScores<Score>& scores, std::int64_t top,
                      typename Recurrence::Cell* row, typename Recurrence::Result& result, Watch& watch) {
  using Cell = typename Recurrence::Cell;
  constexpr int lanes = sizeof(Cell) / sizeof(result[0]);
  Cell left[strip_rows];
  for (Cell& cell : left) cell = recurrence.border();
  Cell corner = recurrence.border();  // above the first row, one column to the left

  for (std::int64_t first = 0; first < scores.columns; first += lanes) {
    const auto count = static_cast<int>(scores.columns - first < lanes ? scores.columns - first : lanes);
    typename Recurrence::Weight weights[strip_rows][lanes];
    for (int r = 0; r < strip_rows; ++r) {
      Pack<Score, lanes> cells[lanes];
      read_scores<Score, lanes>(scores, top + r, first, count, cells);
      for (int c = 0; c < count; ++c) weights[r][c] = recurrence.algebra.weight(cells[c], watch);
    }
    for (int c = 0; c < count; ++c) {
      Cell up = row[first + c];
      Cell diagonal = corner;
      corner = up;
      for (int r = 0; r < strip_rows; ++r) {
        const Cell cell = recurrence.cell(diagonal, up, left[r], weights[r][c]);
        result = recurrence.collect(result, cell);
        diagonal = left[r];
        left[r] = cell;
        up = cell;
      }
      row[first + c] = up;
    }
  }
}

/// Visits the cells of problems side by side in strips of rows. A lane's numbers depend on its own problem alone.
/// \param memory  a cell per column
template <class Algebra, class Score>
void sweep_packs(const HostScores<Score>& scores, const HostAlgebra& constants, std::byte* memory, HostFound& found) {
  using Recurrence = LocalLinearGap<Algebra>;
  constexpr int strip_rows = 4;
  const Recurrence recurrence{Algebra(constants)};
  auto* const row = reinterpret_cast<typename Recurrence::Cell*>(memory);
  for (std::int64_t c = 0; c < scores.columns; ++c) row[c] = recurrence.border();
  typename Recurrence::Result result = recurrence.empty_result();
  typename Algebra::Watch watch;
  std::int64_t top = 0;
  for (; top + strip_rows <= scores.rows && !recurrence.algebra.is_lost(result); top += strip_rows) {
    sweep_pack_strip<strip_rows>(recurrence, scores, top, row, result, watch);
  }
  for (; top < scores.rows && !recurrence.algebra.is_lost(result); ++top) {
    sweep_pack_strip<1>(recurrence, scores, top, row, result, watch);
  }
  for (int k = 0; k < Algebra::lanes; ++k) found.best[k] = result[k];
  watch.write(found);
}

}  // namespace bellman::impl::BELLMAN_INSTRUCTIONS

#endif
