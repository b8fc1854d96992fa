// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_INSTANTIATIONS_HPP
#define BELLMAN_SRC_INSTANTIATIONS_HPP

/// \file
/// The one list of what the library is compiled for: every enabled space, with float and double. A source file defines a
/// macro that instantiates its functions for one entry and gives it to the list.

#include <Kokkos_Core.hpp>

#ifdef KOKKOS_ENABLE_SERIAL
#define BELLMAN_FOR_SERIAL(instantiate) instantiate(Kokkos::Serial)
#else
#define BELLMAN_FOR_SERIAL(instantiate)
#endif
#ifdef KOKKOS_ENABLE_OPENMP
#define BELLMAN_FOR_OPENMP(instantiate) instantiate(Kokkos::OpenMP)
#else
#define BELLMAN_FOR_OPENMP(instantiate)
#endif
#ifdef KOKKOS_ENABLE_CUDA
#define BELLMAN_FOR_CUDA(instantiate) instantiate(Kokkos::Cuda)
#else
#define BELLMAN_FOR_CUDA(instantiate)
#endif

#define BELLMAN_FOR_EACH_SPACE(instantiate) \
  BELLMAN_FOR_SERIAL(instantiate)           \
  BELLMAN_FOR_OPENMP(instantiate)           \
  BELLMAN_FOR_CUDA(instantiate)

#endif
