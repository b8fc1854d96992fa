// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_BASELINES_MASKED_REDUCE_HPP
#define BELLMAN_PERF_TESTS_BASELINES_MASKED_REDUCE_HPP

/// \file
/// The obvious kernel, to be beaten; not part of the library.

#include <Kokkos_Core.hpp>
#include <bellman/options.hpp>
#include <cstdint>
#include <type_traits>

namespace bellman::baselines {

/// \brief The masked reduction as one would first write it: a thread per column that goes through the valid ranks.
///
/// Valid is a mask (R,S) of std::uint8_t or a shard length per rank (R) of std::int64_t, as in bellman::masked_reduce.
template <class ExecutionSpace, class Real, class Valid>
class MaskedReduce {
 public:
  using Values = Kokkos::View<const Real**, Kokkos::LayoutRight, ExecutionSpace>;
  using Out = Kokkos::View<Real*, Kokkos::LayoutRight, ExecutionSpace>;

  MaskedReduce(const Values& values, const Valid& valid, const Out& out, Reduction reduction)
      : values_(values), valid_(valid), out_(out), reduction_(reduction) {}

  void launch(const ExecutionSpace& exec) const {
    Kokkos::parallel_for("bellman::baselines::masked_reduce", Policy(exec, 0, values_.extent(1)), *this);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t column) const {
    const auto ranks = static_cast<std::int64_t>(values_.extent(0));
    Real result = 0;
    if (reduction_ == Reduction::min) result = Kokkos::Experimental::infinity_v<Real>;
    if (reduction_ == Reduction::max) result = -Kokkos::Experimental::infinity_v<Real>;
    Real count = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      if (!is_valid(rank, column)) continue;
      count += 1;
      result = combined(result, values_(rank, column));
    }
    if (reduction_ == Reduction::count) result = count;
    if (reduction_ == Reduction::mean) result /= count;
    out_(column) = result;
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

  /// NaN stays: nothing is less or more than it.
  KOKKOS_FUNCTION Real combined(Real result, Real value) const {
    if (reduction_ == Reduction::min) return value < result || value != value ? value : result;
    if (reduction_ == Reduction::max) return value > result || value != value ? value : result;
    return result + value;
  }

  Values values_;
  Valid valid_;
  Out out_;
  Reduction reduction_;
};

}  // namespace bellman::baselines

#endif
