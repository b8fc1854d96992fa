// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_VIEWS_HPP
#define BELLMAN_IMPL_VIEWS_HPP

/// \file
/// The border between a caller's views and the kernels: types and ranks are checked at compile time, extents and overlaps at
/// run time, and what passes becomes an unmanaged strided view of a canonical type, so that few kernels are instantiated.

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <bellman/error.hpp>
#include <bellman/impl/execution_spaces.hpp>
#include <bellman/impl/integer_view.hpp>
#include <bellman/status.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace bellman::impl {

/// Stands for an optional view that the caller left out.
struct NoView {};

template <class View>
inline constexpr bool is_no_view = std::is_same_v<View, NoView>;

/// The canonical form of every view: any layout, no reference count.
template <class DataType, class ExecutionSpace>
using StridedView =
    Kokkos::View<DataType, Kokkos::LayoutStride, Kokkos::Device<ExecutionSpace, typename ExecutionSpace::memory_space>,
                 Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

template <class View>
constexpr int rank_of() {
  if constexpr (Kokkos::is_view_v<View>) {
    return static_cast<int>(View::rank);
  } else {
    return -1;
  }
}
template <class View>
inline constexpr int view_rank = rank_of<View>();

template <class Real>
constexpr bool is_double() {
  static_assert(std::is_same_v<Real, float> || std::is_same_v<Real, double>,
                "bellman: results are computed in float or double.");
  return std::is_same_v<Real, double>;
}

/// What the elements of a view must be.
enum class Element { real, integer, mask, status, byte };

template <Element element, class T>
constexpr bool holds() {
  if constexpr (element == Element::real) return std::is_same_v<T, float> || std::is_same_v<T, double>;
  if constexpr (element == Element::integer) return std::is_integral_v<T> && !std::is_same_v<T, bool>;
  if constexpr (element == Element::mask) return std::is_same_v<T, bool> || std::is_same_v<T, std::uint8_t>;
  if constexpr (element == Element::status) return std::is_same_v<T, Status>;
  if constexpr (element == Element::byte) return std::is_same_v<T, std::byte>;
  return false;
}

/// Refuses, in sentences, views that no kernel could take.
template <class ExecutionSpace, class View, int rank, Element element>
constexpr void check_input() {
  static_assert(Kokkos::is_view_v<View>, "bellman: inputs and outputs must be Kokkos::View objects.");
  if constexpr (Kokkos::is_view_v<View>) {
    using T = typename View::non_const_value_type;
    static_assert(view_rank<View> == rank,
                  "bellman: a view has the wrong rank; see the shapes in the function's contract.");
    static_assert(element != Element::real || holds<Element::real, T>(),
                  "bellman: this view must hold float or double.");
    static_assert(
        element != Element::integer || holds<Element::integer, T>(),
        "bellman: symbols and lengths must be of an integer type; floating-point observations are not accepted.");
    static_assert(element != Element::mask || holds<Element::mask, T>(),
                  "bellman: a mask must hold bool or std::uint8_t.");
    static_assert(element != Element::status || holds<Element::status, T>(),
                  "bellman: statuses must be a view of bellman::Status.");
    static_assert(element != Element::byte || holds<Element::byte, T>(),
                  "bellman: a workspace must be a view of std::byte.");
    static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename View::memory_space>::accessible,
                  "bellman: the execution space cannot access the memory of this view.");
  }
}

/// As check_input, for a view that is written to and that the caller may leave out.
template <class ExecutionSpace, class View, int rank, Element element>
constexpr void check_output() {
  if constexpr (!is_no_view<View>) {
    check_input<ExecutionSpace, View, rank, element>();
    static_assert(!std::is_const_v<typename View::value_type>, "bellman: an output view must not be const.");
  }
}

/// Views the same elements in canonical form; an absent view becomes one without data. Masks of bool become bytes.
template <class DataType, class ExecutionSpace, class View>
StridedView<DataType, ExecutionSpace> canonical(const ExecutionSpace&, const View& view) {
  using Canonical = StridedView<DataType, ExecutionSpace>;
  if constexpr (is_no_view<View>) {
    return Canonical();
  } else {
    Kokkos::LayoutStride layout;
    for (int axis = 0; axis < view_rank<View>; ++axis) {
      layout.dimension[axis] = view.extent(axis);
      layout.stride[axis] = view.stride(axis);
    }
    using T = typename Canonical::value_type;
    if constexpr (std::is_same_v<std::remove_const_t<T>, typename View::non_const_value_type>) {
      return Canonical(view.data(), layout);
    } else {
      static_assert(sizeof(bool) == sizeof(std::uint8_t));
      return Canonical(reinterpret_cast<T*>(view.data()), layout);
    }
  }
}

template <int rank, class View>
IntegerView<rank> integer_view(const View& view) {
  IntegerView<rank> result;
  if constexpr (!is_no_view<View>) {
    result.data = view.data();
    result.type = integer_type<typename View::non_const_value_type>();
    for (int axis = 0; axis < rank; ++axis) {
      result.extents[axis] = static_cast<std::int64_t>(view.extent(axis));
      result.strides[axis] = static_cast<std::int64_t>(view.stride(axis));
    }
  }
  return result;
}

/// The memory from the first to the last element of a view, with the name that messages give it.
struct NamedSpan {
  std::string_view name;
  const std::byte* begin = nullptr;
  const std::byte* end = nullptr;
};

template <class View>
NamedSpan named_span(std::string_view name, const View& view) {
  if constexpr (is_no_view<View>) {
    return {name};
  } else {
    // Not view.span(), which may count a whole stride behind the last element.
    std::size_t last = 0;
    for (int axis = 0; axis < view_rank<View>; ++axis) {
      if (view.extent(axis) == 0) return {name};
      last += (view.extent(axis) - 1) * view.stride(axis);
    }
    const auto* begin = reinterpret_cast<const std::byte*>(view.data());
    return {name, begin, begin + (last + 1) * sizeof(typename View::value_type)};
  }
}

/// The spans of the views of a list "name", view, "name", view, ...
template <class View, class... Rest>
std::array<NamedSpan, 1 + sizeof...(Rest) / 2> named_views(std::string_view name, const View& view,
                                                           const Rest&... rest) {
  std::array<NamedSpan, 1 + sizeof...(Rest) / 2> spans{named_span(name, view)};
  if constexpr (sizeof...(Rest) > 0) {
    const auto others = named_views(rest...);
    std::copy(others.begin(), others.end(), spans.begin() + 1);
  }
  return spans;
}

[[noreturn]] void throw_extent(std::string_view function, std::string_view view, int axis, std::size_t got,
                               std::size_t wanted, std::string_view meaning);
[[noreturn]] void throw_overlap(std::string_view function, std::string_view output, std::string_view other);
[[noreturn]] void throw_workspace(std::string_view function, std::size_t got, std::size_t wanted);
[[noreturn]] void throw_option(std::string_view function, std::string_view option, double got, std::string_view wanted);

/// Throws ShapeError unless the view (or an absent one) has the extent wanted; \p meaning says where that comes from.
template <class View>
void require_extent(std::string_view function, std::string_view name, const View& view, int axis, std::size_t wanted,
                    std::string_view meaning) {
  if constexpr (!is_no_view<View>) {
    if (view.extent(axis) != wanted) throw_extent(function, name, axis, view.extent(axis), wanted, meaning);
  }
}

template <class View>
void require_workspace(std::string_view function, const View& workspace, std::size_t wanted) {
  std::size_t got = 0;
  if constexpr (!is_no_view<View>) got = workspace.span_is_contiguous() ? workspace.extent(0) : 0;
  if (got < wanted) throw_workspace(function, got, wanted);
}

/// Throws AliasError when an output shares memory with an input or with another output.
template <std::size_t outputs, std::size_t inputs>
void require_distinct_outputs(std::string_view function, const std::array<NamedSpan, outputs>& written,
                              const std::array<NamedSpan, inputs>& read) {
  const auto require_distinct = [&](const NamedSpan& output, const NamedSpan& other) {
    if (output.begin < other.end && other.begin < output.end) throw_overlap(function, output.name, other.name);
  };
  for (std::size_t i = 0; i < outputs; ++i) {
    for (const auto& input : read) require_distinct(written[i], input);
    for (std::size_t j = i + 1; j < outputs; ++j) require_distinct(written[i], written[j]);
  }
}

}  // namespace bellman::impl

#endif
