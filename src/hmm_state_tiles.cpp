// SPDX-License-Identifier: Apache-2.0

/// \file
/// Hidden Markov models of up to most_states_of_a_tile states on GPUs: a team owns some sequences and all their states, step
/// after step. Those of more are in hmm_step_sweep.cpp.

#include "hmm_state_tiles.hpp"

#include <algorithm>
#include <bellman/accuracy.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/hmm_padded_model.hpp>
#include <bellman/impl/hmm_tile_sizes.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/state_tile.hpp>

#include "hmm_step_sweep.hpp"
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
      // What is read ahead, for nothing, must not be what others write.
      const std::int64_t gap = weights_in_scratch ? stride : std::int64_t{tile_reads_ahead(rows)} * pitch;
      peaks = reinterpret_cast<int*>(weights + (weights_in_scratch ? stride * stride : 0) + gap);
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
    constexpr int ahead = tile_reads_ahead(rows);
    constexpr int ring = ahead + 1;
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
