// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_MASKED_REDUCE_HPP
#define BELLMAN_MASKED_REDUCE_HPP

#include <Kokkos_Core.hpp>
#include <bellman/error.hpp>
#include <bellman/impl/masked_reduce.hpp>
#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>

namespace bellman {

/// \brief Plan of masked_reduce for R ranks and S columns. Pure: depends on its arguments alone, launches nothing.
template <class ExecutionSpace>
MaskedReducePlan masked_reduce_plan(const ExecutionSpace& exec, std::size_t ranks, std::size_t columns) {
  impl::check_execution_space<ExecutionSpace>();
  return impl::plan_masked_reduce(impl::backend_of(exec), ranks, columns);
}

/// \brief Reduce each column over the ranks whose cell is valid.
///
///     out(c) = reduce over { x(r,c) : r = 0 .. R-1, valid(r,c) }
///
/// - Shapes:  values x (R,S), out (S): R ranks, S columns; any layout; float or double.
///            valid is a mask (R,S) of bool or std::uint8_t (not 0 is valid), or shard lengths (R) of any integer type: cell
///            (r,c) is valid when c < valid(r), so a length below 0 counts as 0 and one above S as S.
/// - Masked:  cells that are not valid are never used: NaN or infinity there does not leak.
/// - NaN:     a valid NaN makes the sum, mean, minimum and maximum of its column NaN, whatever its place.
/// - Empty:   a column without a valid rank has sum 0, mean NaN, minimum +inf, maximum -inf, count 0.
/// - Error:   min, max and count are exact (count in float up to 2^24). Sums are accumulated in double and rounded once: at
///            most u |sum| + R 2^-52 sum|x|, u = 2^-24 in float and 2^-53 in double; see docs/accuracy.md.
/// - Same:    the order of the additions is fixed: bitwise the same in every run, on one backend.
/// - Async:   enqueued on \p exec; no fence, no allocation, no workspace.
///
/// \throws ShapeError when extents do not fit together, AliasError when out overlaps an input; nothing has been launched
///         then
template <class ExecutionSpace, class ValuesView, class ValidView, class OutView>
void masked_reduce(const ExecutionSpace& exec, const ValuesView& values, const ValidView& valid, const OutView& out,
                   const MaskedReduceOptions& options = {}) {
  constexpr const char* function = "bellman::masked_reduce";
  constexpr bool by_length = impl::view_rank<ValidView> == 1;
  impl::check_execution_space<ExecutionSpace>();
  impl::check_input<ExecutionSpace, ValuesView, 2, impl::Element::real>();
  impl::check_output<ExecutionSpace, OutView, 1, impl::Element::real>();
  if constexpr (by_length) {
    impl::check_input<ExecutionSpace, ValidView, 1, impl::Element::integer>();
  } else {
    impl::check_input<ExecutionSpace, ValidView, 2, impl::Element::mask>();
  }
  using Real = typename OutView::non_const_value_type;
  static_assert(std::is_same_v<Real, typename ValuesView::non_const_value_type>,
                "bellman: values and out must hold the same type, float or double.");

  impl::require_extent(function, "valid", valid, 0, values.extent(0), "R = values.extent(0)");
  if constexpr (!by_length) impl::require_extent(function, "valid", valid, 1, values.extent(1), "S = values.extent(1)");
  impl::require_extent(function, "out", out, 0, values.extent(1), "S = values.extent(1)");
  impl::require_distinct_outputs(function, impl::named_views("out", out),
                                 impl::named_views("values", values, "valid", valid));

  if constexpr (by_length) {
    impl::masked_reduce<ExecutionSpace, Real>(exec, options, impl::canonical<const Real**>(exec, values),
                                              impl::integer_view<1>(valid), impl::canonical<Real*>(exec, out));
  } else {
    impl::masked_reduce<ExecutionSpace, Real>(exec, options, impl::canonical<const Real**>(exec, values),
                                              impl::canonical<const std::uint8_t**>(exec, valid),
                                              impl::canonical<Real*>(exec, out));
  }
}

}  // namespace bellman

#endif
