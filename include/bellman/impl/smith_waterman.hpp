// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_SMITH_WATERMAN_HPP
#define BELLMAN_IMPL_SMITH_WATERMAN_HPP

/// \file
/// What alignment.hpp calls; compiled in src/smith_waterman.cpp and src/plan.cpp.

#include <bellman/impl/staged_sweep.hpp>
#include <bellman/impl/tile_sweep.hpp>
#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace bellman::impl {

/// The tile sweeps that are compiled: for problems of few rows, for all others, and for those of so many rows that few of
/// them are at work at a time.
using FewRows = TileShape<8, 4, 5>;
using ManyRows = TileShape<32, 4, 4>;
using TallStrips = TileShape<32, 8, 2>;
inline constexpr std::size_t most_rows_few = 96;  ///< three strips of FewRows waste less than one of ManyRows
inline constexpr std::size_t least_rows_tall = 512;

inline constexpr int staged_threads = 8;  ///< threads that stage the weights of a problem; see staged_sweep.hpp

/// \param is_aligned     each row of scores is contiguous, begins at a multiple of 16 bytes and is a multiple of 16 bytes long
/// \param has_workspace  of workspace_bytes of the plan that it leads to, which depend on the sizes and the backend alone
AlignmentPlan plan_smith_waterman(const Backend& backend, bool is_double, std::size_t rows, std::size_t columns,
                                  const SmithWatermanOptions& options, bool is_aligned = true,
                                  std::int64_t problems = std::numeric_limits<std::int64_t>::max(),
                                  bool has_workspace = false);

template <class ExecutionSpace, class Real>
void smith_waterman_score(const ExecutionSpace& exec, const StridedView<const Real***, ExecutionSpace>& scores,
                          const StridedView<Real*, ExecutionSpace>& score, const SmithWatermanOptions& options,
                          const StridedView<Status*, ExecutionSpace>& statuses,
                          const StridedView<std::byte*, ExecutionSpace>& workspace);

}  // namespace bellman::impl

#endif
