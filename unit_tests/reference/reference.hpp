// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_REFERENCE_REFERENCE_HPP
#define BELLMAN_UNIT_TESTS_REFERENCE_REFERENCE_HPP

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

/// \brief What each operation means, computed serially and in the plainest way.
///
/// Every other implementation is measured against these functions, so they share no code with the library. All arrays
/// are flat and row-major. Every function throws std::invalid_argument when the array lengths do not fit the extents.
namespace bellman::reference {

/// \brief Soft local alignment score with a linear gap (Smith-Waterman); temperature 0 is the exact hard score.
///
///     H(i,j) = t log(1 + e^((H(i-1,j-1) + s(i,j))/t) + e^((H(i-1,j) + g)/t) + e^((H(i,j-1) + g)/t))
///     H(0,*) = H(*,0) = 0;   score = max over all H(i,j), hence >= 0
///     at t = 0:  H(i,j) = max(0, H(i-1,j-1) + s(i,j), H(i-1,j) + g, H(i,j-1) + g)
///
/// - Shapes:   scores s (rows, columns); gap g is added, so a penalty is negative; temperature t >= 0.
/// - Units:    those of the scores.
/// - -inf:     a forbidden cell, or no gaps: that move is never made, even from a cell with H = +inf.
/// - +inf:     a score or gap of +inf that some path uses gives +inf.   - Empty: rows = 0 or columns = 0 gives 0.
/// - NaN:      a NaN score anywhere, or a NaN gap, gives NaN.
/// - Error:    about 1e-16 (rows + columns) (|score| + t) at worst: every cell rounds once, and errors are averaged.
/// - Source:   Smith and Waterman (1981), the maximum replaced by its soft form.
/// \throws std::invalid_argument also when temperature is negative, NaN or infinite
double smith_waterman_score(std::span<const double> scores, std::size_t rows, std::size_t columns, double gap,
                            double temperature);

/// \brief smith_waterman_score of each problem of a batch.
///
///     out(b) = score of s(b,*,*)
///
/// - Shapes:   scores s (batch, rows, columns); out (batch).
std::vector<double> smith_waterman_scores(std::span<const double> scores, std::size_t batch, std::size_t rows,
                                          std::size_t columns, double gap, double temperature);

/// \brief A hidden Markov model with S = states and O = symbols, as logits or as log-probabilities.
///
/// - Shapes:   log_init (S); log_trans (S,S), from row to column; log_emit (S,O).
struct HmmModel {
  std::size_t states = 0;
  std::size_t symbols = 0;
  std::vector<double> log_init;
  std::vector<double> log_trans;
  std::vector<double> log_emit;
};

/// \brief Log-softmax of each array over its last axis.
///
///     y(r,c) = x(r,c) - log sum_k e^x(r,k)
///
/// - -inf:     stays -inf; a row of nothing else stays all -inf.   - NaN or +inf: makes its whole row NaN.
HmmModel normalised(const HmmModel& logits);

/// \brief Log-likelihood of one observation sequence under a normalised model (forward algorithm).
///
///     alpha(0,j) = log_init(j) + log_emit(j, o(0));   log_likelihood = log sum_j e^alpha(T-1,j)
///     alpha(t,j) = log sum_i e^(alpha(t-1,i) + log_trans(i,j)) + log_emit(j, o(t))
///
/// - Shapes:   observations o (T); a shorter sequence is a shorter span.   - Units: nats.
/// - Model:    taken as it is, not normalised here. -inf means probability 0; NaN or +inf anywhere gives NaN.
/// - Symbols:  o(t) < 0 is missing, and its emission is 1;  o(t) >= symbols anywhere gives NaN.
/// - Empty:    T = 0 gives 0, whatever the model holds.     - Impossible: every path forbidden gives -inf, never NaN.
/// - Error:    log-domain in long double. With its 64-bit significand T = 1e6 steps cost about 1e-13 (1 + |result|);
///             where long double is double, about 1e-16 T.
/// - Source:   Rabiner (1989), eqs. 19-21.
double hmm_log_likelihood(const HmmModel& normalised_model, std::span<const std::int64_t> observations);

/// \brief hmm_log_likelihood of the model that the logits normalise to, without rounding that model to double.
///
///     log_likelihood of o under  y(r,c) = x(r,c) - log sum_k e^x(r,k)
///
/// The difference to hmm_log_likelihood(normalised(logits), o) shows only where |log-likelihood| is far below T: there
/// the rounding of each log-probability, the same at each step, adds up to about 1e-16 T.
double hmm_log_likelihood_of_logits(const HmmModel& logits, std::span<const std::int64_t> observations);

/// \brief hmm_log_likelihood in double throughout: what speed is compared with, as long double costs several times as much.
///
/// - Error:    about 1e-16 T.
double hmm_log_likelihood_in_double(const HmmModel& normalised_model, std::span<const std::int64_t> observations);

enum class Reduction { sum, mean, min, max, count };

/// \brief Reduction of each column over the ranks whose cell is valid; masked cells are never used.
///
///     V(c) = {r : mask(r,c) != 0};   sum(c) = sum_{r in V(c)} x(r,c);   count(c) = |V(c)|
///     mean(c) = sum(c) / count(c);   min(c) = min_{r in V(c)} x(r,c);   max(c) = max_{r in V(c)} x(r,c)
///
/// - Shapes:   values x and mask (ranks, columns); out (columns).
/// - Empty:    V(c) = {} gives sum 0, mean NaN, min +inf, max -inf, count 0.
/// - NaN:      a valid NaN makes sum, mean, min and max NaN; so does a sum of +inf and -inf.
/// - Error:    compensated sums (Neumaier 1974), exact to one rounding unless terms cancel by more than 1e15.
std::vector<double> masked_reduce(Reduction reduction, std::span<const double> values,
                                  std::span<const std::uint8_t> mask, std::size_t ranks, std::size_t columns);

/// \brief The mask of shards that begin at column 0.
///
///     mask(r,c) = 1 if c < lengths(r), else 0
///
/// - Shapes:   lengths (ranks); out (ranks, columns).
std::vector<std::uint8_t> mask_from_lengths(std::span<const std::int64_t> lengths, std::size_t ranks,
                                            std::size_t columns);

}  // namespace bellman::reference

#endif
