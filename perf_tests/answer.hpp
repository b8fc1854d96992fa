// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_ANSWER_HPP
#define BELLMAN_PERF_TESTS_ANSWER_HPP

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "case_tools.hpp"
#include "workload.hpp"

namespace bellman::perf {

/// \brief What the serial reference says of a few problems of a case; computed once for each type, when it is
/// first needed.
class Answer {
 public:
  explicit Answer(const Case& a_case) : case_(a_case) {}

  /// Says what is wrong with these results; nothing if they are right.
  std::optional<std::string> complaint(const Workload& workload, const std::vector<double>& results, RealType type,
                                       bool is_baseline);

 private:
  const std::vector<double>& wanted_for(RealType type);

  const Case& case_;
  std::vector<std::size_t> which_;
  Case part_;
  std::map<RealType, std::optional<std::vector<double>>> wanted_;
};

/// \brief What a plain program takes on one core: the serial reference in double on a few problems of a case (on all columns
/// of a masked reduction).
class PlainProgram {
 public:
  explicit PlainProgram(const Case& a_case);

  /// Seconds per problem (per column), on the average, measured now: takes about 0.1 s.
  double seconds_per_problem() const;

 private:
  double pass() const;

  const Case& case_;
  std::size_t problems_;
  reference::HmmModel normalised_model_;
};

}  // namespace bellman::perf

#endif
