// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_SMITH_WATERMAN_PIPELINE_HPP
#define BELLMAN_SRC_SMITH_WATERMAN_PIPELINE_HPP

#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>
#include <cstddef>

namespace bellman::impl {

/// smith_waterman_score where the plan says AlignmentSweep::pipeline; on GPUs alone.
template <class ExecutionSpace, class Real>
void launch_pipeline(const ExecutionSpace& exec, const AlignmentPlan& plan,
                     const StridedView<const Real***, ExecutionSpace>& scores,
                     const StridedView<Real*, ExecutionSpace>& score, const SmithWatermanOptions& options,
                     const StridedView<Status*, ExecutionSpace>& statuses, bool has_pieces, std::byte* workspace);

}  // namespace bellman::impl

#endif
