// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_EXECUTION_SPACES_HPP
#define BELLMAN_IMPL_EXECUTION_SPACES_HPP

#include <Kokkos_Core.hpp>
#include <bellman/impl/host_kernels.hpp>
#include <bellman/plan.hpp>
#include <type_traits>

namespace bellman::impl {

/// Whether the library is compiled for this space; src/instantiations.hpp lists the same spaces.
template <class ExecutionSpace>
constexpr bool is_supported_space() {
#ifdef KOKKOS_ENABLE_SERIAL
  if (std::is_same_v<ExecutionSpace, Kokkos::Serial>) return true;
#endif
#ifdef KOKKOS_ENABLE_OPENMP
  if (std::is_same_v<ExecutionSpace, Kokkos::OpenMP>) return true;
#endif
#ifdef KOKKOS_ENABLE_CUDA
  if (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) return true;
#endif
  return false;
}

template <class ExecutionSpace>
constexpr void check_execution_space() {
  static_assert(is_supported_space<ExecutionSpace>(),
                "bellman: the first argument must be an instance of Kokkos::Cuda, Kokkos::OpenMP or Kokkos::Serial, "
                "enabled in this Kokkos.");
}

/// Whether lanes of one thread run in lockstep there, as the vector lanes of a CUDA warp do.
template <class ExecutionSpace>
constexpr bool has_warps() {
#ifdef KOKKOS_ENABLE_CUDA
  return std::is_same_v<ExecutionSpace, Kokkos::Cuda>;
#else
  return false;
#endif
}

template <class ExecutionSpace>
inline constexpr int lanes_of = has_warps<ExecutionSpace>() ? 32 : 1;

/// What plans need to know of the space. Level-0 scratch is what every Kokkos from 4.6 on grants: 48 KB less its own needs
/// on CUDA, 32 KB on hosts.
template <class ExecutionSpace>
Backend backend_of(const ExecutionSpace& exec) {
  const int threads = exec.concurrency();
  if (has_warps<ExecutionSpace>()) return {lanes_of<ExecutionSpace>, 1024, 36 * 1024, threads};
  return {lanes_of<ExecutionSpace>, 1, 32 * 1024, threads, host_kernels().register_bytes};
}

}  // namespace bellman::impl

#endif
