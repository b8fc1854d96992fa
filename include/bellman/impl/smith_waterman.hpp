// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_SMITH_WATERMAN_HPP
#define BELLMAN_IMPL_SMITH_WATERMAN_HPP

/// \file
/// What alignment.hpp calls; compiled in src/smith_waterman.cpp and src/plan.cpp.

#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>
#include <cstddef>

namespace bellman::impl {

/// The shapes of tile sweeps that are compiled.
struct TileShape {
  int lanes;          ///< of a group
  int rows_per_lane;  ///< of a tile
  int stages;         ///< of the ring
};
inline constexpr TileShape small_tiles{4, 8, 2};
inline constexpr TileShape large_tiles{32, 4, 3};

/// \param is_aligned  each row of scores is contiguous, begins at a multiple of 16 bytes and is a multiple of 16 bytes long
AlignmentPlan plan_smith_waterman(const Backend& backend, bool is_double, std::size_t rows, std::size_t columns,
                                  const SmithWatermanOptions& options, bool is_aligned = true);

template <class ExecutionSpace, class Real>
void smith_waterman_score(const ExecutionSpace& exec, const StridedView<const Real***, ExecutionSpace>& scores,
                          const StridedView<Real*, ExecutionSpace>& score, const SmithWatermanOptions& options,
                          const StridedView<Status*, ExecutionSpace>& statuses);

}  // namespace bellman::impl

#endif
