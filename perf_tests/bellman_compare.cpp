// SPDX-License-Identifier: Apache-2.0
#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <bellman/error.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "case_tools.hpp"
#include "program.hpp"
#include "progress.hpp"
#include "workload.hpp"

namespace bellman::perf {
namespace {

constexpr const char* usage = "usage: bellman_compare FILE... [--json FILE] [--help]\n";

constexpr const char* help =
    R"(
Runs each case of the files on every backend of this build, in float and in double, and on the serial reference, and
prints how far the results are from each other.

  --json FILE   also writes every row of the table to FILE
  --help        prints this text
  --kokkos-...  is passed on to Kokkos, such as --kokkos-num-threads=2

Each row compares the results of one backend with
  reference  the serial reference, computed in double. For float the inputs are rounded to float first and the reference
             is computed from the rounded inputs, so that rounding the inputs never counts as an error.
  expected   the values that the file lists under `expected`; only what was computed in double, the reference included.
host-device is the largest difference to the first backend in the table, for devices.

allowed is the error that the result with the largest absolute error may have; used is the largest error over all results
relative to what that result may have. What is allowed is the bound of the operation's contract,
  smith_waterman       1e-5 (|value| + t) in float, 1e-11 (|value| + t) in double
  hmm_log_likelihood   1e-6 (1 + |value|) in float, 1e-12 (1 + |value|) in double
  masked_sum           2^-24 |value| in float, 2^-53 |value| in double; plus R 2^-52 sum|x| over the valid ranks
  masked_mean          the same with the mean of |x|
  masked_min|max|count 0
unless the case has a `tolerance`, which replaces it by tolerance (1 + |value|). Against `expected` an error of
1e-8 |value| is allowed at least: inputs are often listed with the nine digits that identify a float, and differ from it
by up to 5e-9. NaN agrees with NaN, and an infinity with itself.
`repeat` and `goal` are for bellman_perf; they are ignored here.

Exit status: 0 if all agree, 1 if not, 2 if a file or an option is not right: then nothing was run.
)";

struct Arguments {
  std::vector<std::string> files;
  std::optional<std::string> json;
  bool help = false;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int k = 1; k < argc; ++k) {
    const std::string_view argument = argv[k];
    if (argument == "--help") {
      arguments.help = true;
    } else if (argument == "--json") {
      if (++k == argc) throw UserError(std::string("the option --json needs a file name\n") + usage);
      arguments.json = argv[k];
    } else if (argument.starts_with("--kokkos-")) {
      continue;  // Kokkos::initialize has it
    } else if (argument.starts_with('-')) {
      throw UserError("there is no option \"" + std::string(argument) + "\"\n" + usage);
    } else {
      arguments.files.emplace_back(argument);
    }
  }
  if (arguments.files.empty() && !arguments.help) throw UserError(std::string("no case file is given\n") + usage);
  return arguments;
}

struct Row {
  std::size_t case_index = 0;
  RealType type = RealType::double_type;
  std::string backend;
  std::string against;
  std::optional<double> host_device;
  Comparison comparison;
};

std::string scientific(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2e", value);
  return text.data();
}

std::string percent(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), share < 10 ? "%.0f%%" : "%.0e", share < 10 ? 100 * share : share);
  return text.data();
}

/// The table, printed row by row: all widths are known beforehand.
class Table {
 public:
  explicit Table(const std::vector<Case>& cases, const std::vector<Backend>& backends) {
    for (const auto& each : cases) {
      widen(0, each.name);
      widen(1, shape(each));
    }
    for (const auto& each : backends) widen(3, each.name);
  }

  void print_header() { print(titles_); }

  void print(const Case& a_case, const Row& row) {
    const auto& comparison = row.comparison;
    print({a_case.name, shape(a_case), to_string(row.type), row.backend, row.against,
           scientific(comparison.max_abs_error), scientific(comparison.max_rel_error),
           row.host_device ? scientific(*row.host_device) : "-", scientific(comparison.allowed_error),
           percent(comparison.worst_share), comparison.agrees ? "ok" : "FAIL"});
  }

 private:
  using Cells = std::array<std::string, 11>;

  void widen(std::size_t column, const std::string& text) { widths_[column] = std::max(widths_[column], text.size()); }

  void print(const Cells& cells) {
    std::string line;
    for (std::size_t k = 0; k < cells.size(); ++k) {
      const std::string padding(widths_[k] - cells[k].size(), ' ');
      const bool is_number = k >= 5 && k <= 9;
      line += is_number ? padding + cells[k] : cells[k] + padding;
      line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::cout << line << std::endl;
  }

  Cells titles_{"case",          "shape",       "type",    "backend", "against", "max abs error",
                "max rel error", "host-device", "allowed", "used",    ""};
  // The narrowest columns that hold the titles, "reference" and numbers such as 1.00e-300.
  std::array<std::size_t, 11> widths_{4, 5, 6, 9, 9, 13, 13, 11, 9, 6, 4};
};

/// Runs one case and hands each row to the caller as soon as it is known.
class CaseRun {
 public:
  CaseRun(const std::vector<Case>& cases, std::size_t index, const std::vector<Backend>& backends, Progress& progress)
      : case_(cases[index]), index_(index), count_(cases.size()), backends_(backends), progress_(progress) {}

  template <class Emit>
  void run(const Emit& emit) {
    run_type(rounded_to_float(case_), RealType::float_type, emit);
    run_type(case_, RealType::double_type, emit);
  }

 private:
  template <class Emit>
  void run_type(const Case& inputs, RealType type, const Emit& emit) {
    announce(type, "reference");
    const auto reference = reference_results(inputs);
    const auto allowed = allowed_errors(inputs, type, reference);
    const bool has_expected = type == RealType::double_type && expected_results(case_).has_value();
    if (has_expected) emit(row(type, "reference", "expected", compare_with_expected(reference)));
    std::optional<std::vector<double>> first;
    for (const auto& backend : backends_) {
      announce(type, backend.name);
      const auto results = library_results(backend, inputs, type);
      if (!first) first = results;
      auto against_reference = row(type, backend.name, "reference", compare(results, reference, allowed));
      if (backend.is_device) against_reference.host_device = max_difference(*first, results);
      emit(against_reference);
      if (has_expected) emit(row(type, backend.name, "expected", compare_with_expected(results)));
    }
  }

  std::vector<double> library_results(const Backend& backend, const Case& inputs, RealType type) const {
    try {
      const auto workload = backend.make_workload(inputs, type, 1);
      workload->launch();
      return workload->results();
    } catch (const Error& error) {
      throw UserError(case_.file + ": case " + case_.name + ": " + error.what());
    }
  }

  Comparison compare_with_expected(const std::vector<double>& results) const {
    const auto& expected = *expected_results(case_);
    auto allowed = allowed_errors(case_, RealType::double_type, expected);
    for (std::size_t k = 0; k < allowed.size(); ++k) allowed[k] = std::max(allowed[k], 1e-8 * std::abs(expected[k]));
    return compare(results, expected, allowed);
  }

  Row row(RealType type, const std::string& backend, const std::string& against, const Comparison& comparison) const {
    return {index_, type, backend, against, std::nullopt, comparison};
  }

  void announce(RealType type, const std::string& who) {
    progress_.show("case " + std::to_string(index_ + 1) + " of " + std::to_string(count_) + ": " + case_.name + ", " +
                   to_string(type) + ", " + who);
  }

  const Case& case_;
  std::size_t index_;
  std::size_t count_;
  const std::vector<Backend>& backends_;
  Progress& progress_;
};

// JSON

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> escape{};
      std::snprintf(escape.data(), escape.size(), "\\u%04x", static_cast<unsigned>(c));
      out += escape.data();
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// JSON has no NaN and no infinity: these become strings.
std::string json_number(double value) {
  if (std::isnan(value)) return "\"nan\"";
  if (std::isinf(value)) return value > 0 ? "\"inf\"" : "\"-inf\"";
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

void write_json(std::ostream& out, const std::vector<Case>& cases, const std::vector<Backend>& backends,
                const std::vector<Row>& rows, bool agree) {
  out << "{\n  \"bellman\": " << quoted(bellman_version()) << ",\n  \"kokkos\": " << quoted(kokkos_version())
      << ",\n  \"backends\": [";
  for (std::size_t k = 0; k < backends.size(); ++k) {
    out << (k == 0 ? "" : ", ") << "{\"name\": " << quoted(backends[k].name)
        << ", \"hardware\": " << quoted(backends[k].hardware) << "}";
  }
  out << "],\n  \"cases\": " << cases.size() << ",\n  \"agree\": " << (agree ? "true" : "false") << ",\n  \"rows\": [";
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto& row = rows[k];
    const auto& a_case = cases[row.case_index];
    out << (k == 0 ? "\n" : ",\n") << "    {\"case\": " << quoted(a_case.name) << ", \"file\": " << quoted(a_case.file)
        << ", \"operation\": " << quoted(a_case.operation) << ", \"shape\": " << quoted(shape(a_case))
        << ", \"type\": " << quoted(to_string(row.type)) << ", \"backend\": " << quoted(row.backend)
        << ", \"against\": " << quoted(row.against)
        << ", \"max_abs_error\": " << json_number(row.comparison.max_abs_error)
        << ", \"max_rel_error\": " << json_number(row.comparison.max_rel_error)
        << ", \"host_device\": " << (row.host_device ? json_number(*row.host_device) : "null")
        << ", \"allowed_error\": " << json_number(row.comparison.allowed_error)
        << ", \"worst_share\": " << json_number(row.comparison.worst_share)
        << ", \"ok\": " << (row.comparison.agrees ? "true" : "false") << "}";
  }
  out << "\n  ]\n}\n";
}

// The command

std::string verdict(const std::vector<Case>& cases, const std::vector<Backend>& backends,
                    const std::vector<Row>& rows) {
  std::vector<bool> fails(cases.size(), false);
  for (const auto& row : rows) fails[row.case_index] = fails[row.case_index] || !row.comparison.agrees;
  std::string failed;
  std::size_t failures = 0;
  for (std::size_t k = 0; k < cases.size(); ++k) {
    if (!fails[k]) continue;
    failed += (failures++ == 0 ? " " : ", ") + cases[k].name;
  }
  const std::string total = std::to_string(cases.size()) + (cases.size() == 1 ? " case" : " cases");
  if (failures > 0) {
    return total + ", " + std::to_string(failures) + (failures == 1 ? " of which is wrong:" : " of which are wrong:") +
           failed + '.';
  }
  const bool has_host = std::ranges::any_of(backends, [](const Backend& each) { return !each.is_device; });
  const bool has_device = std::ranges::any_of(backends, [](const Backend& each) { return each.is_device; });
  const std::string who = has_host && has_device ? "host and device" : has_device ? "device" : "host";
  return total + ": all results of " + who + " agree with the reference.";
}

bool run(const std::vector<Case>& cases, std::ostream* json) {
  const auto all_backends = backends();
  for (const auto& backend : all_backends) {
    std::cout << backend.name << ": " << (backend.is_device ? "device, " : "host, ") << backend.hardware << '\n';
  }
  std::cout << '\n';
  Progress progress;
  Table table(cases, all_backends);
  table.print_header();
  std::vector<Row> rows;
  std::vector<std::string> failures;
  for (std::size_t k = 0; k < cases.size(); ++k) {
    CaseRun(cases, k, all_backends, progress).run([&](const Row& row) {
      progress.clear();
      table.print(cases[k], row);
      rows.push_back(row);
      if (row.comparison.agrees) return;
      std::ostringstream failure;
      failure.precision(17);
      failure << cases[k].name << ", " << to_string(row.type) << ", " << row.backend << ": result "
              << row.comparison.worst << " is " << row.comparison.got << ", but " << row.comparison.wanted << " by the "
              << (row.against == "expected" ? "file" : row.against) << '.';
      failures.push_back(failure.str());
    });
  }
  std::cout << '\n';
  for (const auto& failure : failures) std::cout << failure << '\n';
  std::cout << verdict(cases, all_backends, rows) << std::endl;
  if (json) write_json(*json, cases, all_backends, rows, failures.empty());
  return failures.empty();
}

int main_function(int argc, char** argv) {
  const auto arguments = parse(argc, argv);
  if (arguments.help) {
    std::cout << usage << help;
    return 0;
  }
  std::vector<Case> cases;
  for (const auto& file : arguments.files) {
    auto of_file = support::read_case_file(file);
    std::ranges::move(of_file, std::back_inserter(cases));
  }
  std::ofstream json;
  if (arguments.json) {
    json.open(*arguments.json);
    if (!json) throw UserError(*arguments.json + ": cannot be opened for writing");
  }
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const bool agree = run(cases, arguments.json ? &json : nullptr);
  if (arguments.json && !json.flush()) throw UserError(*arguments.json + ": cannot be written");
  return agree ? 0 : 1;
}

}  // namespace
}  // namespace bellman::perf

int main(int argc, char** argv) {
  return bellman::perf::run_program("bellman_compare", bellman::perf::main_function, argc, argv);
}
