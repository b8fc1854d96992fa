// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HOST_KERNELS_HPP
#define BELLMAN_IMPL_HOST_KERNELS_HPP

/// \file
/// The inner loops of the host backends, in plain C++ without Kokkos: they are compiled once for each instruction set
/// (src/host), and the best that the machine has is chosen when it is first asked for. All of them have the same meaning; bits
/// may differ between instruction sets, since only some have fused operations.

#include <bellman/impl/integer_type.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// The longest SIMD register of all instruction sets, which is also what memory for registers is aligned to.
inline constexpr int most_register_bytes = 64;
/// Floats that it holds.
inline constexpr int most_lanes = most_register_bytes / sizeof(float);
/// Neighbouring columns of a masked reduction that a thread takes at most: what it holds of them stays in the nearest cache.
inline constexpr int most_columns_together = 1024;
/// A row of the alignment kernels longer than this would not stay in a cache.
inline constexpr std::size_t most_pack_columns = std::size_t{1} << 18;

/// The scores of problems side by side, one a SIMD lane. Lanes beyond the last problem are given any other's scores.
template <class Score>
struct HostScores {
  const Score* problem[most_lanes];
  std::int64_t row_stride;
  std::int64_t column_stride;
  std::int64_t rows;
  std::int64_t columns;
};

/// What an algebra (algebra.hpp) knows, in double, which holds all of it exactly.
struct HostAlgebra {
  double gap;
  double scale;  ///< from scores to exponents of 2; of no use to MaxPlus
};

/// What the lanes found, for the algebra to judge.
struct HostFound {
  double best[most_lanes];
  double largest_within[most_lanes];   ///< Linear: the largest |exponent| of a weight within the range, else 0
  double smallest_beyond[most_lanes];  ///< Linear: the smallest beyond it, else infinity
  bool nan[most_lanes];                ///< MaxPlus: a score is NaN
};

/// \param row  memory for one register a column, aligned to most_register_bytes
template <class Score>
using HostAlignment = void (*)(const HostScores<Score>& scores, const HostAlgebra& algebra, std::byte* row,
                               HostFound& found);

/// States of the chains below: as many as a small model is padded to.
inline constexpr int chain_states = 16;
/// Steps between two changes of the scale of a chain.
inline constexpr int chain_rescale_period = 4;

/// A small model as weights (hmm_small_model.hpp).
template <class Real>
struct HostChainModel {
  const Real* trans;           ///< (from, to)
  const Real* emit;            ///< (symbol, state)
  const std::uint32_t* into;   ///< bit i of entry j: trans(i,j) is not 0
  Real padding[chain_states];  ///< 1 for states that only pad the model, else 0
  Real lowest_sum;             ///< a sum at least this large has lost next to nothing to underflow
  Real lowest_value;           ///< the smallest normal number
};

/// The forward vector of one sequence, times 2^-exponent.
template <class Real>
struct alignas(most_register_bytes) HostChain {
  Real value[chain_states];
  std::int64_t exponent;
  bool kept;  ///< no entry has lost anything to underflow
};

/// Takes chains some steps further, all from the same one.
/// \param rows  for each chain, the row of emit of each of these steps
template <class Real>
using HostAdvance = void (*)(const HostChainModel<Real>& model, HostChain<Real>* const* chains,
                             const std::int32_t* const* rows, int chain_count, std::int64_t first_step, int steps);

/// Joins a run of one rank's values with what neighbouring columns hold so far, in double. Cells that are not valid leave it
/// as it is.
/// \param mask  a byte per cell, not 0 where it is valid, or null: all are
template <class Real>
using HostJoin = void (*)(double* columns, const Real* values, const std::uint8_t* mask, std::int64_t count);

template <class Real>
struct HostJoins {
  HostJoin<Real> sum;
  HostJoin<Real> min;  ///< a NaN wins, here as below
  HostJoin<Real> max;
  HostJoin<Real> count;  ///< reads no values
};

struct HostKernels {
  const char* name;    ///< of the instruction set
  int register_bytes;  ///< of a SIMD register

  /// Local alignment with a linear gap (alignment_recurrence.hpp) over each algebra. The first and the fourth take a lane a
  /// float, the others a lane a double.
  HostAlignment<float> linear_float;
  HostAlignment<float> linear_mixed;
  HostAlignment<float> linear_double_of_float;
  HostAlignment<float> max_float;
  HostAlignment<float> max_double_of_float;
  HostAlignment<double> linear_double;
  HostAlignment<double> max_double;

  /// The chain of a small hidden Markov model, the states in SIMD lanes, for at most this many sequences at a time.
  int floats_together;
  int doubles_together;
  HostAdvance<float> advance_floats;
  HostAdvance<double> advance_doubles;

  /// The rows of emission weights for symbols in memory: \p symbol_count, behind the last symbol, for those that are missing
  /// (negative) or out of range; returns whether one is out of range.
  bool (*emission_rows)(const void* symbols, IntegerType type, std::int64_t stride, int count,
                        std::int64_t symbol_count, std::int32_t* rows);

  HostJoins<float> joins_of_floats;
  HostJoins<double> joins_of_doubles;

  /// 2^x of one register, as the alignments compute it: for tests of its error.
  void (*exp2_of_floats)(const float* x, float* power);
  void (*exp2_of_doubles)(const double* x, double* power);
};

/// The kernels for the best instruction set that this machine has.
const HostKernels& host_kernels();

/// All that this machine can run, the best one last; null behind the last.
const HostKernels* host_kernels_of_machine(int index);

}  // namespace bellman::impl

#endif
