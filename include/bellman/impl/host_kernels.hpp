// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HOST_KERNELS_HPP
#define BELLMAN_IMPL_HOST_KERNELS_HPP

/// \file
/// The inner loops of the host backends, in plain C++ without Kokkos: they are compiled once for each instruction set
/// (src/host), and the best that the machine has is chosen when it is first asked for. All of them have the same meaning; bits
/// may differ between instruction sets, since only some have fused operations.

#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// The longest SIMD register of all instruction sets, which is also what memory for registers is aligned to.
inline constexpr int most_register_bytes = 64;
/// Floats that it holds.
inline constexpr int most_lanes = most_register_bytes / sizeof(float);
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
