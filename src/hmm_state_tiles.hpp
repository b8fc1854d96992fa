// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HMM_STATE_TILES_HPP
#define BELLMAN_SRC_HMM_STATE_TILES_HPP

#include <bellman/impl/hmm_log_likelihood.hpp>

namespace bellman::impl {

/// The sweeps of models of many states on GPUs, HmmSweep::tiles and HmmSweep::steps: normalise the model into the
/// workspace, and write the result of each sequence that the first rung certifies; all others get uncertified_mark().
///
/// \param workspace  aligned to 16 bytes; begins with HmmTables<double>
template <class ExecutionSpace, class Real>
void sweep_state_tiles(const ExecutionSpace& exec, const HmmPlan& plan,
                       const HmmParameters<ExecutionSpace, Real>& parameters, const HmmSequences& sequences,
                       const StridedView<Real*, ExecutionSpace>& log_likelihood,
                       const StridedView<Status*, ExecutionSpace>& statuses, std::byte* workspace);

}  // namespace bellman::impl

#endif
