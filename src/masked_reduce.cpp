// SPDX-License-Identifier: Apache-2.0
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/host_kernels.hpp>
#include <bellman/impl/masked_reduce.hpp>
#include <cstddef>
#include <cstdint>

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
  static constexpr bool uses_values = reduction != Reduction::count;
  static constexpr bool uses_count = reduction == Reduction::count || reduction == Reduction::mean;

  template <class Real>
  KOKKOS_FUNCTION static constexpr Real neutral() {
    if constexpr (reduction == Reduction::min) return infinity<Real>();
    if constexpr (reduction == Reduction::max) return -infinity<Real>();
    return 0;
  }
  KOKKOS_FUNCTION static double joined(double a, double b) {
    if constexpr (reduction == Reduction::min) return (b < a) | (b != b) ? b : a;
    if constexpr (reduction == Reduction::max) return (b > a) | (b != b) ? b : a;
    return a + b;
  }
  /// Of a cell that is not valid, \p cell must be the neutral value, which changes no bit and needs no branch.
  KOKKOS_FUNCTION static void add(double& value, std::int64_t& count, bool is_valid, double cell) {
    if constexpr (uses_values) value = joined(value, cell);
    if constexpr (uses_count) count += is_valid ? 1 : 0;
  }
  KOKKOS_FUNCTION static double result(double value, std::int64_t count) {
    if constexpr (reduction == Reduction::count) return static_cast<double>(count);
    if constexpr (reduction == Reduction::mean) return value / static_cast<double>(count);
    return value;
  }
};

/// Joins the states of a team in the form that Kokkos wants.
template <class Space, Reduction reduction>
struct TeamReducer {
  using reducer = TeamReducer;
  using value_type = ColumnState;
  using result_view_type = Kokkos::View<value_type, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  using Reducer = ColumnReducer<reduction>;

  value_type* target;

  KOKKOS_FUNCTION void join(value_type& state, const value_type& other) const {
    state = {Reducer::joined(state.value, other.value), state.count + other.count};
  }
  KOKKOS_FUNCTION void init(value_type& state) const { state = {Reducer::template neutral<double>(), 0}; }
  KOKKOS_FUNCTION value_type& reference() const { return *target; }
  KOKKOS_FUNCTION result_view_type view() const { return result_view_type(target); }
};

/// What a thread takes at once. GPUs hide the latency of memory with many bytes in flight: loads of 16 bytes, the widest
/// there are, of several ranks before the first is used.
template <class ExecutionSpace, class Real>
struct Tile {
  static constexpr int columns = 16 / sizeof(Real);
  static constexpr int ranks = has_warps<ExecutionSpace>() ? 4 : 1;

  template <class T>
  static constexpr std::size_t alignment = columns * sizeof(T);
};

/// Neighbouring elements of a row, for one load or store.
template <class T, int columns, std::size_t alignment>
struct alignas(alignment) Pack {
  T at[columns];
};

template <class ExecutionSpace, class Real, class T, int columns>
using PackOf = Pack<T, columns, columns == 1 ? alignof(T) : Tile<ExecutionSpace, Real>::template alignment<T>>;

/// Whether every row of a view can be read in packs: neighbouring columns are adjacent, and each row is aligned.
template <class View>
bool has_packs(const View& view, std::size_t alignment) {
  constexpr int last = static_cast<int>(View::rank) - 1;
  const auto row_bytes = last == 0 ? 0 : view.stride(0) * sizeof(typename View::value_type);
  return view.stride(last) == 1 && reinterpret_cast<std::uintptr_t>(view.data()) % alignment == 0 &&
         row_bytes % alignment == 0;
}

/// The valid cells among neighbouring columns of one rank, for HostJoin.
struct HostRun {
  const std::uint8_t* mask;
  std::int64_t count;
};

template <class ExecutionSpace, class Real>
struct ValidByMask {
  StridedView<const std::uint8_t**, ExecutionSpace> mask;

  /// Which of neighbouring columns are valid in one rank, and whether their values have to be read.
  template <int columns>
  struct Run {
    PackOf<ExecutionSpace, Real, std::uint8_t, columns> bytes;
    bool is_wanted;

    KOKKOS_FUNCTION bool operator[](int c) const { return bytes.at[c] != 0; }
  };

  bool has_packs() const { return impl::has_packs(mask, Tile<ExecutionSpace, Real>::template alignment<std::uint8_t>); }
  KOKKOS_FUNCTION bool operator()(std::int64_t rank, std::int64_t column) const { return mask(rank, column) != 0; }

  /// Whether neighbouring columns are adjacent.
  bool has_runs() const { return mask.stride(1) == 1; }
  /// The bytes of a rank from a column on, and how many of them matter.
  HostRun run(std::int64_t rank, std::int64_t column, std::int64_t count) const {
    const auto stride = static_cast<std::int64_t>(mask.stride(0));
    return {mask.data() + rank * stride + column, count};
  }

  /// Those of \p count ranks from \p first on; behind them nothing is valid.
  template <int columns, int ranks>
  KOKKOS_FUNCTION void read(std::int64_t first, int count, std::int64_t column, Run<columns> (&runs)[ranks]) const {
    using Bytes = decltype(runs[0].bytes);
    const std::uint8_t* row = &mask(first, column);
    for (int k = 0; k < ranks; ++k, row += mask.stride(0)) {
      runs[k].is_wanted = k < count;
      runs[k].bytes = k < count ? *reinterpret_cast<const Bytes*>(row) : Bytes{};
    }
  }
};

struct ValidByLength {
  IntegerView<1> lengths;

  template <int columns>
  struct Run {
    int length;
    bool is_wanted;

    KOKKOS_FUNCTION bool operator[](int c) const { return c < length; }
  };

  bool has_packs() const { return true; }
  KOKKOS_FUNCTION bool operator()(std::int64_t rank, std::int64_t column) const { return column < lengths(rank); }

  bool has_runs() const { return true; }
  HostRun run(std::int64_t rank, std::int64_t column, std::int64_t count) const {
    const std::int64_t length = lengths(rank);
    return {nullptr, length <= column ? 0 : std::min(length - column, count)};
  }

  template <int columns, int ranks>
  KOKKOS_FUNCTION void read(std::int64_t first, int count, std::int64_t column, Run<columns> (&runs)[ranks]) const {
    std::int64_t length[ranks];
    lengths.read(first, count, length);
    for (int k = 0; k < ranks; ++k) {
      const bool is_wanted = column < length[k];
      const bool is_whole = columns == 1 || column + columns <= length[k];
      runs[k] = {!is_wanted ? 0 : is_whole ? columns : static_cast<int>(length[k] - column), is_wanted};
    }
  }
};

/// A thread owns a column, or a pack of neighbours, and goes through the ranks in order; or a team owns a column and its
/// threads share the ranks. Which of the first two makes no difference to any bit. Without packs there is little to read,
/// and only latency counts: cells are read before it is known which of them are valid.
template <class ExecutionSpace, class Real, Reduction reduction, class Valid, bool uses_packs>
struct MaskedReduceColumns {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Reducer = ColumnReducer<reduction>;
  using Tile = impl::Tile<ExecutionSpace, Real>;

  StridedView<const Real**, ExecutionSpace> values;
  Valid valid;
  StridedView<Real*, ExecutionSpace> out;
  std::int64_t packs = 0;
  std::int64_t first_problem = 0;

  /// How many packs there are; 0 where memory does not allow for them. The columns behind are taken one by one.
  std::int64_t count_packs() const {
    constexpr std::size_t alignment = Tile::template alignment<Real>;
    const bool all_have = has_packs(values, alignment) && has_packs(out, alignment) && valid.has_packs();
    return all_have ? static_cast<std::int64_t>(values.extent(1)) / Tile::columns : 0;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    if constexpr (!uses_packs) {
      reduce<1>(item);
    } else if (item < packs) {
      reduce<Tile::columns>(item * Tile::columns);
    } else {
      reduce<1>(packs * Tile::columns + (item - packs));
    }
  }

  template <int columns>
  KOKKOS_FUNCTION void reduce(std::int64_t column) const {
    using Cells = PackOf<ExecutionSpace, Real, Real, columns>;
    double value[columns];
    std::int64_t count[columns];
    for (int c = 0; c < columns; ++c) {
      value[c] = Reducer::template neutral<double>();
      count[c] = 0;
    }
    const auto ranks = static_cast<std::int64_t>(values.extent(0));
    for (std::int64_t first = 0; first < ranks; first += Tile::ranks) {
      const int here = first + Tile::ranks <= ranks ? Tile::ranks : static_cast<int>(ranks - first);
      const Real* row = &values(first, column);
      Cells cells[Tile::ranks] = {};
      const auto read_if = [&](int k, bool is_wanted) {
        if (is_wanted)
          cells[k] = *reinterpret_cast<const Cells*>(row + k * static_cast<std::int64_t>(values.stride(0)));
      };
      if constexpr (Reducer::uses_values && !uses_packs) {
        for (int k = 0; k < Tile::ranks; ++k) read_if(k, k < here);
      }
      typename Valid::template Run<columns> runs[Tile::ranks];
      valid.read(first, here, column, runs);
      if constexpr (Reducer::uses_values && uses_packs) {
        for (int k = 0; k < Tile::ranks; ++k) read_if(k, runs[k].is_wanted);
      }
      for (int k = 0; k < Tile::ranks; ++k) {
        Real used[columns];  // in a loop of its own: compilers then see no branch in either
        for (int c = 0; c < columns; ++c) used[c] = runs[k][c] ? cells[k].at[c] : Reducer::template neutral<Real>();
        for (int c = 0; c < columns; ++c) Reducer::add(value[c], count[c], runs[k][c], static_cast<double>(used[c]));
      }
    }
    Cells results;
    for (int c = 0; c < columns; ++c) results.at[c] = static_cast<Real>(Reducer::result(value[c], count[c]));
    *reinterpret_cast<Cells*>(&out(column)) = results;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t column = first_problem + team.league_rank();
    ColumnState state;
    const auto ranks = static_cast<std::int64_t>(values.extent(0));
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, ranks),
        [&](std::int64_t rank, ColumnState& part) {
          if (valid(rank, column)) Reducer::add(part.value, part.count, true, values(rank, column));
        },
        TeamReducer<typename ExecutionSpace::memory_space, reduction>{&state});
    if (team.team_rank() == 0) out(column) = static_cast<Real>(Reducer::result(state.value, state.count));
  }
};

/// A thread of a host owns a block of neighbouring columns, and goes through the ranks in order: for each a long run of memory,
/// which the kernels of src/host join with what the thread keeps in its cache. The bits are those of one column at a time.
template <class ExecutionSpace, class Real, Reduction reduction, class Valid>
struct MaskedReduceBlocks {
  using Reducer = ColumnReducer<reduction>;

  StridedView<const Real**, ExecutionSpace> values;
  Valid valid;
  StridedView<Real*, ExecutionSpace> out;
  int block;

  bool is_possible() const { return values.stride(1) == 1 && out.stride(0) == 1 && valid.has_runs(); }

  void operator()(std::int64_t item) const {
    alignas(most_register_bytes) double value[most_columns_together];
    alignas(most_register_bytes) double count[most_columns_together];
    const std::int64_t first = item * block;
    const auto columns = std::min<std::int64_t>(block, static_cast<std::int64_t>(out.extent(0)) - first);
    const auto ranks = static_cast<std::int64_t>(values.extent(0));
    const auto stride = static_cast<std::int64_t>(values.stride(0));
    const HostJoins<Real>& joins = joins_of_type();
    std::fill_n(value, columns, Reducer::template neutral<double>());
    std::fill_n(count, columns, 0.0);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const HostRun run = valid.run(rank, first, columns);
      const Real* const row = values.data() + rank * stride + first;
      if constexpr (Reducer::uses_values) join(joins)(value, row, run.mask, run.count);
      if constexpr (Reducer::uses_count) joins.count(count, row, run.mask, run.count);
    }
    for (std::int64_t c = 0; c < columns; ++c) {
      out.data()[first + c] = static_cast<Real>(Reducer::result(value[c], static_cast<std::int64_t>(count[c])));
    }
  }

 private:
  static const HostJoins<Real>& joins_of_type() {
    if constexpr (is_float<Real>) {
      return host_kernels().joins_of_floats;
    } else {
      return host_kernels().joins_of_doubles;
    }
  }
  static HostJoin<Real> join(const HostJoins<Real>& joins) {
    if constexpr (reduction == Reduction::min) return joins.min;
    if constexpr (reduction == Reduction::max) return joins.max;
    return joins.sum;
  }
};

template <Reduction reduction, class ExecutionSpace, class Real, class Valid>
void reduce_columns(const ExecutionSpace& exec, const StridedView<const Real**, ExecutionSpace>& values,
                    const Valid& valid, const StridedView<Real*, ExecutionSpace>& out) {
  const auto columns = static_cast<std::int64_t>(values.extent(1));
  if (columns == 0) return;
  const MaskedReducePlan plan = plan_masked_reduce(backend_of(exec), values.extent(0), values.extent(1));
  using Index = Kokkos::IndexType<std::int64_t>;
  if constexpr (!has_warps<ExecutionSpace>()) {
    const MaskedReduceBlocks<ExecutionSpace, Real, reduction, Valid> functor{values, valid, out, plan.block};
    if (functor.is_possible()) {
      static const std::string label = "bellman::masked_reduce::block";
      const std::int64_t blocks = (columns + plan.block - 1) / plan.block;
      Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace, Index>(exec, 0, blocks), functor);
      return;
    }
  } else if (plan.packs) {
    // At most 128 registers a thread: kept to 64, sums of floats by mask take a quarter longer on an H200.
    using Items = Kokkos::RangePolicy<ExecutionSpace, Index, Kokkos::LaunchBounds<128, 4>>;
    static const std::string label = "bellman::masked_reduce::pack";
    MaskedReduceColumns<ExecutionSpace, Real, reduction, Valid, true> functor{values, valid, out};
    functor.packs = functor.count_packs();
    const std::int64_t items = columns - functor.packs * (impl::Tile<ExecutionSpace, Real>::columns - 1);
    Kokkos::parallel_for(label, Items(exec, 0, items), functor);
    return;
  }
  const MaskedReduceColumns<ExecutionSpace, Real, reduction, Valid, false> functor{values, valid, out};
  if (plan.team_per_column) {
    static const std::string label = "bellman::masked_reduce::team";
    launch_teams(label, exec, functor, columns, plan.team_threads, 1, ScratchLevel::fast, 0);
  } else {
    // Without launch bounds Kokkos finds the size of the blocks sooner.
    static const std::string label = "bellman::masked_reduce::column";
    Kokkos::parallel_for(label, Kokkos::RangePolicy<ExecutionSpace, Index>(exec, 0, columns), functor);
  }
}

template <class ExecutionSpace, class Real, class Valid>
void dispatch(const ExecutionSpace& exec, Reduction reduction, const StridedView<const Real**, ExecutionSpace>& values,
              const Valid& valid, const StridedView<Real*, ExecutionSpace>& out) {
  const ProfilingRegion region("bellman::masked_reduce");
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
  dispatch<ExecutionSpace, Real>(exec, options.reduction, values, ValidByMask<ExecutionSpace, Real>{valid}, out);
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
