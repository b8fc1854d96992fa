// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_ALIGNED_HPP
#define BELLMAN_IMPL_ALIGNED_HPP

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// Workspaces and scratch may start anywhere; what needs more than the alignment of a double asks for this many bytes
/// beside its own, and starts where aligned() says.
inline constexpr std::size_t alignment_slack = 16;

/// The next multiple of an alignment.
KOKKOS_FUNCTION inline std::byte* aligned(std::byte* memory, std::size_t alignment = alignment_slack) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  return memory + (alignment - address % alignment) % alignment;
}

}  // namespace bellman::impl

#endif
