// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_INTEGER_VIEW_HPP
#define BELLMAN_IMPL_INTEGER_VIEW_HPP

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <type_traits>

namespace bellman::impl {

enum class IntegerType : std::uint8_t { int8, int16, int32, int64, uint8, uint16, uint32, uint64 };

template <class T>
constexpr IntegerType integer_type() {
  static_assert(std::is_integral_v<T>);
  constexpr int log2_size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return static_cast<IntegerType>(log2_size + (std::is_signed_v<T> ? 0 : 4));
}

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

  /// Several elements, by their offsets, so that the reads overlap.
  template <int count>
  KOKKOS_FUNCTION void read(const std::int64_t (&offsets)[count], std::int64_t (&values)[count]) const {
    switch (type) {
      case IntegerType::int8: return read_as<std::int8_t>(offsets, values);
      case IntegerType::int16: return read_as<std::int16_t>(offsets, values);
      case IntegerType::int32: return read_as<std::int32_t>(offsets, values);
      case IntegerType::int64: return read_as<std::int64_t>(offsets, values);
      case IntegerType::uint8: return read_as<std::uint8_t>(offsets, values);
      case IntegerType::uint16: return read_as<std::uint16_t>(offsets, values);
      case IntegerType::uint32: return read_as<std::uint32_t>(offsets, values);
      case IntegerType::uint64: return read_as<std::uint64_t>(offsets, values);
    }
  }

 private:
  template <class T, int count>
  KOKKOS_FUNCTION void read_as(const std::int64_t (&offsets)[count], std::int64_t (&values)[count]) const {
    T elements[count];
    for (int n = 0; n < count; ++n) elements[n] = static_cast<const T*>(data)[offsets[n]];
    for (int n = 0; n < count; ++n) {
      values[n] = std::is_same_v<T, std::uint64_t> && elements[n] > static_cast<T>(INT64_MAX)
                      ? INT64_MAX
                      : static_cast<std::int64_t>(elements[n]);
    }
  }
};

}  // namespace bellman::impl

#endif
