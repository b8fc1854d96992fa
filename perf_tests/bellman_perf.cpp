// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "case_tools.hpp"
#include "progress.hpp"
#include "workload.hpp"

namespace bellman::perf {
namespace {

constexpr const char* usage =
    "usage: bellman_perf CASES.yaml... [--types=float,double] [--l2_cold] [--help] [--benchmark_...]\n";

constexpr const char* help =
    R"(
Measures each case of the files on every backend of this build, in float and in double: first the obvious kernel
(baseline), then the library (bellman). Before anything is measured its answer is checked.

  --types=LIST    only these types: float, double or both, with a comma between them
  --l2_cold       before each measured call, a buffer larger than the last-level cache is written
  --kokkos-...    is passed on to Kokkos, such as --kokkos-num-threads=2
  --benchmark_... Google Benchmark's own flags, for instance
                    --benchmark_filter=alignment.*float   --benchmark_out=FILE (JSON)   --benchmark_repetitions=9

One time is that of one call, from a fence before it to a fence after it. The display shows the median and the minimum
of every column over the repetitions (5 unless you say otherwise); of a rate, the minimum is the slowest.
  cells/s     B M N cells (alignment), steps of all sequences times S S (HMM), R S (masked reduction)
  bytes/s     every input read once; of values with shard lengths, only the valid ones
  roof_share  bytes/s relative to the highest read rate that a plain kernel reaches here, measured in the same
              process; above 1 where a cache holds the inputs
  speed_up    over the median time of the baseline in the same run; absent if that was filtered out
  graph_us    on CUDA: one of 20 calls in a CUDA graph, in microseconds, the median of several replays between two
              events: what a call costs without its submission. Caches stay warm. Absent if a call cannot be captured

Check: inputs are rounded to float, for both types. The first and last few problems must agree with the serial reference
within the bound of the operation's contract or the `tolerance` of the case (see bellman_compare --help), a baseline
within 1e-2 (1 + |value|) in float and 1e-8 (1 + |value|) in double, as it may lose digits. `repeat: N` in a case copies
its problems or columns N times, and each copy must have the very same result. With shard lengths the copies of a column
follow it at once and lengths grow by the same factor; otherwise all problems or columns are repeated in turn.

Exit status: 0 if all answers are right, 1 if not, 2 if a file or an option is not right.
)";

class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Arguments {
  std::vector<std::string> files;
  std::vector<RealType> types = {RealType::float_type, RealType::double_type};
  bool l2_cold = false;
  bool help = false;
  std::vector<char*> others;  ///< for Kokkos and Google Benchmark
};

std::vector<RealType> parse_types(std::string_view list) {
  if (list == "float") return {RealType::float_type};
  if (list == "double") return {RealType::double_type};
  if (list == "float,double" || list == "double,float") return {RealType::float_type, RealType::double_type};
  throw UserError("--types must be float, double or float,double, got \"" + std::string(list) + "\"\n" + usage);
}

Arguments parse(int argc, char** argv) {
  constexpr std::string_view types = "--types=";
  Arguments arguments;
  for (int k = 1; k < argc; ++k) {
    const std::string_view argument = argv[k];
    if (argument == "--help") {
      arguments.help = true;
    } else if (argument == "--l2_cold") {
      arguments.l2_cold = true;
    } else if (argument.starts_with(types)) {
      arguments.types = parse_types(argument.substr(types.size()));
    } else if (argument.starts_with("--benchmark_") || argument.starts_with("--kokkos-") ||
               argument.starts_with("--v=")) {
      arguments.others.push_back(argv[k]);
    } else if (argument.starts_with('-')) {
      throw UserError("there is no option \"" + std::string(argument) + "\"\n" + usage);
    } else {
      arguments.files.emplace_back(argument);
    }
  }
  if (arguments.files.empty() && !arguments.help) throw UserError(std::string("no case file is given\n") + usage);
  return arguments;
}

// Checking answers

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

/// The problems to check: the first and the last few, as many as the reference does in seconds, but always both ends.
std::vector<std::size_t> problems_to_check(const Case& a_case) {
  constexpr double most_cells = 1e8;
  constexpr std::size_t most_problems = 8;
  std::size_t count = 0;
  double cells = 1;  // per problem
  if (const auto* alignment = std::get_if<SmithWatermanCase>(&a_case.problem)) {
    count = alignment->batch;
    cells = static_cast<double>(alignment->rows * alignment->columns);
  } else if (const auto* hmm = std::get_if<HmmCase>(&a_case.problem)) {
    count = hmm->batch;
    cells = static_cast<double>(hmm->length * hmm->model.states * hmm->model.states);
  } else {
    count = std::get<MaskedReduceCase>(a_case.problem).columns;
  }
  std::vector<std::size_t> which;
  if (std::holds_alternative<MaskedReduceCase>(a_case.problem)) {
    for (std::size_t k = 0; k < count; ++k) which.push_back(k);
    return which;
  }
  const auto affordable = static_cast<std::size_t>(most_cells / std::max(cells, 1.0));
  const std::size_t checked = std::min(count, std::clamp(affordable, std::size_t{2}, most_problems));
  for (std::size_t k = 0; k < checked / 2; ++k) which.push_back(k);
  for (std::size_t k = count - (checked - checked / 2); k < count; ++k) which.push_back(k);
  return which;
}

/// What the reference says of a case; computed once, when it is first needed.
class Answer {
 public:
  explicit Answer(const Case& a_case) : case_(a_case) {}

  /// Says what is wrong with these results; nothing if they are right.
  std::optional<std::string> complaint(const Workload& workload, const std::vector<double>& results, RealType type,
                                       bool is_baseline) {
    prepare();
    std::vector<double> got;
    for (const auto k : which_) got.push_back(results[workload.first_copy(k)]);
    auto allowed = allowed_errors(part_, type, wanted_);
    if (is_baseline) {
      const double loose = type == RealType::float_type ? 1e-2 : 1e-8;
      for (std::size_t k = 0; k < allowed.size(); ++k) allowed[k] = loose * (1 + std::abs(wanted_[k]));
    }
    const auto comparison = compare(got, wanted_, allowed);
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

 private:
  void prepare() {
    if (is_ready_) return;
    which_ = problems_to_check(case_);
    part_ = some_problems(case_, which_);
    wanted_ = reference_results(part_);
    is_ready_ = true;
  }

  const Case& case_;
  bool is_ready_ = false;
  std::vector<std::size_t> which_;
  Case part_;
  std::vector<double> wanted_;
};

// Measuring

/// What one benchmark measures.
struct Subject {
  std::size_t case_index;
  std::size_t backend_index;
  RealType type;
  bool is_baseline;
  auto operator<=>(const Subject&) const = default;
};

class Harness {
 public:
  Harness(const std::vector<Case>& cases, const std::vector<Backend>& backends, bool l2_cold)
      : cases_(cases), backends_(backends), l2_cold_(l2_cold) {
    for (const auto& each : cases) answers_.emplace_back(each);
    for (const auto& each : backends) read_rates_.push_back(each.measure_read_rate());
  }

  const std::vector<double>& read_rates() const { return read_rates_; }
  bool all_right() const { return all_right_; }

  std::string name(const Subject& subject) const {
    return cases_[subject.case_index].name + '/' + backends_[subject.backend_index].name + '/' +
           to_string(subject.type) + '/' + (subject.is_baseline ? "baseline" : "bellman");
  }

  /// The body of a benchmark. Google Benchmark calls it several times, with more and more iterations.
  void measure(const Subject& subject, benchmark::State& state) {
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

 private:
  using Clock = std::chrono::steady_clock;

  /// Puts the inputs into the backend's memory, checks the answer and measures it in a graph, unless that was done before.
  void prepare(const Subject& subject) {
    const Subject inputs{subject.case_index, subject.backend_index, subject.type, false};
    const auto& a_case = cases_[subject.case_index];
    if (!workload_ || *prepared_ != inputs) {
      workload_.reset();  // before the next one, as both may not fit in memory
      workload_ = backends_[subject.backend_index].make_workload(a_case, subject.type, a_case.repeat);
      prepared_ = inputs;
    }
    if (complaints_.contains(subject)) return;
    progress_.show("checking " + name(subject));
    launch(subject);
    auto complaint =
        answers_[subject.case_index].complaint(*workload_, workload_->results(), subject.type, subject.is_baseline);
    progress_.clear();
    all_right_ = all_right_ && !complaint;
    if (!complaint) {
      graph_times_[subject] = subject.is_baseline ? workload_->graph_seconds_of_baseline() : workload_->graph_seconds();
    }
    complaints_.emplace(subject, std::move(complaint));
  }

  void launch(const Subject& subject) { subject.is_baseline ? workload_->launch_baseline() : workload_->launch(); }

  void time(const Subject& subject, benchmark::State& state) {
    double total = 0;
    for (auto _ : state) {
      if (l2_cold_) backends_[subject.backend_index].evict_cache();
      workload_->fence();
      const auto start = Clock::now();
      launch(subject);
      workload_->fence();
      const std::chrono::duration<double> elapsed = Clock::now() - start;
      state.SetIterationTime(elapsed.count());
      total += elapsed.count();
    }

    const double seconds = total / static_cast<double>(state.iterations());
    state.counters["cells/s"] = workload_->cells() / seconds;
    state.counters["bytes/s"] = workload_->bytes() / seconds;
    state.counters["roof_share"] = workload_->bytes() / seconds / read_rates_[subject.backend_index];
    const Subject baseline{subject.case_index, subject.backend_index, subject.type, true};
    if (subject.is_baseline) baseline_times_[baseline].add(state.iterations(), seconds);
    if (baseline_times_.contains(baseline)) {
      state.counters["speed_up"] = subject.is_baseline ? 1.0 : baseline_times_[baseline].median() / seconds;
    }
    if (const auto& in_graph = graph_times_.at(subject)) state.counters["graph_us"] = *in_graph * 1e6;
    const auto& a_case = cases_[subject.case_index];
    state.SetLabel(shape(a_case) + (a_case.repeat > 1 ? ", repeated " + std::to_string(a_case.repeat) + " times" : ""));
  }

  /// The times of the calls that count: those with the largest number of iterations, the others only search for it.
  class Times {
   public:
    void add(std::int64_t iterations, double seconds) {
      if (iterations > iterations_) times_.clear();
      if (iterations >= iterations_) times_.push_back(seconds);
      iterations_ = std::max(iterations_, iterations);
    }
    double median() const {
      auto sorted = times_;
      std::ranges::sort(sorted);
      const auto middle = sorted.size() / 2;
      return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

   private:
    std::int64_t iterations_ = 0;
    std::vector<double> times_;
  };

  const std::vector<Case>& cases_;
  const std::vector<Backend>& backends_;
  bool l2_cold_;
  std::vector<Answer> answers_;
  std::vector<double> read_rates_;
  Progress progress_;
  std::unique_ptr<Workload> workload_;  // one at a time, as the large ones fill the memory
  std::optional<Subject> prepared_;
  std::map<Subject, std::optional<std::string>> complaints_;
  std::map<Subject, std::optional<double>> graph_times_;
  std::map<Subject, Times> baseline_times_;
  bool all_right_ = true;
};

/// Shows median and minimum only, in whatever format was asked for.
class MedianAndMinimum : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override { return display_->ReportContext(context); }
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> shown;
    std::ranges::copy_if(runs, std::back_inserter(shown), [](const Run& run) {
      return run.run_type == Run::RT_Iteration || run.aggregate_name == "median" || run.aggregate_name == "min";
    });
    if (!shown.empty()) display_->ReportRuns(shown);
  }
  void Finalize() override { display_->Finalize(); }

 private:
  benchmark::BenchmarkReporter* display_ = benchmark::CreateDefaultDisplayReporter();
};

void add_context(const std::vector<Backend>& backends, const std::vector<double>& read_rates) {
  benchmark::AddCustomContext("bellman", bellman_version() + " (" BELLMAN_GIT_HASH ")");
  benchmark::AddCustomContext("kokkos", kokkos_version());
  for (std::size_t k = 0; k < backends.size(); ++k) {
    const auto rate = std::to_string(std::lround(read_rates[k] / 1e9));
    benchmark::AddCustomContext(backends[k].name, backends[k].hardware + ", reads " + rate + " GB/s");
  }
}

void register_benchmarks(Harness& harness, const std::vector<Case>& cases, const std::vector<Backend>& backends,
                         const std::vector<RealType>& types) {
  const auto add = [&](const Subject& subject) {
    benchmark::RegisterBenchmark(harness.name(subject).c_str(),
                                 [&harness, subject](benchmark::State& state) { harness.measure(subject, state); })
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond)
        ->ComputeStatistics("min", [](const std::vector<double>& values) { return *std::ranges::min_element(values); });
  };
  for (std::size_t c = 0; c < cases.size(); ++c) {
    for (std::size_t b = 0; b < backends.size(); ++b) {
      for (const auto type : types) {
        if (has_baseline(cases[c])) add({c, b, type, true});
        add({c, b, type, false});
      }
    }
  }
}

int main_function(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (arguments.help) {
    std::cout << usage << help;
    return 0;
  }
  std::vector<Case> cases;
  for (const auto& file : arguments.files) {
    for (const auto& each : support::read_case_file(file)) cases.push_back(rounded_to_float(each));
  }

  // Flags of the user come last and win.
  std::vector<std::string> defaults{"--benchmark_repetitions=5", "--benchmark_display_aggregates_only=true",
                                    "--benchmark_counters_tabular=true"};
  std::vector<char*> flags{argv[0]};
  for (auto& each : defaults) flags.push_back(each.data());
  flags.insert(flags.end(), arguments.others.begin(), arguments.others.end());
  int flag_count = static_cast<int>(flags.size());
  flags.push_back(nullptr);

  const Kokkos::ScopeGuard kokkos(flag_count, flags.data());
  benchmark::Initialize(&flag_count, flags.data());
  if (benchmark::ReportUnrecognizedArguments(flag_count, flags.data())) return 2;
  const auto all_backends = backends();
  Harness harness(cases, all_backends, arguments.l2_cold);
  add_context(all_backends, harness.read_rates());
  register_benchmarks(harness, cases, all_backends, arguments.types);
  MedianAndMinimum display;
  if (benchmark::RunSpecifiedBenchmarks(&display) == 0) return 2;
  return harness.all_right() ? 0 : 1;
}

}  // namespace
}  // namespace bellman::perf

int main(int argc, char** argv) {
  try {
    return bellman::perf::main_function(argc, argv);
  } catch (const bellman::support::CaseFileError& error) {
    std::cerr << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "bellman_perf: " << error.what() << '\n';
  }
  return 2;
}
