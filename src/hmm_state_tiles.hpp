// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HMM_STATE_TILES_HPP
#define BELLMAN_SRC_HMM_STATE_TILES_HPP

#include <bellman/impl/algebra.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/state_tile.hpp>
#include <cstdint>

namespace bellman::impl {

/// Where results go: certified ones with their status, others as a mark.
template <class ExecutionSpace, class Real>
struct TileResults {
  StridedView<Real*, ExecutionSpace> log_likelihood;
  StridedView<Status*, ExecutionSpace> statuses;

  KOKKOS_FUNCTION void write(std::int64_t sequence, const Judgement& judgement) const {
    if (!judgement.certified) {
      log_likelihood(sequence) = uncertified_mark<Real>();
      return;
    }
    log_likelihood(sequence) = static_cast<Real>(judgement.score);
    if (statuses.data() != nullptr) {
      statuses(sequence) = judgement.score == -infinity<double>() ? Status::impossible : Status::ok;
    }
  }
};

/// The sweeps of models of many states on GPUs, HmmSweep::tensors, tiles and steps: normalise the model into the
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
