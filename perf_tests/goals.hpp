// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_GOALS_HPP
#define BELLMAN_PERF_TESTS_GOALS_HPP

#include <optional>
#include <string>
#include <vector>

#include "case_tools.hpp"
#include "workload.hpp"

namespace bellman::perf {

using support::Goal;

/// \brief What was measured of a case, in one type on one backend, in seconds.
struct Measured {
  double call_seconds = 0;              ///< from fence to fence
  std::optional<double> graph_seconds;  ///< of one call in a CUDA graph
  std::optional<Submission> submission;
  std::optional<double> speed_up_per_core;
  std::optional<double> scaling_at_2;
  double cells = 0;
  double bytes = 0;          ///< that must be read
  double bytes_written = 0;  ///< that must be written
  double operations = 0;     ///< multiply-adds that must be done
};

/// \brief No call can be faster: seconds for its bytes at the measured read rate, for its multiply-adds at the measured rate,
/// or for an empty launch, whichever takes longest.
double floor_seconds(const Measured& measured, const Roofs& roofs, RealType type, bool in_graph);

/// \brief A goal in words, such as "<= 3.00 us in graph".
std::string description(const Goal& goal);

/// \brief A goal beside what was measured, all in the unit of its metric.
struct Verdict {
  std::optional<double> measured;  ///< nothing where it could not be measured, such as a call that cannot be captured
  std::optional<double> floor;     ///< the best possible; nothing where it is not known
  bool is_met = false;
  std::string remark;  ///< why it is not met although the number is within the limit
};

Verdict judge(const Goal& goal, const Measured& measured, const Roofs& roofs);

/// \brief One row of the table of goals.
struct GoalRow {
  const Case* the_case = nullptr;
  std::optional<Verdict> verdict;           ///< nothing: not measured
  std::optional<double> ratio_to_baseline;  ///< time of the baseline over that of the call, of the same kind
  std::string why_not_measured;
};

/// \brief The table of goals, and below it how many are met, not met and not measured.
std::string goal_table(const std::vector<GoalRow>& rows);

}  // namespace bellman::perf

#endif
