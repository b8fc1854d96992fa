// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_PIPELINE_SWEEP_HPP
#define BELLMAN_IMPL_PIPELINE_SWEEP_HPP

/// \file
/// The sweep for few large problems: the rows of a problem are cut into blocks, which many teams visit at the same time, each
/// a little behind the one above it. A block is a few strips; of each strip one thread visits the cells, and another turns
/// its scores into weights ahead of it. A last thread brings in the row above the block.
///
/// All threads of a team go from stage to stage together, a stage being a few columns. Within a strip a lane is `lag` columns
/// behind the lane before it, so that a cell is on its way to the next lane while others are computed. The last lane of a
/// strip leaves its row in a ring in team scratch for the next strip; that of a block in memory of the whole call, for
/// another team.

#include <Kokkos_Core.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/tile_sweep.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// What is compiled into a pipeline sweep.
template <int strips_of_block, int rows_of_lane, int lag_of_lane, int columns_of_stage, int stages_ahead,
          int makers_of_strip>
struct PipelineShape {
  static constexpr int lanes = 32;
  static constexpr int strips = strips_of_block;
  static constexpr int rows_per_lane = rows_of_lane;
  static constexpr int lag = lag_of_lane;         ///< columns between a lane and the next
  static constexpr int stage = columns_of_stage;  ///< columns between two barriers
  static constexpr int lead = stages_ahead;       ///< stages that scores have to arrive in
  static constexpr int makers = makers_of_strip;  ///< threads that turn the scores of a strip into weights
  static constexpr int threads = strips + strips * makers + 1;
  static constexpr int strip_rows = lanes * rows_per_lane;
  static constexpr int block_rows = strips * strip_rows;
  static constexpr int last_lag = lag * (lanes - 1);  ///< columns between the first lane of a strip and the last
  static constexpr int lag_stages = (last_lag + stage - 1) / stage;
  static constexpr int strip_delay = lag_stages + 1;  ///< stages between a strip and the next
  static constexpr int held = 3;                      ///< stages in each ring
  static constexpr int arriving = 64;                 ///< columns of the ring for the row above a block
  static_assert(stage % lag == 0 && stage % makers == 0 && arriving >= 4 * stage + lanes &&
                (arriving & (arriving - 1)) == 0);

  template <class Cell>
  static constexpr std::size_t weights_bytes = std::size_t{held} * stage* strip_rows * sizeof(Cell);
  /// Of scores on their way to one thread.
  template <class Real>
  static constexpr std::size_t arriving_bytes = std::size_t{lead} * strip_rows* stage / makers * sizeof(Real);
  template <class Cell, class Real>
  static constexpr std::size_t bytes = strips*(weights_bytes<Cell> +
                                               makers * arriving_bytes<Real>)+((strips - 1) * held * stage + arriving) *
                                       sizeof(Cell);

  KOKKOS_FUNCTION static std::int64_t stages_of_strip(std::int64_t columns) {
    return (columns + last_lag + stage - 1) / stage;
  }
};

/// The shapes that are compiled: as many stages of scores ahead as 48 KB of scratch hold.
template <class Real>
using FewLargeShape = PipelineShape<2, 2, 2, 8, is_float<Real> ? 4 : 2, 2>;
inline constexpr int pipeline_teams_of_multiprocessor = 1;  ///< at a time: their threads need many registers

KOKKOS_FUNCTION inline std::int64_t pipeline_blocks(std::int64_t rows) {
  return (rows + FewLargeShape<float>::block_rows - 1) / FewLargeShape<float>::block_rows;
}

/// How far the teams of a call are with one rung.
struct PipelineCounters {
  std::uint32_t tickets;  ///< blocks that teams have taken
  std::uint32_t judged;   ///< problems whose blocks have all been visited
  std::uint32_t open;     ///< of these, those that were not certified
  std::uint32_t padding;
};

/// What a thread has found in a block.
template <class Result, class Watch>
struct PipelineFound {
  Result result;
  Watch watch;
};

/// What the teams of a call share, in the caller's workspace: counters, the rows between blocks, and what was found.
struct PipelineMemory {
  static constexpr int rungs = 3;
  static constexpr std::size_t found_bytes = 16;

  PipelineCounters* counters;
  std::int64_t columns;
  std::uint32_t problems, blocks;

  PipelineMemory(std::byte* memory, std::int64_t problem_count, std::int64_t blocks_of_problem,
                 std::int64_t columns_of_problem)
      : counters(reinterpret_cast<PipelineCounters*>(memory)),
        columns(columns_of_problem),
        problems(static_cast<std::uint32_t>(problem_count)),
        blocks(static_cast<std::uint32_t>(blocks_of_problem)) {}

  KOKKOS_FUNCTION std::uint32_t* finished(int step) const {
    return reinterpret_cast<std::uint32_t*>(counters + rungs) + std::int64_t{step} * problems;
  }
  KOKKOS_FUNCTION std::byte* row(std::int64_t problem, std::uint32_t block) const {
    return begin() + finished_bytes() + (problem * (blocks - 1) + block) * columns * std::int64_t{sizeof(double)};
  }
  /// From the counters on: what has to be 0 at first.
  KOKKOS_FUNCTION std::size_t cleared_bytes() const {
    return finished_bytes() + std::size_t{problems} * (blocks - 1) * static_cast<std::size_t>(columns) * sizeof(double);
  }
  KOKKOS_FUNCTION std::uint32_t* open_problems(int step) const {
    return reinterpret_cast<std::uint32_t*>(begin() + cleared_bytes()) + std::int64_t{step - 1} * problems;
  }
  KOKKOS_FUNCTION std::byte* found(std::int64_t problem) const {
    return begin() + cleared_bytes() + list_bytes() + problem * blocks * (FewLargeShape<float>::threads * found_bytes);
  }
  std::size_t bytes() const { return static_cast<std::size_t>(found(problems) - begin()); }

 private:
  KOKKOS_FUNCTION std::byte* begin() const { return reinterpret_cast<std::byte*>(counters); }
  KOKKOS_FUNCTION std::size_t finished_bytes() const {
    return (rungs * (sizeof(PipelineCounters) + std::size_t{problems} * sizeof(std::uint32_t)) + 15) / 16 * 16;
  }
  KOKKOS_FUNCTION std::size_t list_bytes() const {
    return ((rungs - 1) * std::size_t{problems} * sizeof(std::uint32_t) + 15) / 16 * 16;
  }
};

/// A batch of score matrices of any layout.
template <class Real>
struct PipelineScores {
  const Real* data;
  std::int64_t problem_stride, row_stride, column_stride;  ///< in elements
  std::int64_t rows, columns;
  bool has_pieces;  ///< rows are contiguous, begin at multiples of 16 bytes, and are multiples of 16 bytes long
};

/// The cells of the row between two blocks, on their way from one team to another. Each says by itself whether it has
/// arrived: 0 is what no cell is stored as.
template <class Cell>
class RowInMemory {
  using Bits = std::conditional_t<sizeof(Cell) == 4, std::uint32_t, std::uint64_t>;

 public:
  KOKKOS_FUNCTION explicit RowInMemory(std::byte* memory) : cells_(reinterpret_cast<Bits*>(memory)) {}

  KOKKOS_FUNCTION bool exists() const { return cells_ != nullptr; }
  KOKKOS_FUNCTION void write(std::int64_t column, Cell cell) const {
    store_for_other_teams(cells_ + column, Kokkos::bit_cast<Bits>(cell) ^ no_cell());
  }
  KOKKOS_FUNCTION Bits read(std::int64_t column) const { return load_of_other_teams(cells_ + column); }
  KOKKOS_FUNCTION static bool has_arrived(Bits bits) { return bits != 0; }
  KOKKOS_FUNCTION static Cell cell(Bits bits) { return Kokkos::bit_cast<Cell>(bits ^ no_cell()); }
  /// Makes the cell ready for another sweep.
  KOKKOS_FUNCTION void clear(std::int64_t column) const { cells_[column] = 0; }

 private:
  /// No path sum is negative.
  KOKKOS_FUNCTION static Bits no_cell() { return Kokkos::bit_cast<Bits>(Cell(-1)); }
  Bits* cells_;
};

/// Cells of one column of one lane, read or written at once.
template <class Cell, int rows>
struct alignas(sizeof(Cell) * rows) CellColumn {
  Cell cells[rows];
};

/// A thread that turns scores of a strip into weights: a part of the columns of each stage. Lane l has the rows that lane l
/// of the visiting thread has. The scores arrive by asynchronous copies, each lane's own in a ring of its own.
template <class Shape, class Lanes, class Cell, class Algebra, class Real>
class WeightMaker {
  static constexpr int rows = Shape::rows_per_lane, stage = Shape::stage, width = Piece<Real>::columns;
  static constexpr int share = stage / Shape::makers;  // columns of a stage that this thread takes
  static constexpr int pieces = share / width;
  static_assert(share % width == 0);
  using Column = CellColumn<Cell, rows>;

 public:
  typename Algebra::Watch watch;

  /// \param first_row  of lane 0
  /// \param arriving   Shape::lead stages of this thread's scores
  KOKKOS_FUNCTION WeightMaker(const Algebra& algebra, const PipelineScores<Real>& scores, std::int64_t problem,
                              std::int64_t first_row, int part, std::byte* weights, std::byte* arriving)
      : watch(algebra.watch()),
        algebra_(algebra),
        scores_(scores),
        weights_(reinterpret_cast<Column*>(weights) + Lanes::rank()),
        arriving_(reinterpret_cast<Piece<Real>*>(arriving) + Lanes::rank()),
        column_(part * share - Lanes::rank() * Shape::lag / stage * stage),
        shift_(Lanes::rank() * Shape::lag % stage + part * share) {
    const std::int64_t own_row = first_row + Lanes::rank() * rows;
    owned_ = scores.rows - own_row < rows ? static_cast<int>(scores.rows - own_row) : rows;
    from_ =
        scores.data + problem * scores.problem_stride + own_row * scores.row_stride + column_ * scores.column_stride;
    BELLMAN_UNROLL
    for (int n = 0; n < Shape::lead; ++n) ask();
  }

  /// Makes the weights of one stage.
  KOKKOS_FUNCTION void make() {
    Lanes::template wait_copies<Shape::lead - 1>();
    const Piece<Real>* const from = arriving_ + place_ * (rows * pieces * Shape::lanes);
    Piece<Real> scores[rows][pieces];
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      BELLMAN_UNROLL
      for (int p = 0; p < pieces; ++p) scores[r][p] = from[(r * pieces + p) * Shape::lanes];
    }
    Column* const here = weights_ + slot_ * (stage * Shape::lanes);
    slot_ = slot_ + 1 == Shape::held ? 0 : slot_ + 1;
    Column* const next = weights_ + slot_ * (stage * Shape::lanes);
    BELLMAN_UNROLL
    for (int c = 0; c < share; ++c) {
      Column column;
      BELLMAN_UNROLL
      for (int r = 0; r < rows; ++r) {
        column.cells[r] = static_cast<Cell>(algebra_.weight(scores[r][c / width].scores[c % width], watch));
      }
      const int place = c + shift_;
      *(place < stage ? here + place * Shape::lanes : next + (place - stage) * Shape::lanes) = column;
    }
    ask();
  }

 private:
  /// Asks for the scores of one more stage, in the place of those just read. What does not exist is 0, which leaves the watch
  /// as it is.
  KOKKOS_FUNCTION void ask() {
    Piece<Real>* const to = arriving_ + place_ * (rows * pieces * Shape::lanes);
    place_ = place_ + 1 == Shape::lead ? 0 : place_ + 1;
    if (scores_.has_pieces) {
      BELLMAN_UNROLL
      for (int r = 0; r < rows; ++r) {
        BELLMAN_UNROLL
        for (int p = 0; p < pieces; ++p) {
          const bool exists = r < owned_ && column_ >= 0 && column_ + p * width < scores_.columns;
          Lanes::copy_16_bytes_or_zeros(to + (r * pieces + p) * Shape::lanes,
                                        from_ + r * scores_.row_stride + p * width, exists);
        }
      }
    } else {
      BELLMAN_UNROLL
      for (int r = 0; r < rows; ++r) {
        BELLMAN_UNROLL
        for (int c = 0; c < share; ++c) {
          const bool exists = r < owned_ && column_ >= 0 && column_ + c < scores_.columns;
          Lanes::copy_or_zero(&to[(r * pieces + c / width) * Shape::lanes].scores[c % width],
                              from_ + r * scores_.row_stride + c * scores_.column_stride, exists);
        }
      }
    }
    Lanes::commit_copies();
    column_ += stage;
    from_ += stage * scores_.column_stride;
  }

  const Algebra algebra_;
  const PipelineScores<Real> scores_;
  const Real* from_;
  Column* weights_;
  Piece<Real>* arriving_;
  std::int64_t column_;
  int owned_, shift_, slot_ = 0, place_ = 0;
};

/// The thread that visits the cells of a strip.
template <class Shape, class Lanes, class Recurrence>
class StripVisitor {
  static constexpr int rows = Shape::rows_per_lane, stage = Shape::stage, lag = Shape::lag;
  using Cell = typename Recurrence::Cell;
  using Column = CellColumn<Cell, rows>;

  static constexpr int chains = 4;  // results of a row, so that comparisons need not wait for one another

 public:
  /// \param above  a ring of \p ring_columns, in which column 0 is at \p first_place
  /// \param below  a ring of Shape::held stages, unless the row goes to \p out or nowhere
  KOKKOS_FUNCTION StripVisitor(const Recurrence& recurrence, std::int64_t rows_left, std::int64_t columns,
                               const std::byte* weights, const Cell* above, int ring_columns, int first_place,
                               Cell* below, RowInMemory<Cell> out)
      : recurrence_(recurrence),
        columns_(columns),
        weights_(reinterpret_cast<const Column*>(weights) + Lanes::rank()),
        above_(above),
        below_(below),
        out_(out),
        ring_columns_(ring_columns),
        place_(first_place),
        corner_(recurrence.border()) {
    const std::int64_t own = rows_left - Lanes::rank() * rows;
    owned_ = own < rows ? static_cast<int>(own) : rows;
    BELLMAN_UNROLL
    for (int r = 0; r < rows; ++r) {
      left_[r] = recurrence.border();
      BELLMAN_UNROLL
      for (int k = 0; k < chains; ++k) results_[r][k] = recurrence.empty_result();
    }
    BELLMAN_UNROLL
    for (int k = 0; k < lag; ++k) coming_[k] = recurrence.border();
  }

  KOKKOS_FUNCTION void visit() {
    const std::int64_t first = now_ * stage;
    if (first >= Shape::last_lag && first + stage <= columns_) {
      visit<true>(first);
    } else {
      visit<false>(first);
    }
    ++now_;
  }

  KOKKOS_FUNCTION typename Recurrence::Result result() const {
    auto all = results_[0][0];
    BELLMAN_UNROLL
    for (int k = 1; k < rows * chains; ++k) all = recurrence_.join(all, results_[k / chains][k % chains]);
    return all;
  }

 private:
  template <bool is_inside>
  KOKKOS_FUNCTION void visit(std::int64_t first) {
    constexpr int turn = Shape::lag_stages * stage - Shape::last_lag;  // columns by which the last lane is early
    const bool is_first = Lanes::rank() == 0;
    const bool is_last = Lanes::rank() == Shape::lanes - 1;
    const Column* const weights = weights_ + slot_ * (stage * Shape::lanes);
    Cell* const here = below_ + slot_ * stage;
    slot_ = slot_ + 1 == Shape::held ? 0 : slot_ + 1;
    Cell* const next = below_ + slot_ * stage;
    // All that comes from memory before the first cell, all that goes there behind the last: no cell waits for either.
    Cell from_above[stage], bottom[stage];
    Column of_stage[stage];
    BELLMAN_UNROLL
    for (int c = 0; c < stage; ++c) {
      from_above[c] = above_[place_ + c];
      of_stage[c] = weights[c * Shape::lanes];
    }
    place_ = place_ + stage == ring_columns_ ? 0 : place_ + stage;
    const std::int64_t own_first = first - Lanes::rank() * lag;
    BELLMAN_UNROLL
    for (int c = 0; c < stage; ++c) {
      const bool is_here =
          is_inside || static_cast<std::uint64_t>(own_first + c) < static_cast<std::uint64_t>(columns_);
      Cell up = is_first ? from_above[c] : coming_[c % lag];
      Cell diagonal = corner_;
      corner_ = up;
      BELLMAN_UNROLL
      for (int r = 0; r < rows; ++r) {
        Cell cell = recurrence_.cell(diagonal, up, left_[r], of_stage[c].cells[r]);
        if (!is_inside) cell = is_here ? cell : recurrence_.border();
        auto& result = results_[r][c % chains];
        const auto with_cell = recurrence_.collect(result, cell);
        result = r < owned_ && is_here ? with_cell : result;
        diagonal = left_[r];
        left_[r] = cell;
        up = cell;
      }
      coming_[c % lag] = Lanes::from_previous(up);
      bottom[c] = up;
    }
    if (is_last && below_ != nullptr) {
      BELLMAN_UNROLL
      for (int c = 0; c < stage; ++c) *(c + turn < stage ? here + c + turn : next + (c + turn - stage)) = bottom[c];
    }
    if (is_last && out_.exists()) {
      BELLMAN_UNROLL
      for (int c = 0; c < stage; ++c) {
        const std::int64_t column = own_first + c;
        if (is_inside || (column >= 0 && column < columns_)) out_.write(column, bottom[c]);
      }
    }
  }

  const Recurrence recurrence_;
  std::int64_t columns_, now_ = 0;
  const Column* weights_;
  const Cell* above_;
  Cell* below_;
  RowInMemory<Cell> out_;
  int ring_columns_, place_, owned_, slot_ = 0;
  Cell left_[rows], coming_[lag], corner_;
  typename Recurrence::Result results_[rows][chains];
};

/// The thread that brings in the row above a block.
template <class Shape, class Thread, class Cell>
class RowBringer {
 public:
  KOKKOS_FUNCTION RowBringer(RowInMemory<Cell> from, std::int64_t columns, Cell border, Cell* ring)
      : from_(from), columns_(columns), ring_(ring) {
    if (!from.exists()) {
      for (int k = Thread::rank(); k < Shape::arriving; k += Thread::size) ring[k] = border;
      wanted_ = arrived_ = columns;
    } else {
      look();
    }
  }
  /// Waits until the next stage can be visited.
  KOKKOS_FUNCTION void bring() {
    if (!from_.exists()) return;
    wanted_ = wanted_ + Shape::stage < columns_ ? wanted_ + Shape::stage : columns_;
    while (arrived_ < wanted_) {
      const std::int64_t column = arrived_ + Thread::rank();
      const std::uint32_t there = Thread::ballot(RowInMemory<Cell>::has_arrived(seen_));
      // How many are there without one missing before them.
      const int count = there == 0xffffffffu ? 32 : Kokkos::countr_one(there);
      if (Thread::rank() < count) {
        ring_[column % Shape::arriving] = RowInMemory<Cell>::cell(seen_);
        from_.clear(column);
      }
      arrived_ += count;
      look();
    }
    look();  // an answer takes as long as a stage
  }

 private:
  KOKKOS_FUNCTION void look() {
    const std::int64_t column = arrived_ + Thread::rank();
    seen_ = column < columns_ ? from_.read(column) : 0;
  }
  RowInMemory<Cell> from_;
  std::int64_t columns_, wanted_ = 0, arrived_ = 0;
  Cell* ring_;
  decltype(from_.read(0)) seen_ = 0;
};

/// Visits the cells of one block of a problem. To be called by all threads of a team of Shape::threads.
///
/// \param scratch  Shape::bytes<Cell, Real>, aligned to 16 bytes
/// \param in, out  the row above the block, and the last one of it
/// \param finish   finish(result, watch), called by each thread with what it found
template <class Thread, class Shape, class Team, class Recurrence, class Real, class Finish>
KOKKOS_FUNCTION void sweep_block(const Team& team, const Recurrence recurrence, const PipelineScores<Real> scores,
                                 std::int64_t problem, std::int64_t first_row, std::byte* scratch,
                                 RowInMemory<typename Recurrence::Cell> in, RowInMemory<typename Recurrence::Cell> out,
                                 const Finish& finish) {
  using Cell = typename Recurrence::Cell;
  using Algebra = std::decay_t<decltype(recurrence.algebra)>;
  constexpr std::size_t weights_bytes = Shape::template weights_bytes<Cell>;
  const std::int64_t rows_left = scores.rows - first_row;
  const int strips = rows_left >= Shape::block_rows
                         ? Shape::strips
                         : static_cast<int>((rows_left + Shape::strip_rows - 1) / Shape::strip_rows);
  const auto stages_of_strip = Shape::stages_of_strip(scores.columns);
  const std::int64_t stages = stages_of_strip + (strips - 1) * Shape::strip_delay + 1;
  std::byte* const arriving_scores = scratch + Shape::strips * weights_bytes;
  auto* const rows_between =
      reinterpret_cast<Cell*>(arriving_scores + Shape::strips * Shape::makers * Shape::template arriving_bytes<Real>);
  Cell* const arriving = rows_between + (Shape::strips - 1) * Shape::held * Shape::stage;
  const int role = team.team_rank();
  const int strip = role % Shape::strips;
  const std::int64_t strip_row = first_row + strip * Shape::strip_rows;
  std::int64_t delay = strip * Shape::strip_delay;
  if (role == Shape::threads - 1) {
    RowBringer<Shape, Thread, Cell> bringer(in, scores.columns, recurrence.border(), arriving);
    for (std::int64_t n = 0; n < stages; ++n) {
      bringer.bring();
      team.team_barrier();
    }
    finish(recurrence.empty_result(), recurrence.algebra.watch());
  } else if (role >= Shape::strips) {
    WeightMaker<Shape, Thread, Cell, Algebra, Real> maker(
        recurrence.algebra, scores, problem, strip_row, role / Shape::strips - 1, scratch + strip * weights_bytes,
        arriving_scores + (role - Shape::strips) * Shape::template arriving_bytes<Real>);
    for (std::int64_t n = 0; n < stages; ++n) {
      if (n >= delay) maker.make();
      team.team_barrier();
    }
    Thread::template wait_copies<0>();
    finish(recurrence.empty_result(), maker.watch);
  } else {
    ++delay;
    const bool is_last_strip = strip == strips - 1;
    StripVisitor<Shape, Thread, Recurrence> visitor(
        recurrence, scores.rows - strip_row, scores.columns, scratch + strip * weights_bytes,
        strip == 0 ? arriving : rows_between + (strip - 1) * Shape::held * Shape::stage,
        strip == 0 ? Shape::arriving : Shape::held * Shape::stage,
        strip == 0 ? 0 : Shape::lag_stages % Shape::held * Shape::stage,
        strip + 1 < strips ? rows_between + strip * Shape::held * Shape::stage : nullptr,
        is_last_strip ? out : RowInMemory<Cell>(nullptr));
    for (std::int64_t n = 0; n < stages; ++n) {
      if (strip < strips && n >= delay && n - delay < stages_of_strip) visitor.visit();
      team.team_barrier();
    }
    finish(visitor.result(), recurrence.algebra.watch());
  }
}

}  // namespace bellman::impl

#endif
