// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_ARITHMETIC_PROBE_HPP
#define BELLMAN_PERF_TESTS_ARITHMETIC_PROBE_HPP

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdint>

/// \brief How many multiply-adds a backend does a second.
namespace bellman::perf {

/// \brief Runs chains of multiply-adds with the widest vectors that this processor has, whatever the program was compiled
/// for; of the type Real, float or double.
template <class Real>
class HostFmaChains {
 public:
  /// x = x factor + addend, \p steps times in each chain; the sum of the ends.
  static Real run(Real factor, Real addend, std::int64_t steps);
  /// How many chains run side by side.
  static int chains();
};

/// On a GPU an item is a thread with chains of its own, enough to hide the latency; on a host it is a core.
template <class ExecutionSpace, class Real>
struct FmaChains {
  static constexpr int chains = 16;
  static constexpr int unrolled = 8;  ///< steps between two branches
  static constexpr bool on_host =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename ExecutionSpace::memory_space>::accessible;

  Real factor;
  Real addend;
  std::int64_t steps;
  Kokkos::View<Real, ExecutionSpace> sink;

  KOKKOS_FUNCTION void operator()([[maybe_unused]] std::int64_t item) const {
    KOKKOS_IF_ON_HOST((keep(HostFmaChains<Real>::run(factor, addend, steps));))
    KOKKOS_IF_ON_DEVICE((keep(run(static_cast<Real>(item)));))
  }

 private:
  KOKKOS_FUNCTION Real run(Real first) const {
    Real x[chains];
    for (int k = 0; k < chains; ++k) x[k] = first + static_cast<Real>(k);
    for (std::int64_t step = 0; step < steps; step += unrolled) {
      for (int u = 0; u < unrolled; ++u) {
        for (int k = 0; k < chains; ++k) x[k] = Kokkos::fma(x[k], factor, addend);
      }
    }
    Real sum = 0;
    for (int k = 0; k < chains; ++k) sum += x[k];
    return sum;
  }

  /// No compiler can know that sums are never negative.
  KOKKOS_FUNCTION void keep(Real sum) const {
    if (sum < 0) sink() = sum;
  }
};

/// \brief The highest rate of multiply-adds (one operation each) that independent chains reach: the best of several
/// measurements.
template <class ExecutionSpace, class Real>
double measure_fma_rate() {
  using Chains = FmaChains<ExecutionSpace, Real>;
  const ExecutionSpace exec;
  const std::int64_t items = Chains::on_host ? exec.concurrency() : std::int64_t{4} * exec.concurrency();
  const std::int64_t steps = Chains::on_host ? 1 << 21 : 1 << 12;
  const int chains = Chains::on_host ? HostFmaChains<Real>::chains() : Chains::chains;
  const Kokkos::View<Real, ExecutionSpace> sink(Kokkos::view_alloc(exec, "bellman::perf::sink"));
  const Chains body{Real(0.999), Real(0.001), steps, sink};
  double best = 0;
  for (int k = 0; k < 6; ++k) {
    exec.fence("bellman::perf::measure_fma_rate");
    const Kokkos::Timer timer;
    Kokkos::parallel_for("bellman::perf::fma_chains",
                         Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(exec, 0, items), body);
    exec.fence("bellman::perf::measure_fma_rate");
    best = std::max(best, static_cast<double>(items * steps) * chains / timer.seconds());
  }
  return best;
}

}  // namespace bellman::perf

#endif
