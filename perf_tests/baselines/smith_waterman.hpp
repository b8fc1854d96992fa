// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_BASELINES_SMITH_WATERMAN_HPP
#define BELLMAN_PERF_TESTS_BASELINES_SMITH_WATERMAN_HPP

/// \file
/// The obvious kernel, to be beaten; not part of the library.

#include <Kokkos_Core.hpp>
#include <bellman/options.hpp>
#include <cstdint>

namespace bellman::baselines {

/// \brief Smith-Waterman as one would first write it: a thread per problem that walks its cells row by row, in the log
/// domain, and keeps the last two rows in global memory.
template <class ExecutionSpace, class Real>
class SmithWaterman {
 public:
  using Scores = Kokkos::View<const Real***, Kokkos::LayoutRight, ExecutionSpace>;
  using Score = Kokkos::View<Real*, Kokkos::LayoutRight, ExecutionSpace>;

  SmithWaterman(const ExecutionSpace& exec, const Scores& scores, const Score& score,
                const SmithWatermanOptions& options)
      : scores_(scores),
        score_(score),
        rows_(Kokkos::view_alloc(exec, "bellman::baselines::smith_waterman::rows"), scores.extent(0), 2,
              scores.extent(2) + 1),
        gap_(static_cast<Real>(options.gap)),
        temperature_(static_cast<Real>(options.temperature)) {}

  void launch(const ExecutionSpace& exec) const {
    Kokkos::parallel_for("bellman::baselines::smith_waterman", Policy(exec, 0, scores_.extent_int(0)), *this);
  }

  KOKKOS_FUNCTION void operator()(std::int64_t b) const {
    const auto rows = static_cast<std::int64_t>(scores_.extent(1));
    const auto columns = static_cast<std::int64_t>(scores_.extent(2));
    for (std::int64_t j = 0; j <= columns; ++j) rows_(b, 0, j) = 0;
    rows_(b, 1, 0) = 0;
    Real best = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      const int above = i % 2;
      Real left = 0;
      for (std::int64_t j = 0; j < columns; ++j) {
        const Real h = soft_maximum(rows_(b, above, j) + scores_(b, i, j), rows_(b, above, j + 1) + gap_, left + gap_);
        rows_(b, 1 - above, j + 1) = h;
        best = larger(best, h);
        left = h;
      }
    }
    score_(b) = best;
  }

 private:
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

  KOKKOS_FUNCTION static Real larger(Real x, Real y) { return x < y ? y : x; }

  /// t log(1 + e^(x/t) + e^(y/t) + e^(z/t)), relative to the largest term so that nothing overflows.
  KOKKOS_FUNCTION Real soft_maximum(Real x, Real y, Real z) const {
    const Real m = larger(larger(Real(0), x), larger(y, z));
    if (temperature_ == 0) return m;
    return m + temperature_ * Kokkos::log(Kokkos::exp(-m / temperature_) + Kokkos::exp((x - m) / temperature_) +
                                          Kokkos::exp((y - m) / temperature_) + Kokkos::exp((z - m) / temperature_));
  }

  Scores scores_;
  Score score_;
  Kokkos::View<Real***, ExecutionSpace> rows_;  // (B,2,N+1), in the layout that suits neighbouring threads
  Real gap_;
  Real temperature_;
};

}  // namespace bellman::baselines

#endif
