// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_BASELINES_HMM_FORWARD_HPP
#define BELLMAN_PERF_TESTS_BASELINES_HMM_FORWARD_HPP

/// \file
/// The obvious kernel, to be beaten; not part of the library.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdint>

namespace bellman::baselines {

/// \brief The forward algorithm as one would first write it: a team per sequence with a thread per state, in the log
/// domain, with two barriers a step. The model must be normalised and every symbol in range or negative (missing).
template <class ExecutionSpace, class Real>
class HmmForward {
 public:
  using Vector = Kokkos::View<const Real*, Kokkos::LayoutRight, ExecutionSpace>;
  using Matrix = Kokkos::View<const Real**, Kokkos::LayoutRight, ExecutionSpace>;
  using Symbols = Kokkos::View<const std::int32_t**, Kokkos::LayoutRight, ExecutionSpace>;
  using Lengths = Kokkos::View<const std::int64_t*, Kokkos::LayoutRight, ExecutionSpace>;
  using LogLikelihood = Kokkos::View<Real*, Kokkos::LayoutRight, ExecutionSpace>;

  HmmForward(const Vector& log_init, const Matrix& log_trans, const Matrix& log_emit, const Symbols& symbols,
             const Lengths& lengths, const LogLikelihood& log_likelihood)
      : log_init_(log_init),
        log_trans_(log_trans),
        log_emit_(log_emit),
        symbols_(symbols),
        lengths_(lengths),
        log_likelihood_(log_likelihood) {}

  void launch(const ExecutionSpace& exec) const {
    const auto sequences = symbols_.extent_int(0);
    const auto scratch = Kokkos::PerTeam(scratch_bytes());
    // Host teams are smaller than a large model: then each thread owns several states.
    const int limit =
        Policy(exec, sequences, 1).set_scratch_size(0, scratch).team_size_max(*this, Kokkos::ParallelForTag());
    const int threads = std::max(1, std::min(limit, static_cast<int>(log_init_.extent(0))));
    Kokkos::parallel_for("bellman::baselines::hmm_forward",
                         Policy(exec, sequences, threads).set_scratch_size(0, scratch), *this);
  }

  std::size_t scratch_bytes() const { return 2 * Alpha::shmem_size(log_init_.extent(0)); }

  KOKKOS_FUNCTION void operator()(const typename Kokkos::TeamPolicy<ExecutionSpace>::member_type& team) const {
    const auto b = static_cast<std::int64_t>(team.league_rank());
    const int states = log_init_.extent_int(0);
    const std::int64_t steps = lengths_.data() ? lengths_(b) : static_cast<std::int64_t>(symbols_.extent(1));
    const Alpha alpha(team.team_scratch(0), states);
    const Alpha next(team.team_scratch(0), states);
    for (std::int64_t t = 0; t < steps; ++t) {
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, states), [&](int j) {
        next(j) = (t == 0 ? log_init_(j) : log_sum_of_paths(alpha, j)) + emission(b, t, j);
      });
      team.team_barrier();  // every thread has read alpha
      Kokkos::parallel_for(Kokkos::TeamThreadRange(team, states), [&](int j) { alpha(j) = next(j); });
      team.team_barrier();  // alpha is whole again
    }
    Kokkos::single(Kokkos::PerTeam(team), [&]() { log_likelihood_(b) = steps == 0 ? Real(0) : log_sum(alpha); });
  }

 private:
  using Policy = Kokkos::TeamPolicy<ExecutionSpace>;
  using Alpha =
      Kokkos::View<Real*, typename ExecutionSpace::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  KOKKOS_FUNCTION Real emission(std::int64_t b, std::int64_t t, int j) const {
    const auto symbol = symbols_(b, t);
    return symbol < 0 ? Real(0) : log_emit_(j, symbol);
  }

  /// log sum_i exp(alpha(i) + log_trans(i,j)), relative to the largest term
  KOKKOS_FUNCTION Real log_sum_of_paths(const Alpha& alpha, int j) const {
    const int states = log_init_.extent_int(0);
    Real largest = -Kokkos::Experimental::infinity_v<Real>;
    for (int i = 0; i < states; ++i) largest = Kokkos::fmax(largest, alpha(i) + log_trans_(i, j));
    if (largest == -Kokkos::Experimental::infinity_v<Real>) return largest;
    Real sum = 0;
    for (int i = 0; i < states; ++i) sum += Kokkos::exp(alpha(i) + log_trans_(i, j) - largest);
    return largest + Kokkos::log(sum);
  }

  KOKKOS_FUNCTION Real log_sum(const Alpha& alpha) const {
    const int states = log_init_.extent_int(0);
    Real largest = -Kokkos::Experimental::infinity_v<Real>;
    for (int i = 0; i < states; ++i) largest = Kokkos::fmax(largest, alpha(i));
    if (largest == -Kokkos::Experimental::infinity_v<Real>) return largest;
    Real sum = 0;
    for (int i = 0; i < states; ++i) sum += Kokkos::exp(alpha(i) - largest);
    return largest + Kokkos::log(sum);
  }

  Vector log_init_;
  Matrix log_trans_;
  Matrix log_emit_;
  Symbols symbols_;
  Lengths lengths_;
  LogLikelihood log_likelihood_;
};

}  // namespace bellman::baselines

#endif
