// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_FUNCTION_HPP
#define BELLMAN_IMPL_FUNCTION_HPP

/// \file
/// KOKKOS_FUNCTION for headers that need nothing else of Kokkos. The units of src/host, each compiled for one instruction set,
/// are plain C++: an inline function of Kokkos compiled there could end up in a program for all machines.
#ifdef BELLMAN_INSTRUCTIONS
#define KOKKOS_FUNCTION
#else
#include <Kokkos_Core.hpp>
#endif

#endif
