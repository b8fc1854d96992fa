// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_INTEGER_VIEW_HPP
#define BELLMAN_IMPL_INTEGER_VIEW_HPP

#include <Kokkos_Core.hpp>
#include <bellman/impl/integer_type.hpp>
#include <cstdint>

namespace bellman::impl {

/// A strided view of integers whose type is known at run time only. Symbols and lengths come in eight integer types; a
/// kernel per type would multiply the instantiations, while this switch is uniform over a team and costs little.
template <int rank>
struct IntegerView {
  const void* data = nullptr;
  std::int64_t extents[rank] = {};
  std::int64_t strides[rank] = {};
  IntegerType type = IntegerType::int32;

  KOKKOS_FUNCTION bool is_present() const { return data != nullptr; }

  /// The element as int64; an unsigned value beyond it becomes the largest int64.
  template <class... Indices>
  KOKKOS_FUNCTION std::int64_t operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == rank);
    const std::int64_t index[rank] = {indices...};
    std::int64_t offset = 0;
    for (int axis = 0; axis < rank; ++axis) offset += index[axis] * strides[axis];
    switch (type) {
      case IntegerType::int8: return static_cast<const std::int8_t*>(data)[offset];
      case IntegerType::int16: return static_cast<const std::int16_t*>(data)[offset];
      case IntegerType::int32: return static_cast<const std::int32_t*>(data)[offset];
      case IntegerType::int64: return static_cast<const std::int64_t*>(data)[offset];
      case IntegerType::uint8: return static_cast<const std::uint8_t*>(data)[offset];
      case IntegerType::uint16: return static_cast<const std::uint16_t*>(data)[offset];
      case IntegerType::uint32: return static_cast<const std::uint32_t*>(data)[offset];
      case IntegerType::uint64: {
        const std::uint64_t value = static_cast<const std::uint64_t*>(data)[offset];
        return static_cast<std::int64_t>(value < INT64_MAX ? value : INT64_MAX);
      }
    }
    return 0;
  }
};

}  // namespace bellman::impl

#endif
