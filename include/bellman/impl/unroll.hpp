// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_UNROLL_HPP
#define BELLMAN_IMPL_UNROLL_HPP

/// Before a loop of fixed length whose index selects registers: an array stays in registers only if it is unrolled. The
/// host side of a CUDA compilation knows neither form.
#if defined(__CUDA_ARCH__)
#define BELLMAN_UNROLL _Pragma("unroll")
#elif defined(__GNUC__) && !defined(__clang__) && !defined(__CUDACC__)
#define BELLMAN_UNROLL _Pragma("GCC unroll 32")
#else
#define BELLMAN_UNROLL
#endif

/// Before a loop that runs a few times, once a kernel: the code of an unrolled one would take longer to fetch than to run.
#if defined(__CUDA_ARCH__)
#define BELLMAN_ROLLED _Pragma("unroll 1")
#else
#define BELLMAN_ROLLED
#endif

#include <Kokkos_Core.hpp>

namespace bellman::impl {

/// What was read from memory before is read again after this. In a loop it keeps a matrix in shared memory from being read
/// ahead of the loop as a whole, into registers that do not exist.
KOKKOS_FORCEINLINE_FUNCTION void forget_memory() { KOKKOS_IF_ON_DEVICE((asm volatile("" ::: "memory");)) }

}  // namespace bellman::impl

#endif
