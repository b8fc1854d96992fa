// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_TILE_SWEEP_HPP
#define BELLMAN_IMPL_TILE_SWEEP_HPP

/// \file
/// The sweep for many problems on a machine with lanes: the lanes of a thread form equal groups, a group owns a problem, a
/// lane steps over tiles of a few rows by 16 bytes of columns, and the scores arrive through a ring in team scratch, so that
/// the copies of the next stages, strips and problems are on their way while one is computed.

#include <Kokkos_Core.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/strip_sweep.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// A batch of score matrices whose rows begin at multiples of 16 bytes.
template <class Real>
struct AlignedScores {
  const Real* data;
  std::int64_t problem_stride, row_stride;  ///< in elements
  std::int64_t problems, rows, columns;     ///< columns: whole tiles
};

/// 16 bytes of a row: the columns of a tile.
template <class Real>
struct alignas(16) Piece {
  static constexpr int columns = 16 / sizeof(Real);
  Real scores[columns];
};

/// Rows and columns by which the scores of one thread pass through its scratch.
///
/// A thread owns a batch of Thread::size / Lanes::size problems at a time. A strip is Lanes::size * rows_per_lane rows of
/// each; in step k lane l is at tile k - l of its rows. A stage is what all lanes need for a few steps: it is copied in
/// whole sectors of 32 bytes, which is why the lanes 2 q and 2 q + 1 get the same columns and the second of them reads one
/// place behind.
template <class Thread, class Lanes, class Real, int rows_per_lane, int stages>
class ScoreRing {
 public:
  static constexpr int steps_per_stage = 4;
  static constexpr int problems_per_batch = Thread::size / Lanes::size;
  static constexpr int strip_rows = Lanes::size * rows_per_lane;
  static constexpr int row_bytes = Thread::size * 16;            ///< one row of the tiles of all lanes
  static constexpr int place_bytes = rows_per_lane * row_bytes;  ///< the tiles of one step
  static constexpr int places = stages * steps_per_stage;
  static constexpr std::size_t bytes = places * place_bytes;

  /// Starts on the copies of the batches first, first + step, ...; \p ring is aligned to 16 bytes.
  KOKKOS_FUNCTION ScoreRing(const AlignedScores<Real>& scores, std::int64_t first, std::int64_t step, std::byte* ring)
      : scores_(scores),
        ring_(ring),
        step_(step),
        batch_(first),
        stages_per_strip_(
            static_cast<int>((scores.columns / columns + Lanes::size - 1 + steps_per_stage - 1) / steps_per_stage)) {
    for (int stage = 0; stage + 1 < stages; ++stage) issue();
  }

  KOKKOS_FUNCTION int stages_per_strip() const { return stages_per_strip_; }

  /// The next stage has arrived.
  KOKKOS_FUNCTION void wait() {
    Thread::template wait_copies<stages - 2>();
    Thread::sync();
  }
  /// To be called after the first step of each stage, when all have read the last place of the stage before it, whose
  /// memory it uses.
  KOKKOS_FUNCTION void refill() {
    Thread::sync();
    issue();
    read_place_ = read_place_ + steps_per_stage == places ? 0 : read_place_ + steps_per_stage;
  }
  /// Where this lane finds its tile in a step of the stage; row r is r * row_bytes further on.
  KOKKOS_FUNCTION const std::byte* tile(int step) const {
    const int lane = Thread::rank();
    int place = (step == 0 ? read_place_ : read_place_ - steps_per_stage + step) - (lane & 1);
    if (place < 0) place += places;
    return ring_ + place * place_bytes + (lane ^ 2 * (place % steps_per_stage)) * 16;
  }

 private:
  static constexpr int columns = Piece<Real>::columns;
  static constexpr int rows_at_once = 4;
  static_assert(Lanes::size % 2 == 0 && rows_per_lane % rows_at_once == 0 && Thread::size == 32 && stages >= 2);

  /// Copies the next stage. In each round a lane copies one piece: bits 0 and 1 of its rank are the step, bit 2 the lane of
  /// a pair, bits 3 and 4 the row.
  KOKKOS_FUNCTION void issue() {
    const std::int64_t problem = batch_ * problems_per_batch;
    if (problem < scores_.problems) {
      const int rank = Thread::rank();
      const int step = rank & 3, odd = rank >> 2 & 1, row = odd * rows_per_lane + (rank >> 3);
      const std::int64_t left = scores_.problems - problem;
      const int problems = left < problems_per_batch ? static_cast<int>(left) : problems_per_batch;
      const std::int64_t rows_left = scores_.rows - top_;
      const int rows = (rows_left < strip_rows ? static_cast<int>(rows_left) : strip_rows) - row;
      const int tiles = static_cast<int>(scores_.columns / columns);
      const int tile = stage_ * steps_per_stage + step;
      // Bit k of needed: the tile of pair k lies inside its matrix, in its columns and in the rows that this lane copies.
      const int past_end = ((tile - tiles) >> 1) + 1;
      const std::uint32_t in_columns =
          ~0u << (past_end > 0 ? past_end : 0) & ~(~0u << ((tile >> 1) + 1 < 31 ? (tile >> 1) + 1 : 31));
      std::uint32_t needed[rows_per_lane / rows_at_once];
      BELLMAN_UNROLL
      for (int part = 0; part < rows_per_lane / rows_at_once; ++part) {
        const int pairs = (rows - part * rows_at_once - 1) / (2 * rows_per_lane) + 1;
        needed[part] = rows > part * rows_at_once ? in_columns & ~(~0u << pairs) : 0;
      }
      const Real* from = scores_.data + problem * scores_.problem_stride + (top_ + row) * scores_.row_stride +
                         static_cast<std::int64_t>(tile) * columns;
      const int to = (write_place_ + step) * place_bytes + (rank >> 3) * row_bytes + step * 32 + odd * 16;
      const std::int64_t to_next_pair = 2 * (rows_per_lane * scores_.row_stride - columns);
      const std::int64_t to_next_part = rows_at_once * scores_.row_stride;
      const std::int64_t to_next_problem = scores_.problem_stride - Lanes::size / 2 * to_next_pair;
      BELLMAN_UNROLL
      for (int group = 0; group < problems_per_batch; ++group) {
        const std::uint32_t exists = group < problems ? ~0u : 0;
        BELLMAN_UNROLL
        for (int pair = 0; pair < Lanes::size / 2; ++pair) {
          std::byte* const to_pair = ring_ + (to ^ (group * (Lanes::size / 2) + pair) * 32);
          BELLMAN_UNROLL
          for (int part = 0; part < rows_per_lane / rows_at_once; ++part) {
            if ((needed[part] & exists) >> pair & 1) {
              Thread::copy_16_bytes(to_pair + part * rows_at_once * row_bytes, from + part * to_next_part);
            }
          }
          from += to_next_pair;
        }
        from += to_next_problem;
      }
      if (++stage_ == stages_per_strip_) {
        stage_ = 0;
        top_ += strip_rows;
        if (top_ >= scores_.rows) {
          top_ = 0;
          batch_ += step_;
        }
      }
    }
    Thread::commit_copies();
    write_place_ = write_place_ + steps_per_stage == places ? 0 : write_place_ + steps_per_stage;
  }

  AlignedScores<Real> scores_;
  std::byte* ring_;
  std::int64_t step_;
  // What is copied next.
  std::int64_t batch_;
  std::int64_t top_ = 0;
  int stage_ = 0;
  int stages_per_strip_;
  int write_place_ = 0;
  int read_place_ = 0;
};

/// Visits the cells of the problems of one batch, a group of lanes each; see ScoreRing. The bottom row of a strip waits in
/// \p row, a cell per column and group, for the next.
///
/// \return  the same on every lane of a group
template <class Thread, class Lanes, int rows_per_lane, class Recurrence, class Ring, class Real>
KOKKOS_FUNCTION auto sweep_tiles(const Recurrence& recurrence, Ring& ring, const AlignedScores<Real>& scores,
                                 typename Recurrence::Cell* row) {
  using Cell = typename Recurrence::Cell;
  constexpr int columns = Piece<Real>::columns;
  const auto& algebra = recurrence.algebra;
  auto watch = algebra.watch();
  // A result for each column of a tile, so that few cells wait for another one's result.
  typename Recurrence::Result results[columns];
  BELLMAN_UNROLL
  for (int c = 0; c < columns; ++c) results[c] = recurrence.empty_result();
  const int lane = Lanes::rank();
  const bool is_first_lane = lane == 0;
  const int tiles = static_cast<int>(scores.columns / columns);
  const auto join = [&](const auto& a, const auto& b) { return recurrence.join(a, b); };

  for (std::int64_t top = 0; top < scores.rows; top += Ring::strip_rows) {
    const std::int64_t rows_left = scores.rows - top - lane * rows_per_lane;
    const int owned = rows_left < rows_per_lane ? static_cast<int>(rows_left) : rows_per_lane;
    const bool is_last_strip = top + Ring::strip_rows >= scores.rows;
    Cell left[rows_per_lane], bottom[columns];
    BELLMAN_UNROLL
    for (int r = 0; r < rows_per_lane; ++r) left[r] = recurrence.border();
    BELLMAN_UNROLL
    for (int c = 0; c < columns; ++c) bottom[c] = recurrence.border();
    Cell corner = recurrence.border();  // above the first row, one column to the left

    for (int stage = 0; stage < ring.stages_per_strip(); ++stage) {
      ring.wait();
      for (int step = 0; step < Ring::steps_per_stage; ++step) {
        const int tile = stage * Ring::steps_per_stage + step - lane;
        Cell above[columns];
        BELLMAN_UNROLL
        for (int c = 0; c < columns; ++c) above[c] = Lanes::from_previous(bottom[c]);
        if (static_cast<unsigned>(tile) < static_cast<unsigned>(tiles)) {
          BELLMAN_UNROLL
          for (int c = 0; c < columns; ++c) {
            Cell given = recurrence.border();
            if (is_first_lane && top != 0) given = row[tile * columns + c];
            above[c] = is_first_lane ? given : above[c];
          }
          const std::byte* from = ring.tile(step);
          Cell diagonals[columns];
          BELLMAN_UNROLL
          for (int c = 0; c < columns; ++c) {
            diagonals[c] = c == 0 ? corner : above[c - 1];
            bottom[c] = above[c];
          }
          corner = above[columns - 1];
          const auto visit = [&](int r) {
            const auto piece = *reinterpret_cast<const Piece<Real>*>(from + r * Ring::row_bytes);
            Cell left_of = left[r];
            Cell next_diagonal = left_of;
            BELLMAN_UNROLL
            for (int c = 0; c < columns; ++c) {
              const auto weight = algebra.weight(piece.scores[c], watch);
              const Cell cell = recurrence.cell(diagonals[c], bottom[c], left_of, weight);
              results[c] = recurrence.collect(results[c], cell);
              diagonals[c] = next_diagonal;
              next_diagonal = cell;
              bottom[c] = cell;
              left_of = cell;
            }
            left[r] = left_of;
          };
          // Whole tiles have no branch inside, so that their cells overlap.
          if (owned == rows_per_lane) {
            BELLMAN_UNROLL
            for (int r = 0; r < rows_per_lane; ++r) visit(r);
          } else {
            BELLMAN_UNROLL
            for (int r = 0; r < rows_per_lane - 1; ++r) {
              if (r < owned) visit(r);
            }
          }
          if (lane == Lanes::size - 1 && !is_last_strip) {
            BELLMAN_UNROLL
            for (int c = 0; c < columns; ++c) row[tile * columns + c] = bottom[c];
          }
        }
        if (step == 0) ring.refill();
      }
    }
  }
  auto result = results[0];
  BELLMAN_UNROLL
  for (int c = 1; c < columns; ++c) result = recurrence.join(result, results[c]);
  return SweepResult<Recurrence, decltype(watch)>{Lanes::reduce(result, join), watch.template across<Lanes>()};
}

}  // namespace bellman::impl

#endif
