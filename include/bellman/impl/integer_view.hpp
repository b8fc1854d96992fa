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
    std::uint64_t bits = 0;
    with_size([&](auto zero) { bits = static_cast<const decltype(zero)*>(data)[offset]; });
    return value_of(bits);
  }

  /// \p count neighbours along the only axis, all of them in flight at once; 0 behind them.
  template <int size>
  KOKKOS_FUNCTION void read(std::int64_t first, int count, std::int64_t (&values)[size]) const {
    static_assert(rank == 1);
    std::uint64_t bits[size] = {};
    with_size([&](auto zero) {
      const auto* from = static_cast<const decltype(zero)*>(data) + first * strides[0];
      for (int k = 0; k < size; ++k, from += strides[0]) {
        if (k < count) bits[k] = *from;
      }
    });
    for (int k = 0; k < size; ++k) values[k] = value_of(bits[k]);
  }

  /// Several elements, by their offsets, so that the reads overlap.
  template <int count>
  KOKKOS_FUNCTION void read(const std::int64_t (&offsets)[count], std::int64_t (&values)[count]) const {
    std::uint64_t bits[count];
    with_size([&](auto zero) {
      for (int n = 0; n < count; ++n) bits[n] = static_cast<const decltype(zero)*>(data)[offsets[n]];
    });
    for (int n = 0; n < count; ++n) values[n] = value_of(bits[n]);
  }

 private:
  static constexpr int first_unsigned = static_cast<int>(IntegerType::uint8);

  /// Few branches, and short ones: the rest of what the eight types differ in is arithmetic.
  template <class Function>
  KOKKOS_FUNCTION void with_size(const Function& function) const {
    const int log2_size = static_cast<int>(type) % first_unsigned;
    if (log2_size == 3) function(std::uint64_t{});
    if (log2_size == 2) function(std::uint32_t{});
    if (log2_size == 1) function(std::uint16_t{});
    if (log2_size == 0) function(std::uint8_t{});
  }
  KOKKOS_FUNCTION std::int64_t value_of(std::uint64_t bits) const {
    if (type == IntegerType::int64) return static_cast<std::int64_t>(bits);
    if (static_cast<int>(type) >= first_unsigned) return static_cast<std::int64_t>(bits < INT64_MAX ? bits : INT64_MAX);
    const int unused = 64 - (8 << static_cast<int>(type));
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }
};

}  // namespace bellman::impl

#endif
