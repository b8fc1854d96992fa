// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_BLOCK_SWEEP_HPP
#define BELLMAN_IMPL_BLOCK_SWEEP_HPP

/// \file
/// Long sequences of a small hidden Markov model, in blocks of steps at the same time. What a block does to a vector is a
/// matrix, the product of its transitions and emissions:
///
///     alpha_T-1 = alpha_0 P_1 P_2 ...,   row i of P = e_i (trans b_t) (trans b_t+1) ...
///
/// Each row is a chain (matrix_sweep.hpp) with an exponent of its own. Groups of blocks are then multiplied at the same
/// time, and a vector goes through the groups.

#include <Kokkos_Core.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// How long sequences are cut. It depends on the number of steps alone, so that no bit of a result depends on the batch.
struct BlockCut {
  static constexpr std::int64_t fewest_steps = 65536;  ///< of sequences for which S times the work pays
  static constexpr std::int64_t steps = 128;           ///< of a block
  static constexpr std::int64_t most_blocks = 8192;    ///< in the workspace; longer sequences take several passes
  static constexpr std::int64_t group = 64;            ///< blocks
  static constexpr int team_threads = 8;               ///< warps: an entry of a matrix per lane

  std::int64_t blocks;     ///< of a sequence in a pass
  std::int64_t groups;     ///< of a sequence in a pass
  std::int64_t passes;     ///< of a sequence
  std::int64_t sequences;  ///< at the same time

  KOKKOS_FUNCTION explicit BlockCut(std::int64_t length) {
    const std::int64_t all = (length + steps - 1) / steps;
    blocks = all < 1 ? 1 : all < most_blocks ? all : most_blocks;
    groups = (blocks + group - 1) / group;
    passes = all < 1 ? 1 : (all + blocks - 1) / blocks;
    sequences = most_blocks / blocks < 16 ? most_blocks / blocks : 16;
  }
};

/// Matrices in the workspace, with an exponent per row.
struct BlockMatrices {
  static constexpr int entries = small_states * small_states;
  static constexpr std::size_t bytes_each =
      entries * sizeof(double) + small_states * sizeof(std::int64_t) + 2 * sizeof(std::uint32_t);

  double* value;           ///< (matrix, row, column)
  std::int64_t* exponent;  ///< (matrix, row)
  std::uint32_t* flags;    ///< BlockFlags (matrix, half of the rows)

  KOKKOS_FUNCTION BlockMatrices(std::byte* memory, std::int64_t count)
      : value(reinterpret_cast<double*>(memory)),
        exponent(reinterpret_cast<std::int64_t*>(value + count * entries)),
        flags(reinterpret_cast<std::uint32_t*>(exponent + count * small_states)) {}
};

enum BlockFlags : std::uint32_t { block_is_lost = 1, block_has_bad_symbol = 2 };

/// A vector between two passes, and the normalisers for the last rung.
struct BlockCarry {
  double value[small_states];
  double normaliser[1 + 2 * small_states];
  std::int64_t exponent;
  std::int64_t flags;
};

/// The workspace: what a pass leaves of blocks and groups, and the vectors.
struct BlockWorkspace {
  BlockMatrices blocks;
  BlockMatrices groups;
  BlockCarry* carry;

  static std::size_t bytes(const BlockCut& cut) {
    return static_cast<std::size_t>(cut.sequences) *
           (static_cast<std::size_t>(cut.blocks + cut.groups) * BlockMatrices::bytes_each + sizeof(BlockCarry));
  }
  KOKKOS_FUNCTION BlockWorkspace(std::byte* memory, const BlockCut& cut)
      : blocks(memory, cut.sequences * cut.blocks),
        groups(memory + cut.sequences * cut.blocks * BlockMatrices::bytes_each, cut.sequences * cut.groups),
        carry(reinterpret_cast<BlockCarry*>(memory +
                                            cut.sequences * (cut.blocks + cut.groups) * BlockMatrices::bytes_each)) {}
};

/// What a team shares while it multiplies matrices.
struct BlockProduct {
  double vectors[2][BlockMatrices::entries];  ///< rows that go through the matrices, of two steps
  double matrix[2][BlockMatrices::entries];
  std::int64_t exponent[2][small_states];
  std::uint32_t flags;
};

/// Sums below this may have lost what is below lost_below, and lose 2^-56 by it.
inline constexpr int lowest_block_sum = -900;
inline constexpr int lowest_block_product = -960;

/// Multiplies rows by matrices, one after the other, in double. Lane (row, column) of the team owns an entry. The rows are
/// in product.vectors[0], each with its exponent; the result ends up in the one of count % 2.
///
/// \param exponent  that of this lane's row
/// \return          whether entries of this lane were lost
template <class Sync>
KOKKOS_FORCEINLINE_FUNCTION bool multiply_blocks(const BlockMatrices& matrices, std::int64_t first, std::int64_t count,
                                                 int states, int entry, BlockProduct& product, std::int64_t& exponent,
                                                 const Sync& sync) {
  const int row = entry / small_states;
  const int column = entry % small_states;
  bool is_lost = false;
  double next = count > 0 ? matrices.value[first * BlockMatrices::entries + entry] : 0;
  std::int64_t next_exponent = count > 0 && entry < small_states ? matrices.exponent[first * small_states + entry] : 0;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto now = static_cast<int>(k % 2);
    product.matrix[now][entry] = next;
    if (entry < small_states) product.exponent[now][entry] = next_exponent;
    sync();  // the matrix and the rows are there, and nobody reads those before any more
    if (k + 1 < count) {
      next = matrices.value[(first + k + 1) * BlockMatrices::entries + entry];
      if (entry < small_states) next_exponent = matrices.exponent[(first + k + 1) * small_states + entry];
    }
    const double* const from = product.vectors[now] + row * small_states;
    // The row is taken to the scale of its largest term.
    bool is_zero = true;
    std::int64_t largest = 0;
    for (int i = 0; i < states; ++i) {
      const std::int64_t term = exponent_of(from[i]) + product.exponent[now][i];
      if (from[i] != 0 && (is_zero || term > largest)) {
        largest = term;
        is_zero = false;
      }
    }
    double sum = 0;
    bool loses = false;
    for (int i = 0; i < states; ++i) {
      const std::int64_t shift = product.exponent[now][i] - largest;
      const double scale = shift < -1022 ? 0.0 : power_of_two<double>(static_cast<int>(shift < 1023 ? shift : 1023));
      const double weight = product.matrix[now][i * small_states + column];
      const double term = from[i] * scale * weight;
      loses = loses || (term < power_of_two<double>(lowest_block_product) && from[i] != 0 && weight != 0);
      sum += term;
    }
    is_lost = is_lost || (loses && !(sum >= power_of_two<double>(lowest_block_sum)));
    exponent += largest;
    product.vectors[1 - now][entry] = sum;
  }
  sync();  // the last rows are there
  return is_lost;
}

}  // namespace bellman::impl

#endif
