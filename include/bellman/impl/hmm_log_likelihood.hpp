// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_HMM_LOG_LIKELIHOOD_HPP
#define BELLMAN_IMPL_HMM_LOG_LIKELIHOOD_HPP

/// \file
/// What hmm.hpp calls; compiled in src/hmm_log_likelihood.cpp and src/plan.cpp.

#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>
#include <cstddef>
#include <cstdint>

namespace bellman::impl {

/// The parameters of a model as the caller gave them.
template <class ExecutionSpace, class Real>
struct HmmParameters {
  StridedView<const Real*, ExecutionSpace> init;
  StridedView<const Real**, ExecutionSpace> trans;
  StridedView<const Real**, ExecutionSpace> emit;
  bool normalised;

  KOKKOS_FUNCTION std::int64_t states() const { return static_cast<std::int64_t>(emit.extent(0)); }
  KOKKOS_FUNCTION std::int64_t symbols() const { return static_cast<std::int64_t>(emit.extent(1)); }
};

/// A batch of observation sequences, with or without lengths.
struct HmmSequences {
  IntegerView<2> symbols;
  IntegerView<1> lengths;

  KOKKOS_FUNCTION std::int64_t batch() const { return symbols.extents[0]; }
  KOKKOS_FUNCTION std::int64_t steps() const { return symbols.extents[1]; }
  /// As the caller gave it: it may lie outside 0..steps().
  KOKKOS_FUNCTION std::int64_t length(std::int64_t b) const { return lengths.is_present() ? lengths(b) : steps(); }
};

/// Where a symbol out of range was found.
struct SymbolPosition {
  bool found;
  std::size_t sequence;
  std::size_t step;
  std::int64_t symbol;
};

template <class ExecutionSpace, class Real, class InitView, class TransView, class EmitView>
void check_hmm_model(std::string_view function, const InitView& init, const TransView& trans, const EmitView& emit) {
  check_input<ExecutionSpace, InitView, 1, Element::real>();
  check_input<ExecutionSpace, TransView, 2, Element::real>();
  check_input<ExecutionSpace, EmitView, 2, Element::real>();
  static_assert(std::is_same_v<Real, typename InitView::non_const_value_type> &&
                    std::is_same_v<Real, typename TransView::non_const_value_type> &&
                    std::is_same_v<Real, typename EmitView::non_const_value_type>,
                "bellman: init, trans, emit and the result must hold the same type, float or double.");
  const auto states = init.extent(0);
  require_extent(function, "trans", trans, 0, states, "S = init.extent(0)");
  require_extent(function, "trans", trans, 1, states, "S = init.extent(0)");
  require_extent(function, "emit", emit, 0, states, "S = init.extent(0)");
}

template <class ExecutionSpace, class SymbolsView, class LengthsView>
void check_hmm_observations(std::string_view function, const SymbolsView& symbols, const LengthsView& lengths) {
  check_input<ExecutionSpace, SymbolsView, 2, Element::integer>();
  if constexpr (!is_no_view<LengthsView>) check_input<ExecutionSpace, LengthsView, 1, Element::integer>();
  require_extent(function, "lengths", lengths, 0, symbols.extent(0), "B = symbols.extent(0)");
}

HmmPlan plan_hmm_log_likelihood(const Backend& backend, bool is_double, std::size_t batch, std::size_t states,
                                std::size_t symbols, std::size_t steps);

template <class ExecutionSpace, class Real>
void hmm_log_likelihood(const ExecutionSpace& exec, const HmmPlan& plan,
                        const HmmParameters<ExecutionSpace, Real>& parameters, const HmmSequences& sequences,
                        const StridedView<Real*, ExecutionSpace>& log_likelihood,
                        const StridedView<Status*, ExecutionSpace>& statuses,
                        const StridedView<std::byte*, ExecutionSpace>& workspace);

template <class ExecutionSpace>
SymbolPosition first_bad_symbol(const ExecutionSpace& exec, const HmmSequences& sequences, std::int64_t symbols);

}  // namespace bellman::impl

#endif
