// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_HARNESS_HPP
#define BELLMAN_PERF_TESTS_HARNESS_HPP

#include <benchmark/benchmark.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer.hpp"
#include "case_tools.hpp"
#include "goals.hpp"
#include "progress.hpp"
#include "workload.hpp"

namespace bellman::perf {

/// \brief What one benchmark measures.
struct Subject {
  std::size_t case_index;
  std::size_t backend_index;
  RealType type;
  bool is_baseline;
  auto operator<=>(const Subject&) const = default;
};

/// \brief The body of every benchmark: prepares its inputs, checks its answer, measures, and keeps what it measured.
class Harness {
 public:
  Harness(const std::vector<Case>& cases, const std::vector<Backend>& backends, bool l2_cold);

  const std::vector<Roofs>& roofs() const { return roofs_; }
  bool all_right() const { return all_right_; }
  std::string name(const Subject& subject) const;

  /// The body of a benchmark. Google Benchmark calls it several times, with more and more iterations.
  void measure(const Subject& subject, benchmark::State& state);

  /// A row for each case with a goal, in the order of the cases.
  std::vector<GoalRow> goal_rows() const;

 private:
  /// The times of the calls that count: those with the largest number of iterations, the others only search for it.
  class Times {
   public:
    void add(std::int64_t iterations, double seconds);
    double median() const;

   private:
    std::int64_t iterations_ = 0;
    std::vector<double> times_;
  };

  void prepare(const Subject& subject);
  Measured measure_once(const Subject& subject, double first_call);
  double speed_up_per_core(const Case& a_case);
  double scaling_at_2();
  double call_seconds(int threads);
  void launch(const Subject& subject) { subject.is_baseline ? workload_->launch_baseline() : workload_->launch(); }
  void time(const Subject& subject, benchmark::State& state);
  std::string label(const Subject& subject) const;
  const Goal* goal_of(const Subject& subject) const;
  std::optional<double> ratio_to_baseline(const Subject& subject, bool in_graph) const;

  const std::vector<Case>& cases_;
  const std::vector<Backend>& backends_;
  bool l2_cold_;
  std::vector<Answer> answers_;
  std::vector<Roofs> roofs_;
  Progress progress_;
  std::unique_ptr<Workload> workload_;  // one at a time, as the large ones fill the memory
  std::optional<Subject> prepared_;
  std::map<Subject, std::optional<std::string>> complaints_;
  std::map<Subject, Measured> measured_;  // all but the time of a call
  std::map<Subject, Times> times_;
  bool all_right_ = true;
};

/// \brief Registers a benchmark per case, backend and type, the baseline before the library. A case with a goal is measured
/// on the backend and in the type of that goal alone; its baseline in one repetition, and not where the
/// goal is about submission or scaling.
void register_benchmarks(Harness& harness, const std::vector<Case>& cases, const std::vector<Backend>& backends,
                         const std::vector<RealType>& types);

}  // namespace bellman::perf

#endif
