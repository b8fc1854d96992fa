// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_TILE_SIZES_HPP
#define BELLMAN_IMPL_HMM_TILE_SIZES_HPP

/// \file
/// Sizes that the plan and the kernels of src/hmm_state_tiles.cpp agree on.

#include <bellman/impl/aligned.hpp>
#include <bellman/impl/hmm_padded_model.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// Models of more states are swept by a launch per step.
inline constexpr std::size_t most_states_of_a_tile = 256;

/// Models of at most so many states are swept in float by products on tensor cores, in blocks of 16 states.
inline constexpr std::size_t most_states_of_tensors = 64;
inline constexpr int tensor_threads = 256;   ///< at most, of a team
inline constexpr int tensor_sequences = 16;  ///< of a warp

/// Scratch of a team of that sweep: the transitions, in two parts, and which are not 0.
inline constexpr std::size_t tensor_scratch_bytes(std::size_t stride) {
  return alignment_slack + 2 * stride * stride * sizeof(float) + stride * sizeof(std::uint64_t);
}

/// States with padding: whole tiles.
inline constexpr std::size_t padded_states(std::size_t states, bool in_float) {
  const std::size_t tile = in_float && states <= most_states_of_tensors ? 16 : states <= most_states_of_a_tile ? 8 : 32;
  return (states + tile - 1) / tile * tile;
}

/// The tables in double, for the wider rungs, at the start of the workspace.
inline constexpr std::size_t tables_bytes_in_workspace(std::size_t states, std::size_t symbols) {
  return (HmmTables<double>::bytes(states, symbols) + alignment_slack - 1) / alignment_slack * alignment_slack;
}

/// Tile of a thread where a team owns its sequences: many sequences, or few.
template <class Real>
inline constexpr int large_tile_rows = 8;
template <class Real>
inline constexpr int large_tile_columns = sizeof(Real) == 4 ? 8 : 4;

inline constexpr int staged_symbols = 4;  ///< steps whose symbols a team fetches at a time

/// Distance between the vectors of neighbouring states: neighbouring columns of tiles do not share banks.
KOKKOS_FUNCTION constexpr int tile_pitch(std::size_t real_bytes, int sequences) {
  return sequences == 1 ? 1 : sequences + 16 / static_cast<int>(real_bytes);
}

/// States that a thread reads ahead. A single sequence waits for its reads alone, so that more of them have to overlap.
KOKKOS_FUNCTION constexpr int tile_reads_ahead(int rows) { return rows == 1 ? 7 : 1; }

/// Scratch of a team that owns some sequences, and perhaps the transitions.
inline constexpr std::size_t tile_scratch_bytes(std::size_t real_bytes, std::size_t stride, int sequences,
                                                bool with_weights) {
  const auto pitch = static_cast<std::size_t>(tile_pitch(real_bytes, sequences));
  const std::size_t per_sequence = 2 * sizeof(std::int64_t) + (3 + staged_symbols) * sizeof(int);
  const auto gap = with_weights ? stride : static_cast<std::size_t>(tile_reads_ahead(sequences == 1 ? 1 : 2)) * pitch;
  const std::size_t bytes = alignment_slack + 32 + 16 +
                            (stride * (pitch + (with_weights ? stride : 0)) + gap) * real_bytes +
                            static_cast<std::size_t>(sequences) * per_sequence;
  return (bytes + 15) / 16 * 16;
}

/// Shape of the kernel that takes one step of many states: a team owns so many sequences and states.
inline constexpr int step_tile = 32;
inline constexpr std::size_t step_scratch = 32 * 1024;  ///< partial sums, and stages of copies
inline constexpr std::size_t step_scratch_bytes = step_scratch + step_tile * sizeof(int) + alignment_slack;

/// Memory for the vectors of a chunk of sequences, in the workspace.
inline constexpr std::size_t step_memory_bytes(std::size_t real_bytes, std::size_t stride, std::size_t sequences) {
  return sequences * (4 * stride * real_bytes + 4 * sizeof(std::int64_t) + 12 * sizeof(int));
}

}  // namespace bellman::impl

#endif
