// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_STAGED_SWEEP_HPP
#define BELLMAN_IMPL_STAGED_SWEEP_HPP

/// \file
/// The sweep for few small problems, where what counts is how long one takes: a team turns all scores of its problem into
/// weights at once, in team scratch, and a lane group of its first thread then goes along the anti-diagonals. The code is
/// short, for each launch has to fetch it anew.

#include <Kokkos_Core.hpp>
#include <bellman/impl/tile_sweep.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstdint>

namespace bellman::impl {

/// Lanes and rows of each that hold all rows of a problem.
struct StagedShape {
  static constexpr int lanes = 8;
  static constexpr int rows_per_lane = 4;
  static constexpr int rows = lanes * rows_per_lane;
};

/// Writes the weights of a problem to \p weights, StagedShape::rows rows of scores.columns. To be called by all threads of a
/// team, which share the work; a barrier shows it to the others.
///
/// \return  what this lane has seen
template <class Thread, class Team, class Algebra, class Real>
KOKKOS_FUNCTION auto stage_weights(const Team& team, const Algebra& algebra, const AlignedScores<Real>& scores,
                                   std::int64_t problem, typename Algebra::Weight* weights) {
  constexpr int columns = Piece<Real>::columns;
  auto watch = algebra.watch();
  const int tiles = static_cast<int>(scores.columns / columns);
  const Real* const from = scores.data + problem * scores.problem_stride;
  // A power of two of neighbouring lanes takes a row: no division.
  int log2_width = 0;
  while ((1 << log2_width) < tiles && (1 << log2_width) < Thread::size) ++log2_width;
  const int lane = team.team_rank() * Thread::size + Thread::rank();
  const int width = 1 << log2_width;
  for (int row = lane >> log2_width; row < StagedShape::rows; row += team.team_size() * Thread::size >> log2_width) {
    for (int tile = lane & (width - 1); tile < tiles; tile += width) {
      typename Algebra::Weight* const to = weights + (row * tiles + tile) * columns;
      if (row < scores.rows) {
        const auto piece = *reinterpret_cast<const Piece<Real>*>(from + row * scores.row_stride + tile * columns);
        BELLMAN_UNROLL
        for (int c = 0; c < columns; ++c) to[c] = algebra.weight(piece.scores[c], watch);
      } else {
        BELLMAN_UNROLL
        for (int c = 0; c < columns; ++c) to[c] = 0;
      }
    }
  }
  return watch;
}

/// Visits the cells of one problem of at most StagedShape::rows rows, whose weights lie in scratch. All groups of the thread
/// do the same.
///
/// \return  the same on every lane
template <class Lanes, class Real, class Recurrence>
KOKKOS_FUNCTION auto sweep_staged(const Recurrence& recurrence, const typename Recurrence::Weight* weights, int rows,
                                  int row_length) {
  using Cell = typename Recurrence::Cell;
  constexpr int columns = Piece<Real>::columns, rows_per_lane = StagedShape::rows_per_lane;
  auto result = recurrence.empty_result();
  const int lane = Lanes::rank();
  const int tiles = row_length / columns;
  const int owned = rows - lane * rows_per_lane;
  Cell left[rows_per_lane], bottom[columns], corner = recurrence.border();
  BELLMAN_UNROLL
  for (int r = 0; r < rows_per_lane; ++r) left[r] = recurrence.border();
  BELLMAN_UNROLL
  for (int c = 0; c < columns; ++c) bottom[c] = recurrence.border();
  const typename Recurrence::Weight* from = weights + lane * (rows_per_lane * row_length - columns);
  for (int step = 0; step < tiles + Lanes::size - 1; ++step, from += columns) {
    Cell diagonals[columns], above[columns];
    BELLMAN_UNROLL
    for (int c = 0; c < columns; ++c) above[c] = Lanes::from_previous(bottom[c]);
    if (static_cast<unsigned>(step - lane) >= static_cast<unsigned>(tiles)) continue;
    BELLMAN_UNROLL
    for (int c = 0; c < columns; ++c) {
      bottom[c] = lane == 0 ? recurrence.border() : above[c];
      diagonals[c] = corner;
      corner = bottom[c];
    }
    BELLMAN_UNROLL
    for (int r = 0; r < rows_per_lane; ++r) {
      Cell left_of = left[r], next_diagonal = left_of;
      auto of_row = result;
      BELLMAN_UNROLL
      for (int c = 0; c < columns; ++c) {
        const Cell cell = recurrence.cell(diagonals[c], bottom[c], left_of, from[r * row_length + c]);
        of_row = c == 0 ? cell : recurrence.collect(of_row, cell);
        diagonals[c] = next_diagonal;
        next_diagonal = cell;
        bottom[c] = cell;
        left_of = cell;
      }
      left[r] = left_of;
      const auto with_row = recurrence.collect(result, of_row);
      result = r < owned ? with_row : result;
    }
  }
  return Lanes::reduce(result, [&](const auto& a, const auto& b) { return recurrence.join(a, b); });
}

}  // namespace bellman::impl

#endif
