// SPDX-License-Identifier: Apache-2.0

/// \file
/// Hidden Markov models of many states on GPUs. Up to most_states_of_a_tile states, a team owns some sequences and all their
/// states, step after step (HmmTileTeam). Beyond, each step is a launch (HmmStepTeam), from both ends of the chain at once.

#include "hmm_state_tiles.hpp"

#include <algorithm>
#include <bellman/accuracy.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/hmm_padded_model.hpp>
#include <bellman/impl/hmm_tile_sizes.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/state_tile.hpp>

#include "hmm_tensor_sweep.hpp"
#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// A thread of lanes normalises one row.
template <class ExecutionSpace, class Real>
struct HmmNormalisePadded {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  HmmParameters<ExecutionSpace, Real> parameters;
  HmmTables<double> tables;
  PaddedModel<Real> model;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION std::int64_t rows() const { return model.rows() + model.stride - model.states; }
  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t row = (first_problem + team.league_rank()) * team.team_size() + team.team_rank();
    if (row < rows()) fill_padded_row<LaneGroup<ExecutionSpace>>(parameters, tables, model, row);
  }
};

/// A team owns tile_sequences sequences and all their states; a thread owns a tile of rows (sequences) x columns (states) in
/// registers. The vectors of the sequences lie in team scratch, (state, sequence). Two barriers a step.
template <class ExecutionSpace, class Real, int rows, int columns, bool weights_in_scratch>
struct HmmTileTeam {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Arithmetic = TileArithmetic<Real>;
  PaddedModel<Real> model;
  HmmSequences sequences;
  TileResults<ExecutionSpace, Real> results;
  int tile_sequences;
  std::size_t scratch_bytes;
  std::int64_t first_problem = 0;

  /// What the threads of a team share.
  struct Scratch {
    std::int64_t* longest;    ///< of the sequences
    std::int64_t* shortest;   ///< of those that have a result here
    int* flags;               ///< of the model
    std::int64_t* lengths;    ///< 0 for a sequence that has no result here
    std::int64_t* exponents;  ///< of the scale of a sequence
    Real* vectors;            ///< (state, sequence), padded
    Real* weights;            ///< the transitions, if they are in scratch
    int* peaks;               ///< exponent of the largest element of a sequence
    int* lost;                ///< a sequence that is not certified
    int* low;                 ///< a sequence whose products may underflow
    int* symbols;             ///< (step, sequence): rows of the emissions

    KOKKOS_FUNCTION Scratch(std::byte* memory, std::int64_t stride, int sequences, int pitch) {
      longest = reinterpret_cast<std::int64_t*>(memory);
      shortest = longest + 1;
      flags = reinterpret_cast<int*>(longest + 2);
      lengths = longest + 4;
      exponents = lengths + sequences;
      vectors = reinterpret_cast<Real*>(exponents + sequences);
      weights = vectors + stride * pitch;
      peaks = reinterpret_cast<int*>(weights + (weights_in_scratch ? stride * stride : 0));
      lost = peaks + sequences;
      low = lost + sequences;
      symbols = low + sequences;
    }
  };

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const int rank = team.team_rank();
    const int threads = team.team_size();
    const int stride = static_cast<int>(model.stride);
    const Scratch scratch(aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes)), stride, tile_sequences,
                          pitch());
    const std::int64_t first = (first_problem + team.league_rank()) * tile_sequences;
    prepare(team, scratch, first);
    if ((*scratch.flags & ~row_is_wide) != row_is_fine) {
      for (int k = rank; k < tile_sequences && first + k < sequences.batch(); k += threads) {
        results.write(first + k, {});
      }
      return;
    }

    const int across = stride / columns;
    const int column_member = rank % across;
    const int row_member = rank / across;
    const std::int64_t longest = *scratch.longest;
    const std::int64_t shortest = *scratch.shortest;
    for (std::int64_t t = 0; t < longest; ++t) {
      if (t % staged_symbols == 0) {
        fetch_symbols(team, scratch, first, t);
        team.team_barrier();  // the symbols are there
      }
      Real sums[rows][columns];
      if (t == 0) {
        Real start[columns];
        load_pieces(model.init, column_member, stride, start);
        BELLMAN_UNROLL
        for (int i = 0; i < rows; ++i) {
          BELLMAN_UNROLL
          for (int j = 0; j < columns; ++j) sums[i][j] = start[j];
        }
      } else {
        multiply(scratch, row_member, column_member, sums);
      }
      const bool rescales = t % Arithmetic::rescale_period == 0 && t > 0;
      if (t < shortest && !rescales) {
        finish_step<true, false>(team, scratch, row_member, column_member, t, sums);
      } else if (t < shortest) {
        finish_step<true, true>(team, scratch, row_member, column_member, t, sums);
      } else if (!rescales) {
        finish_step<false, false>(team, scratch, row_member, column_member, t, sums);
      } else {
        finish_step<false, true>(team, scratch, row_member, column_member, t, sums);
      }
    }

    for (int k = rank; k < tile_sequences && first + k < sequences.batch(); k += threads) {
      results.write(first + k, finish(scratch, k));
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void prepare(const Team& team, const Scratch& scratch, std::int64_t first) const {
    if (team.team_rank() == 0) {
      *scratch.longest = *scratch.flags = 0;
      *scratch.shortest = INT64_MAX;
    }
    team.team_barrier();  // these are clear
    if constexpr (weights_in_scratch) {
      constexpr int piece = 16 / sizeof(Real);
      using Pieces = StateChunk<Real, piece>;
      const auto count = static_cast<int>(model.stride * model.stride) / piece;
      for (int n = team.team_rank(); n < count; n += team.team_size()) {
        reinterpret_cast<Pieces*>(scratch.weights)[n] = reinterpret_cast<const Pieces*>(model.trans)[n];
      }
    }
    std::uint32_t flags = row_is_fine;
    for (std::int64_t row = team.team_rank(); row < model.rows(); row += team.team_size()) flags |= model.flags[row];
    if (flags != row_is_fine) Kokkos::atomic_or(scratch.flags, static_cast<int>(flags));
    for (int k = team.team_rank(); k < tile_sequences; k += team.team_size()) {
      const std::int64_t length = first + k < sequences.batch() ? sequences.length(first + k) : 0;
      const bool is_real = length > 0 && length <= sequences.steps();
      scratch.lengths[k] = is_real ? length : 0;
      scratch.exponents[k] = 0;
      scratch.peaks[k] = Arithmetic::no_peak;
      scratch.lost[k] = is_real ? 0 : 1;
      if (is_real) {
        Kokkos::atomic_max(scratch.longest, length);
        Kokkos::atomic_min(scratch.shortest, length);
      }
    }
    team.team_barrier();  // the flags are complete
    for (int k = team.team_rank(); k < tile_sequences; k += team.team_size()) {
      scratch.low[k] = (*scratch.flags & row_is_wide) != 0 ? 1 : 0;
    }
    team.team_barrier();  // the scratch is complete
  }

  /// Rows of the emissions for the next steps. A thread fetches them all for a sequence.
  KOKKOS_FORCEINLINE_FUNCTION void fetch_symbols(const Team& team, const Scratch& scratch, std::int64_t first,
                                                 std::int64_t t) const {
    const IntegerView<2>& all = sequences.symbols;
    for (int k = team.team_rank(); k < tile_sequences; k += team.team_size()) {
      const std::int64_t length = scratch.lengths[k];
      std::int64_t offsets[staged_symbols] = {};
      std::int64_t symbols[staged_symbols] = {};
      if (t < length) {
        for (int step = 0; step < staged_symbols; ++step) {
          const std::int64_t time = t + step < length ? t + step : length - 1;
          offsets[step] = (first + k) * all.strides[0] + time * all.strides[1];
        }
        all.read(offsets, symbols);
      }
      for (int step = 0; step < staged_symbols; ++step) {
        const bool is_bad = symbols[step] >= model.symbols;
        if (is_bad && t < length) scratch.lost[k] = 1;
        scratch.symbols[step * tile_sequences + k] =
            static_cast<int>(is_bad ? model.symbols : model.emission_row(symbols[step]));
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION int pitch() const { return rows == 1 ? 1 : tile_pitch(sizeof(Real), tile_sequences); }

  /// sums = vectors times transitions. Operands are read ahead; what is read beyond the last state is not used.
  KOKKOS_FORCEINLINE_FUNCTION void multiply(const Scratch& scratch, int row_member, int column_member,
                                            Real (&sums)[rows][columns]) const {
    const int stride = static_cast<int>(model.stride);
    const Real* vectors = scratch.vectors;
    const Real* weights = weights_in_scratch ? scratch.weights : model.trans;
    // A single sequence waits for its reads alone, so that more of them have to overlap.
    constexpr int ring = rows == 1 ? 8 : 2;
    constexpr int ahead = ring - 1;
    Real a[ring][rows];
    Real b[ring][columns];
    BELLMAN_UNROLL
    for (int u = 0; u < ahead; ++u) {
      load_pieces(vectors + u * pitch(), row_member, tile_sequences, a[u]);
      load_pieces(weights + u * stride, column_member, stride, b[u]);
    }
    vectors += ahead * pitch();
    weights += ahead * stride;
    BELLMAN_UNROLL
    for (int i = 0; i < rows; ++i) {
      BELLMAN_UNROLL
      for (int j = 0; j < columns; ++j) sums[i][j] = 0;
    }
    constexpr int unrolled = 8;  // divides the stride
    for (int begin = 0; begin < stride; begin += Arithmetic::longest_sum) {
      const int end = begin + Arithmetic::longest_sum < stride ? begin + Arithmetic::longest_sum : stride;
      Real part[rows][columns] = {};
      for (int from = begin; from < end; from += unrolled) {
        BELLMAN_UNROLL
        for (int u = 0; u < unrolled; ++u) {
          load_pieces(vectors, row_member, tile_sequences, a[(u + ahead) % ring]);
          load_pieces(weights, column_member, stride, b[(u + ahead) % ring]);
          vectors += pitch();
          weights += stride;
          add_products(a[u % ring], b[u % ring], part);
        }
      }
      BELLMAN_UNROLL
      for (int i = 0; i < rows; ++i) {
        BELLMAN_UNROLL
        for (int j = 0; j < columns; ++j) sums[i][j] += part[i][j];
      }
    }
  }

  /// Emits the symbols, tests what the step may have lost, and stores the vectors.
  ///
  /// \tparam all_alive  no sequence has ended; ended ones keep their last vector
  template <bool all_alive, bool rescales>
  KOKKOS_FORCEINLINE_FUNCTION void finish_step(const Team& team, const Scratch& scratch, int row_member,
                                               int column_member, std::int64_t t, Real (&sums)[rows][columns]) const {
    const int stride = static_cast<int>(model.stride);
    const int* const symbols = scratch.symbols + static_cast<int>(t % staged_symbols) * tile_sequences;
    unsigned alive = ~0u;
    BELLMAN_UNROLL
    for (int i = 0; i < rows; ++i) {
      const int k = place_in_tile<Real, rows>(row_member, i, tile_sequences);
      bool is_alive = true;
      if constexpr (!all_alive) {
        is_alive = t < scratch.lengths[k];
        alive &= is_alive ? ~0u : ~(1u << i);
      }
      Real emission[columns];
      load_pieces(model.emit + symbols[k] * model.stride, column_member, stride, emission);
      Real lowest = infinity<Real>();
      Real values[columns];
      BELLMAN_UNROLL
      for (int j = 0; j < columns; ++j) {
        lowest = Kokkos::fmin(lowest, sums[i][j]);
        values[j] = sums[i][j] * emission[j];
      }
      if constexpr (rescales) {
        const int shift = Arithmetic::shift_of(scratch.peaks[k]);
        BELLMAN_UNROLL
        for (int j = 0; j < columns; ++j) values[j] *= power_of_two<Real>(-shift);
        if (is_alive && column_member == 0) scratch.exponents[k] += shift;
      }
      Real lowest_value = infinity<Real>();
      BELLMAN_UNROLL
      for (int j = 0; j < columns; ++j) lowest_value = Kokkos::fmin(lowest_value, values[j]);
      if (is_alive && Kokkos::fmin(lowest, lowest_value) < Arithmetic::low_value()) {
        test(scratch, k, column_member, t, sums[i], emission, values);
      }
      BELLMAN_UNROLL
      for (int j = 0; j < columns; ++j) sums[i][j] = values[j];
    }
    // Noted where the next step rescales, cleared where the last one has.
    if (t % Arithmetic::rescale_period == 1 && column_member == 0) {
      BELLMAN_UNROLL
      for (int i = 0; i < rows; ++i) {
        scratch.peaks[place_in_tile<Real, rows>(row_member, i, tile_sequences)] = Arithmetic::no_peak;
      }
    }
    team.team_barrier();  // everybody has read the vectors of the step before
    BELLMAN_UNROLL
    for (int j = 0; j < columns; ++j) {
      const int state = place_in_tile<Real, columns>(column_member, j, stride);
      Real* const vector = scratch.vectors + state * pitch();
      constexpr int piece = piece_size<Real, rows>;
      BELLMAN_UNROLL
      for (int i = 0; i < rows; i += piece) {
        Real* const to = vector + place_in_tile<Real, rows>(row_member, i, tile_sequences);
        if constexpr (all_alive) {
          StateChunk<Real, piece> stored;
          BELLMAN_UNROLL
          for (int r = 0; r < piece; ++r) stored.value[r] = sums[i + r][j];
          *reinterpret_cast<StateChunk<Real, piece>*>(to) = stored;
        } else {
          BELLMAN_UNROLL
          for (int r = 0; r < piece; ++r) {
            if (alive >> (i + r) & 1u) to[r] = sums[i + r][j];
          }
        }
      }
    }
    if (t % Arithmetic::rescale_period == Arithmetic::rescale_period - 1) {
      BELLMAN_UNROLL
      for (int i = 0; i < rows; ++i) {
        Real highest = 0;
        BELLMAN_UNROLL
        for (int j = 0; j < columns; ++j) highest = Kokkos::fmax(highest, sums[i][j]);
        if (alive >> i & 1u) {
          Kokkos::atomic_max(scratch.peaks + place_in_tile<Real, rows>(row_member, i, tile_sequences),
                             exponent_of(highest));
        }
      }
    }
    team.team_barrier();  // the vectors and peaks of this step are complete
  }

  /// Of a row with small elements: whether all the same nothing was lost.
  KOKKOS_FORCEINLINE_FUNCTION void test(const Scratch& scratch, int k, int column_member, std::int64_t t,
                                        const Real (&sums)[columns], const Real (&emission)[columns],
                                        const Real (&values)[columns]) const {
    const Real lowest_sum = t == 0 ? Real(0) : Arithmetic::lowest_sum(model.states);
    unsigned zeros = 0;
    bool kept = true;
    bool is_low = false;
    BELLMAN_UNROLL
    for (int j = 0; j < columns; ++j) {
      if (emission[j] == 0) continue;
      if (sums[j] == 0) {
        zeros |= 1u << j;
      } else {
        is_low = is_low || values[j] < Arithmetic::low_value();
        kept = kept && sums[j] >= lowest_sum && values[j] >= Arithmetic::lowest_value();
      }
    }
    if (t > 0 && zeros != 0 && scratch.low[k] != 0) {
      for (int j = 0; j < columns; ++j) {
        const int state = place_in_tile<Real, columns>(column_member, j, static_cast<int>(model.stride));
        if ((zeros >> j & 1u) && !Arithmetic::is_structural_zero(scratch.vectors + k, pitch(), model.trans + state,
                                                                 model.stride, model.states)) {
          kept = false;
        }
      }
    }
    if (is_low) scratch.low[k] = 1;
    if (!kept) scratch.lost[k] = 1;
  }

  KOKKOS_FORCEINLINE_FUNCTION Judgement finish(const Scratch& scratch, int k) const {
    if (scratch.lost[k] != 0) return {};
    double total = 0;
    for (int j = 0; j < static_cast<int>(model.states); ++j) {
      total += static_cast<double>(scratch.vectors[j * pitch() + k]);
    }
    // A sum in parts, their sum, and the roundings of trans, emit and their product.
    const std::int64_t parts = (model.states + Arithmetic::longest_sum - 1) / Arithmetic::longest_sum;
    const auto roundings = static_cast<double>(Arithmetic::longest_sum + parts - 1 + 3);
    return Arithmetic::finish(total, scratch.exponents[k], scratch.lengths[k], roundings,
                              log_likelihood_tolerance<Real>);
  }
};

/// The vectors of a chunk of sequences, in the workspace; direction 0 goes forward, 1 backward. Small, as a part of functors:
/// Kokkos passes large ones in another way, which graphs do not take.
template <class Real>
struct StepMemory {
  std::byte* memory;
  std::int64_t stride;
  std::int64_t capacity;  ///< sequences

  /// (state, sequence); steps of one parity share a vector
  KOKKOS_FUNCTION Real* vectors(int direction, std::int64_t step) const {
    return reinterpret_cast<Real*>(memory) + (2 * direction + step % 2) * stride * capacity;
  }
  /// Steps of each sequence, 0 for one that has no result here.
  KOKKOS_FUNCTION std::int64_t* steps(int direction) const {
    return reinterpret_cast<std::int64_t*>(vectors(2, 0)) + direction * capacity;
  }
  /// Exponent of the scale of each sequence.
  KOKKOS_FUNCTION std::int64_t* exponents(int direction) const { return steps(2 + direction); }
  /// Exponent of the largest element of each sequence.
  KOKKOS_FUNCTION int* peaks(int direction, std::int64_t step) const {
    return reinterpret_cast<int*>(steps(4)) + (3 * direction + step % 3) * capacity;
  }
  /// Row of the emissions of each sequence in a step, or -1 if it has ended.
  KOKKOS_FUNCTION int* rows(int direction, std::int64_t step) const {
    return peaks(2, 0) + (2 * direction + step % 2) * capacity;
  }
  /// Sequences that are not certified.
  KOKKOS_FUNCTION int* lost() const { return rows(2, 0); }
  /// Sequences whose products may underflow.
  KOKKOS_FUNCTION int* low() const { return lost() + capacity; }

  KOKKOS_FUNCTION std::int64_t length(std::int64_t k) const { return steps(0)[k] + steps(1)[k]; }
};

/// What the kernels of the sweep by steps share.
template <class ExecutionSpace, class Real>
struct HmmSteps {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Lanes = LaneGroup<ExecutionSpace>;
  using Arithmetic = TileArithmetic<Real>;
  PaddedModel<Real> model;
  HmmSequences sequences;
  StepMemory<Real> memory;
  std::int64_t first_sequence;  ///< of the chunk
  std::int64_t chunk_sequences;
  std::int64_t first_problem = 0;

  /// The row of the emissions in a step, or -1 if the sequence has ended; a symbol out of range ends the certificate.
  KOKKOS_FUNCTION int row_of(int direction, std::int64_t k, std::int64_t step, std::int64_t length) const {
    const std::int64_t steps = direction == 0 ? (length + 1) / 2 : length / 2;
    if (step >= steps) return -1;
    const std::int64_t symbol = sequences.symbols(first_sequence + k, direction == 0 ? step : length - 1 - step);
    if (symbol < model.symbols) return static_cast<int>(model.emission_row(symbol));
    memory.lost()[k] = 1;
    return static_cast<int>(model.symbols);
  }
};

/// A team makes the first vector of one sequence in one direction.
template <class ExecutionSpace, class Real>
struct HmmFirstStep : HmmSteps<ExecutionSpace, Real> {
  using Base = HmmSteps<ExecutionSpace, Real>;
  using Arithmetic = typename Base::Arithmetic;
  std::size_t scratch_bytes;

  KOKKOS_FUNCTION void operator()(const typename Base::Team& team) const {
    const auto& model = this->model;
    const auto& memory = this->memory;
    const std::int64_t k = team.league_rank() / 2;
    const int direction = team.league_rank() % 2;
    const std::int64_t sequence = this->first_sequence + k;
    const bool is_there = k < this->chunk_sequences;
    const std::int64_t length = is_there ? this->sequences.length(sequence) : 0;
    const bool is_real = length > 0 && length <= this->sequences.steps();
    const std::int64_t steps = !is_real ? 0 : direction == 0 ? (length + 1) / 2 : length / 2;
    int* const peak = reinterpret_cast<int*>(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    if (team.team_rank() == 0) *peak = Arithmetic::no_peak;
    team.team_barrier();  // the peak is clear

    const int row = this->row_of(direction, k, 0, is_real ? length : 0);
    bool is_lost = !is_real;
    bool is_low = false;
    for (std::int64_t r = team.team_rank(); r < model.rows(); r += team.team_size()) {
      is_low = is_low || (model.flags[r] & row_is_wide) != 0;
    }
    int highest = Arithmetic::no_peak;
    for (std::int64_t state = team.team_rank(); state < model.stride; state += team.team_size()) {
      const Real start = direction == 0 ? model.init[state] : Real(1);
      const Real emission = model.emit[(row < 0 ? model.symbols : row) * model.stride + state];
      const Real value = start * emission;
      is_lost = is_lost || !(start == 0 || emission == 0 || value >= Arithmetic::lowest_value());
      is_low = is_low || (value != 0 && value < Arithmetic::low_value());
      memory.vectors(direction, 0)[state * memory.capacity + k] = value;
      highest = exponent_of(value) > highest ? exponent_of(value) : highest;
    }
    Kokkos::atomic_max(peak, highest);
    // Both directions may say so; the forward one clears the flag in the launch before.
    if (is_lost) memory.lost()[k] = 1;
    if (is_low) memory.low()[k] = 1;
    team.team_barrier();  // the peak is complete
    if (team.team_rank() == 0) {
      memory.steps(direction)[k] = steps;
      memory.exponents(direction)[k] = 0;
      memory.peaks(direction, 0)[k] = *peak;
      memory.peaks(direction, 1)[k] = Arithmetic::no_peak;
      memory.rows(direction, 1)[k] = this->row_of(direction, k, 1, is_real ? length : 0);
    }
  }
};

/// A team takes step_tile sequences to step_tile states, one step on. Its warps share the states that lead there: groups of
/// lanes own a tile of all outputs each, in registers, over states of their own, which they copy into scratch ahead; then
/// the team adds up the tiles of all groups.
template <class ExecutionSpace, class Real>
struct HmmStepTeam : HmmSteps<ExecutionSpace, Real> {
  using Base = HmmSteps<ExecutionSpace, Real>;
  using Arithmetic = typename Base::Arithmetic;
  using Lanes = typename Base::Lanes;
  std::int64_t step;
  bool is_join;  ///< the transition between the two directions: forward only, nothing emitted
  std::size_t scratch_bytes;

  static constexpr int rows = 8;
  static constexpr int columns = is_float<Real> ? 8 : 4;
  static constexpr int column_members = step_tile / columns;
  static constexpr int members = step_tile / rows * column_members;  ///< lanes of a group
  static constexpr int groups_of_warp = 32 / members;
  static constexpr int groups = groups_of_warp * step_warps;
  static constexpr int stages = 4;
  static constexpr int piece = 16 / sizeof(Real);
  static constexpr int kept_rows = rows / groups_of_warp;  ///< rows that a lane holds once its warp has added up
  static constexpr int rounds = kept_rows / 2;             ///< the partial sums go through scratch in so many rounds
  static constexpr int round_rows = step_tile / rounds;    ///< sequences of a round
  static_assert(sizeof(Real) * step_warps * round_rows * step_tile == step_scratch);
  static_assert(sizeof(Real) * step_warps * stages * groups_of_warp * 2 * step_tile == step_scratch);
  static_assert(2 * step_tile / piece == members);  // a lane copies one piece of a state

  KOKKOS_FUNCTION void operator()(const typename Base::Team& team) const {
    const auto& model = this->model;
    const auto& memory = this->memory;
    const std::int64_t capacity = memory.capacity;
    const int column_tiles = static_cast<int>(model.stride / step_tile);
    const int directions = is_join ? 1 : 2;
    const int thread = team.team_rank() * Lanes::size + Lanes::rank();
    // The first teams prepare the next step of a tile of sequences, the others own a tile of outputs.
    const int tiles = team.league_size() / (column_tiles + 1);  // of sequences, in all directions
    const int tile = team.league_rank() % tiles;
    const int direction = tile % directions;
    const std::int64_t first = std::int64_t{tile / directions} * step_tile;
    if (team.league_rank() < tiles) {
      if (thread < step_tile) prepare_next_step(direction, first + thread);
      return;
    }
    const int column_tile = team.league_rank() / tiles - 1;
    const std::int64_t first_column = std::int64_t{column_tile} * step_tile;
    const Real* const previous = memory.vectors(direction, step + 1);
    Real* const next = memory.vectors(direction, step);
    std::byte* const scratch = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    int* const peaks = reinterpret_cast<int*>(scratch + step_scratch);
    if (thread < step_tile) peaks[thread] = Arithmetic::no_peak;

    // The outputs of this thread, one a round. What they need is read while the first copies are under way.
    const bool has_outputs = thread < round_rows * step_tile;
    const int output_row = thread % round_rows;
    const std::int64_t state = first_column + thread / round_rows;
    int emission_rows[rounds];
    int shifts[rounds];
    Real totals[rounds] = {};
    const auto read_outputs = [&] {
      if (!has_outputs) return;
      BELLMAN_UNROLL
      for (int round = 0; round < rounds; ++round) {
        const std::int64_t k = first + sequence_of(output_row, round);
        emission_rows[round] = row_in_step(direction, k);
        shifts[round] = memory.peaks(direction, step + 2)[k];
      }
    };

    const Real* const weights = direction == 0 ? model.trans : model.transposed;
    constexpr std::int64_t block = std::int64_t{groups} * Arithmetic::longest_sum;
    Real emissions[rounds];
    for (std::int64_t begin = 0; begin < model.stride; begin += block) {
      const std::int64_t states = model.stride - begin < block ? model.stride - begin : block;
      Real sums[rows][columns] = {};
      multiply(team.team_rank(), scratch, previous + begin * capacity + first,
               weights + begin * model.stride + first_column, static_cast<int>(states / groups), sums, [&] {
                 if (begin == 0) read_outputs();
               });
      if (begin == 0 && has_outputs) {
        BELLMAN_UNROLL
        for (int round = 0; round < rounds; ++round) {
          const int row = emission_rows[round];
          emissions[round] = row < 0 ? Real(1) : model.emit[row * model.stride + state];
        }
      }
      add_up(team, reinterpret_cast<Real*>(scratch), sums, totals);
    }

    BELLMAN_UNROLL
    for (int round = 0; round < rounds; ++round) {
      if (!has_outputs) continue;
      const int row = sequence_of(output_row, round);
      const std::int64_t k = first + row;
      Real value;
      if (emission_rows[round] >= 0) {
        const Real sum = totals[round];
        const Real emission = emissions[round];
        value = sum * emission * power_of_two<Real>(-Arithmetic::shift_of(shifts[round]));
        if (emission != 0 && Kokkos::fmin(sum, value) < Arithmetic::low_value()) {
          bool is_kept = true;
          if (sum != 0) {
            is_kept = sum >= Arithmetic::lowest_sum(model.states) && value >= Arithmetic::lowest_value();
            if (value < Arithmetic::low_value()) memory.low()[k] = 1;
          } else if (memory.low()[k] != 0) {
            is_kept =
                Arithmetic::is_structural_zero(previous + k, capacity, weights + state, model.stride, model.states);
          }
          if (!is_kept) memory.lost()[k] = 1;
        }
      } else {
        value = previous[state * capacity + k];
      }
      next[state * capacity + k] = value;
      Kokkos::atomic_max(peaks + row, exponent_of(value));
    }
    team.team_barrier();  // the peaks of this tile are there
    if (thread < step_tile) Kokkos::atomic_max(memory.peaks(direction, step) + first + thread, peaks[thread]);
  }

 private:
  /// The row of the emissions, that of a missing symbol in the join, or -1 for a sequence that has ended.
  KOKKOS_FORCEINLINE_FUNCTION int row_in_step(int direction, std::int64_t k) const {
    if (!is_join) return this->memory.rows(direction, step)[k];
    return this->memory.length(k) > 1 ? static_cast<int>(this->model.symbols) : -1;
  }

  KOKKOS_FORCEINLINE_FUNCTION void prepare_next_step(int direction, std::int64_t k) const {
    const auto& memory = this->memory;
    if (row_in_step(direction, k) >= 0) {
      memory.exponents(direction)[k] += Arithmetic::shift_of(memory.peaks(direction, step + 2)[k]);
    }
    if (is_join) return;
    memory.peaks(direction, step + 1)[k] = Arithmetic::no_peak;
    memory.rows(direction, step + 1)[k] = this->row_of(direction, k, step + 1, memory.length(k));
  }

  /// The sequence, in the tile, of a row of the partial sums of a round.
  KOKKOS_FORCEINLINE_FUNCTION static int sequence_of(int row, int round) {
    constexpr int row_members = step_tile / rows;
    const int row_member = row % row_members;
    const int half = row / row_members % groups_of_warp;
    const int i = half * kept_rows + 2 * round + row / (row_members * groups_of_warp);
    return place_in_tile<Real, rows>(row_member, i, step_tile);
  }

  /// Where the piece of a column lies in a row of partial sums: neighbouring rows do not share banks.
  KOKKOS_FORCEINLINE_FUNCTION static int partial_place(int row, int column) {
    const int swizzle = (row & 1) << 2 | (row & 2) | (row >> 2 & 1);
    return row * step_tile + ((column / piece) ^ swizzle) * piece + column % piece;
  }

  /// sums += vectors times weights over the states of this group. Each group copies the elements of its states, some
  /// states ahead, into scratch of its own.
  ///
  /// \param meanwhile  is called once the first copies are under way
  template <class Meanwhile>
  KOKKOS_FORCEINLINE_FUNCTION void multiply(int warp, std::byte* scratch, const Real* vectors, const Real* weights,
                                            int states, Real (&sums)[rows][columns], const Meanwhile& meanwhile) const {
    const int group_in_warp = Lanes::rank() / members;
    const int member = Lanes::rank() % members;
    const std::int64_t first = std::int64_t{warp * groups_of_warp + group_in_warp} * states;
    constexpr int stage_size = groups_of_warp * 2 * step_tile;
    Real* const own = reinterpret_cast<Real*>(scratch) + warp * stages * stage_size + group_in_warp * 2 * step_tile;
    // This lane copies a piece of the vectors or of the weights.
    const bool copies_weights = member >= members / 2;
    const std::int64_t stride = copies_weights ? this->model.stride : this->memory.capacity;
    const Real* from = (copies_weights ? weights : vectors) + first * stride + member % (members / 2) * piece;
    Real* const to = own + member * piece;
    int copied = 0;
    const auto copy_next = [&](int stage) {
      if (copied < states) Lanes::copy_16_bytes_or_zeros(to + stage * stage_size, from, true);
      Lanes::commit_copies();
      from += stride;
      ++copied;
    };
    BELLMAN_UNROLL
    for (int stage = 0; stage < stages - 1; ++stage) copy_next(stage);
    meanwhile();
    for (int begin = 0; begin < states; begin += stages) {
      BELLMAN_UNROLL
      for (int stage = 0; stage < stages; ++stage) {
        if (begin + stage < states) {
          Lanes::template wait_copies<stages - 2>();
          Lanes::sync();  // this state is there, and nobody reads that of the state before any more
          copy_next((stage + stages - 1) % stages);
          const Real* const here = own + stage * stage_size;
          Real a[rows];
          Real b[columns];
          load_pieces(here, member / column_members, step_tile, a);
          load_pieces(here + step_tile, member % column_members, step_tile, b);
          add_products(a, b, sums);
        }
      }
    }
  }

  /// totals += the sums of all groups, first of those in a warp, then pairwise over the warps.
  KOKKOS_FORCEINLINE_FUNCTION void add_up(const typename Base::Team& team, Real* partial,
                                          const Real (&sums)[rows][columns], Real (&totals)[rounds]) const {
    const int lane = Lanes::rank();
    const int member = lane % members;
    const int half = lane / members;
    Real kept[kept_rows][columns];
    BELLMAN_UNROLL
    for (int i = 0; i < kept_rows; ++i) {
      BELLMAN_UNROLL
      for (int j = 0; j < columns; ++j) {
        if constexpr (groups_of_warp == 2) {
          const Real own = half == 0 ? sums[i][j] : sums[i + kept_rows][j];
          const Real other = half == 0 ? sums[i + kept_rows][j] : sums[i][j];
          kept[i][j] = own + Lanes::from_lane(other, lane ^ members);
        } else {
          kept[i][j] = sums[i][j];
        }
      }
    }
    const int thread = team.team_rank() * Lanes::size + lane;
    constexpr int round_size = round_rows * step_tile;
    constexpr int row_members = step_tile / rows;
    BELLMAN_UNROLL
    for (int round = 0; round < rounds; ++round) {
      team.team_barrier();  // the scratch is free
      BELLMAN_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int row = member / column_members + row_members * (half + groups_of_warp * i);
        BELLMAN_UNROLL
        for (int j = 0; j < columns; j += piece) {
          StateChunk<Real, piece> stored;
          BELLMAN_UNROLL
          for (int c = 0; c < piece; ++c) stored.value[c] = kept[2 * round + i][j + c];
          const int column = place_in_tile<Real, columns>(member % column_members, j, step_tile);
          *reinterpret_cast<StateChunk<Real, piece>*>(partial + team.team_rank() * round_size +
                                                      partial_place(row, column)) = stored;
        }
      }
      team.team_barrier();  // the partial sums of all warps are there
      if (thread < round_size) {
        const Real* const mine = partial + partial_place(thread % round_rows, thread / round_rows);
        Real parts[step_warps];
        BELLMAN_UNROLL
        for (int w = 0; w < step_warps; ++w) parts[w] = mine[w * round_size];
        BELLMAN_UNROLL
        for (int level = 1; level < step_warps; level *= 2) {
          BELLMAN_UNROLL
          for (int w = 0; w < step_warps; w += 2 * level) parts[w] += parts[w + level];
        }
        totals[round] += parts[0];
      }
    }
    team.team_barrier();  // everybody has read the partial sums
  }
};

/// A thread of lanes joins the two directions of one sequence.
template <class ExecutionSpace, class Real>
struct HmmLastStep : HmmSteps<ExecutionSpace, Real> {
  using Base = HmmSteps<ExecutionSpace, Real>;
  using Arithmetic = typename Base::Arithmetic;
  using Lanes = typename Base::Lanes;
  TileResults<ExecutionSpace, Real> results;
  std::int64_t step;  ///< the join

  KOKKOS_FUNCTION void operator()(const typename Base::Team& team) const {
    const auto& memory = this->memory;
    const std::int64_t k = std::int64_t{team.league_rank()} * team.team_size() + team.team_rank();
    if (k >= this->chunk_sequences) return;
    std::uint32_t flags = row_is_fine;
    for (std::int64_t row = Lanes::rank(); row < this->model.rows(); row += Lanes::size)
      flags |= this->model.flags[row];
    flags = Lanes::reduce(flags, [](std::uint32_t a, std::uint32_t b) { return a | b; });

    const std::int64_t length = memory.length(k);
    const Real* const forward = memory.vectors(0, step) + k;
    const Real* const backward = memory.vectors(1, step + 1) + k;
    double total = 0;
    int meet = 0;
    for (std::int64_t j = Lanes::rank(); j < this->model.states; j += Lanes::size) {
      const auto ahead = static_cast<double>(forward[j * memory.capacity]);
      const double behind = length > 1 ? static_cast<double>(backward[j * memory.capacity]) : 1.0;
      total = Kokkos::fma(ahead, behind, total);
      meet |= ahead != 0 && behind != 0 ? 1 : 0;
    }
    total = Lanes::reduce(total, [](double a, double b) { return a + b; });
    meet = Lanes::reduce(meet, [](int a, int b) { return a | b; });
    if (Lanes::rank() != 0) return;
    Judgement judgement;
    const bool total_kept = meet == 0 || total >= TileArithmetic<double>::lowest_sum(this->model.states);
    if ((flags & ~row_is_wide) == row_is_fine && memory.lost()[k] == 0 && total_kept) {
      // The sum of a group, those of all groups, of the blocks, and the roundings of trans, emit and their product.
      constexpr int groups = HmmStepTeam<ExecutionSpace, Real>::groups;
      const std::int64_t blocks = (this->model.stride / groups + Arithmetic::longest_sum - 1) / Arithmetic::longest_sum;
      const double levels = Kokkos::log2(static_cast<double>(groups));
      const double roundings = Arithmetic::longest_sum + levels + static_cast<double>(blocks) + 3;
      judgement = Arithmetic::finish(total, memory.exponents(0)[k] + memory.exponents(1)[k], length, roundings,
                                     log_likelihood_tolerance<Real>);
    }
    results.write(this->first_sequence + k, judgement);
  }
};

/// Clears what both directions of the first step may set.
struct ClearFlags {
  int* lost;
  int* low;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { lost[k] = low[k] = 0; }
};

template <class ExecutionSpace, class Real>
void sweep_by_steps(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<Real>& model,
                    const HmmSequences& sequences, const TileResults<ExecutionSpace, Real>& results,
                    std::byte* memory) {
  const StepMemory<Real> chunk_memory{memory, model.stride, plan.tiles.sequences};
  const std::int64_t last = (sequences.steps() + 1) / 2 - 1;  // the last step of the longer direction
  static const std::string clear_label = "bellman::hmm_log_likelihood::clear";
  static const std::string first_label = "bellman::hmm_log_likelihood::first_step";
  static const std::string step_label = "bellman::hmm_log_likelihood::step";
  static const std::string join_label = "bellman::hmm_log_likelihood::join";
  static const std::string last_label = "bellman::hmm_log_likelihood::last_step";
  for (std::int64_t first = 0; first < sequences.batch(); first += plan.tiles.sequences) {
    const std::int64_t here = std::min<std::int64_t>(sequences.batch() - first, plan.tiles.sequences);
    const std::int64_t tiles = (here + step_tile - 1) / step_tile;
    const HmmSteps<ExecutionSpace, Real> base{model, sequences, chunk_memory, first, here};
    Kokkos::parallel_for(
        clear_label, Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(exec, 0, tiles * step_tile),
        ClearFlags{chunk_memory.lost(), chunk_memory.low()});
    launch_teams(first_label, exec, HmmFirstStep<ExecutionSpace, Real>{base, sizeof(double)}, 2 * tiles * step_tile,
                 128, 1, ScratchLevel::fast, sizeof(double));
    HmmStepTeam<ExecutionSpace, Real> step{base, 0, false, step_scratch_bytes};
    const std::int64_t teams = tiles * (model.stride / step_tile + 1);
    for (step.step = 1; step.step <= last; ++step.step) {
      launch_teams<step_warps * 32, 1>(step_label, exec, step, 2 * teams, step_warps, 32, ScratchLevel::fast,
                                       step_scratch_bytes);
    }
    step.is_join = true;
    launch_teams<step_warps * 32, 1>(join_label, exec, step, teams, step_warps, 32, ScratchLevel::fast,
                                     step_scratch_bytes);
    launch_teams(last_label, exec, HmmLastStep<ExecutionSpace, Real>{base, results, step.step}, (here + 3) / 4, 4, 32,
                 ScratchLevel::fast, 0);
  }
}

template <int rows, int columns, bool weights_in_scratch, class ExecutionSpace, class Real>
void sweep_by_tiles(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<Real>& model,
                    const HmmSequences& sequences, const TileResults<ExecutionSpace, Real>& results) {
  static const std::string label = "bellman::hmm_log_likelihood::sweep";
  launch_teams(label, exec,
               HmmTileTeam<ExecutionSpace, Real, rows, columns, weights_in_scratch>{
                   model, sequences, results, plan.tiles.sequences, plan.tiles.scratch_bytes},
               plan.tiles.league_size, plan.tiles.team_threads, 1, ScratchLevel::fast, plan.tiles.scratch_bytes);
}

}  // namespace

template <class ExecutionSpace, class Real>
void sweep_state_tiles(const ExecutionSpace& exec, const HmmPlan& plan,
                       const HmmParameters<ExecutionSpace, Real>& parameters, const HmmSequences& sequences,
                       const StridedView<Real*, ExecutionSpace>& log_likelihood,
                       const StridedView<Status*, ExecutionSpace>& statuses, std::byte* workspace) {
  if constexpr (has_warps<ExecutionSpace>()) {
    const auto states = static_cast<std::size_t>(parameters.states());
    const auto symbols = static_cast<std::size_t>(parameters.symbols());
    const bool by_steps = plan.sweep == HmmSweep::steps;
    const std::size_t stride = padded_states(states, is_float<Real>);
    const std::size_t tables_bytes = tables_bytes_in_workspace(states, symbols);
    const HmmTables<double> tables(workspace, parameters.states(), parameters.symbols());
    const PaddedModel<Real> model(workspace + tables_bytes, parameters.states(), static_cast<std::int64_t>(stride),
                                  parameters.symbols(), by_steps);
    const HmmNormalisePadded<ExecutionSpace, Real> normalise{parameters, tables, model};
    static const std::string label = "bellman::hmm_log_likelihood::normalise";
    launch_teams(label, exec, normalise, (normalise.rows() + 3) / 4, 4, 32, ScratchLevel::fast, 0);
    const TileResults<ExecutionSpace, Real> results{log_likelihood, statuses};
    if (by_steps) {
      sweep_by_steps(exec, plan, model, sequences, results,
                     workspace + tables_bytes + PaddedModel<Real>::bytes(states, stride, symbols, true));
    } else if (plan.sweep == HmmSweep::tensors) {
      if constexpr (is_float<Real>) sweep_by_tensor_products(exec, plan, model, sequences, results);
    } else if (plan.tiles.weights_in_scratch) {
      sweep_by_tiles<large_tile_rows<Real>, large_tile_columns<Real>, true>(exec, plan, model, sequences, results);
    } else if (plan.tiles.sequences > 1) {
      sweep_by_tiles<large_tile_rows<Real>, large_tile_columns<Real>, false>(exec, plan, model, sequences, results);
    } else {
      sweep_by_tiles<1, 1, false>(exec, plan, model, sequences, results);
    }
  }
}

#define BELLMAN_INSTANTIATE_FOR(Space, Real)                                                                    \
  template void sweep_state_tiles<Space, Real>(const Space&, const HmmPlan&, const HmmParameters<Space, Real>&, \
                                               const HmmSequences&, const StridedView<Real*, Space>&,           \
                                               const StridedView<Status*, Space>&, std::byte*);
#define BELLMAN_INSTANTIATE(Space)      \
  BELLMAN_INSTANTIATE_FOR(Space, float) \
  BELLMAN_INSTANTIATE_FOR(Space, double)
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
