// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_INTEGER_TYPE_HPP
#define BELLMAN_IMPL_INTEGER_TYPE_HPP

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

}  // namespace bellman::impl

#endif
