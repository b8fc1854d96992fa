// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HMM_STEP_SWEEP_HPP
#define BELLMAN_SRC_HMM_STEP_SWEEP_HPP

#include <bellman/impl/hmm_padded_model.hpp>
#include <cstddef>

#include "hmm_state_tiles.hpp"

namespace bellman::impl {

/// The sweep of models of hundreds of states on GPUs: HmmSweep::steps.
///
/// \param memory  step_memory_bytes() for the vectors of plan.tiles.sequences
template <class ExecutionSpace, class Real>
void sweep_by_steps(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<Real>& model,
                    const HmmSequences& sequences, const TileResults<ExecutionSpace, Real>& results, std::byte* memory);

}  // namespace bellman::impl

#endif
