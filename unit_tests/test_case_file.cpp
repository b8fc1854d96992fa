// SPDX-License-Identifier: Apache-2.0
// The reader of case files: what it reads, what it refuses and where, and the golden files against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iomanip>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "reference/reference.hpp"
#include "support/case_file.hpp"

#ifndef BELLMAN_TEST_DATA_DIR
#error "define BELLMAN_TEST_DATA_DIR as the path of unit_tests/data"
#endif

namespace {

namespace reference = bellman::reference;
using bellman::reference::Reduction;
using bellman::support::Case;
using bellman::support::CaseFileError;
using bellman::support::HmmCase;
using bellman::support::MaskedReduceCase;
using bellman::support::parse_case_file;
using bellman::support::read_case_file;
using bellman::support::SmithWatermanCase;

using Reals = std::vector<double>;
using Integers = std::vector<std::int64_t>;
using Mask = std::vector<std::uint8_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();

const std::filesystem::path golden = std::filesystem::path(BELLMAN_TEST_DATA_DIR) / "golden";

/// The one case of a text.
template <class Problem>
Problem problem_of(const std::string& text) {
  return std::get<Problem>(parse_case_file(text, "case.yaml").at(0).problem);
}

/// What the reader says of a text, or "accepted".
std::string complaint(const std::string& text) {
  try {
    parse_case_file(text, "case.yaml");
    return "accepted";
  } catch (const CaseFileError& error) {
    return error.what();
  }
}

/// The text with the first \p old replaced; fails when there is none, so that no edit is in vain.
std::string edited(std::string text, const std::string& old, const std::string& replacement) {
  const std::size_t at = text.find(old);
  EXPECT_NE(at, std::string::npos) << "no \"" << old << "\" to replace";
  return at == std::string::npos ? text : text.replace(at, old.size(), replacement);
}

const std::string alignment =
    "operation: smith_waterman\n"
    "batch: 1\n"
    "rows: 2\n"
    "columns: 3\n"
    "gap: -1.0\n"
    "temperature: 0.5\n"
    "scores: [1, -1, 0.5, -.inf, 2e0, .nan]\n"
    "expected:\n"
    "  score: [3.5]\n"
    "  score_gradient: [0, 1, 2, 3, 4, 5]\n"
    "tolerance: 1e-9\n";

const std::string hmm =
    "operation: hmm_log_likelihood\n"
    "batch: 2\n"
    "length: 3\n"
    "states: 2\n"
    "symbols: 3\n"
    "log_init: [0, -1]\n"
    "log_trans: [0.5, 1, -.inf, 2]\n"
    "log_emit: [1, 2, 3, 4, 5, 6]\n"
    "observations: [0, 1, 2, -1, 7, 0]\n"
    "lengths: [3, 0]\n"
    "normalised: true\n"
    "expected:\n"
    "  log_likelihood: [-1, 0]\n";

const std::string masked =
    "operation: masked_mean\n"
    "ranks: 2\n"
    "columns: 2\n"
    "values: [1, 2, 3, 4]\n"
    "mask: [1, 0, true, false]\n"
    "expected: {mean: [2, .nan]}\n";

// What is read
// -----------------------------------------------------------------------------------------------------------

TEST(CaseFile, SmithWaterman) {
  const std::vector<Case> cases = parse_case_file(alignment, "some/where/first.yaml");
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases[0].name, "first");
  EXPECT_EQ(cases[0].file, "some/where/first.yaml");
  EXPECT_EQ(cases[0].operation, "smith_waterman");
  EXPECT_EQ(cases[0].tolerance, 1e-9);
  const auto& problem = std::get<SmithWatermanCase>(cases[0].problem);
  EXPECT_EQ(problem.batch, 1U);
  EXPECT_EQ(problem.rows, 2U);
  EXPECT_EQ(problem.columns, 3U);
  EXPECT_EQ(problem.gap, -1.0);
  EXPECT_EQ(problem.temperature, 0.5);
  ASSERT_EQ(problem.scores.size(), 6U);
  EXPECT_EQ(Reals(problem.scores.begin(), problem.scores.begin() + 5), (Reals{1, -1, 0.5, -infinity, 2}));
  EXPECT_TRUE(std::isnan(problem.scores[5]));
  EXPECT_EQ(problem.expected.score, Reals{3.5});
  EXPECT_EQ(problem.expected.score_gradient, (Reals{0, 1, 2, 3, 4, 5}));
}

TEST(CaseFile, Hmm) {
  const auto problem = problem_of<HmmCase>(hmm);
  EXPECT_EQ(problem.batch, 2U);
  EXPECT_EQ(problem.length, 3U);
  EXPECT_EQ(problem.model.states, 2U);
  EXPECT_EQ(problem.model.symbols, 3U);
  EXPECT_EQ(problem.model.log_init, (Reals{0, -1}));
  EXPECT_EQ(problem.model.log_trans, (Reals{0.5, 1, -infinity, 2}));
  EXPECT_EQ(problem.model.log_emit, (Reals{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(problem.observations, (Integers{0, 1, 2, -1, 7, 0}));
  EXPECT_EQ(problem.lengths, (Integers{3, 0}));
  EXPECT_TRUE(problem.normalised);
  EXPECT_EQ(problem.expected.log_likelihood, (Reals{-1, 0}));
  EXPECT_EQ(problem.expected.log_init_gradient, std::nullopt);

  const auto plain = problem_of<HmmCase>(edited(edited(hmm, "lengths: [3, 0]\n", ""), "normalised: true\n", ""));
  EXPECT_FALSE(plain.normalised);
  EXPECT_EQ(plain.lengths, std::nullopt);
}

TEST(CaseFile, MaskedReductions) {
  const auto with_mask = problem_of<MaskedReduceCase>(masked);
  EXPECT_EQ(with_mask.reduction, Reduction::mean);
  EXPECT_EQ(with_mask.ranks, 2U);
  EXPECT_EQ(with_mask.columns, 2U);
  EXPECT_EQ(with_mask.values, (Reals{1, 2, 3, 4}));
  EXPECT_EQ(with_mask.mask, (Mask{1, 0, 1, 0}));
  EXPECT_EQ(with_mask.lengths, std::nullopt);
  ASSERT_TRUE(with_mask.expected);
  EXPECT_EQ(with_mask.expected->at(0), 2.0);
  EXPECT_TRUE(std::isnan(with_mask.expected->at(1)));

  const auto with_lengths =
      problem_of<MaskedReduceCase>(edited(masked, "mask: [1, 0, true, false]", "lengths: [2, 0]"));
  EXPECT_EQ(with_lengths.mask, Mask{});
  EXPECT_EQ(with_lengths.lengths, (Integers{2, 0}));

  const std::string bare = edited(masked, "expected: {mean: [2, .nan]}\n", "");
  EXPECT_EQ(problem_of<MaskedReduceCase>(edited(bare, "mean", "sum")).reduction, Reduction::sum);
  EXPECT_EQ(problem_of<MaskedReduceCase>(edited(bare, "mean", "min")).reduction, Reduction::min);
  EXPECT_EQ(problem_of<MaskedReduceCase>(edited(bare, "mean", "max")).reduction, Reduction::max);
  EXPECT_EQ(problem_of<MaskedReduceCase>(edited(bare, "mean", "count")).reduction, Reduction::count);
}

TEST(CaseFile, SeveralCases) {
  const std::vector<Case> cases = parse_case_file(
      "cases:\n"
      "  - {name: tiny, operation: masked_sum, ranks: 0, columns: 1, values: [], mask: []}\n"
      "  - {operation: masked_count, ranks: 1, columns: 1, values: [+2], lengths: [1], tolerance: 0}\n",
      "several.yaml");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].name, "tiny");
  EXPECT_EQ(cases[0].tolerance, std::nullopt);
  EXPECT_EQ(cases[1].name, "several#2");
  EXPECT_EQ(cases[1].tolerance, 0.0);
  EXPECT_EQ(std::get<MaskedReduceCase>(cases[1].problem).values, Reals{2});
}

TEST(CaseFile, GeneratorsAreTheDocumentedOnes) {
  // Drawn by an independent implementation of the 64-bit Mersenne Twister.
  const Reals normal = {1.5913998756469563, -0.524813235129496, 0.3889032347053571, -0.31393152099566934};
  const auto problem = problem_of<HmmCase>(
      "operation: hmm_log_likelihood\n"
      "batch: 3\n"
      "length: 3\n"
      "states: 2\n"
      "symbols: 5\n"
      "log_init: [0, 0]\n"
      "log_trans: {random: normal, seed: 7, scale: 2.0}\n"
      "log_emit: {seed: 7, random: normal}\n"
      "observations: {random: uniform, seed: 7}\n"
      "lengths: {random: uniform, seed: 8}\n");
  ASSERT_EQ(problem.model.log_trans.size(), 4U);
  ASSERT_EQ(problem.model.log_emit.size(), 10U);
  for (std::size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(problem.model.log_trans[k], 2 * normal[k], 1e-14);
    EXPECT_NEAR(problem.model.log_emit[k], normal[k], 1e-14);
  }
  ASSERT_EQ(problem.observations.size(), 9U);
  EXPECT_EQ(Integers(problem.observations.begin(), problem.observations.begin() + 8),
            (Integers{0, 0, 3, 1, 1, 3, 4, 3}));
  EXPECT_EQ(problem.lengths, (Integers{1, 2, 0}));

  const std::string drawn_mask =
      "{operation: masked_sum, ranks: 2, columns: 3, values: {random: normal, seed: 7}, "
      "mask: {random: bernoulli, seed: 7, probability: 0.25}}";
  EXPECT_EQ(problem_of<MaskedReduceCase>(drawn_mask).mask, (Mask{0, 0, 1, 0, 1, 1}));
  EXPECT_EQ(problem_of<MaskedReduceCase>(edited(drawn_mask, "0.25", "1")).mask, Mask(6, 1));
  EXPECT_EQ(problem_of<MaskedReduceCase>(edited(drawn_mask, "0.25", "0.0")).mask, Mask(6, 0));
  // An odd number of reals is the beginning of the even one.
  const Reals six = problem_of<MaskedReduceCase>(drawn_mask).values;
  const Reals three = problem_of<MaskedReduceCase>(edited(drawn_mask, "ranks: 2", "ranks: 1")).values;
  EXPECT_EQ(three, Reals(six.begin(), six.begin() + 3));
}

TEST(CaseFile, GeneratedNormalsHaveTheMomentsOfANormal) {
  const auto problem = problem_of<MaskedReduceCase>(
      "{operation: masked_sum, ranks: 1, columns: 200001, values: {random: normal, seed: 1, scale: 3}, lengths: [0]}");
  double sum = 0;
  double squares = 0;
  double fourth_powers = 0;
  for (const double x : problem.values) {
    sum += x;
    squares += x * x;
    fourth_powers += x * x * x * x;
  }
  const auto n = static_cast<double>(problem.values.size());
  EXPECT_NEAR(sum / n, 0, 3 * 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 9, 9 * 4 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth_powers / n, 243, 81 * 4 * std::sqrt(96 / n));
}

// What is refused, and where
// ---------------------------------------------------------------------------------------------

TEST(CaseFile, UnreadableFiles) {
  const auto complaint_about = [](const std::string& file) -> std::string {
    try {
      read_case_file(file);
      return "accepted";
    } catch (const CaseFileError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(complaint_about("no/such/file.yaml"), "no/such/file.yaml: cannot be opened: No such file or directory");
  EXPECT_EQ(complaint_about(golden.string()), golden.string() + ": cannot be opened: Is a directory");
}

TEST(CaseFile, MalformedYaml) {
  EXPECT_EQ(complaint("operation: smith_waterman\nscores: [1, 2\nbatch: 1\n").substr(0, 34),
            "case.yaml:3:6: not valid YAML: end");
  EXPECT_EQ(complaint("operation: ]\n").substr(0, 31), "case.yaml:1:12: not valid YAML:");
  EXPECT_EQ(complaint("a: 1\n b: 2\n").substr(0, 30), "case.yaml:2:3: not valid YAML:");
  EXPECT_EQ(complaint("scores: *nowhere\n").substr(0, 30), "case.yaml:1:9: not valid YAML:");
}

TEST(CaseFile, DocumentsThatAreNoCase) {
  EXPECT_EQ(complaint(""), "case.yaml:1:1: the file holds no case");
  EXPECT_EQ(complaint("# nothing\n").substr(0, 11), "case.yaml:1");
  EXPECT_EQ(complaint("- 1\n- 2\n"), "case.yaml:1:1: a case file must hold a mapping, got a sequence");
  EXPECT_EQ(complaint("just words"), "case.yaml:1:1: a case file must hold a mapping, got \"just words\"");
  EXPECT_EQ(complaint(masked + "---\n" + masked),
            "case.yaml:7:1: a second YAML document; list several cases under the key cases");
  EXPECT_EQ(complaint("," + masked).substr(0, 9), "case.yaml");  // a stray comma, on which yaml-cpp 0.7 can hang
  EXPECT_EQ(complaint("{operation: x}, 1").substr(0, 9), "case.yaml");
  EXPECT_EQ(complaint("cases: []\n"), "case.yaml:1:8: cases is empty");
  EXPECT_EQ(complaint("cases: 3\n"), "case.yaml:1:8: cases must be a sequence, got \"3\"");
  EXPECT_EQ(complaint("cases:\n  - 3\n"), "case.yaml:2:5: a case must be a mapping, got \"3\"");
  EXPECT_EQ(complaint("cases:\n  - {}\nbatch: 1\n"),
            "case.yaml:3:1: a file of several cases has no key \"batch\"; its keys are cases");
}

TEST(CaseFile, Operations) {
  EXPECT_EQ(complaint("batch: 1\n"), "case.yaml:1:1: the key \"operation\" is missing");
  EXPECT_EQ(complaint("cases:\n  - batch: 1\n"), "case.yaml:2:5: the key \"operation\" is missing");
  EXPECT_EQ(complaint("operation: hmm_genome\n"),
            "case.yaml:1:12: the operation \"hmm_genome\" is not one of a case file, which are smith_waterman, "
            "hmm_log_likelihood, masked_sum, masked_mean, masked_min, masked_max, masked_count");
  EXPECT_EQ(complaint("operation: [smith_waterman]\n"), "case.yaml:1:12: operation must be a string, got a sequence");
  EXPECT_EQ(complaint(edited(masked, "mean\n", "median\n")).substr(0, 47),
            "case.yaml:1:12: the operation \"masked_median\" i");
}

TEST(CaseFile, Keys) {
  const auto complaint_without = [](std::string text, const std::string& key) {
    const std::size_t begin = text.find('\n' + key + ": ") + 1;
    return complaint(text.erase(begin, text.find('\n', begin) + 1 - begin));
  };
  for (const std::string key : {"batch", "rows", "columns", "gap", "temperature", "scores"}) {
    EXPECT_EQ(complaint_without(alignment, key), "case.yaml:1:1: the key \"" + key + "\" is missing");
  }
  for (const std::string key :
       {"batch", "length", "states", "symbols", "log_init", "log_trans", "log_emit", "observations"}) {
    EXPECT_EQ(complaint_without(hmm, key), "case.yaml:1:1: the key \"" + key + "\" is missing");
  }
  for (const std::string key : {"ranks", "columns", "values"}) {
    EXPECT_EQ(complaint_without(masked, key), "case.yaml:1:1: the key \"" + key + "\" is missing");
  }
  EXPECT_EQ(
      complaint(edited(alignment, "rows", "rowz")),
      "case.yaml:3:1: a case of smith_waterman has no key \"rowz\"; its keys are batch, columns, expected, gap, goal, "
      "name, operation, repeat, rows, scores, temperature, tolerance");
  EXPECT_EQ(complaint(edited(alignment, "  score_gradient", "  gradient")),
            "case.yaml:10:3: expected has no key \"gradient\"; its keys are score, score_gradient");
  EXPECT_EQ(complaint(edited(masked, "{mean:", "{sum:")),
            "case.yaml:6:12: expected has no key \"sum\"; its keys are mean");
  EXPECT_EQ(complaint(alignment + "gap: -2\n"), "case.yaml:12:1: the key \"gap\" stands twice");
  EXPECT_EQ(complaint(alignment + "? [1, 2]\n: 3\n"), "case.yaml:12:3: a key must be a string, got a sequence");
  EXPECT_EQ(complaint(edited(masked, "mask: [1, 0, true, false]\n", "")),
            "case.yaml:1:1: one of the keys \"mask\" and \"lengths\" is missing");
  EXPECT_EQ(complaint(masked + "lengths: [1, 1]\n"), "case.yaml:7:10: mask and lengths exclude each other");
}

TEST(CaseFile, Scalars) {
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap: wide")),
            "case.yaml:5:6: gap must be a number, got \"wide\"");
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap: \"-1.0\"")),
            "case.yaml:5:6: gap must be a number, got \"-1.0\"");
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap: inf")), "case.yaml:5:6: gap must be a number, got \"inf\"");
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap: 1.0x")),
            "case.yaml:5:6: gap must be a number, got \"1.0x\"");
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap: +-1")), "case.yaml:5:6: gap must be a number, got \"+-1\"");
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap: {a: 1}")),
            "case.yaml:5:6: gap must be a number, got a mapping");
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap: 1e999")),
            "case.yaml:5:6: gap is out of the range of double: 1e999");
  EXPECT_EQ(complaint(edited(alignment, "gap: -1.0", "gap:")), "case.yaml:5:1: the key \"gap\" has no value");
  EXPECT_EQ(complaint(edited(alignment, "[3.5]", "~")), "case.yaml:9:3: the key \"score\" has no value");
  EXPECT_EQ(complaint("operation:\nbatch: 1\n"), "case.yaml:1:1: the key \"operation\" is missing");
  for (const char* bad : {"-0.5", ".inf", ".nan"}) {
    EXPECT_EQ(complaint(edited(alignment, "temperature: 0.5", std::string("temperature: ") + bad)),
              std::string("case.yaml:6:14: temperature must be finite and not negative, got \"") + bad + '"');
    EXPECT_EQ(complaint(edited(alignment, "tolerance: 1e-9", std::string("tolerance: ") + bad)),
              std::string("case.yaml:11:12: tolerance must be finite and not negative, got \"") + bad + '"');
  }
  EXPECT_EQ(complaint(edited(hmm, "normalised: true", "normalised: 1")),
            "case.yaml:11:13: normalised must be true or false, got \"1\"");
  EXPECT_EQ(complaint("name: [x]\n" + alignment), "case.yaml:1:7: name must be a string, got a sequence");
  EXPECT_EQ(problem_of<SmithWatermanCase>(edited(alignment, "gap: -1.0", "gap: -.inf")).gap, -infinity);
  EXPECT_EQ(complaint(alignment + "repeat: 0\n"), "case.yaml:12:9: repeat must be at least 1, got 0");
  EXPECT_EQ(parse_case_file(alignment, "case.yaml")[0].repeat, 1U);
  EXPECT_EQ(parse_case_file(alignment + "repeat: 3\n", "case.yaml")[0].repeat, 3U);
}

TEST(CaseFile, Sizes) {
  EXPECT_EQ(complaint(edited(alignment, "rows: 2", "rows: -2")), "case.yaml:3:7: rows must not be negative, got -2");
  EXPECT_EQ(complaint(edited(alignment, "rows: 2", "rows: 2.0")),
            "case.yaml:3:7: rows must be an integer, got \"2.0\"");
  EXPECT_EQ(complaint(edited(alignment, "rows: 2", "rows: 18446744073709551618")),
            "case.yaml:3:7: rows is out of the range of 64-bit integers: 18446744073709551618");
  EXPECT_EQ(complaint(edited(alignment, "rows: 2", "rows: 9223372036854775807")),
            "case.yaml:3:7: rows 9223372036854775807 is more than 4294967296 elements");
  // 2^32 * 2^32 is 0 in 64 bits, which the empty array would fit.
  std::string wrapped = edited(edited(alignment, "rows: 2", "rows: 4294967296"), "columns: 3", "columns: 4294967296");
  wrapped = edited(wrapped, "[1, -1, 0.5, -.inf, 2e0, .nan]", "[]");
  EXPECT_EQ(complaint(wrapped),
            "case.yaml:4:10: batch 1 * rows 4294967296 * columns 4294967296 is more than 4294967296 elements");
  EXPECT_EQ(complaint(edited(hmm, "states: 2", "states: 65537")),
            "case.yaml:6:11: log_init has 2 elements, expected 65537 (states 65537)");
}

TEST(CaseFile, Arrays) {
  EXPECT_EQ(complaint(edited(alignment, "rows: 2", "rows: 1")),
            "case.yaml:7:9: scores has 6 elements, expected 3 (batch 1 * rows 1 * columns 3)");
  EXPECT_EQ(complaint(edited(alignment, "[3.5]", "[]")), "case.yaml:9:10: score has 0 elements, expected 1 (batch 1)");
  EXPECT_EQ(complaint(edited(alignment, "[0, 1, 2, 3, 4, 5]", "[0]")),
            "case.yaml:10:19: score_gradient has 1 elements, expected 6 (batch 1 * rows 2 * columns 3)");
  EXPECT_EQ(complaint(edited(alignment, "[1, -1, 0.5", "[1, one, 0.5")),
            "case.yaml:7:13: an element of scores must be a number, got \"one\"");
  EXPECT_EQ(complaint(edited(alignment, "[1, -1, 0.5", "[1, [-1], 0.5")),
            "case.yaml:7:13: an element of scores must be a number, got a sequence");
  EXPECT_EQ(complaint(edited(alignment, "[1, -1, 0.5, -.inf, 2e0, .nan]", "6")),
            "case.yaml:7:9: scores must be a sequence, got \"6\"");
  EXPECT_EQ(complaint(edited(alignment, "  score: [3.5]", "  score: {random: normal, seed: 1}")),
            "case.yaml:9:10: expected values must be listed, not drawn");
  EXPECT_EQ(
      complaint(edited(edited(alignment, "  score: [3.5]\n", ""), "  score_gradient: [0, 1, 2, 3, 4, 5]\n", "  3\n")),
      "case.yaml:9:3: expected must be a mapping, got \"3\"");
  EXPECT_EQ(complaint(edited(hmm, "[0, 1, 2, -1", "[0, 1.5, 2, -1")),
            "case.yaml:9:19: an element of observations must be an integer, got \"1.5\"");
  EXPECT_EQ(complaint(edited(hmm, "[3, 0]", "[3, 4]")),
            "case.yaml:10:14: an element of lengths must lie in [0, length] = [0, 3], got 4");
  EXPECT_EQ(complaint(edited(hmm, "[3, 0]", "[-1, 3]")),
            "case.yaml:10:11: an element of lengths must lie in [0, length] = [0, 3], got -1");
  EXPECT_EQ(complaint(edited(hmm, "[0.5, 1, -.inf, 2]", "[0.5]")),
            "case.yaml:7:12: log_trans has 1 elements, expected 4 (states 2 * states 2)");
  EXPECT_EQ(complaint(edited(masked, "[1, 0, true", "[1, 2, true")),
            "case.yaml:5:11: an element of mask must be 0, 1, true or false, got \"2\"");
  EXPECT_EQ(complaint(edited(masked, "mask: [1, 0, true, false]", "lengths: [1, 3]")),
            "case.yaml:5:14: an element of lengths must lie in [0, columns] = [0, 2], got 3");
}

TEST(CaseFile, Goals) {
  using bellman::support::Goal;
  const auto with_goal = [](const std::string& text) { return alignment + "goal: {" + text + "}\n"; };
  EXPECT_FALSE(parse_case_file(alignment, "case.yaml")[0].goal.has_value());

  const auto in_graph =
      parse_case_file(with_goal("metric: time_us, in_graph: true, at_most: 3.5, backend: Cuda, type: float"),
                      "case.yaml")[0]
          .goal;
  ASSERT_TRUE(in_graph.has_value());
  EXPECT_EQ(in_graph->metric, Goal::Metric::time);
  EXPECT_TRUE(in_graph->in_graph);
  EXPECT_TRUE(in_graph->is_upper_limit);
  EXPECT_EQ(in_graph->limit, 3.5);
  EXPECT_EQ(in_graph->backend, "Cuda");
  EXPECT_FALSE(in_graph->is_double);

  const auto rate =
      parse_case_file(with_goal("metric: cells/s, at_least: 45e10, backend: OpenMP, type: double"), "case.yaml")[0]
          .goal;
  ASSERT_TRUE(rate.has_value());
  EXPECT_EQ(rate->metric, Goal::Metric::cell_rate);
  EXPECT_FALSE(rate->in_graph);
  EXPECT_FALSE(rate->is_upper_limit);
  EXPECT_EQ(rate->limit, 45e10);
  EXPECT_TRUE(rate->is_double);

  const std::vector<std::pair<std::string, std::string>> refused = {
      {"metric: speed, at_most: 1, backend: Cuda, type: float",
       "16: metric must be one of time_us, cells/s, read_share, fma_share, submit_us, speed_up_per_core, scaling_at_2, "
       "got \"speed\""},
      {"at_most: 1, backend: Cuda, type: float", "7: the key \"metric\" is missing"},
      {"metric: time_us, at_most: 1, type: float", "7: the key \"backend\" is missing"},
      {"metric: time_us, at_most: 1, backend: Cuda", "7: the key \"type\" is missing"},
      {"metric: time_us, backend: Cuda, type: float", "7: the key \"at_most\" is missing"},
      {"metric: cells/s, backend: Cuda, type: float", "7: the key \"at_least\" is missing"},
      {"metric: time_us, at_least: 1, backend: Cuda, type: float",
       "35: a goal for time_us has a limit at_most, not at_least"},
      {"metric: read_share, at_most: 1, backend: Cuda, type: float",
       "37: a goal for read_share has a limit at_least, not at_most"},
      {"metric: time_us, at_most: -1, backend: Cuda, type: float",
       "34: at_most must be finite and positive, got \"-1\""},
      {"metric: time_us, at_most: .inf, backend: Cuda, type: float",
       "34: at_most must be finite and positive, got \".inf\""},
      {"metric: time_us, at_most: 3 us, backend: Cuda, type: float", "34: at_most must be a number, got \"3 us\""},
      {"metric: submit_us, at_most: 1, backend: OpenMP, type: float",
       "48: the backend of submit_us must be one of Cuda, got \"OpenMP\""},
      {"metric: time_us, at_most: 1, backend: GPU, type: float",
       "46: the backend of time_us must be one of Serial, OpenMP, Cuda, got \"GPU\""},
      {"metric: time_us, at_most: 1, backend: Cuda, type: half", "58: type must be one of float, double, got \"half\""},
      {"metric: time_us, at_most: 1, in_graph: true, backend: OpenMP, type: float",
       "47: OpenMP has no graphs to measure in"},
      {"metric: submit_us, at_most: 1, in_graph: true, backend: Cuda, type: float",
       "49: submit_us is not measured in a graph"},
      {"metric: time_us, atmost: 1, backend: Cuda, type: float",
       "25: a goal has no key \"atmost\"; its keys are at_least, at_most, backend, in_graph, metric, type"}};
  for (const auto& [text, sentence] : refused)
    EXPECT_EQ(complaint(with_goal(text)), "case.yaml:12:" + sentence) << text;
  EXPECT_EQ(complaint(alignment + "goal: 3\n"), "case.yaml:12:7: a goal must be a mapping, got \"3\"");
}

TEST(CaseFile, Generators) {
  const auto with_scores = [](const std::string& generator) {
    return complaint(edited(alignment, "[1, -1, 0.5, -.inf, 2e0, .nan]", generator));
  };
  EXPECT_EQ(with_scores("{random: normal, seed: 7}"), "accepted");
  EXPECT_EQ(with_scores("{random: uniform, seed: 7}"),
            "case.yaml:7:18: random must be normal for this array, got \"uniform\"");
  EXPECT_EQ(with_scores("{random: normal}"), "case.yaml:7:9: the key \"seed\" is missing");
  EXPECT_EQ(with_scores("{seed: 7}"), "case.yaml:7:9: the key \"random\" is missing");
  EXPECT_EQ(with_scores("{random: normal, seed: -7}"), "case.yaml:7:32: seed must not be negative, got -7");
  EXPECT_EQ(with_scores("{random: normal, seed: 7, scale: .inf}"), "case.yaml:7:42: scale must be finite");
  EXPECT_EQ(with_scores("{random: normal, seed: 7, sigma: 1}"),
            "case.yaml:7:35: the generator of this array has no key \"sigma\"; its keys are random, scale, seed");
  const std::string drawn = edited(hmm, "[0, 1, 2, -1, 7, 0]", "{random: uniform, seed: 7, scale: 1}");
  EXPECT_EQ(complaint(drawn),
            "case.yaml:9:42: the generator of this array has no key \"scale\"; its keys are random, seed");
  const std::string no_symbols = edited(edited(hmm, "symbols: 3", "symbols: 0"), "[1, 2, 3, 4, 5, 6]", "[]");
  EXPECT_EQ(complaint(edited(no_symbols, "[0, 1, 2, -1, 7, 0]", "{random: uniform, seed: 7}")),
            "case.yaml:9:15: observations cannot be drawn: there is no symbol");
  EXPECT_EQ(complaint(edited(masked, "[1, 0, true, false]", "{random: bernoulli, seed: 7, probability: 1.5}")),
            "case.yaml:5:49: probability must lie in [0, 1], got \"1.5\"");
}

// Golden files
// -----------------------------------------------------------------------------------------------------------

/// Golden inputs are single-precision numbers written with 9 digits; the expected values belong to those numbers.
Reals as_single_precision(Reals values) {
  for (double& value : values) value = static_cast<float>(value);
  return values;
}

/// |actual - expected| <= tolerance * (|expected| + scale) for each; a NaN on either side fails.
void expect_near(const Reals& actual, const std::optional<Reals>& expected, double tolerance, double scale) {
  ASSERT_TRUE(expected);
  ASSERT_EQ(actual.size(), expected->size());
  for (std::size_t k = 0; k < actual.size(); ++k) {
    const double difference = std::abs(actual[k] - (*expected)[k]);
    EXPECT_TRUE(difference <= tolerance * (std::abs((*expected)[k]) + scale))
        << "element " << k << ": " << std::setprecision(17) << actual[k] << ", expected " << (*expected)[k];
  }
}

Reals reference_result(const SmithWatermanCase& problem) {
  return reference::smith_waterman_scores(as_single_precision(problem.scores), problem.batch, problem.rows,
                                          problem.columns, problem.gap, problem.temperature);
}

Reals reference_result(const HmmCase& problem) {
  const reference::HmmModel logits{
      problem.model.states, problem.model.symbols, as_single_precision(problem.model.log_init),
      as_single_precision(problem.model.log_trans), as_single_precision(problem.model.log_emit)};
  Reals out(problem.batch);
  for (std::size_t b = 0; b < problem.batch; ++b) {
    const auto observations = std::span(problem.observations).subspan(b * problem.length, problem.length);
    out[b] = reference::hmm_log_likelihood(reference::normalised(logits), observations);
  }
  return out;
}

Reals reference_result(const MaskedReduceCase& problem) {
  const Mask mask =
      problem.lengths ? reference::mask_from_lengths(*problem.lengths, problem.ranks, problem.columns) : problem.mask;
  return reference::masked_reduce(problem.reduction, as_single_precision(problem.values), mask, problem.ranks,
                                  problem.columns);
}

const std::optional<Reals>& expected_result(const SmithWatermanCase& problem) { return problem.expected.score; }
const std::optional<Reals>& expected_result(const HmmCase& problem) { return problem.expected.log_likelihood; }
const std::optional<Reals>& expected_result(const MaskedReduceCase& problem) { return problem.expected; }

TEST(Golden, ReferenceAgreesWithEveryFile) {
  // Both sides are double precision and the files have 15 digits: the worst file is 4e-15 away.
  constexpr double tolerance = 2e-14;
  std::vector<std::string> operations;
  for (const auto& entry : std::filesystem::directory_iterator(golden)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".yaml" || name == "lambda_phage_hmm.yaml") continue;
    SCOPED_TRACE(name);
    const std::vector<Case> cases = read_case_file(entry.path().string());
    ASSERT_EQ(cases.size(), 1U);
    operations.push_back(cases[0].operation);
    std::visit(
        [&](const auto& problem) { expect_near(reference_result(problem), expected_result(problem), tolerance, 1); },
        cases[0].problem);
  }
  EXPECT_EQ(std::count(operations.begin(), operations.end(), "smith_waterman"), 8);
  EXPECT_EQ(std::count(operations.begin(), operations.end(), "hmm_log_likelihood"), 6);
  EXPECT_EQ(std::count(operations.begin(), operations.end(), "masked_sum"), 1);
}

TEST(Golden, GenomeFileBelongsToAnotherReader) {
  const std::string file = (golden / "lambda_phage_hmm.yaml").string();
  try {
    read_case_file(file);
    FAIL() << "accepted";
  } catch (const CaseFileError& error) {
    EXPECT_EQ(std::string(error.what()).find(file + ":4:12: the operation \"hmm_genome\" is not one of a case file"),
              0U)
        << error.what();
  }
}

}  // namespace
