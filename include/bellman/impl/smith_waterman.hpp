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

AlignmentPlan plan_smith_waterman(const Backend& backend, bool is_double, std::size_t rows, std::size_t columns,
                                  const SmithWatermanOptions& options);

template <class ExecutionSpace, class Real>
void smith_waterman_score(const ExecutionSpace& exec, const StridedView<const Real***, ExecutionSpace>& scores,
                          const StridedView<Real*, ExecutionSpace>& score, const SmithWatermanOptions& options,
                          const StridedView<Status*, ExecutionSpace>& statuses);

}  // namespace bellman::impl

#endif
