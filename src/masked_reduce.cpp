// SPDX-License-Identifier: Apache-2.0
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/masked_reduce.hpp>

#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// What a column holds so far. Sums are kept in double; every kind starts at its own neutral value.
struct ColumnState {
  double value;
  std::int64_t count;
};

/// How the valid cells of a column are joined. A NaN wins over every number, whatever its place.
template <Reduction reduction>
struct ColumnReducer {
  KOKKOS_FUNCTION static ColumnState neutral() {
    if constexpr (reduction == Reduction::min) return {infinity<double>(), 0};
    if constexpr (reduction == Reduction::max) return {-infinity<double>(), 0};
    return {0, 0};
  }
  KOKKOS_FUNCTION static double joined(double a, double b) {
    if constexpr (reduction == Reduction::min) return b < a || b != b ? b : a;
    if constexpr (reduction == Reduction::max) return b > a || b != b ? b : a;
    return a + b;
  }
  KOKKOS_FUNCTION static void join(ColumnState& state, const ColumnState& other) {
    state = {joined(state.value, other.value), state.count + other.count};
  }
  KOKKOS_FUNCTION static double result(const ColumnState& state) {
    if constexpr (reduction == Reduction::count) return static_cast<double>(state.count);
    if constexpr (reduction == Reduction::mean) return state.value / static_cast<double>(state.count);
    return state.value;
  }
};

/// Joins the states of a team in the form that Kokkos wants.
template <class Space, Reduction reduction>
struct TeamReducer {
  using reducer = TeamReducer;
  using value_type = ColumnState;
  using result_view_type = Kokkos::View<value_type, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  value_type* target;

  KOKKOS_FUNCTION void join(value_type& state, const value_type& other) const {
    ColumnReducer<reduction>::join(state, other);
  }
  KOKKOS_FUNCTION void init(value_type& state) const { state = ColumnReducer<reduction>::neutral(); }
  KOKKOS_FUNCTION value_type& reference() const { return *target; }
  KOKKOS_FUNCTION result_view_type view() const { return result_view_type(target); }
};

template <class ExecutionSpace>
struct ValidByMask {
  StridedView<const std::uint8_t**, ExecutionSpace> mask;

  KOKKOS_FUNCTION bool operator()(std::int64_t rank, std::int64_t column) const { return mask(rank, column) != 0; }
};

struct ValidByLength {
  IntegerView<1> lengths;

  KOKKOS_FUNCTION bool operator()(std::int64_t rank, std::int64_t column) const { return column < lengths(rank); }
};

/// A thread owns a column and goes through its ranks in order; or a team owns it and its threads share the ranks.
template <class ExecutionSpace, class Real, Reduction reduction, class Valid>
struct MaskedReduceColumn {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Reducer = ColumnReducer<reduction>;

  StridedView<const Real**, ExecutionSpace> values;
  Valid valid;
  StridedView<Real*, ExecutionSpace> out;
  std::int64_t first_problem = 0;

  KOKKOS_FUNCTION void add(ColumnState& state, std::int64_t rank, std::int64_t column) const {
    if (!valid(rank, column)) return;
    double value = 0;
    if constexpr (reduction != Reduction::count) value = static_cast<double>(values(rank, column));
    Reducer::join(state, {value, 1});
  }

  KOKKOS_FUNCTION void operator()(std::int64_t column) const {
    ColumnState state = Reducer::neutral();
    const auto ranks = static_cast<std::int64_t>(values.extent(0));
    for (std::int64_t rank = 0; rank < ranks; ++rank) add(state, rank, column);
    out(column) = static_cast<Real>(Reducer::result(state));
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t column = first_problem + team.league_rank();
    ColumnState state = Reducer::neutral();
    const auto ranks = static_cast<std::int64_t>(values.extent(0));
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, ranks), [&](std::int64_t rank, ColumnState& part) { add(part, rank, column); },
        TeamReducer<typename ExecutionSpace::memory_space, reduction>{&state});
    if (team.team_rank() == 0) out(column) = static_cast<Real>(Reducer::result(state));
  }
};

template <Reduction reduction, class ExecutionSpace, class Real, class Valid>
void reduce_columns(const ExecutionSpace& exec, const StridedView<const Real**, ExecutionSpace>& values,
                    const Valid& valid, const StridedView<Real*, ExecutionSpace>& out) {
  const auto columns = static_cast<std::int64_t>(values.extent(1));
  const MaskedReducePlan plan = plan_masked_reduce(backend_of(exec), values.extent(0), values.extent(1));
  const MaskedReduceColumn<ExecutionSpace, Real, reduction, Valid> functor{values, valid, out};
  if (columns == 0) return;
  if (plan.team_per_column) {
    launch_teams("bellman::masked_reduce::team", exec, functor, columns, plan.team_threads, 1, ScratchLevel::fast, 0);
  } else {
    using Columns = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("bellman::masked_reduce::column", Columns(exec, 0, columns), functor);
  }
}

template <class ExecutionSpace, class Real, class Valid>
void dispatch(const ExecutionSpace& exec, Reduction reduction, const StridedView<const Real**, ExecutionSpace>& values,
              const Valid& valid, const StridedView<Real*, ExecutionSpace>& out) {
  const Kokkos::Profiling::ScopedRegion region("bellman::masked_reduce");
  switch (reduction) {
    case Reduction::sum: return reduce_columns<Reduction::sum>(exec, values, valid, out);
    case Reduction::mean: return reduce_columns<Reduction::mean>(exec, values, valid, out);
    case Reduction::min: return reduce_columns<Reduction::min>(exec, values, valid, out);
    case Reduction::max: return reduce_columns<Reduction::max>(exec, values, valid, out);
    case Reduction::count: return reduce_columns<Reduction::count>(exec, values, valid, out);
  }
}

}  // namespace

template <class ExecutionSpace, class Real>
void masked_reduce(const ExecutionSpace& exec, const MaskedReduceOptions& options,
                   const StridedView<const Real**, ExecutionSpace>& values,
                   const StridedView<const std::uint8_t**, ExecutionSpace>& valid,
                   const StridedView<Real*, ExecutionSpace>& out) {
  dispatch<ExecutionSpace, Real>(exec, options.reduction, values, ValidByMask<ExecutionSpace>{valid}, out);
}

template <class ExecutionSpace, class Real>
void masked_reduce(const ExecutionSpace& exec, const MaskedReduceOptions& options,
                   const StridedView<const Real**, ExecutionSpace>& values, const IntegerView<1>& valid,
                   const StridedView<Real*, ExecutionSpace>& out) {
  dispatch<ExecutionSpace, Real>(exec, options.reduction, values, ValidByLength{valid}, out);
}

#define BELLMAN_INSTANTIATE_FOR(Space, Real)                                                               \
  template void masked_reduce<Space, Real>(                                                                \
      const Space&, const MaskedReduceOptions&, const StridedView<const Real**, Space>&,                   \
      const StridedView<const std::uint8_t**, Space>&, const StridedView<Real*, Space>&);                  \
  template void masked_reduce<Space, Real>(const Space&, const MaskedReduceOptions&,                       \
                                           const StridedView<const Real**, Space>&, const IntegerView<1>&, \
                                           const StridedView<Real*, Space>&);
#define BELLMAN_INSTANTIATE(Space)      \
  BELLMAN_INSTANTIATE_FOR(Space, float) \
  BELLMAN_INSTANTIATE_FOR(Space, double)
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
