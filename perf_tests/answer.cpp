// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <span>
#include <type_traits>
#include <utility>

#include "reference/reference.hpp"

namespace bellman::perf {
namespace {

/// Some problems of the batch of a case, as a case of their own. A masked reduction is taken whole: it costs little.
Case some_problems(const Case& a_case, const std::vector<std::size_t>& which) {
  const auto slices = [&](const auto& values, std::size_t size) {
    std::decay_t<decltype(values)> out;
    for (const auto b : which) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(b * size);
      out.insert(out.end(), begin, begin + static_cast<std::ptrdiff_t>(size));
    }
    return out;
  };
  Case out;
  out.name = a_case.name;
  out.tolerance = a_case.tolerance;
  if (const auto* alignment = std::get_if<SmithWatermanCase>(&a_case.problem)) {
    SmithWatermanCase part;
    part.batch = which.size();
    part.rows = alignment->rows;
    part.columns = alignment->columns;
    part.gap = alignment->gap;
    part.temperature = alignment->temperature;
    part.scores = slices(alignment->scores, part.rows * part.columns);
    out.problem = std::move(part);
  } else if (const auto* hmm = std::get_if<HmmCase>(&a_case.problem)) {
    HmmCase part;
    part.batch = which.size();
    part.length = hmm->length;
    part.model = hmm->model;
    part.normalised = hmm->normalised;
    part.observations = slices(hmm->observations, part.length);
    if (hmm->lengths) part.lengths = slices(*hmm->lengths, 1);
    out.problem = std::move(part);
  } else {
    out.problem = a_case.problem;
  }
  return out;
}

std::size_t problem_count(const Case& a_case) {
  if (const auto* alignment = std::get_if<SmithWatermanCase>(&a_case.problem)) return alignment->batch;
  if (const auto* hmm = std::get_if<HmmCase>(&a_case.problem)) return hmm->batch;
  return std::get<MaskedReduceCase>(a_case.problem).columns;
}

double cells_per_problem(const Case& a_case) {
  if (const auto* alignment = std::get_if<SmithWatermanCase>(&a_case.problem)) {
    return static_cast<double>(alignment->rows * alignment->columns);
  }
  if (const auto* hmm = std::get_if<HmmCase>(&a_case.problem)) {
    return static_cast<double>(hmm->length * hmm->model.states * hmm->model.states);
  }
  return static_cast<double>(std::get<MaskedReduceCase>(a_case.problem).ranks);
}

/// How many problems have about so many cells.
std::size_t problems_with_cells(const Case& a_case, double cells) {
  return static_cast<std::size_t>(cells / std::max(cells_per_problem(a_case), 1.0));
}

/// The problems to check: the first and the last few, as many as the reference does in seconds, but always both ends.
std::vector<std::size_t> problems_to_check(const Case& a_case) {
  constexpr double most_cells = 1e8;
  constexpr std::size_t most_problems = 8;
  const std::size_t count = problem_count(a_case);
  std::vector<std::size_t> which;
  if (std::holds_alternative<MaskedReduceCase>(a_case.problem)) {
    for (std::size_t k = 0; k < count; ++k) which.push_back(k);
    return which;
  }
  const std::size_t checked =
      std::min(count, std::clamp(problems_with_cells(a_case, most_cells), std::size_t{2}, most_problems));
  for (std::size_t k = 0; k < checked / 2; ++k) which.push_back(k);
  for (std::size_t k = count - (checked - checked / 2); k < count; ++k) which.push_back(k);
  return which;
}

/// The model as log-probabilities.
reference::HmmModel normalised_model(const HmmCase& problem) {
  return problem.normalised ? problem.model : reference::normalised(problem.model);
}

/// The observations of one sequence.
std::span<const std::int64_t> sequence(const HmmCase& problem, std::size_t b) {
  const auto steps = problem.lengths ? static_cast<std::size_t>((*problem.lengths)[b]) : problem.length;
  return std::span(problem.observations).subspan(b * problem.length, steps);
}

/// The reference's results, the problems of a batch side by side: one may take seconds. Beside what float promises, the
/// 1e-16 a step that an HMM loses in double do not show, and long double takes six times as long.
std::vector<double> results_to_expect(const Case& a_case, RealType type) {
  if (std::holds_alternative<MaskedReduceCase>(a_case.problem)) return reference_results(a_case);
  const auto* hmm = std::get_if<HmmCase>(&a_case.problem);
  const bool in_double = hmm != nullptr && type == RealType::float_type;
  const auto model = in_double ? normalised_model(*hmm) : reference::HmmModel{};
  std::vector<std::future<double>> results;
  for (std::size_t b = 0; b < problem_count(a_case); ++b) {
    results.push_back(std::async(std::launch::async, [&, b] {
      return in_double ? reference::hmm_log_likelihood_in_double(model, sequence(*hmm, b))
                       : reference_results(some_problems(a_case, {b})).at(0);
    }));
  }
  std::vector<double> out;
  for (auto& each : results) out.push_back(each.get());
  return out;
}

}  // namespace

std::optional<std::string> Answer::complaint(const Workload& workload, const std::vector<double>& results,
                                             RealType type, bool is_baseline) {
  const auto& wanted = wanted_for(type);
  std::vector<double> got;
  for (const auto k : which_) got.push_back(results[workload.first_copy(k)]);
  auto allowed = allowed_errors(part_, type, wanted);
  if (is_baseline) {
    const double loose = type == RealType::float_type ? 1e-2 : 1e-8;
    for (std::size_t k = 0; k < allowed.size(); ++k) allowed[k] = loose * (1 + std::abs(wanted[k]));
  }
  const auto comparison = compare(got, wanted, allowed);
  if (!comparison.agrees) {
    return "wrong answer: result " + std::to_string(which_[comparison.worst]) + " is " +
           std::to_string(comparison.got) + ", but " + std::to_string(comparison.wanted) + " by the reference";
  }
  for (std::size_t k = 0; k < results.size(); ++k) {
    const double original = results[workload.first_copy(workload.source(k))];
    if (results[k] == original || (std::isnan(results[k]) && std::isnan(original))) continue;
    return "wrong answer: result " + std::to_string(k) + " is " + std::to_string(results[k]) + ", but " +
           std::to_string(original) + " where the same problem stands first";
  }
  return std::nullopt;
}

const std::vector<double>& Answer::wanted_for(RealType type) {
  if (which_.empty()) {
    which_ = problems_to_check(case_);
    part_ = some_problems(case_, which_);
  }
  auto& wanted = wanted_[type];
  if (!wanted) wanted = results_to_expect(part_, type);
  return *wanted;
}

PlainProgram::PlainProgram(const Case& a_case) : case_(a_case), problems_(problem_count(a_case)) {
  constexpr double cells = 1e6;  // about 0.1 s
  if (std::holds_alternative<MaskedReduceCase>(a_case.problem)) return;
  problems_ = std::min(problems_, std::max(problems_with_cells(a_case, cells), std::size_t{1}));
  if (const auto* hmm = std::get_if<HmmCase>(&a_case.problem)) {
    normalised_model_ = normalised_model(*hmm);
  }
}

double PlainProgram::seconds_per_problem() const {
  const auto start = std::chrono::steady_clock::now();
  const volatile double kept = pass();  // volatile: the pass cannot be left out
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  (void)kept;
  return elapsed.count() / static_cast<double>(std::max(problems_, std::size_t{1}));
}

double PlainProgram::pass() const {
  double sum = 0;
  if (const auto* alignment = std::get_if<SmithWatermanCase>(&case_.problem)) {
    const auto size = alignment->rows * alignment->columns;
    for (std::size_t b = 0; b < problems_; ++b) {
      sum += reference::smith_waterman_score(std::span(alignment->scores).subspan(b * size, size), alignment->rows,
                                             alignment->columns, alignment->gap, alignment->temperature);
    }
  } else if (const auto* hmm = std::get_if<HmmCase>(&case_.problem)) {
    for (std::size_t b = 0; b < problems_; ++b) {
      sum += reference::hmm_log_likelihood_in_double(normalised_model_, sequence(*hmm, b));
    }
  } else {
    const auto results = reference_results(case_);
    sum += results.empty() ? 0 : results.front();
  }
  return sum;
}

}  // namespace bellman::perf
