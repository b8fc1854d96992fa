// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_ALIGNMENT_HPP
#define BELLMAN_ALIGNMENT_HPP

#include <Kokkos_Core.hpp>
#include <bellman/error.hpp>
#include <bellman/impl/smith_waterman.hpp>
#include <bellman/impl/views.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>

namespace bellman {

/// \brief Plan of smith_waterman_score for problems of M x N cells, computed in Real (float or double).
///
/// Pure: depends on its arguments alone, launches nothing. It is that of scores whose rows are contiguous and begin and end
/// at multiples of 16 bytes; other views are swept by strips, with the same bits in the result.
/// \throws OptionError as smith_waterman_score does
template <class Real, class ExecutionSpace>
AlignmentPlan smith_waterman_plan(const ExecutionSpace& exec, std::size_t rows, std::size_t columns,
                                  const SmithWatermanOptions& options = {}) {
  impl::check_execution_space<ExecutionSpace>();
  return impl::plan_smith_waterman(impl::backend_of(exec), impl::is_double<Real>(), rows, columns, options);
}

/// \brief Bytes of workspace with which smith_waterman_score is quicker for such a call; 0 where it is of no use.
///
/// Where problems are large and too few to fill a GPU one by one, several multiprocessors share each of them, through the
/// workspace.
/// \throws OptionError as smith_waterman_score does
template <class Real, class ExecutionSpace>
std::size_t smith_waterman_score_workspace_size(const ExecutionSpace& exec, std::size_t batch, std::size_t rows,
                                                std::size_t columns, const SmithWatermanOptions& options = {}) {
  impl::check_execution_space<ExecutionSpace>();
  return impl::plan_smith_waterman(impl::backend_of(exec), impl::is_double<Real>(), rows, columns, options, true,
                                   static_cast<std::int64_t>(batch), true)
      .workspace_bytes;
}

/// \brief Local alignment score of each problem of a batch (Smith-Waterman, linear gap), soft or hard.
///
///     H(i,j) = t log(1 + exp((H(i-1,j-1) + s(i,j))/t) + exp((H(i-1,j) + g)/t) + exp((H(i,j-1) + g)/t))
///     H(0,.) = H(.,0) = 0;   score = max over all (i,j) of H(i,j), so score >= 0
///     t = 0 is the exact limit H = max(0, H(i-1,j-1) + s(i,j), H(i-1,j) + g, H(i,j-1) + g)
///
/// - Shapes:  scores (B,M,N), score (B), statuses (B), workspace (bytes): B problems of M rows and N columns; any layout;
///            float or double.
/// - Units:   scores, gap g, temperature t and result share one unit of the caller's. g is added: a penalty is negative.
/// - Legal:   s = -inf forbids a cell, g = -inf forbids gaps: exact. M = 0 or N = 0 gives 0 and Status::empty. A NaN score
///            gives NaN and Status::not_a_number for its problem only. s = +inf gives +inf.
/// - Error:   at most 1e-5 (|score| + t) in float and 1e-11 (|score| + t) in double; see docs/accuracy.md.
/// - Same:    a result depends on its own problem alone, bitwise, on one backend.
/// - Async:   enqueued on \p exec; no fence, no allocation in steady state. \p workspace, a View<std::byte*>, may be left
///            out; few large problems are quicker with one. It then holds at least smith_waterman_score_workspace_size
///            bytes until the work is done, of any content, and no other call that may run at the same time uses it. The
///            result is the same, bitwise. For a workspace without statuses pass {} for these.
/// - Source:  Smith and Waterman (1981); the soft form: Saigo et al. (2004), Petti et al. (2023), eq. 1.
///
/// \throws ShapeError when extents do not fit together or a workspace is too small, OptionError when t is negative, NaN or
///         infinite or g is NaN or +inf, AliasError when an output overlaps an input; nothing has been launched then
template <class ExecutionSpace, class ScoresView, class ScoreView, class StatusView = impl::NoView,
          class WorkspaceView = impl::NoView>
void smith_waterman_score(const ExecutionSpace& exec, const ScoresView& scores, const ScoreView& score,
                          const SmithWatermanOptions& options = {}, const StatusView& statuses = {},
                          const WorkspaceView& workspace = {}) {
  constexpr const char* function = "bellman::smith_waterman_score";
  impl::check_execution_space<ExecutionSpace>();
  impl::check_input<ExecutionSpace, ScoresView, 3, impl::Element::real>();
  impl::check_output<ExecutionSpace, ScoreView, 1, impl::Element::real>();
  impl::check_output<ExecutionSpace, StatusView, 1, impl::Element::status>();
  impl::check_output<ExecutionSpace, WorkspaceView, 1, impl::Element::byte>();
  using Real = typename ScoreView::non_const_value_type;
  static_assert(std::is_same_v<Real, typename ScoresView::non_const_value_type>,
                "bellman: scores and score must hold the same type, float or double.");

  impl::require_extent(function, "score", score, 0, scores.extent(0), "B = scores.extent(0)");
  impl::require_extent(function, "statuses", statuses, 0, scores.extent(0), "B = scores.extent(0)");
  if constexpr (!impl::is_no_view<WorkspaceView>) {
    const auto wanted =
        smith_waterman_score_workspace_size<Real>(exec, scores.extent(0), scores.extent(1), scores.extent(2), options);
    impl::require_workspace(function, workspace, wanted);
  }
  impl::require_distinct_outputs(function,
                                 impl::named_views("score", score, "statuses", statuses, "workspace", workspace),
                                 impl::named_views("scores", scores));

  impl::smith_waterman_score<ExecutionSpace, Real>(
      exec, impl::canonical<const Real***>(exec, scores), impl::canonical<Real*>(exec, score), options,
      impl::canonical<Status*>(exec, statuses), impl::canonical<std::byte*>(exec, workspace));
}

}  // namespace bellman

#endif
