// SPDX-License-Identifier: Apache-2.0
#include "case_tools.hpp"

#include <algorithm>
#include <bellman/accuracy.hpp>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <span>

#include "reference/reference.hpp"

namespace bellman::perf {
namespace {

using reference::Reduction;

template <class... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overload(Functions...) -> Overload<Functions...>;

std::string product(std::initializer_list<std::size_t> extents) {
  std::string text;
  for (const auto extent : extents) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

void round_to_float(std::vector<double>& values) {
  for (double& value : values) value = static_cast<float>(value);
}

std::vector<double> log_likelihoods(const HmmCase& problem) {
  std::vector<double> results(problem.batch);
  const std::span<const std::int64_t> all(problem.observations);
  for (std::size_t b = 0; b < problem.batch; ++b) {
    const std::size_t steps = problem.lengths ? static_cast<std::size_t>((*problem.lengths)[b]) : problem.length;
    const auto observations = all.subspan(b * problem.length, steps);
    results[b] = problem.normalised ? reference::hmm_log_likelihood(problem.model, observations)
                                    : reference::hmm_log_likelihood_of_logits(problem.model, observations);
  }
  return results;
}

std::vector<double> masked_results(const MaskedReduceCase& problem) {
  const auto mask =
      problem.lengths ? reference::mask_from_lengths(*problem.lengths, problem.ranks, problem.columns) : problem.mask;
  return reference::masked_reduce(problem.reduction, problem.values, mask, problem.ranks, problem.columns);
}

template <class Real>
std::vector<double> contract_bounds(const SmithWatermanCase& problem, std::vector<double> wanted) {
  for (double& each : wanted) each = score_error_bound<Real>(each, problem.temperature);
  return wanted;
}

template <class Real>
std::vector<double> contract_bounds(const HmmCase&, std::vector<double> wanted) {
  for (double& each : wanted) each = log_likelihood_error_bound<Real>(each);
  return wanted;
}

template <class Real>
std::vector<double> contract_bounds(const MaskedReduceCase& problem, std::vector<double> wanted) {
  if (problem.reduction != Reduction::sum && problem.reduction != Reduction::mean) {
    return std::vector<double>(wanted.size(), 0.0);
  }
  auto absolute = problem;
  for (double& value : absolute.values) value = std::abs(value);
  const auto magnitudes = masked_results(absolute);
  for (std::size_t column = 0; column < wanted.size(); ++column) {
    wanted[column] =
        masked_sum_error_bound<Real>(wanted[column], magnitudes[column], static_cast<double>(problem.ranks));
  }
  return wanted;
}

/// 0 for equal values, NaN and NaN included; infinite where only one side is NaN or infinite.
double absolute_error(double got, double wanted) {
  if (got == wanted || (std::isnan(got) && std::isnan(wanted))) return 0;
  const double error = std::abs(got - wanted);
  return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

double relative_error(double error, double wanted) {
  if (error == 0) return 0;
  return std::isfinite(error) ? error / std::abs(wanted) : error;
}

}  // namespace

const char* to_string(RealType type) { return type == RealType::float_type ? "float" : "double"; }

std::string shape(const Case& a_case) {
  return std::visit(Overload{[](const SmithWatermanCase& p) {
                               return product({p.batch, p.rows, p.columns});
                             },
                             [](const HmmCase& p) {
                               return product({p.batch, p.length, p.model.states, p.model.symbols});
                             },
                             [](const MaskedReduceCase& p) {
                               return product({p.ranks, p.columns}) + (p.lengths ? " lengths" : " mask");
                             }},
                    a_case.problem);
}

Case rounded_to_float(Case a_case) {
  std::visit(Overload{[](SmithWatermanCase& p) { round_to_float(p.scores); },
                      [](HmmCase& p) {
                        round_to_float(p.model.log_init);
                        round_to_float(p.model.log_trans);
                        round_to_float(p.model.log_emit);
                      },
                      [](MaskedReduceCase& p) { round_to_float(p.values); }},
             a_case.problem);
  return a_case;
}

std::vector<double> reference_results(const Case& a_case) {
  return std::visit(Overload{[](const SmithWatermanCase& p) {
                               return reference::smith_waterman_scores(p.scores, p.batch, p.rows, p.columns, p.gap,
                                                                       p.temperature);
                             },
                             [](const HmmCase& p) { return log_likelihoods(p); },
                             [](const MaskedReduceCase& p) { return masked_results(p); }},
                    a_case.problem);
}

const std::optional<std::vector<double>>& expected_results(const Case& a_case) {
  using Expected = const std::optional<std::vector<double>>&;
  return std::visit(Overload{[](const SmithWatermanCase& p) -> Expected { return p.expected.score; },
                             [](const HmmCase& p) -> Expected { return p.expected.log_likelihood; },
                             [](const MaskedReduceCase& p) -> Expected { return p.expected; }},
                    a_case.problem);
}

std::vector<double> allowed_errors(const Case& a_case, RealType type, const std::vector<double>& wanted) {
  if (a_case.tolerance) {
    auto allowed = wanted;
    for (double& each : allowed) each = *a_case.tolerance * (1 + std::abs(each));
    return allowed;
  }
  return std::visit(
      [&](const auto& problem) {
        return type == RealType::float_type ? contract_bounds<float>(problem, wanted)
                                            : contract_bounds<double>(problem, wanted);
      },
      a_case.problem);
}

Comparison compare(const std::vector<double>& got, const std::vector<double>& wanted,
                   const std::vector<double>& allowed) {
  Comparison result;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const double error = absolute_error(got[k], wanted[k]);
    // Where the right result is infinite or NaN, only that very result will do.
    const double limit = std::isfinite(wanted[k]) ? allowed[k] : 0;
    const double share = error == 0 ? 0 : error / limit;
    if (k == 0 || error > result.max_abs_error) {
      result.max_abs_error = error;
      result.allowed_error = limit;
    }
    result.max_rel_error = std::max(result.max_rel_error, relative_error(error, wanted[k]));
    if (k == 0 || share > result.worst_share) {
      result.worst_share = share;
      result.worst = k;
      result.got = got[k];
      result.wanted = wanted[k];
    }
  }
  result.agrees = result.worst_share <= 1;
  return result;
}

double max_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t k = 0; k < a.size(); ++k) largest = std::max(largest, absolute_error(a[k], b[k]));
  return largest;
}

}  // namespace bellman::perf
