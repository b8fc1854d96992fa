// SPDX-License-Identifier: Apache-2.0
#include "goals.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <sstream>

namespace bellman::perf {
namespace {

using Metric = Goal::Metric;

/// Three digits, and a metric prefix where the number is large.
std::string three_digits(double value) {
  constexpr std::array<const char*, 5> prefixes = {"", "k", "M", "G", "T"};
  std::size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < prefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return std::string(text.data()) + (prefix > 0 ? std::string(" ") + prefixes[prefix] : "");
}

std::string microseconds(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value < 99.95 ? "%.2f us" : "%.0f us", value);
  return text.data();
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * share);
  return text.data();
}

std::string with_unit(Metric metric, double value) {
  switch (metric) {
    case Metric::time:
    case Metric::submit_time: return microseconds(value);
    case Metric::cell_rate: {
      const auto text = three_digits(value);
      return text + (text.find(' ') == std::string::npos ? " cell/s" : "cell/s");
    }
    case Metric::speed_up_per_core: return three_digits(value) + " x";
    default: return percent(value);
  }
}

std::string what(const Goal& goal) {
  switch (goal.metric) {
    case Metric::time: return goal.in_graph ? " in graph" : "";
    case Metric::cell_rate: return goal.in_graph ? " in graph" : "";
    case Metric::read_share: return std::string(" of read roof") + (goal.in_graph ? ", in graph" : "");
    case Metric::fma_share: return std::string(" of FMA roof") + (goal.in_graph ? ", in graph" : "");
    case Metric::submit_time: return " above a raw launch";
    case Metric::speed_up_per_core: return " the reference, per core";
    case Metric::scaling_at_2: return " of linear, 2 threads";
  }
  return "";
}

RealType type_of(const Goal& goal) { return goal.is_double ? RealType::double_type : RealType::float_type; }

/// The value of a metric that follows from the time of a call.
double from_seconds(Metric metric, double seconds, const Measured& measured, const Roofs& roofs, RealType type) {
  switch (metric) {
    case Metric::cell_rate: return measured.cells / seconds;
    case Metric::read_share: return measured.bytes / seconds / roofs.read_rate;
    case Metric::fma_share: return measured.operations / seconds / roofs.fma_rate(type);
    default: return seconds * 1e6;
  }
}

}  // namespace

double floor_seconds(const Measured& measured, const Roofs& roofs, RealType type, bool in_graph) {
  return std::max({(measured.bytes + measured.bytes_written) / roofs.read_rate,
                   measured.operations / roofs.fma_rate(type),
                   in_graph ? roofs.empty_launch.in_graph : roofs.empty_launch.call});
}

std::string description(const Goal& goal) {
  return (goal.is_upper_limit ? "<= " : ">= ") + with_unit(goal.metric, goal.limit) + what(goal);
}

Verdict judge(const Goal& goal, const Measured& measured, const Roofs& roofs) {
  Verdict out;
  switch (goal.metric) {
    case Metric::submit_time:
      if (measured.submission) {
        out.measured = measured.submission->above_raw() * 1e6;
        out.floor = 0;
        const auto count = [](std::size_t n, const std::string& thing) {
          return std::to_string(n) + ' ' + thing + (n == 1 ? "" : "s");
        };
        const auto& [seconds, raw, fences, allocations] = *measured.submission;
        if (fences + allocations > 0) {
          out.remark = count(fences, "fence") + " and " + count(allocations, "allocation") + " in a call";
        }
      }
      break;
    case Metric::speed_up_per_core: out.measured = measured.speed_up_per_core; break;
    case Metric::scaling_at_2:
      out.measured = measured.scaling_at_2;
      out.floor = 1;
      break;
    default: {
      const auto type = type_of(goal);
      const auto seconds = goal.in_graph ? measured.graph_seconds : std::optional(measured.call_seconds);
      if (seconds) out.measured = from_seconds(goal.metric, *seconds, measured, roofs, type);
      out.floor = from_seconds(goal.metric, floor_seconds(measured, roofs, type, goal.in_graph), measured, roofs, type);
    }
  }
  if (out.measured) {
    const bool is_within = goal.is_upper_limit ? *out.measured <= goal.limit : *out.measured >= goal.limit;
    out.is_met = is_within && out.remark.empty();
  }
  return out;
}

std::string goal_table(const std::vector<GoalRow>& rows) {
  using Cells = std::array<std::string, 8>;
  std::vector<Cells> table{{"goals", "backend", "type", "goal", "measured", "floor", "to baseline", ""}};
  std::size_t met = 0;
  std::size_t failed = 0;
  for (const auto& row : rows) {
    const auto& goal = *row.the_case->goal;
    Cells cells{row.the_case->name, goal.backend, to_string(type_of(goal)), description(goal), "-", "-", "-", ""};
    if (!row.verdict) {
      cells[7] = "not measured" + (row.why_not_measured.empty() ? "" : ": " + row.why_not_measured);
    } else {
      const auto& verdict = *row.verdict;
      if (verdict.measured) cells[4] = with_unit(goal.metric, *verdict.measured);
      if (verdict.floor) cells[5] = with_unit(goal.metric, *verdict.floor);
      if (row.ratio_to_baseline) cells[6] = three_digits(*row.ratio_to_baseline) + " x";
      cells[7] = verdict.is_met ? "pass" : "FAIL" + (verdict.remark.empty() ? "" : ": " + verdict.remark);
      ++(verdict.is_met ? met : failed);
    }
    table.push_back(cells);
  }
  std::array<std::size_t, 8> widths{};
  for (const auto& cells : table) {
    for (std::size_t k = 0; k < cells.size(); ++k) widths[k] = std::max(widths[k], cells[k].size());
  }
  std::ostringstream out;
  for (const auto& cells : table) {
    std::string line;
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const std::string padding(widths[k] - cells[k].size(), ' ');
      const bool is_number = k >= 4 && k <= 6;
      line += (is_number ? padding + cells[k] : cells[k] + padding) + "  ";
    }
    out << line.erase(line.find_last_not_of(' ') + 1) << '\n';
  }
  const auto goals = rows.size();
  out << '\n'
      << goals << (goals == 1 ? " goal: " : " goals: ") << met << " met, " << failed << " not met, "
      << goals - met - failed << " not measured.\n";
  return out.str();
}

}  // namespace bellman::perf
