// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "case_tools.hpp"
#include "goals.hpp"
#include "harness.hpp"
#include "program.hpp"
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
  graph_us    on CUDA: one of 20 calls in a CUDA graph (of fewer, if they take milliseconds), in microseconds, the median
              of several replays between two events: what a call costs without its submission. Caches stay warm. Absent
              if a call cannot be captured, and for slow baselines
  fma/s       multiply-adds that the recurrence needs at least: 3 a cell (alignment), 1 a cell (all others)
  moved_bytes bytes of a call that must be read or written
  floor_us    no call can be faster: its bytes, read and written, at the measured read rate, or its multiply-adds at their
              measured rate, or an empty launch (in a graph where there are graphs), whichever takes longest

Goals: a case with a `goal` is measured on the backend and in the type of its goal alone. A table at the end sets each goal
beside what was measured, its floor and the ratio to the baseline. Metrics:
  time_us, cells/s, read_share, fma_share   of a call, or with in_graph: true of one in a CUDA graph; the shares are of the
              measured read rate (bytes that must be read alone) and rate of multiply-adds
  submit_us   what the host needs to submit a call, above a raw launch of an empty kernel with 512 bytes of arguments: 100
              calls without a fence, in turns with as many raw launches, the medians of 15 rounds. A fence or an allocation
              within the call fails the goal
  speed_up_per_core   the serial reference in double over a call on one thread, in turns, the median of 5 rounds
  scaling_at_2        time on one thread over twice that on two, in turns, the median of 5 rounds
In the JSON: goal, goal_measured, goal_floor, and goal_met, which is 1 or 0. A goal whose backend is not in this build is not
measured, and not in the JSON. With goals in the files, --benchmark_min_time is 0.1 unless you say otherwise, and baselines
are measured in one repetition.

Check: inputs are rounded to float, for both types. The first and last few problems must agree with the serial reference
within the bound of the operation's contract or the `tolerance` of the case (see bellman_compare --help), a baseline
within 1e-2 (1 + |value|) in float and 1e-8 (1 + |value|) in double, as it may lose digits. `repeat: N` in a case copies
its problems or columns N times, and each copy must have the very same result. With shard lengths the copies of a column
follow it at once and lengths grow by the same factor; otherwise all problems or columns are repeated in turn.

Exit status: 0 if all answers are right (whether or not goals are met), 1 if not, 2 if a file or an option is not right.
)";

struct Arguments {
  std::vector<std::string> files;
  std::vector<RealType> types = {RealType::float_type, RealType::double_type};
  bool l2_cold = false;
  bool help = false;
  bool shows_console = true;  ///< not JSON or CSV
  bool writes_json = false;   ///< to a file
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
      if (argument.starts_with("--benchmark_format=")) arguments.shows_console = argument.ends_with("=console");
      if (argument.starts_with("--benchmark_list_tests")) arguments.shows_console = false;
      if (argument.starts_with("--benchmark_out=")) arguments.writes_json = true;
    } else if (argument.starts_with('-')) {
      throw UserError("there is no option \"" + std::string(argument) + "\"\n" + usage);
    } else {
      arguments.files.emplace_back(argument);
    }
  }
  if (arguments.files.empty() && !arguments.help) throw UserError(std::string("no case file is given\n") + usage);
  const auto is_csv = [](std::string_view other) { return other == "--benchmark_out_format=csv"; };
  if (std::ranges::any_of(arguments.others, is_csv)) arguments.writes_json = false;
  return arguments;
}

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

/// The JSON file without the coefficients of variation: that of a counter which is 0 is NaN, which JSON does not have.
class JsonFile : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override {
    json_.SetOutputStream(&GetOutputStream());
    return json_.ReportContext(context);
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    std::vector<Run> written;
    std::ranges::copy_if(runs, std::back_inserter(written), [](const Run& run) { return run.aggregate_name != "cv"; });
    if (!written.empty()) json_.ReportRuns(written);
  }
  void Finalize() override { json_.Finalize(); }

 private:
  benchmark::JSONReporter json_;
};

/// What the run was made of, for readers; and what the backends can do at best, for the scripts.
void add_context(const std::vector<Backend>& backends, const std::vector<Roofs>& roofs) {
  const auto number = [](double value) {
    std::ostringstream text;
    text << value;
    return text.str();
  };
  benchmark::AddCustomContext("bellman", bellman_version() + " (" BELLMAN_GIT_HASH ")");
  benchmark::AddCustomContext("kokkos", kokkos_version());
  for (std::size_t k = 0; k < backends.size(); ++k) {
    const auto& name = backends[k].name;
    const auto rate = std::to_string(std::lround(roofs[k].read_rate / 1e9));
    benchmark::AddCustomContext(name, backends[k].hardware + ", reads " + rate + " GB/s");
    benchmark::AddCustomContext(name + ".read_bytes/s", number(roofs[k].read_rate));
    benchmark::AddCustomContext(name + ".float_fma/s", number(roofs[k].float_fma_rate));
    benchmark::AddCustomContext(name + ".double_fma/s", number(roofs[k].double_fma_rate));
    benchmark::AddCustomContext(name + ".empty_call_us", number(roofs[k].empty_launch.call * 1e6));
    benchmark::AddCustomContext(name + ".empty_graph_us", number(roofs[k].empty_launch.in_graph * 1e6));
  }
}

/// Goals name their backend: the others need not be probed if every case has a goal.
bool is_wanted(const Backend& backend, const std::vector<Case>& cases) {
  return std::ranges::any_of(cases, [&](const Case& each) { return !each.goal || each.goal->backend == backend.name; });
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
  const bool has_goals = std::ranges::any_of(cases, [](const Case& each) { return each.goal.has_value(); });
  if (has_goals) defaults.emplace_back("--benchmark_min_time=0.1");
  std::vector<char*> flags{argv[0]};
  for (auto& each : defaults) flags.push_back(each.data());
  flags.insert(flags.end(), arguments.others.begin(), arguments.others.end());
  int flag_count = static_cast<int>(flags.size());
  flags.push_back(nullptr);

  const Kokkos::ScopeGuard kokkos(flag_count, flags.data());
  benchmark::Initialize(&flag_count, flags.data());
  if (benchmark::ReportUnrecognizedArguments(flag_count, flags.data())) return 2;
  auto all_backends = backends();
  std::erase_if(all_backends, [&](const Backend& each) { return !is_wanted(each, cases); });
  Harness harness(cases, all_backends, arguments.l2_cold);
  add_context(all_backends, harness.roofs());
  register_benchmarks(harness, cases, all_backends, arguments.types);
  MedianAndMinimum display;
  JsonFile file;
  const bool nothing_was_run =
      benchmark::RunSpecifiedBenchmarks(&display, arguments.writes_json ? &file : nullptr) == 0;
  if (has_goals && arguments.shows_console) std::cout << '\n' << goal_table(harness.goal_rows());
  if (nothing_was_run && !has_goals) return 2;
  return harness.all_right() ? 0 : 1;
}

}  // namespace
}  // namespace bellman::perf

int main(int argc, char** argv) {
  return bellman::perf::run_program("bellman_perf", bellman::perf::main_function, argc, argv);
}
