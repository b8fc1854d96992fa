// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_SMITH_WATERMAN_LADDER_HPP
#define BELLMAN_SRC_SMITH_WATERMAN_LADDER_HPP

/// \file
/// What all kernels of smith_waterman_score share: the rungs of its ladder, and where results go.

#include <Kokkos_Core.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/views.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>
#include <cstdint>

namespace bellman::impl {

/// The algebras of all rungs.
template <class Real>
struct Rungs {
  Linear<float> linear_float;
  Linear<double, float> linear_mixed;
  Linear<double> linear_double;
  LogSumExp log_double;
  MaxPlus<Real> max_float;
  MaxPlus<double> max_double;

  Rungs(double temperature, double gap)
      : linear_float(temperature, gap),
        linear_mixed(temperature, gap),
        linear_double(temperature, gap),
        log_double(temperature, gap),
        max_float(temperature, gap),
        max_double(temperature, gap) {}
};

KOKKOS_FUNCTION inline Rung next(Rung rung) {
  return rung == Rung::linear_float || rung == Rung::linear_mixed ? Rung::linear_double : Rung::log_double;
}

template <class ExecutionSpace, class Real>
struct Outputs {
  StridedView<Real*, ExecutionSpace> score;
  StridedView<Status*, ExecutionSpace> statuses;
  bool is_empty;

  KOKKOS_FUNCTION void write(std::int64_t problem, double result) const {
    score(problem) = static_cast<Real>(result);
    if (statuses.data() != nullptr) {
      statuses(problem) = is_empty ? Status::empty : result != result ? Status::not_a_number : Status::ok;
    }
  }
};

}  // namespace bellman::impl

#endif
