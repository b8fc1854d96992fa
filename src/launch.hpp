// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_LAUNCH_HPP
#define BELLMAN_SRC_LAUNCH_HPP

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <bellman/impl/execution_spaces.hpp>
#include <bellman/plan.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace bellman::impl {

/// A named region in the profile of a tool. Without a tool it costs nothing, where Kokkos' own would build a string.
class ProfilingRegion {
 public:
  explicit ProfilingRegion(const char* name) : is_open_(Kokkos::Profiling::profileLibraryLoaded()) {
    if (is_open_) Kokkos::Profiling::pushRegion(name);
  }
  ProfilingRegion(const ProfilingRegion&) = delete;
  ProfilingRegion& operator=(const ProfilingRegion&) = delete;
  ~ProfilingRegion() {
    if (is_open_) Kokkos::Profiling::popRegion();
  }

 private:
  bool is_open_;
};

/// Whether team launches of this instance have wanted large scratch before. Kokkos 4.6 allocates anew for each one that wants
/// none until then, and a team that wants some waits for it.
template <class ExecutionSpace>
bool has_large_scratch(const ExecutionSpace& exec) {
  if constexpr (requires { exec.impl_internal_space_instance()->m_team_scratch_current_size[0]; }) {
    return exec.impl_internal_space_instance()->m_team_scratch_current_size[0] > 0;
  }
  return false;
}

/// Runs a team functor once per problem. Functor::first_problem is added to the league rank: a league holds an int, a batch
/// may be larger.
///
/// \tparam most_threads, least_teams  what the compiler may count on: threads times lanes of a team, teams at a time
template <unsigned most_threads = 0, unsigned least_teams = 0, class ExecutionSpace, class Functor>
void launch_teams(const std::string& label, const ExecutionSpace& exec, Functor functor, std::int64_t problems,
                  int team_threads, int lanes, ScratchLevel scratch_level, std::size_t scratch_bytes) {
  constexpr std::int64_t largest_league = std::numeric_limits<int>::max();
  for (std::int64_t first = 0; first < problems; first += largest_league) {
    functor.first_problem = first;
    const auto league = static_cast<int>(std::min(problems - first, largest_league));
    Kokkos::TeamPolicy<ExecutionSpace, Kokkos::LaunchBounds<most_threads, least_teams>> policy(exec, league,
                                                                                               team_threads, lanes);
    policy.set_scratch_size(static_cast<int>(scratch_level), Kokkos::PerTeam(scratch_bytes));
    if (has_warps<ExecutionSpace>() && scratch_level == ScratchLevel::fast && !has_large_scratch(exec)) {
      policy.set_scratch_size(static_cast<int>(ScratchLevel::large), Kokkos::PerTeam(sizeof(double)));
    }
    Kokkos::parallel_for(label, policy, functor);
  }
}

/// Scratch of one team, as one block that a kernel divides among its rows and vectors; aligned for double.
template <class Team>
KOKKOS_FUNCTION std::byte* team_scratch(const Team& team, ScratchLevel level, std::size_t bytes) {
  using Scratch = Kokkos::View<double*, typename Team::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  const Scratch scratch(team.team_scratch(static_cast<int>(level)), (bytes + sizeof(double) - 1) / sizeof(double));
  return reinterpret_cast<std::byte*>(scratch.data());
}

}  // namespace bellman::impl

#endif
