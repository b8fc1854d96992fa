// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_TILE_SWEEP_HPP
#define BELLMAN_IMPL_TILE_SWEEP_HPP

/// \file
/// The sweep for many problems on a machine with lanes: the lanes of a thread form equal groups, a group owns a problem, and
/// a lane steps over tiles of a few rows by 16 bytes of columns. Strips and problems follow one another without a gap: lane
/// l is l tiles behind lane 0, also where lane 0 has begun the next strip or problem, so that no lane ever waits. The scores
/// arrive through a ring in team scratch, in pieces as long as a line of the cache.

#include <Kokkos_Core.hpp>
#include <bellman/impl/lanes.hpp>
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

/// What is compiled into a tile sweep.
template <int lanes_per_problem, int rows_of_lane, int steps_ahead>
struct TileShape {
  static constexpr int lanes = lanes_per_problem;
  static constexpr int rows_per_lane = rows_of_lane;
  static constexpr int lead = steps_ahead;           ///< steps that scores have to arrive in
  static constexpr int chunk_tiles = 8;              ///< of a row are asked for at once: a line of the cache
  static constexpr int places = chunk_tiles + lead;  ///< tiles of a row that are held
  static constexpr int strip_rows = lanes * rows_per_lane;
  static constexpr std::size_t ring_bytes = 32 * rows_per_lane * places * 16;
};

/// How the problems of one thread follow one another.
///
/// A thread takes the batches first, first + step, ... of Thread::size / Shape::lanes problems, one for each group. A strip
/// is Shape::strip_rows rows of each. A strip takes as many steps as its rows have tiles, in whole chunks, and at least as
/// many as separate the lanes.
template <class Thread, class Shape, class Real>
struct TileOrder {
  static constexpr int columns = Piece<Real>::columns;
  static constexpr int problems_per_batch = Thread::size / Shape::lanes;
  static constexpr int chunk_tiles = Shape::chunk_tiles;
  static constexpr int skews = Shape::lanes;  ///< skew: steps behind lane 0
  static constexpr int stages_between_lanes = skews / chunk_tiles;

  int tiles, stages_per_strip, strips;
  std::int64_t first, step, batches;

  KOKKOS_FUNCTION TileOrder(const AlignedScores<Real>& scores, std::int64_t first_batch, std::int64_t step_of_batches)
      : tiles(static_cast<int>(scores.columns / columns)), first(first_batch), step(step_of_batches) {
    const int most = tiles > skews ? tiles : skews;
    stages_per_strip = (most + chunk_tiles - 1) / chunk_tiles;
    strips = static_cast<int>((scores.rows + Shape::strip_rows - 1) / Shape::strip_rows);
    const std::int64_t all = (scores.problems + problems_per_batch - 1) / problems_per_batch;
    batches = all > first ? (all - first + step - 1) / step : 0;
  }
  KOKKOS_FUNCTION static int skew() { return Thread::rank() % skews; }
  /// Of the row between two strips: the last lane of a strip is Shape::lanes - 1 steps behind its first lane. One more, so
  /// that no place is read and written anew in one step.
  KOKKOS_FUNCTION int row_tiles() const { return stages_per_strip * chunk_tiles - (Shape::lanes - 1) + 1; }
};

/// Scores on their way to the lanes. Each row of each lane has a ring of Shape::places tiles, which is filled chunk by chunk.
/// A lane's chunk is asked for `lead` steps before the lane reads its first tile; it takes the places of the chunk before.
/// All lanes copy: those of a wing, chunk_tiles of them, a line of each row of the lane whose turn it is.
template <class Thread, class Shape, class Real>
class ScoreRing {
  using Order = TileOrder<Thread, Shape, Real>;
  static constexpr int rows_per_lane = Shape::rows_per_lane, chunk_tiles = Shape::chunk_tiles, places = Shape::places;
  static constexpr int lane_bytes = rows_per_lane * places * 16;
  static_assert(Thread::size == 32 && Thread::size % chunk_tiles == 0);
  static_assert(Shape::lead >= 1 && Shape::lead <= chunk_tiles && Shape::lanes >= chunk_tiles);

 public:
  static constexpr int row_bytes = places * 16;

  /// Asks for the first `lead` steps; \p ring is aligned to 16 bytes.
  KOKKOS_FUNCTION ScoreRing(const AlignedScores<Real>& scores, const Order& order, std::byte* ring)
      : scores_(scores), order_(order), batch_(order.first), read_((2 * places - Order::skew() % places) % places) {
    const int lane = Thread::rank();
    const int wing = lane / chunk_tiles;  // lanes that copy for one another
    const int wing_in_group = wing % Order::stages_between_lanes;
    first_row_ = Order::stages_between_lanes == 1 ? 0 : wing_in_group * chunk_tiles * rows_per_lane;
    delay_ = wing_in_group;
    group_ = wing * chunk_tiles / Shape::lanes;
    wing_ = ring + wing * chunk_tiles * lane_bytes;
    tiles_ = ring + lane * lane_bytes;
    begin_stage();
    for (int step = 0; step < Shape::lead; ++step) issue();
  }

  /// Copies the rows of one lane of each wing.
  KOKKOS_FUNCTION void issue() {
    BELLMAN_UNROLL
    for (int r = 0; r < rows_per_lane; ++r) {
      Thread::copy_16_bytes_or_zeros(to_ + r * row_bytes, from_, r < rows_left_);
      from_ += scores_.row_stride;
    }
    to_ += lane_bytes;
    rows_left_ -= rows_per_lane;
    Thread::commit_copies();
    if (++step_ == chunk_tiles) {
      step_ = 0;
      end_stage();
      begin_stage();
    }
  }

  KOKKOS_FUNCTION static void wait() {
    Thread::template wait_copies<Shape::lead - 1>();
    Thread::sync();
  }
  /// Where this lane finds its next tile; row r is r * row_bytes further on.
  KOKKOS_FUNCTION const std::byte* next_tile() {
    const std::byte* tile = tiles_ + read_ * 16;
    read_ = read_ + 1 == places ? 0 : read_ + 1;
    return tile;
  }

 private:
  KOKKOS_FUNCTION void begin_stage() {
    const int piece = Thread::rank() % chunk_tiles;
    const int tile = chunk_ * chunk_tiles + piece;
    const std::int64_t problem = batch_ * Order::problems_per_batch + group_;
    const std::int64_t rows_left = scores_.rows - top_ - first_row_;
    const bool exists = delay_ == 0 && tile < order_.tiles && problem < scores_.problems;
    rows_left_ = !exists ? 0 : rows_left < Shape::strip_rows ? static_cast<int>(rows_left) : Shape::strip_rows;
    from_ = scores_.data + problem * scores_.problem_stride + (top_ + first_row_) * scores_.row_stride +
            static_cast<std::int64_t>(tile) * Order::columns;
    const int place = first_place_ + piece;
    to_ = wing_ + (place < places ? place : place - places) * 16;
  }

  KOKKOS_FUNCTION void end_stage() {
    if (delay_ > 0) {
      --delay_;
      return;
    }
    first_place_ += chunk_tiles;
    if (first_place_ >= places) first_place_ -= places;
    if (++chunk_ == order_.stages_per_strip) {
      chunk_ = 0;
      top_ += Shape::strip_rows;
      if (top_ >= scores_.rows) {
        top_ = 0;
        batch_ += order_.step;
      }
    }
  }

  const AlignedScores<Real>& scores_;
  const Order& order_;
  // What is copied next by this lane.
  std::int64_t batch_;
  std::int64_t top_ = 0;
  int chunk_ = 0, step_ = 0, first_place_ = 0, first_row_, delay_, group_;
  std::byte* wing_;
  // Of the next lane of the wing.
  int rows_left_ = 0;
  const Real* from_ = nullptr;
  std::byte* to_ = nullptr;
  // What is read next by this lane.
  const std::byte* tiles_;
  int read_;
};

/// Visits the cells of all problems of one thread. The bottom row of a strip waits in \p row, order.row_tiles() tiles of a
/// group, for the next. The weights of a tile are computed one step ahead of its cells.
///
/// \param finish  finish(batch, result, watch) is called by all lanes together; the same on all lanes of a group
template <class Thread, class Lanes, class Shape, class Recurrence, class Real, class Finish>
KOKKOS_FUNCTION void sweep_tiles(const Recurrence& recurrence, ScoreRing<Thread, Shape, Real>& ring,
                                 const TileOrder<Thread, Shape, Real>& order, const AlignedScores<Real>& scores,
                                 typename Recurrence::Cell* row, const Finish& finish) {
  using Ring = ScoreRing<Thread, Shape, Real>;
  using Order = TileOrder<Thread, Shape, Real>;
  using Cell = typename Recurrence::Cell;
  constexpr int rows_per_lane = Shape::rows_per_lane;
  constexpr int columns = Piece<Real>::columns;
  const auto& algebra = recurrence.algebra;
  const auto join = [&](const auto& a, const auto& b) { return recurrence.join(a, b); };
  const int lane = Lanes::rank();
  const int steps_per_strip = order.stages_per_strip * Shape::chunk_tiles;

  auto watch = algebra.watch(), watch_of_last = algebra.watch();
  auto result = recurrence.empty_result(), result_of_last = result;
  Cell left[rows_per_lane], bottom[columns], corner = recurrence.border();
  typename Recurrence::Weight weights[rows_per_lane * columns];
  BELLMAN_UNROLL
  for (int r = 0; r < rows_per_lane; ++r) left[r] = recurrence.border();
  BELLMAN_UNROLL
  for (int k = 0; k < rows_per_lane * columns; ++k) weights[k] = 0;
  BELLMAN_UNROLL
  for (int c = 0; c < columns; ++c) bottom[c] = recurrence.border();
  // Before its first step a lane is at the end of a problem that does not exist.
  int strip = order.strips - 1;
  int tile = steps_per_strip - 2 - order.skew();
  int owned = 0;
  // Of the row between two strips: where lane 0 reads what the last lane wrote row_tiles() - 1 steps before, and where that
  // lane writes in the next step.
  const int row_tiles = order.row_tiles();
  int place = ((lane == 0 ? 2 - Lanes::size : 0) - order.skew() - 2) % row_tiles;
  if (place < 0) place += row_tiles;

  std::int64_t batch = order.first;
  const std::int64_t steps_per_batch = static_cast<std::int64_t>(steps_per_strip) * order.strips;
  std::int64_t steps_left = order.batches == 0 ? 0 : order.batches * steps_per_batch + Order::skews + 1;
  std::int64_t steps_to_result = steps_per_batch + Order::skews + 1;
  for (; steps_left > 0; --steps_left) {
    Ring::wait();
    ring.issue();
    if (++place == row_tiles) place = 0;
    if (++tile == steps_per_strip) {
      tile = 0;
      BELLMAN_UNROLL
      for (int r = 0; r < rows_per_lane; ++r) left[r] = recurrence.border();
      corner = recurrence.border();
      if (++strip == order.strips) {
        strip = 0;
        result_of_last = result;
        result = recurrence.empty_result();
      }
      const std::int64_t rows_left = scores.rows - (std::int64_t{strip} * Lanes::size + lane) * rows_per_lane;
      owned = rows_left < rows_per_lane ? static_cast<int>(rows_left) : rows_per_lane;
    }
    if (--steps_to_result == 0) {
      steps_to_result = steps_per_batch;
      finish(batch, Lanes::reduce(result_of_last, join), watch_of_last.template across<Lanes>());
      batch += order.step;
    }
    const int counted = tile < order.tiles ? owned : 0;

    Cell above[columns];
    BELLMAN_UNROLL
    for (int c = 0; c < columns; ++c) above[c] = Lanes::from_previous(bottom[c]);
    if (lane == 0) {
      BELLMAN_UNROLL
      for (int c = 0; c < columns; ++c) above[c] = strip == 0 ? recurrence.border() : row[place * columns + c];
    }
    Cell diagonals[columns];
    BELLMAN_UNROLL
    for (int c = 0; c < columns; ++c) {
      diagonals[c] = c == 0 ? corner : above[c - 1];
      bottom[c] = above[c];
    }
    corner = above[columns - 1];
    typename Recurrence::Result of_rows[rows_per_lane];
    BELLMAN_UNROLL
    for (int r = 0; r < rows_per_lane; ++r) {
      Cell left_of = left[r];
      Cell next_diagonal = left_of;
      BELLMAN_UNROLL
      for (int c = 0; c < columns; ++c) {
        const Cell cell = recurrence.cell(diagonals[c], bottom[c], left_of, weights[r * columns + c]);
        of_rows[r] = c == 0 ? cell : recurrence.collect(of_rows[r], cell);
        diagonals[c] = next_diagonal;
        next_diagonal = cell;
        bottom[c] = cell;
        left_of = cell;
      }
      left[r] = left_of;
    }
    // No branch, so that these and the weights below overlap.
    BELLMAN_UNROLL
    for (int r = 0; r < rows_per_lane; ++r) {
      const auto with_row = recurrence.collect(result, of_rows[r]);
      result = r < counted ? with_row : result;
    }
    if (lane == Lanes::size - 1 && strip + 1 < order.strips) {
      BELLMAN_UNROLL
      for (int c = 0; c < columns; ++c) row[place * columns + c] = bottom[c];
    }

    if (tile + 1 == steps_per_strip && strip + 1 == order.strips) {
      watch_of_last = watch;
      watch = algebra.watch();
    }
    const std::byte* from = ring.next_tile();
    BELLMAN_UNROLL
    for (int r = 0; r < rows_per_lane; ++r) {
      const auto piece = *reinterpret_cast<const Piece<Real>*>(from + r * Ring::row_bytes);
      BELLMAN_UNROLL
      for (int c = 0; c < columns; ++c) weights[r * columns + c] = algebra.weight(piece.scores[c], watch);
    }
  }
}

}  // namespace bellman::impl

#endif
