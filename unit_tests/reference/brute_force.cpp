// SPDX-License-Identifier: Apache-2.0
#include "reference/brute_force.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bellman::reference::brute_force {
namespace {

constexpr long double forbidden = -std::numeric_limits<long double>::infinity();

/// t log sum_k e^(totals_k / t) over the totals that are not forbidden.
long double soft_sum(const std::vector<long double>& totals, long double t) {
  long double largest = forbidden;
  for (const long double total : totals) largest = std::max(largest, total);
  if (largest == forbidden || t == 0) return largest;
  long double sum = 0;
  for (const long double total : totals) {
    if (total != forbidden) sum += std::exp((total - largest) / t);
  }
  return largest + t * std::log(sum);
}

struct Cell {
  std::size_t row;
  std::size_t column;
};

Cell after(Cell cell, Move move) {
  return {cell.row + (move == Move::right ? 0 : 1), cell.column + (move == Move::down ? 0 : 1)};
}

void continue_from(Cell cell, std::size_t rows, std::size_t columns, LocalAlignment& path,
                   std::vector<LocalAlignment>& all) {
  all.push_back(path);
  for (const Move move : {Move::diagonal, Move::down, Move::right}) {
    const Cell next = after(cell, move);
    if (next.row == 0 || next.column == 0 || next.row > rows || next.column > columns) continue;
    path.moves.push_back(move);
    continue_from(next, rows, columns, path, all);
    path.moves.pop_back();
  }
}

}  // namespace

std::vector<LocalAlignment> all_local_alignments(std::size_t rows, std::size_t columns) {
  std::vector<LocalAlignment> all;
  for (std::size_t row = 0; row <= rows; ++row) {
    for (std::size_t column = 0; column <= columns; ++column) {
      LocalAlignment path{row, column, {}};
      continue_from({row, column}, rows, columns, path, all);
    }
  }
  return all;
}

std::vector<double> smith_waterman_table(std::span<const double> scores, std::size_t rows, std::size_t columns,
                                         double gap, double temperature) {
  std::vector<std::vector<long double>> totals((rows + 1) * (columns + 1));
  for (const LocalAlignment& path : all_local_alignments(rows, columns)) {
    Cell cell{path.row, path.column};
    long double total = 0;
    for (const Move move : path.moves) {
      cell = after(cell, move);
      total += move == Move::diagonal ? scores[(cell.row - 1) * columns + (cell.column - 1)] : gap;
    }
    totals[cell.row * (columns + 1) + cell.column].push_back(total);
  }
  std::vector<double> table(totals.size());
  std::transform(totals.begin(), totals.end(), table.begin(), [&](const std::vector<long double>& of_cell) {
    return static_cast<double>(soft_sum(of_cell, temperature));
  });
  return table;
}

double smith_waterman_score(std::span<const double> scores, std::size_t rows, std::size_t columns, double gap,
                            double temperature) {
  const std::vector<double> table = smith_waterman_table(scores, rows, columns, gap, temperature);
  return *std::max_element(table.begin(), table.end());
}

double hmm_log_likelihood(const HmmModel& normalised_model, std::span<const std::int64_t> observations) {
  const HmmModel& model = normalised_model;
  if (observations.empty()) return 0;
  std::vector<long double> totals;
  std::vector<std::size_t> path(observations.size(), 0);
  while (true) {
    long double total = 0;
    for (std::size_t t = 0; t < path.size(); ++t) {
      total += t == 0 ? model.log_init[path[0]] : model.log_trans[path[t - 1] * model.states + path[t]];
      if (observations[t] >= 0) {
        total += model.log_emit[path[t] * model.symbols + static_cast<std::size_t>(observations[t])];
      }
    }
    totals.push_back(total);
    // The next path, counting in base S with path[0] as the lowest digit.
    std::size_t digit = 0;
    while (digit < path.size() && ++path[digit] == model.states) path[digit++] = 0;
    if (digit == path.size()) break;
  }
  return static_cast<double>(soft_sum(totals, 1));
}

}  // namespace bellman::reference::brute_force
