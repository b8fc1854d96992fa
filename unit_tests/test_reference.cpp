// SPDX-License-Identifier: Apache-2.0
// The serial reference against hand-worked cases and against brute force. Expected values without a formula beside them
// were computed in double precision by hand or by an independent program.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>
#include <vector>

#include "reference/brute_force.hpp"
#include "reference/reference.hpp"
#include "support/near.hpp"

namespace {

using bellman::reference::HmmModel;
using bellman::reference::Reduction;
using bellman::support::near;
namespace reference = bellman::reference;
namespace brute_force = bellman::reference::brute_force;

using Reals = std::vector<double>;
using Symbols = std::vector<std::int64_t>;
using Mask = std::vector<std::uint8_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t missing = -1;

Reals logs(Reals probabilities) {
  for (double& p : probabilities) p = std::log(p);
  return probabilities;
}

// Smith-Waterman
// ---------------------------------------------------------------------------------------------------------

/// Two rows, three columns, gap -1.
const Reals case_s = {1, -1, 0.5, -0.5, 2, -1};

double score_of_case_s(double temperature) { return reference::smith_waterman_score(case_s, 2, 3, -1, temperature); }

double score_of_one_cell(double score, double gap, double temperature) {
  return reference::smith_waterman_score(Reals{score}, 1, 1, gap, temperature);
}

TEST(ReferenceSmithWaterman, HandWorkedCase) {
  EXPECT_EQ(score_of_case_s(0), 3.0);
  EXPECT_TRUE(near(score_of_case_s(0.1), 3.000004540302143, 1e-14));
  EXPECT_TRUE(near(score_of_case_s(1), 3.59680882686024, 1e-14));
  EXPECT_TRUE(near(score_of_case_s(10), 34.10928664425798, 1e-13));
}

TEST(ReferenceSmithWaterman, OneCellIsItsFormula) {
  for (const double t : {0.1, 1.0, 7.0, 1e3}) {
    for (const double s : {-4.0, -0.25, 0.0, 2.0}) {
      for (const double g : {-3.0, -1.0, 0.0}) {
        const double formula = t * std::log(1 + std::exp(s / t) + 2 * std::exp(g / t));
        EXPECT_TRUE(near(score_of_one_cell(s, g, t), formula, 1e-15 * (formula + t)));
      }
    }
  }
  EXPECT_TRUE(near(score_of_one_cell(2, -1, 1), 2.2109976232, 1e-10));
}

TEST(ReferenceSmithWaterman, SmallTemperaturesNeitherOverflowNorLoseTheScore) {
  EXPECT_TRUE(near(score_of_one_cell(2, -1, 0.1), 2.0000000002, 1e-11));
  for (const double t : {1e-3, 1e-30, 1e-40, 1e-300, 5e-324, 0.0}) {
    EXPECT_EQ(score_of_one_cell(2, -1, t), 2.0) << t;
    EXPECT_EQ(score_of_case_s(t), 3.0) << t;
  }
  // A tie stays a tie: t log 2 on top, also where 1/t is not a finite number.
  EXPECT_TRUE(near(score_of_one_cell(0, -1, 1e-310), 1e-310 * std::log(2.0), 1e-323));
}

TEST(ReferenceSmithWaterman, SoftScoreLiesBetweenHardScoreAndHardScorePlusLogOfPathCount) {
  std::mt19937_64 random(1);
  const double path_count = static_cast<double>(brute_force::all_local_alignments(3, 3).size());
  for (int trial = 0; trial < 20; ++trial) {
    Reals scores(9);
    for (double& s : scores) s = static_cast<double>(random() % 2001) / 500 - 2;
    const double hard = reference::smith_waterman_score(scores, 3, 3, -1, 0);
    double colder = hard;
    for (const double t : {1e-300, 1e-20, 1e-3, 0.1, 1.0, 10.0, 1e3}) {
      const double soft = reference::smith_waterman_score(scores, 3, 3, -1, t);
      EXPECT_GE(soft, colder) << t;
      EXPECT_LE(soft, hard + t * std::log(path_count) + 1e-14) << t;
      colder = soft;
    }
  }
}

TEST(ReferenceSmithWaterman, LocalNotGlobal) {
  EXPECT_EQ(score_of_one_cell(-5, -1, 0), 0.0);
  EXPECT_GT(score_of_one_cell(-5, -1, 1), 0.0);
}

TEST(ReferenceSmithWaterman, EverythingForbiddenScoresZero) {
  for (const double t : {0.0, 1e-300, 1.0, 1e3}) {
    EXPECT_EQ(reference::smith_waterman_score(Reals(6, -infinity), 2, 3, -infinity, t), 0.0) << t;
  }
}

TEST(ReferenceSmithWaterman, ForbiddenCellsAndGapsAreExact) {
  // Without gaps only the diagonals are left: 1 + 2 on the main one.
  EXPECT_EQ(reference::smith_waterman_score(case_s, 2, 3, -infinity, 0), 3.0);
  EXPECT_TRUE(near(reference::smith_waterman_score(case_s, 2, 3, -infinity, 1),
                   std::log(1 + std::exp(2) * (1 + std::exp(1))), 1e-14));
  // The same cell forbidden and at a score whose weight underflows to 0.
  const Reals forbidden = {1, -1, 0.5, -0.5, -infinity, -1};
  const Reals hopeless = {1, -1, 0.5, -0.5, -1e6, -1};
  EXPECT_EQ(reference::smith_waterman_score(forbidden, 2, 3, -1, 1),
            reference::smith_waterman_score(hopeless, 2, 3, -1, 1));
}

TEST(ReferenceSmithWaterman, NotANumberAndInfinity) {
  for (const double t : {0.0, 1e-300, 1.0}) {
    for (std::size_t k = 0; k < case_s.size(); ++k) {
      Reals scores = case_s;
      scores[k] = nan;
      EXPECT_TRUE(std::isnan(reference::smith_waterman_score(scores, 2, 3, -1, t))) << k;
      scores[(k + 1) % scores.size()] = infinity;
      EXPECT_TRUE(std::isnan(reference::smith_waterman_score(scores, 2, 3, -1, t))) << k;
      scores[k] = -infinity;  // forbidden next to +inf
      EXPECT_EQ(reference::smith_waterman_score(scores, 2, 3, -1, t), infinity) << k;
      EXPECT_EQ(reference::smith_waterman_score(scores, 2, 3, -infinity, t), infinity) << k;
    }
    EXPECT_TRUE(std::isnan(reference::smith_waterman_score(case_s, 2, 3, nan, t)));
    EXPECT_EQ(reference::smith_waterman_score(Reals{-infinity}, 1, 1, infinity, t), infinity);
  }
}

TEST(ReferenceSmithWaterman, EmptyProblemsScoreZero) {
  EXPECT_EQ(reference::smith_waterman_score({}, 0, 3, -1, 1), 0.0);
  EXPECT_EQ(reference::smith_waterman_score({}, 3, 0, 1, 1), 0.0);
  EXPECT_EQ(reference::smith_waterman_score({}, 0, 0, nan, 0), 0.0);
  EXPECT_EQ(reference::smith_waterman_scores({}, 2, 0, 3, -1, 1), (Reals{0, 0}));
  EXPECT_EQ(reference::smith_waterman_scores({}, 0, 2, 3, -1, 1), Reals{});
}

TEST(ReferenceSmithWaterman, LongTargetAndItsTransposeAgree) {
  constexpr std::size_t rows = 2;
  constexpr std::size_t columns = 4097;
  Reals scores(rows * columns);
  Reals transposed(rows * columns);
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) {
      scores[i * columns + j] = transposed[j * rows + i] = std::sin(static_cast<double>(3 * i + 7 * j));
    }
  }
  for (const double t : {0.0, 0.1, 1.0}) {
    const double score = reference::smith_waterman_score(scores, rows, columns, -0.5, t);
    EXPECT_TRUE(std::isfinite(score));
    EXPECT_TRUE(near(reference::smith_waterman_score(transposed, columns, rows, -0.5, t), score, 1e-12 * score));
  }
}

TEST(ReferenceSmithWaterman, BatchIsEachProblemAlone) {
  Reals batch = case_s;
  batch.insert(batch.end(), 6, nan);
  batch.insert(batch.end(), {0.25, 1, -3, 2, 2, -infinity});
  const Reals scores = reference::smith_waterman_scores(batch, 3, 2, 3, -1, 1);
  EXPECT_EQ(scores[0], score_of_case_s(1));
  EXPECT_TRUE(std::isnan(scores[1]));
  EXPECT_EQ(scores[2], reference::smith_waterman_score(std::span(batch).last(6), 2, 3, -1, 1));
}

TEST(ReferenceSmithWaterman, RefusesWrongArguments) {
  EXPECT_THROW(reference::smith_waterman_score(case_s, 2, 2, -1, 1), std::invalid_argument);
  EXPECT_THROW(reference::smith_waterman_scores(case_s, 2, 2, 3, -1, 1), std::invalid_argument);
  for (const double t : {-1.0, nan, infinity}) {
    EXPECT_THROW(reference::smith_waterman_score(case_s, 2, 3, -1, t), std::invalid_argument);
  }
}

TEST(BruteForce, CountsAndWeighsLocalAlignments) {
  // 1 x 1: the empty path of each of the 4 cells, and one move into the cell from each of the 3 others.
  EXPECT_EQ(brute_force::all_local_alignments(1, 1).size(), 7U);
  EXPECT_EQ(brute_force::smith_waterman_table(Reals{2}, 1, 1, -1, 0), (Reals{0, 0, 0, 2}));
  EXPECT_TRUE(near(brute_force::smith_waterman_table(Reals{2}, 1, 1, -1, 1)[3],
                   std::log(1 + std::exp(2) + 2 * std::exp(-1)), 1e-15));
  EXPECT_EQ(brute_force::smith_waterman_table(case_s, 2, 3, -1, 0), (Reals{0, 0, 0, 0, 0, 1, 0, 0.5, 0, 0, 3, 2}));
}

TEST(BruteForce, SmithWatermanAgrees) {
  std::mt19937_64 random(2);
  int forbidden = 0;
  for (std::size_t rows = 0; rows <= 3; ++rows) {
    for (std::size_t columns = 0; columns <= 3; ++columns) {
      for (int trial = 0; trial < 8; ++trial) {
        Reals scores(rows * columns);
        for (double& s : scores) {
          s = random() % 5 == 0 ? -infinity : static_cast<double>(random() % 8001) / 1000 - 4;
          forbidden += s == -infinity;
        }
        const double gap = trial % 4 == 3 ? -infinity : -static_cast<double>(random() % 3001) / 1000;
        for (const double t : {0.0, 1e-300, 1e-10, 0.1, 1.0, 10.0, 1e3}) {
          const double expected = brute_force::smith_waterman_score(scores, rows, columns, gap, t);
          EXPECT_TRUE(
              near(reference::smith_waterman_score(scores, rows, columns, gap, t), expected, 1e-15 * (expected + t)))
              << rows << " x " << columns << ", t " << t;
        }
      }
    }
  }
  EXPECT_GT(forbidden, 10);
}

// Hidden Markov models
// ---------------------------------------------------------------------------------------------------

HmmModel case_w() { return {2, 3, logs({0.6, 0.4}), logs({0.7, 0.3, 0.2, 0.8}), logs({0.5, 0.4, 0.1, 0.1, 0.3, 0.6})}; }

/// Emissions are log-probabilities per state and symbol; state j stays in j for ever.
HmmModel without_transitions(Reals init, std::size_t symbols, Reals log_emit) {
  const std::size_t states = init.size();
  Reals log_trans(states * states, -infinity);
  for (std::size_t j = 0; j < states; ++j) log_trans[j * states + j] = 0;
  return {states, symbols, logs(std::move(init)), std::move(log_trans), std::move(log_emit)};
}

TEST(ReferenceHmm, HandWorkedCase) {
  EXPECT_TRUE(near(reference::hmm_log_likelihood(case_w(), Symbols{0, 1, 2}), -3.2163789446696134, 1e-15));
  EXPECT_TRUE(near(reference::hmm_log_likelihood(case_w(), Symbols{0, 1}), -2.0890879187316416, 1e-15));
  EXPECT_TRUE(near(reference::hmm_log_likelihood(case_w(), Symbols{0}), -1.0788096613719298, 1e-15));
  EXPECT_EQ(reference::hmm_log_likelihood(case_w(), {}), 0.0);
}

TEST(ReferenceHmm, MissingObservations) {
  EXPECT_TRUE(near(reference::hmm_log_likelihood(case_w(), Symbols{0, missing, 2}), -2.1584847490202885, 1e-15));
  // Nothing is learnt from missing observations at the end, nor from nothing else.
  EXPECT_TRUE(near(reference::hmm_log_likelihood(case_w(), Symbols{0, 1, missing, -7}), -2.0890879187316416, 1e-15));
  EXPECT_TRUE(near(reference::hmm_log_likelihood(case_w(), Symbols(5, missing)), 0.0, 1e-15));
  const Symbols padded = {0, 1, 99};
  EXPECT_TRUE(near(reference::hmm_log_likelihood(case_w(), std::span(padded).first(2)), -2.0890879187316416, 1e-15));
}

TEST(ReferenceHmm, NoTransitionBeforeTheFirstObservation) {
  const HmmModel model{2, 2, logs({0.99, 0.01}), logs({0.01, 0.99, 0.01, 0.99}), logs({0.99, 0.01, 0.01, 0.99})};
  EXPECT_TRUE(near(std::exp(reference::hmm_log_likelihood(model, Symbols{0})), 0.9802, 1e-15));
}

TEST(ReferenceHmm, StatesFarBehindAreNotLost) {
  // The state that leads by 110 nats after the first symbol pays 300 for the second one.
  const HmmModel logits{2, 2, {0, 0}, {0, -1000, -1000, 0}, {0, -300, -110, 0}};
  const double expected = -110 - std::log(2.0);  // -110.693147
  EXPECT_TRUE(near(reference::hmm_log_likelihood(reference::normalised(logits), Symbols{0, 1}), expected, 1e-13));
  EXPECT_TRUE(near(reference::hmm_log_likelihood_of_logits(logits, Symbols{0, 1}), expected, 1e-13));

  const HmmModel crossed{2, 1, {0, -200}, {}, {-200, 0}};
  HmmModel model = crossed;
  model.log_trans = Reals(4, 0.0);
  EXPECT_TRUE(near(reference::hmm_log_likelihood(model, Symbols{0}), -200 + std::log(2.0), 1e-13));

  // A state of probability e^-1000 that alone survives the second step.
  const HmmModel survivor{2, 2, {0, -1000}, {0, -infinity, -infinity, 0}, {0, -infinity, 0, 0}};
  EXPECT_TRUE(near(reference::hmm_log_likelihood(survivor, Symbols{0, 1}), -1000, 1e-12));
}

TEST(ReferenceHmm, ImpossibleSequencesStayImpossible) {
  const HmmModel model = without_transitions({1, 0}, 2, {0, -infinity, -infinity, 0});
  EXPECT_EQ(reference::hmm_log_likelihood(model, Symbols{0}), 0.0);
  EXPECT_EQ(reference::hmm_log_likelihood(model, Symbols{0, 1}), -infinity);
  for (std::size_t length = 3; length < 9; ++length) {
    Symbols observations(length, 0);
    observations[1] = 1;
    EXPECT_EQ(reference::hmm_log_likelihood(model, observations), -infinity) << length;
    std::fill(observations.begin() + 2, observations.end(), missing);
    EXPECT_EQ(reference::hmm_log_likelihood(model, observations), -infinity) << length;
  }
  // Nothing is possible from the start: logits that are all -inf.
  const HmmModel nothing{2, 1, Reals(2, -infinity), Reals(4, -infinity), Reals(2, -infinity)};
  EXPECT_EQ(reference::hmm_log_likelihood(reference::normalised(nothing), Symbols{0}), -infinity);
  EXPECT_EQ(reference::hmm_log_likelihood_of_logits(nothing, Symbols{missing, missing}), -infinity);
}

TEST(ReferenceHmm, ProbabilitiesBelowTheRangeOfDouble) {
  const HmmModel model = without_transitions({0.5, 0.5}, 1, {-800, -801});
  EXPECT_TRUE(near(reference::hmm_log_likelihood(model, Symbols{0}), -800.3798854930, 1e-9));
  EXPECT_TRUE(near(reference::hmm_log_likelihood(model, Symbols{0}), -800 + std::log(0.5 * (1 + std::exp(-1))), 1e-12));

  const HmmModel huge = without_transitions({1, 1}, 1, {-2e9, -2e9});
  EXPECT_TRUE(near(reference::hmm_log_likelihood(huge, Symbols{0}), -2e9 + std::log(2.0), 1e-6));
}

TEST(ReferenceHmm, StructuralZeros) {
  const HmmModel left_right{3, 2, logs({1, 0, 0}), logs({0.5, 0.5, 0, 0, 0.5, 0.5, 0, 0, 1}),
                            logs({0.9, 0.1, 0.5, 0.5, 0.1, 0.9})};
  EXPECT_TRUE(near(reference::hmm_log_likelihood(left_right, Symbols{0, 0, 1, 1}), -1.57286493220, 1e-11));
  EXPECT_TRUE(near(reference::hmm_log_likelihood_of_logits(left_right, Symbols{0, 0, 1, 1}), -1.57286493220, 1e-11));
}

/// The log-likelihood by sums of probabilities, rescaled each step: right for a model as tame as case W.
long double scaled_log_likelihood(const HmmModel& model, const Symbols& observations) {
  const auto p = [](double log_p) { return std::exp(static_cast<long double>(log_p)); };
  std::vector<long double> alpha(model.states);
  long double log_likelihood = 0;
  for (std::size_t t = 0; t < observations.size(); ++t) {
    std::vector<long double> next(model.states, 0);
    long double sum = 0;
    for (std::size_t j = 0; j < model.states; ++j) {
      if (t == 0) next[j] = p(model.log_init[j]);
      for (std::size_t i = 0; t > 0 && i < model.states; ++i)
        next[j] += alpha[i] * p(model.log_trans[i * model.states + j]);
      next[j] *= p(model.log_emit[j * model.symbols + static_cast<std::size_t>(observations[t])]);
      sum += next[j];
    }
    for (std::size_t j = 0; j < model.states; ++j) alpha[j] = next[j] / sum;
    log_likelihood += std::log(sum);
  }
  return log_likelihood;
}

TEST(ReferenceHmm, AMillionSteps) {
  Symbols observations(1000000);
  for (std::size_t t = 0; t < observations.size(); ++t) observations[t] = static_cast<std::int64_t>(t % 3);
  double shorter = 0;
  for (const std::size_t length : {1000U, 10000U, 100000U, 1000000U}) {
    const double log_likelihood = reference::hmm_log_likelihood(case_w(), std::span(observations).first(length));
    EXPECT_TRUE(std::isfinite(log_likelihood));
    EXPECT_LT(log_likelihood, shorter);
    shorter = log_likelihood;
  }
  const auto scaled = static_cast<double>(scaled_log_likelihood(case_w(), observations));
  EXPECT_TRUE(near(shorter, scaled, 1e-14 * std::abs(scaled)));
}

TEST(ReferenceHmm, AMillionStepsThatCostNothing) {
  if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is double on this platform";
  // Symbol 0 is sure, so the log-likelihood is 0, far below the number of steps.
  const HmmModel logits{3, 1, {0.3, -1, 2}, {0.1, 0.7, -2, 1.3, 0, 0.9, -0.4, 0.2, 0.6}, {5, -5, 0.1}};
  const Symbols observations(1000000, 0);
  EXPECT_TRUE(near(reference::hmm_log_likelihood_of_logits(logits, observations), 0, 1e-12));
  // The model rounded to double is another one; that error grows with the length, and is all there is.
  EXPECT_TRUE(near(reference::hmm_log_likelihood(reference::normalised(logits), observations), 0, 1e6 * 2.3e-16));
}

TEST(ReferenceHmm, NotANumberAndBadSymbols) {
  const Symbols observations = {0, 1, 2};
  for (const double bad : {nan, infinity}) {
    for (Reals HmmModel::*array : {&HmmModel::log_init, &HmmModel::log_trans, &HmmModel::log_emit}) {
      for (std::size_t k = 0; k < (case_w().*array).size(); ++k) {
        HmmModel model = case_w();
        (model.*array)[k] = bad;
        EXPECT_TRUE(std::isnan(reference::hmm_log_likelihood(model, observations)));
        EXPECT_TRUE(std::isnan(reference::hmm_log_likelihood_of_logits(model, observations)));
        EXPECT_TRUE(std::isnan(reference::hmm_log_likelihood(reference::normalised(model), observations)));
        EXPECT_EQ(reference::hmm_log_likelihood(model, {}), 0.0);
      }
    }
  }
  for (const std::int64_t bad : {std::int64_t{3}, std::numeric_limits<std::int64_t>::max()}) {
    for (std::size_t t = 0; t < 3; ++t) {
      Symbols with_bad = observations;
      with_bad[t] = bad;
      EXPECT_TRUE(std::isnan(reference::hmm_log_likelihood(case_w(), with_bad)));
    }
  }
  // A bad symbol is told even after the sequence has become impossible.
  const HmmModel model = without_transitions({1, 0}, 2, {0, -infinity, -infinity, 0});
  EXPECT_TRUE(std::isnan(reference::hmm_log_likelihood(model, Symbols{0, 1, 2})));
}

TEST(ReferenceHmm, NormalisesOverTheLastAxis) {
  const HmmModel logits{2, 3, {1000, 1000}, {0, -infinity, -infinity, -infinity}, {0, nan, 1, std::log(3), 0, -1e300}};
  const HmmModel model = reference::normalised(logits);
  EXPECT_EQ(model.log_init, (Reals{-std::log(2.0), -std::log(2.0)}));
  EXPECT_EQ(model.log_trans, (Reals{0, -infinity, -infinity, -infinity}));
  for (std::size_t k = 0; k < 3; ++k) EXPECT_TRUE(std::isnan(model.log_emit[k]));
  EXPECT_TRUE(near(model.log_emit[3], std::log(0.75), 4e-16));
  EXPECT_TRUE(near(model.log_emit[4], std::log(0.25), 4e-16));
  EXPECT_EQ(model.log_emit[5], -1e300);
  // A constant on a row changes nothing.
  HmmModel shifted = case_w();
  for (double& value : shifted.log_trans) value += 3;
  for (double& value : shifted.log_init) value -= 700;
  EXPECT_TRUE(near(reference::hmm_log_likelihood_of_logits(shifted, Symbols{0, 1, 2}), -3.2163789446696134, 1e-12));
  // The log of a probability that is all but 1 keeps its own digits.
  EXPECT_TRUE(
      near(reference::normalised({2, 1, {500, 470}, Reals(4, 0), {0, 0}}).log_init[0], -std::exp(-30.0), 1e-18));
}

TEST(ReferenceHmm, RefusesWrongArguments) {
  HmmModel model = case_w();
  model.log_init.pop_back();
  EXPECT_THROW(reference::hmm_log_likelihood(model, Symbols{0}), std::invalid_argument);
  model = case_w();
  model.log_trans.pop_back();
  EXPECT_THROW(reference::normalised(model), std::invalid_argument);
  model = case_w();
  model.symbols = 2;
  EXPECT_THROW(reference::hmm_log_likelihood_of_logits(model, Symbols{0}), std::invalid_argument);
}

TEST(BruteForce, HmmAgrees) {
  std::mt19937_64 random(3);
  int impossible = 0;
  int unlikely = 0;
  for (std::size_t states = 1; states <= 3; ++states) {
    for (std::size_t length = 0; length <= 5; ++length) {
      for (int trial = 0; trial < 12; ++trial) {
        const auto draw = [&](std::size_t count) {
          Reals logits(count);
          for (double& x : logits) {
            x = random() % 4 == 0 ? -infinity : static_cast<double>(random() % 8001) / (trial % 3 == 2 ? 4 : 2000);
          }
          return logits;
        };
        const HmmModel logits{states, 2, draw(states), draw(states * states), draw(states * 2)};
        const HmmModel model = reference::normalised(logits);
        Symbols observations(length);
        for (std::int64_t& o : observations) o = static_cast<std::int64_t>(random() % 3) - 1;
        const double expected = brute_force::hmm_log_likelihood(model, observations);
        impossible += expected == -infinity;
        unlikely += std::isfinite(expected) && expected < -800;
        EXPECT_TRUE(
            near(reference::hmm_log_likelihood(model, observations), expected, 1e-15 * (1 + std::abs(expected))));
        EXPECT_TRUE(near(reference::hmm_log_likelihood_in_double(model, observations), expected,
                         1e-14 * (1 + std::abs(expected))));
        EXPECT_TRUE(near(reference::hmm_log_likelihood_of_logits(logits, observations), expected,
                         2e-15 * (1 + std::abs(expected))));
      }
    }
  }
  EXPECT_GT(impossible, 5);
  EXPECT_GT(unlikely, 5);
}

// Masked reductions
// ------------------------------------------------------------------------------------------------------

constexpr Reduction all_reductions[] = {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max,
                                        Reduction::count};

double reduce_one_column(Reduction reduction, const Reals& values, const Mask& mask) {
  return reference::masked_reduce(reduction, values, mask, values.size(), 1)[0];
}

TEST(ReferenceMaskedReduce, HandWorkedCase) {
  const Reals values = {1, 2, 3, 4, 5, 6, 7, 8, 10};
  const Mask mask = {1, 0, 1, 1, 1, 0, 0, 1, 1};
  const auto reduce = [&](Reduction reduction) { return reference::masked_reduce(reduction, values, mask, 3, 3); };
  EXPECT_EQ(reduce(Reduction::sum), (Reals{5, 13, 13}));
  EXPECT_EQ(reduce(Reduction::mean), (Reals{2.5, 6.5, 6.5}));
  EXPECT_EQ(reduce(Reduction::min), (Reals{1, 5, 3}));
  EXPECT_EQ(reduce(Reduction::max), (Reals{4, 8, 10}));
  EXPECT_EQ(reduce(Reduction::count), (Reals{2, 2, 2}));
}

TEST(ReferenceMaskedReduce, MaskedCellsAreNeverUsed) {
  for (const double masked : {nan, infinity, -infinity}) {
    EXPECT_EQ(reduce_one_column(Reduction::sum, {1, masked}, {1, 0}), 1.0);
    EXPECT_EQ(reduce_one_column(Reduction::mean, {1, masked}, {1, 0}), 1.0);
    EXPECT_EQ(reduce_one_column(Reduction::min, {masked, 1}, {0, 1}), 1.0);
    EXPECT_EQ(reduce_one_column(Reduction::max, {masked, 1}, {0, 1}), 1.0);
    EXPECT_EQ(reduce_one_column(Reduction::count, {masked, 1}, {0, 1}), 1.0);
  }
}

TEST(ReferenceMaskedReduce, ColumnsWithoutAValidRank) {
  EXPECT_EQ(reduce_one_column(Reduction::sum, {nan, 7}, {0, 0}), 0.0);
  EXPECT_TRUE(std::isnan(reduce_one_column(Reduction::mean, {nan, 7}, {0, 0})));
  EXPECT_EQ(reduce_one_column(Reduction::min, {nan, 7}, {0, 0}), infinity);
  EXPECT_EQ(reduce_one_column(Reduction::max, {nan, 7}, {0, 0}), -infinity);
  EXPECT_EQ(reduce_one_column(Reduction::count, {nan, 7}, {0, 0}), 0.0);
  EXPECT_EQ(reference::masked_reduce(Reduction::sum, {}, {}, 0, 3), (Reals{0, 0, 0}));
  EXPECT_EQ(reference::masked_reduce(Reduction::sum, {}, {}, 3, 0), Reals{});
}

TEST(ReferenceMaskedReduce, ValidInfinityAndNotANumber) {
  EXPECT_EQ(reduce_one_column(Reduction::max, {-infinity, -infinity}, {1, 1}), -infinity);
  EXPECT_EQ(reduce_one_column(Reduction::max, {-1, -2}, {1, 1}), -1.0);
  EXPECT_EQ(reduce_one_column(Reduction::sum, {infinity, 1, 2}, {1, 1, 1}), infinity);
  EXPECT_TRUE(std::isnan(reduce_one_column(Reduction::sum, {infinity, -infinity}, {1, 1})));
  for (const Reals& values : {Reals{nan, 1}, Reals{1, nan}}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max}) {
      EXPECT_TRUE(std::isnan(reduce_one_column(reduction, values, {1, 1})));
    }
    EXPECT_EQ(reduce_one_column(Reduction::count, values, {1, 1}), 2.0);
  }
}

TEST(ReferenceMaskedReduce, SumsAreCompensated) {
  EXPECT_EQ(reduce_one_column(Reduction::sum, {1, 1e100, 1, -1e100}, {1, 1, 1, 1}), 2.0);
  EXPECT_EQ(reduce_one_column(Reduction::sum, Reals(1000, 0.1), Mask(1000, 1)), 100.0);
}

TEST(ReferenceMaskedReduce, LengthsAreAMask) {
  EXPECT_EQ(reference::mask_from_lengths(Symbols{2, 0, 3, 1}, 4, 3), (Mask{1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0}));
  EXPECT_EQ(reference::mask_from_lengths({}, 0, 3), Mask{});
}

TEST(ReferenceMaskedReduce, RefusesWrongArguments) {
  for (const Reduction reduction : all_reductions) {
    EXPECT_THROW(reference::masked_reduce(reduction, Reals(5), Mask(6), 2, 3), std::invalid_argument);
    EXPECT_THROW(reference::masked_reduce(reduction, Reals(6), Mask(5), 2, 3), std::invalid_argument);
  }
  EXPECT_THROW(reference::mask_from_lengths(Symbols{1}, 2, 3), std::invalid_argument);
}

}  // namespace
