// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "median.hpp"

namespace bellman::perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 5;  // of measurements that take turns

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Whether a goal is about what each repetition measures; the other metrics are medians of their own.
bool is_about_time(const Goal& goal) {
  using Metric = Goal::Metric;
  return goal.metric != Metric::submit_time && goal.metric != Metric::speed_up_per_core &&
         goal.metric != Metric::scaling_at_2;
}

/// What a submission costs and how a call scales is not compared with baselines, and those of hosts take seconds.
bool wants_baseline(const Case& a_case) {
  return !a_case.goal || is_about_time(*a_case.goal) || a_case.goal->metric == Goal::Metric::speed_up_per_core;
}

bool is_measured_for(const Goal& goal, const Backend& backend, RealType type) {
  return goal.backend == backend.name && goal.is_double == (type == RealType::double_type);
}

}  // namespace

void Harness::Times::add(std::int64_t iterations, double seconds) {
  if (iterations > iterations_) times_.clear();
  if (iterations >= iterations_) times_.push_back(seconds);
  iterations_ = std::max(iterations_, iterations);
}

double Harness::Times::median() const { return perf::median(times_); }

Harness::Harness(const std::vector<Case>& cases, const std::vector<Backend>& backends, bool l2_cold)
    : cases_(cases), backends_(backends), l2_cold_(l2_cold) {
  for (const auto& each : cases) answers_.emplace_back(each);
  for (const auto& each : backends) roofs_.push_back(each.measure_roofs());
}

std::string Harness::name(const Subject& subject) const {
  return cases_[subject.case_index].name + '/' + backends_[subject.backend_index].name + '/' + to_string(subject.type) +
         '/' + (subject.is_baseline ? "baseline" : "bellman");
}

void Harness::measure(const Subject& subject, benchmark::State& state) {
  try {
    prepare(subject);
    if (const auto& complaint = complaints_.at(subject)) {
      state.SkipWithError(complaint->c_str());
    } else {
      time(subject, state);
    }
  } catch (const std::exception& error) {
    all_right_ = false;
    state.SkipWithError(error.what());
  }
}

/// Puts the inputs into the backend's memory, checks the answer and takes what is measured once, unless that was done before.
void Harness::prepare(const Subject& subject) {
  const Subject inputs{subject.case_index, subject.backend_index, subject.type, false};
  const auto& a_case = cases_[subject.case_index];
  if (!workload_ || *prepared_ != inputs) {
    workload_.reset();  // before the next one, as both may not fit in memory
    workload_ = backends_[subject.backend_index].make_workload(a_case, subject.type, a_case.repeat);
    prepared_ = inputs;
  }
  if (complaints_.contains(subject)) return;
  progress_.show("checking " + name(subject));
  const auto start = Clock::now();
  launch(subject);
  workload_->fence();
  const double first_call = seconds_since(start);
  auto complaint =
      answers_[subject.case_index].complaint(*workload_, workload_->results(), subject.type, subject.is_baseline);
  if (!complaint) {
    progress_.show("measuring " + name(subject));
    measured_.emplace(subject, measure_once(subject, first_call));
  }
  progress_.clear();
  all_right_ = all_right_ && !complaint;
  complaints_.emplace(subject, std::move(complaint));
}

Measured Harness::measure_once(const Subject& subject, double first_call) {
  Measured out;
  out.cells = workload_->cells();
  out.bytes = workload_->bytes();
  out.bytes_written = workload_->bytes_written();
  out.operations = workload_->operations();
  if (!subject.is_baseline) {
    out.graph_seconds = workload_->graph_seconds();
  } else if (first_call < 0.1) {  // a slow one would be called twice more, for nothing
    out.graph_seconds = workload_->graph_seconds_of_baseline();
  }
  const Goal* goal = goal_of(subject);
  if (goal == nullptr) return out;
  const auto& a_case = cases_[subject.case_index];
  switch (goal->metric) {
    case Goal::Metric::submit_time: out.submission = workload_->submission(); break;
    case Goal::Metric::speed_up_per_core: out.speed_up_per_core = speed_up_per_core(a_case); break;
    case Goal::Metric::scaling_at_2:
      if (backends_[subject.backend_index].threads >= 2) out.scaling_at_2 = scaling_at_2();
      break;
    default: break;
  }
  return out;
}

/// Seconds of one call on so many threads: the median over a tenth of a second, and over three calls at least.
double Harness::call_seconds(int threads) {
  workload_->use_threads(threads);
  workload_->launch();
  workload_->fence();
  std::vector<double> seconds;
  const auto begin = Clock::now();
  while (seconds.size() < 3 || (seconds_since(begin) < 0.1 && seconds.size() < 1000)) {
    const auto start = Clock::now();
    workload_->launch();
    workload_->fence();
    seconds.push_back(seconds_since(start));
  }
  workload_->use_threads(0);
  return median(seconds);
}

/// The reference and a call take turns, so that what else the machine does at the time falls on both.
double Harness::speed_up_per_core(const Case& a_case) {
  const PlainProgram reference(a_case);
  const auto problems = static_cast<double>(workload_->results().size());
  std::vector<double> ratios;
  for (int k = 0; k < rounds; ++k) ratios.push_back(reference.seconds_per_problem() * problems / call_seconds(1));
  return median(ratios);
}

/// Instances of one and of two threads take turns in this very process, on the same inputs.
double Harness::scaling_at_2() {
  std::vector<double> ratios;
  for (int k = 0; k < rounds; ++k) ratios.push_back(call_seconds(1) / (2 * call_seconds(2)));
  return median(ratios);
}

void Harness::time(const Subject& subject, benchmark::State& state) {
  double total = 0;
  for (auto _ : state) {
    if (l2_cold_) backends_[subject.backend_index].evict_cache();
    workload_->fence();
    const auto start = Clock::now();
    launch(subject);
    workload_->fence();
    const double elapsed = seconds_since(start);
    state.SetIterationTime(elapsed);
    total += elapsed;
  }

  const double seconds = total / static_cast<double>(state.iterations());
  times_[subject].add(state.iterations(), seconds);
  const auto& roofs = roofs_[subject.backend_index];
  auto measured = measured_.at(subject);
  measured.call_seconds = seconds;
  state.counters["cells/s"] = measured.cells / seconds;
  state.counters["bytes/s"] = measured.bytes / seconds;
  state.counters["moved_bytes"] = measured.bytes + measured.bytes_written;
  state.counters["fma/s"] = measured.operations / seconds;
  state.counters["roof_share"] = measured.bytes / seconds / roofs.read_rate;
  const Subject baseline{subject.case_index, subject.backend_index, subject.type, true};
  if (times_.contains(baseline)) {
    state.counters["speed_up"] = subject.is_baseline ? 1.0 : times_.at(baseline).median() / seconds;
  }
  if (measured.graph_seconds) state.counters["graph_us"] = *measured.graph_seconds * 1e6;
  state.counters["floor_us"] = floor_seconds(measured, roofs, subject.type, measured.graph_seconds.has_value()) * 1e6;
  if (const Goal* goal = goal_of(subject)) {
    const auto verdict = judge(*goal, measured, roofs);
    state.counters["goal"] = goal->limit;
    if (verdict.measured) state.counters["goal_measured"] = *verdict.measured;
    if (verdict.floor) state.counters["goal_floor"] = *verdict.floor;
    state.counters["goal_met"] = verdict.is_met ? 1 : 0;
  }
  state.SetLabel(label(subject));
}

/// The sizes of the case, and its goal in words.
std::string Harness::label(const Subject& subject) const {
  const auto& a_case = cases_[subject.case_index];
  std::string text = shape(a_case);
  if (a_case.repeat > 1) text += ", repeated " + std::to_string(a_case.repeat) + " times";
  if (const Goal* goal = goal_of(subject)) text += "; goal " + description(*goal);
  return text;
}

/// The goal that a benchmark is measured for, if any: a baseline has none.
const Goal* Harness::goal_of(const Subject& subject) const {
  const auto& goal = cases_[subject.case_index].goal;
  return goal && !subject.is_baseline ? &*goal : nullptr;
}

std::optional<double> Harness::ratio_to_baseline(const Subject& subject, bool in_graph) const {
  const Subject baseline{subject.case_index, subject.backend_index, subject.type, true};
  if (!times_.contains(baseline)) return std::nullopt;
  // A long baseline is not measured in a graph; what it costs to submit does not show then.
  const auto seconds = [&](const Subject& of) {
    const auto& in_a_graph = measured_.at(of).graph_seconds;
    return in_graph && in_a_graph ? *in_a_graph : times_.at(of).median();
  };
  return seconds(baseline) / seconds(subject);
}

std::vector<GoalRow> Harness::goal_rows() const {
  std::vector<GoalRow> rows;
  for (std::size_t c = 0; c < cases_.size(); ++c) {
    if (!cases_[c].goal) continue;
    const auto& goal = *cases_[c].goal;
    GoalRow row;
    row.the_case = &cases_[c];
    const auto backend = std::ranges::find(backends_, goal.backend, &Backend::name);
    if (backend == backends_.end()) {
      row.why_not_measured = "no " + goal.backend + " in this build";
    } else {
      const Subject subject{c, static_cast<std::size_t>(backend - backends_.begin()),
                            goal.is_double ? RealType::double_type : RealType::float_type, false};
      const auto complaint = complaints_.find(subject);
      if (times_.contains(subject)) {
        auto measured = measured_.at(subject);
        measured.call_seconds = times_.at(subject).median();
        row.verdict = judge(goal, measured, roofs_[subject.backend_index]);
        row.ratio_to_baseline = ratio_to_baseline(subject, goal.in_graph);
        if (goal.metric == Goal::Metric::scaling_at_2 && !measured.scaling_at_2) {
          row.verdict.reset();
          row.why_not_measured = "only one thread";
        }
      } else if (complaint != complaints_.end() && complaint->second) {
        row.verdict = Verdict{.remark = "wrong answer"};
      }
    }
    rows.push_back(row);
  }
  return rows;
}

void register_benchmarks(Harness& harness, const std::vector<Case>& cases, const std::vector<Backend>& backends,
                         const std::vector<RealType>& types) {
  const auto add = [&](const Subject& subject) {
    auto* benchmark =
        benchmark::RegisterBenchmark(harness.name(subject).c_str(),
                                     [&harness, subject](benchmark::State& state) { harness.measure(subject, state); });
    benchmark->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->ComputeStatistics("min", [](const std::vector<double>& values) { return *std::ranges::min_element(values); });
    const auto& goal = cases[subject.case_index].goal;
    if (goal && (subject.is_baseline || !is_about_time(*goal))) benchmark->Repetitions(1);
  };
  for (std::size_t c = 0; c < cases.size(); ++c) {
    for (std::size_t b = 0; b < backends.size(); ++b) {
      for (const auto type : types) {
        if (cases[c].goal && !is_measured_for(*cases[c].goal, backends[b], type)) continue;
        if (has_baseline(cases[c]) && wants_baseline(cases[c])) add({c, b, type, true});
        add({c, b, type, false});
      }
    }
  }
}

}  // namespace bellman::perf
