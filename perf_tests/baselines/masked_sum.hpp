// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_BASELINES_MASKED_SUM_HPP
#define BELLMAN_PERF_TESTS_BASELINES_MASKED_SUM_HPP

/// \file
/// The obvious kernel, to be beaten; not part of the library.

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <type_traits>

namespace bellman::baselines {

/// \brief The masked sum as one would first write it: a thread per column that adds up the valid ranks.
///
/// Valid is a mask (R,S) of std::uint8_t or a shard length per rank (R) of std::int64_t, as in bellman::masked_reduce.
template <class ExecutionSpace, class Real, class Valid>
class MaskedSum {
 public:
  using Values = Kokkos::View<const Real**, Kokkos::LayoutRight, ExecutionSpace>;
  using Out = Kokkos::View<Real*, Kokkos::LayoutRight, ExecutionSpace>;

  MaskedSum(const Values& values, const Valid& valid, const Out& out) : values_(values), valid_(valid), out_(out) {}

  void launch(const ExecutionSpace& exec) const {
    Kokkos::parallel_for("bellman::baselines::masked_sum", Policy(exec, 0, values_.extent(1)), *this);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t column) const {
    const auto ranks = static_cast<std::int64_t>(values_.extent(0));
    Real sum = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      if (is_valid(rank, column)) sum += values_(rank, column);
    }
    out_(column) = sum;
  }

 private:
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

  KOKKOS_FUNCTION bool is_valid(std::int64_t rank, std::int64_t column) const {
    if constexpr (Valid::rank == 1) {
      return column < valid_(rank);
    } else {
      return valid_(rank, column) != 0;
    }
  }

  Values values_;
  Valid valid_;
  Out out_;
};

}  // namespace bellman::baselines

#endif
