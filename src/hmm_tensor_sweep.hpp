// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HMM_TENSOR_SWEEP_HPP
#define BELLMAN_SRC_HMM_TENSOR_SWEEP_HPP

#include <bellman/impl/hmm_padded_model.hpp>

#include "hmm_state_tiles.hpp"

namespace bellman::impl {

/// The sweep of models of dozens of states on GPUs, in float: HmmSweep::tensors.
template <class ExecutionSpace>
void sweep_by_tensor_products(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<float>& model,
                              const HmmSequences& sequences, const TileResults<ExecutionSpace, float>& results);

}  // namespace bellman::impl

#endif
