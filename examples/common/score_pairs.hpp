// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_EXAMPLES_COMMON_SCORE_PAIRS_HPP
#define BELLMAN_EXAMPLES_COMMON_SCORE_PAIRS_HPP

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <bellman/alignment.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "fasta.hpp"
#include "substitution_matrix.hpp"

namespace bellman_examples {

/// \brief Two sequences to align, by their places in a list; the first one runs along the rows.
struct SequencePair {
  std::size_t first;
  std::size_t second;
};

/// \brief All pairs first < second of \p count sequences.
inline std::vector<SequencePair> all_pairs(std::size_t count) {
  std::vector<SequencePair> pairs;
  for (std::size_t first = 0; first < count; ++first) {
    for (std::size_t second = first + 1; second < count; ++second) pairs.push_back({first, second});
  }
  return pairs;
}

/// \brief The local alignment score of each pair, in the order of \p pairs.
///
/// Bellman takes a batch as a dense view (B,M,N). Pairs are therefore sorted by size and cut into batches of at most
/// \p batch_bytes, or one pair where that is larger. A hard score lets pairs of different sizes share a batch: cells
/// beyond a pair's own size hold -inf, no path scores there, and a gap into them costs. That is not so for a soft
/// score, which grows with the number of paths, nor for a gap that pays: such a batch takes pairs of one size only.
///
/// The sequences must hold letters of \p matrix only. \p progress is called with the number of pairs done.
template <class Real, class ExecutionSpace>
std::vector<Real> score_pairs(const ExecutionSpace& exec, const std::vector<FastaRecord>& sequences,
                              const SubstitutionMatrix& matrix, const std::vector<SequencePair>& pairs,
                              const bellman::SmithWatermanOptions& options,
                              const std::function<void(std::size_t)>& progress = {},
                              std::size_t batch_bytes = std::size_t{32} << 20) {
  using Kokkos::view_alloc;
  using Kokkos::WithoutInitializing;
  using Layout = Kokkos::LayoutRight;

  const auto size_of = [&](std::size_t sequence) { return sequences[sequence].sequence.size(); };
  std::size_t longest = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) longest = std::max(longest, size_of(i));

  // The sequences as rows of codes, and -1 beyond the end of each.
  const Kokkos::View<signed char**, Layout, ExecutionSpace> codes(
      view_alloc(exec, WithoutInitializing, "bellman_examples::score_pairs::codes"), sequences.size(), longest);
  const auto host_codes = Kokkos::create_mirror_view(codes);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto encoded = encode(sequences[i].sequence, matrix.letters);
    for (std::size_t j = 0; j < longest; ++j) host_codes(i, j) = j < encoded.size() ? encoded[j] : -1;
  }
  Kokkos::deep_copy(exec, codes, host_codes);

  const std::size_t letters = matrix.letters.size();
  const Kokkos::View<Real**, Layout, ExecutionSpace> letter_scores(
      view_alloc(exec, WithoutInitializing, "bellman_examples::score_pairs::letter_scores"), letters, letters);
  const auto host_letter_scores = Kokkos::create_mirror_view(letter_scores);
  for (std::size_t i = 0; i < letters; ++i) {
    for (std::size_t j = 0; j < letters; ++j) host_letter_scores(i, j) = static_cast<Real>(matrix(i, j));
  }
  Kokkos::deep_copy(exec, letter_scores, host_letter_scores);

  std::vector<std::size_t> order(pairs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto shape_of = [&](std::size_t pair) {
    return std::tuple(size_of(pairs[pair].first), size_of(pairs[pair].second));
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shape_of(a) < shape_of(b); });

  const bool sizes_may_differ = options.temperature == 0 && options.gap <= 0;
  std::vector<Real> result(pairs.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    std::size_t rows = 0;
    std::size_t columns = 0;
    while (end < order.size()) {
      const auto [pair_rows, pair_columns] = shape_of(order[end]);
      const std::size_t next_rows = std::max(rows, pair_rows);
      const std::size_t next_columns = std::max(columns, pair_columns);
      const bool same_size = pair_rows == rows && pair_columns == columns;
      const bool fits = (end - begin + 1) * next_rows * next_columns * sizeof(Real) <= batch_bytes;
      if (end > begin && !(fits && (same_size || sizes_may_differ))) break;
      rows = next_rows;
      columns = next_columns;
      ++end;
    }
    const std::size_t batch = end - begin;

    const Kokkos::View<std::size_t* [2], Layout, ExecutionSpace> batch_pairs(
        view_alloc(exec, WithoutInitializing, "bellman_examples::score_pairs::batch_pairs"), batch);
    const auto host_batch_pairs = Kokkos::create_mirror_view(batch_pairs);
    for (std::size_t b = 0; b < batch; ++b) {
      host_batch_pairs(b, 0) = pairs[order[begin + b]].first;
      host_batch_pairs(b, 1) = pairs[order[begin + b]].second;
    }
    Kokkos::deep_copy(exec, batch_pairs, host_batch_pairs);

    const Kokkos::View<Real***, Layout, ExecutionSpace> scores(
        view_alloc(exec, WithoutInitializing, "bellman_examples::score_pairs::scores"), batch, rows, columns);
    const Real forbidden = -std::numeric_limits<Real>::infinity();
    using Cells = Kokkos::MDRangePolicy<ExecutionSpace, Kokkos::Rank<3, Kokkos::Iterate::Right, Kokkos::Iterate::Right>,
                                        Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for(
        "bellman_examples::score_pairs::fill",
        Cells(exec, {0, 0, 0},
              {static_cast<std::int64_t>(batch), static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)}),
        KOKKOS_LAMBDA(std::int64_t b, std::int64_t i, std::int64_t j) {
          const int row = codes(batch_pairs(b, 0), i);
          const int column = codes(batch_pairs(b, 1), j);
          scores(b, i, j) = row < 0 || column < 0 ? forbidden : letter_scores(row, column);
        });

    const Kokkos::View<Real*, ExecutionSpace> score(
        view_alloc(exec, WithoutInitializing, "bellman_examples::score_pairs::score"), batch);
    bellman::smith_waterman_score(exec, scores, score, options);

    const auto host_score = Kokkos::create_mirror_view(score);
    Kokkos::deep_copy(exec, host_score, score);
    exec.fence("bellman_examples::score_pairs::result");
    for (std::size_t b = 0; b < batch; ++b) result[order[begin + b]] = host_score(b);

    begin = end;
    if (progress) progress(end);
  }
  return result;
}

}  // namespace bellman_examples

#endif
