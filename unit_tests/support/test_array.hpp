// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_SUPPORT_TEST_ARRAY_HPP
#define BELLMAN_UNIT_TESTS_SUPPORT_TEST_ARRAY_HPP

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <bellman/status.hpp>
#include <cstddef>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

namespace bellman::support {

/// T with as many * as there are axes: the data type of a View.
template <class T, std::size_t rank>
struct AddAxes {
  using type = typename AddAxes<T*, rank - 1>::type;
};
template <class T>
struct AddAxes<T, 0> {
  using type = T;
};

/// What unwritten outputs and padding hold: NaN, a status that no call returns, or the largest value.
template <class T>
T poison() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::quiet_NaN();
  if constexpr (std::is_same_v<T, Status>) return static_cast<Status>(0xee);
  if constexpr (std::is_integral_v<T>) return std::numeric_limits<T>::max();
}

/// An array in the memory of a space, in any layout, surrounded by poison. With LayoutStride every axis is padded, the last
/// one too.
template <class Space, class Layout, class T, std::size_t rank>
class TestArray {
 public:
  using View = Kokkos::View<typename AddAxes<T, rank>::type, Layout, typename Space::memory_space,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Extents = std::array<std::size_t, rank>;

  /// All poison, as an output wants it.
  explicit TestArray(const Extents& extents)
      : extents_(extents),
        strides_(strides_of(extents)),
        memory_("test_array", slots() * sizeof(T)),
        host_(new T[slots()]) {
    std::fill_n(host_.get(), slots(), poison<T>());
    upload();
  }

  /// Filled from row-major values.
  template <class U>
  TestArray(const Extents& extents, const std::vector<U>& values) : TestArray(extents) {
    for (std::size_t k = 0; k < size(); ++k) host_[margin + offset(k)] = static_cast<T>(values.at(k));
    upload();
  }

  View view() const {
    T* const data = reinterpret_cast<T*>(memory_.data()) + margin;
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride>) {
      Kokkos::LayoutStride layout;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        layout.dimension[axis] = extents_[axis];
        layout.stride[axis] = strides_[axis];
      }
      return View(data, layout);
    } else {
      Layout layout;
      for (std::size_t axis = 0; axis < rank; ++axis) layout.dimension[axis] = extents_[axis];
      return View(data, layout);
    }
  }

  /// The values in row-major order, once the work enqueued so far is done.
  std::vector<T> values() {
    Kokkos::fence();
    Kokkos::deep_copy(host_bytes(), memory_);
    std::vector<T> result(size());
    for (std::size_t k = 0; k < size(); ++k) result[k] = host_[margin + offset(k)];
    return result;
  }

  /// Whether nothing was written between, before or behind the elements. Call values() first.
  bool padding_is_untouched() const {
    std::vector<bool> is_element(slots(), false);
    for (std::size_t k = 0; k < size(); ++k) is_element[margin + offset(k)] = true;
    for (std::size_t k = 0; k < is_element.size(); ++k) {
      const T value = host_[k];
      const bool is_poison = value == poison<T>() || (value != value && poison<T>() != poison<T>());
      if (!is_element[k] && !is_poison) return false;
    }
    return true;
  }

  std::size_t size() const {
    std::size_t product = 1;
    for (const std::size_t extent : extents_) product *= extent;
    return product;
  }

 private:
  // Bytes, so that one copy per space is compiled and not one per type.
  using Bytes = Kokkos::View<std::byte*, typename Space::memory_space>;
  using HostBytes = Kokkos::View<std::byte*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  static constexpr std::size_t margin = 8;

  HostBytes host_bytes() { return HostBytes(reinterpret_cast<std::byte*>(host_.get()), slots() * sizeof(T)); }
  void upload() { Kokkos::deep_copy(memory_, host_bytes()); }

  static Extents strides_of(const Extents& extents) {
    Extents strides;
    constexpr bool is_left = std::is_same_v<Layout, Kokkos::LayoutLeft>;
    constexpr std::size_t padding = std::is_same_v<Layout, Kokkos::LayoutStride> ? 1 : 0;
    std::size_t stride = 1 + padding;
    for (std::size_t k = 0; k < rank; ++k) {
      const std::size_t axis = is_left ? k : rank - 1 - k;
      strides[axis] = stride;
      stride *= extents[axis] + padding;
    }
    return strides;
  }

  std::size_t slots() const { return span() + 2 * margin; }

  std::size_t span() const {
    std::size_t last = 0;
    for (std::size_t axis = 0; axis < rank; ++axis) last += strides_[axis] * std::max<std::size_t>(extents_[axis], 1);
    return last + 1;
  }

  std::size_t offset(std::size_t row_major_index) const {
    std::size_t result = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      result += row_major_index % extents_[axis] * strides_[axis];
      row_major_index /= extents_[axis];
    }
    return result;
  }

  Extents extents_;
  Extents strides_;
  Bytes memory_;
  std::unique_ptr<T[]> host_;
};

}  // namespace bellman::support

#endif
