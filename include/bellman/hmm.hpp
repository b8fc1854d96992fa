// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_HMM_HPP
#define BELLMAN_HMM_HPP

#include <Kokkos_Core.hpp>
#include <bellman/error.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>

namespace bellman {

/// \brief Plan of hmm_log_likelihood for B sequences of T steps, S states and O symbols, computed in Real.
///
/// Pure: depends on its arguments alone, launches nothing.
template <class Real, class ExecutionSpace>
HmmPlan hmm_log_likelihood_plan(const ExecutionSpace& exec, std::size_t batch, std::size_t states, std::size_t symbols,
                                std::size_t steps) {
  impl::check_execution_space<ExecutionSpace>();
  return impl::plan_hmm_log_likelihood(impl::backend_of(exec), impl::is_double<Real>(), batch, states, symbols, steps);
}

/// \brief Bytes of workspace that hmm_log_likelihood needs for such a call, whatever B; 0 where the model is small.
template <class Real, class ExecutionSpace>
std::size_t hmm_log_likelihood_workspace_size(const ExecutionSpace& exec, std::size_t states, std::size_t symbols,
                                              std::size_t steps) {
  return hmm_log_likelihood_plan<Real>(exec, 1, states, symbols, steps).workspace_bytes;
}

/// \brief The parameters of a hidden Markov model of S states and O symbols.
///
/// init (S), trans (S,S) from row to column, emit (S,O): logits, or log-probabilities when HmmOptions::normalised. -inf is
/// legal and means probability 0. Any layout; float or double.
template <class InitView, class TransView, class EmitView>
struct HmmModel {
  InitView init;
  TransView trans;
  EmitView emit;
};
template <class InitView, class TransView, class EmitView>
HmmModel(InitView, TransView, EmitView) -> HmmModel<InitView, TransView, EmitView>;

/// \brief A batch of B observation sequences of at most T steps.
///
/// symbols (B,T) of any integer type, negative for a missing observation; optional lengths (B) of any integer type: sequence
/// b has lengths(b) steps, and nothing beyond them is read.
template <class SymbolsView, class LengthsView = impl::NoView>
struct HmmObservations {
  SymbolsView symbols;
  LengthsView lengths = {};
};
template <class SymbolsView>
HmmObservations(SymbolsView) -> HmmObservations<SymbolsView>;
template <class SymbolsView, class LengthsView>
HmmObservations(SymbolsView, LengthsView) -> HmmObservations<SymbolsView, LengthsView>;

/// \brief Log-likelihood of each observation sequence under one hidden Markov model (forward algorithm).
///
///     alpha(0,j) = init(j) + emit(j, o(b,0));   log_likelihood(b) = log sum_j exp alpha(T-1,j)
///     alpha(t,j) = log sum_i exp(alpha(t-1,i) + trans(i,j)) + emit(j, o(b,t))
///
/// - Shapes:  model and observations as above, log_likelihood (B), statuses (B), workspace (bytes): S states, O symbols, B
///            sequences, T steps. The result is computed in the type of the model's views, float or double.
/// - Units:   nats. Each row of the model is normalised here by log-softmax, unless options.normalised says that the rows
///            are log-probabilities already; these are then used as they are.
/// - Legal:   o < 0 is missing: that step's emission is 1. o >= O gives NaN and Status::bad_symbol for that sequence, and
///            nothing is read out of range; first_bad_symbol finds it. T = 0 or a length of 0 gives 0 and Status::empty; a
///            length outside 0..T gives NaN and Status::bad_length. A sequence that no path can emit has -inf and
///            Status::impossible. A NaN or +inf logit anywhere in the model makes every non-empty result NaN.
/// - Error:   at most 1e-6 (1 + |value|) in float and 1e-12 (1 + |value|) in double; see docs/accuracy.md.
/// - Same:    a result depends on its own sequence and the model alone, bitwise, on one backend.
/// - Async:   enqueued on \p exec; no fence, no allocation in steady state. \p workspace, a View<std::byte*>, holds at
///            least hmm_log_likelihood_workspace_size bytes until the work is done; small models need none. For a
///            workspace without statuses pass {} for these.
/// - Source:  Rabiner (1989), eqs. 19 to 21.
///
/// \throws ShapeError when extents do not fit together or the workspace is too small, AliasError when an output overlaps
///         an input; nothing has been launched then
template <class ExecutionSpace, class InitView, class TransView, class EmitView, class SymbolsView, class LengthsView,
          class LogLikelihoodView, class StatusView = impl::NoView, class WorkspaceView = impl::NoView>
void hmm_log_likelihood(const ExecutionSpace& exec, const HmmModel<InitView, TransView, EmitView>& model,
                        const HmmObservations<SymbolsView, LengthsView>& observations,
                        const LogLikelihoodView& log_likelihood, const HmmOptions& options = {},
                        const StatusView& statuses = {}, const WorkspaceView& workspace = {}) {
  constexpr const char* function = "bellman::hmm_log_likelihood";
  using Real = typename LogLikelihoodView::non_const_value_type;
  impl::check_execution_space<ExecutionSpace>();
  impl::check_hmm_model<ExecutionSpace, Real>(function, model.init, model.trans, model.emit);
  impl::check_hmm_observations<ExecutionSpace>(function, observations.symbols, observations.lengths);
  impl::check_output<ExecutionSpace, LogLikelihoodView, 1, impl::Element::real>();
  impl::check_output<ExecutionSpace, StatusView, 1, impl::Element::status>();
  impl::check_output<ExecutionSpace, WorkspaceView, 1, impl::Element::byte>();

  const auto batch = observations.symbols.extent(0);
  impl::require_extent(function, "log_likelihood", log_likelihood, 0, batch, "B = symbols.extent(0)");
  impl::require_extent(function, "statuses", statuses, 0, batch, "B = symbols.extent(0)");
  const auto plan = hmm_log_likelihood_plan<Real>(exec, batch, model.init.extent(0), model.emit.extent(1),
                                                  observations.symbols.extent(1));
  impl::require_workspace(function, workspace, plan.workspace_bytes);
  impl::require_distinct_outputs(
      function, impl::named_views("log_likelihood", log_likelihood, "statuses", statuses, "workspace", workspace),
      impl::named_views("init", model.init, "trans", model.trans, "emit", model.emit, "symbols", observations.symbols,
                        "lengths", observations.lengths));

  impl::hmm_log_likelihood<ExecutionSpace, Real>(
      exec, plan,
      {impl::canonical<const Real*>(exec, model.init), impl::canonical<const Real**>(exec, model.trans),
       impl::canonical<const Real**>(exec, model.emit), options.normalised},
      {impl::integer_view<2>(observations.symbols), impl::integer_view<1>(observations.lengths)},
      impl::canonical<Real*>(exec, log_likelihood), impl::canonical<Status*>(exec, statuses),
      impl::canonical<std::byte*>(exec, workspace));
}

/// \brief The first observation of a batch that is not a symbol of the model.
struct BadSymbol {
  bool found;            ///< false: every observed symbol is in range
  std::size_t sequence;  ///< b of the first one, by sequence, then by step
  std::size_t step;      ///< t of it
  std::int64_t symbol;   ///< its value (the largest int64 for an unsigned value beyond it)
};

/// \brief Find the first symbol >= O in a batch of observations, to name it after a Status::bad_symbol.
///
/// Blocks until the answer is known: it is meant for error reports, not for hot paths.
/// \throws ShapeError when extents do not fit together
template <class ExecutionSpace, class SymbolsView, class LengthsView>
BadSymbol first_bad_symbol(const ExecutionSpace& exec, const HmmObservations<SymbolsView, LengthsView>& observations,
                           std::size_t symbols) {
  impl::check_execution_space<ExecutionSpace>();
  impl::check_hmm_observations<ExecutionSpace>("bellman::first_bad_symbol", observations.symbols, observations.lengths);
  const auto position = impl::first_bad_symbol<ExecutionSpace>(
      exec, {impl::integer_view<2>(observations.symbols), impl::integer_view<1>(observations.lengths)},
      static_cast<std::int64_t>(symbols));
  return {position.found, position.sequence, position.step, position.symbol};
}

}  // namespace bellman

#endif
