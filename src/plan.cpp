// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bellman/accuracy.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/masked_reduce.hpp>
#include <bellman/impl/smith_waterman.hpp>
#include <bellman/plan.hpp>
#include <cmath>
#include <ostream>

namespace bellman {

const char* to_string(Rung rung) {
  switch (rung) {
    case Rung::linear_float: return "Linear<float>";
    case Rung::linear_double: return "Linear<double>";
    case Rung::log_double: return "LogSumExp";
    case Rung::max_float: return "MaxPlus<float>";
    case Rung::max_double: return "MaxPlus<double>";
  }
  return "unknown rung";
}

const char* to_string(ScratchLevel level) { return level == ScratchLevel::fast ? "fast" : "large"; }

std::ostream& operator<<(std::ostream& stream, const AlignmentPlan& plan) {
  return stream << to_string(plan.first) << " up to " << to_string(plan.last) << ", a team of " << plan.lanes
                << " lanes per problem, " << plan.rows_per_lane << " rows per lane, " << plan.scratch_bytes
                << " bytes of " << to_string(plan.scratch_level) << " scratch";
}

std::ostream& operator<<(std::ostream& stream, const HmmPlan& plan) {
  return stream << to_string(plan.first) << " up to " << to_string(plan.last) << ", a team of " << plan.team_threads
                << " threads per sequence, model in " << (plan.model_in_scratch ? "scratch" : "the workspace") << ", "
                << plan.scratch_bytes << " bytes of " << to_string(plan.scratch_level) << " scratch, "
                << plan.workspace_bytes << " bytes of workspace";
}

std::ostream& operator<<(std::ostream& stream, const MaskedReducePlan& plan) {
  if (plan.team_per_column) return stream << "a team of " << plan.team_threads << " threads per column";
  return stream << "a thread per column";
}

namespace impl {
namespace {

ScratchLevel level_for(const Backend& backend, std::size_t bytes) {
  return bytes <= backend.fast_scratch_bytes ? ScratchLevel::fast : ScratchLevel::large;
}

void check_options(const SmithWatermanOptions& options) {
  constexpr const char* function = "bellman::smith_waterman_score";
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    throw_option(function, "temperature", options.temperature, "a finite number >= 0");
  }
  if (std::isnan(options.gap) || options.gap == infinity<double>()) {
    throw_option(function, "gap", options.gap, "a finite number or -inf");
  }
}

/// The rungs of a score. MaxPlus<float> is provably within the bound only while its M + N roundings are.
std::pair<Rung, Rung> alignment_rungs(bool is_double, std::size_t rows, std::size_t columns,
                                      const SmithWatermanOptions& options) {
  if (options.temperature == 0) {
    const double worst_error = static_cast<double>(rows + columns) * roundoff<float>();
    const Rung rung = !is_double && worst_error <= 0.9 * score_tolerance<float> ? Rung::max_float : Rung::max_double;
    return {rung, rung};
  }
  if (!is_double && Linear<float>::is_usable(options.temperature, options.gap)) {
    return {Rung::linear_float, Rung::log_double};
  }
  if (Linear<double>::is_usable(options.temperature, options.gap)) return {Rung::linear_double, Rung::log_double};
  return {Rung::log_double, Rung::log_double};
}

}  // namespace

AlignmentPlan plan_smith_waterman(const Backend& backend, bool is_double, std::size_t rows, std::size_t columns,
                                  const SmithWatermanOptions& options) {
  check_options(options);
  AlignmentPlan plan;
  std::tie(plan.first, plan.last) = alignment_rungs(is_double, rows, columns, options);
  plan.lanes = backend.lanes;
  const auto lanes = static_cast<std::size_t>(backend.lanes);
  plan.rows_per_lane = rows <= 2 * lanes ? 1 : 4;
  const bool is_one_strip = rows <= lanes * static_cast<std::size_t>(plan.rows_per_lane);
  plan.scratch_bytes = is_one_strip ? 0 : columns * sizeof(double);
  plan.scratch_level = level_for(backend, plan.scratch_bytes);
  return plan;
}

HmmPlan plan_hmm_log_likelihood(const Backend& backend, bool is_double, std::size_t states, std::size_t symbols,
                                std::size_t /*steps*/) {
  const auto extent = HmmTables<double>::bytes(states, symbols);
  const auto vectors = HmmVectors<double>::bytes(states);
  HmmPlan plan;
  plan.model_in_scratch = extent + vectors <= backend.fast_scratch_bytes;
  plan.first = is_double || !plan.model_in_scratch ? Rung::linear_double : Rung::linear_float;
  plan.last = Rung::log_double;
  const auto lanes = static_cast<std::size_t>(backend.lanes);
  const std::size_t threads = (std::max<std::size_t>(states, 1) + lanes - 1) / lanes * lanes;
  plan.team_threads = static_cast<int>(std::min<std::size_t>(threads, std::min(backend.max_team_threads, 256)));
  plan.scratch_bytes = vectors + (plan.model_in_scratch ? extent : 0);
  plan.scratch_level = level_for(backend, plan.scratch_bytes);
  plan.workspace_bytes = plan.model_in_scratch ? 0 : extent + alignment_slack;
  return plan;
}

MaskedReducePlan plan_masked_reduce(const Backend& backend, std::size_t ranks, std::size_t columns) {
  MaskedReducePlan plan;
  plan.team_per_column = backend.max_team_threads > 1 && columns < 4096 && ranks > 256;
  plan.team_threads = plan.team_per_column ? 128 : 1;
  return plan;
}

}  // namespace impl
}  // namespace bellman
