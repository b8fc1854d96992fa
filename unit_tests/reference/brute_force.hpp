// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_REFERENCE_BRUTE_FORCE_HPP
#define BELLMAN_UNIT_TESTS_REFERENCE_BRUTE_FORCE_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "reference/reference.hpp"

/// \brief The reference checked by writing every path down: no recurrence, only lists of moves and of states.
///
/// The number of paths grows exponentially, so this is for extents up to 3 or 4. Inputs are finite or -inf.
namespace bellman::reference::brute_force {

enum class Move { diagonal, down, right };

/// \brief One local alignment: the cell (row, column) of the (M+1, N+1) table that it starts from, and its moves.
struct LocalAlignment {
  std::size_t row = 0;
  std::size_t column = 0;
  std::vector<Move> moves;
};

/// \brief Every local alignment of a rows x columns problem.
///
/// Unrolling H(i,j) = t log(1 + ...), each 1 is a path that starts in its cell, and H = 0 on the border is a path that
/// starts there. So a path starts in any cell of the table, border included, and every later cell has i, j >= 1: no
/// move ends on the border.
std::vector<LocalAlignment> all_local_alignments(std::size_t rows, std::size_t columns);

/// \brief H at every cell, shape (rows + 1, columns + 1).
///
///     H(i,j)   = t log sum_{paths p that end in (i,j)} e^(total(p)/t)
///     total(p) = sum of s(k,l) over its diagonal moves into (k,l) + g times the number of its other moves
///
/// At t = 0 the maximum of the totals.
std::vector<double> smith_waterman_table(std::span<const double> scores, std::size_t rows, std::size_t columns,
                                         double gap, double temperature);

/// \brief max of smith_waterman_table.
double smith_waterman_score(std::span<const double> scores, std::size_t rows, std::size_t columns, double gap,
                            double temperature);

/// \brief Log-likelihood as a sum over all S^T state paths q.
///
///     log sum_q e^(log_init(q(0)) + sum_{t>0} log_trans(q(t-1), q(t)) + sum_{t: o(t) >= 0} log_emit(q(t), o(t)))
double hmm_log_likelihood(const HmmModel& normalised_model, std::span<const std::int64_t> observations);

}  // namespace bellman::reference::brute_force

#endif
