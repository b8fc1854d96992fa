// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_MASKED_REDUCE_HPP
#define BELLMAN_IMPL_MASKED_REDUCE_HPP

/// \file
/// What masked_reduce.hpp calls; compiled in src/masked_reduce.cpp and src/plan.cpp.

#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

MaskedReducePlan plan_masked_reduce(const Backend& backend, std::size_t ranks, std::size_t columns);

/// valid is a mask (R,S)
template <class ExecutionSpace, class Real>
void masked_reduce(const ExecutionSpace& exec, const MaskedReduceOptions& options,
                   const StridedView<const Real**, ExecutionSpace>& values,
                   const StridedView<const std::uint8_t**, ExecutionSpace>& valid,
                   const StridedView<Real*, ExecutionSpace>& out);

/// valid is a shard length per rank (R)
template <class ExecutionSpace, class Real>
void masked_reduce(const ExecutionSpace& exec, const MaskedReduceOptions& options,
                   const StridedView<const Real**, ExecutionSpace>& values, const IntegerView<1>& valid,
                   const StridedView<Real*, ExecutionSpace>& out);

}  // namespace bellman::impl

#endif
