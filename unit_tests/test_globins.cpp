// SPDX-License-Identifier: Apache-2.0
// Real sequences: all pairs of 45 globins, as examples/01_globins scores them.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "../examples/common/fasta.hpp"
#include "../examples/common/score_pairs.hpp"
#include "../examples/common/substitution_matrix.hpp"

namespace {

using namespace bellman_examples;

/// Column local_linear4 of the table of hard scores, and the pairs of its rows.
struct HardScores {
  std::vector<SequencePair> pairs;
  std::vector<double> scores;
};

HardScores read_hard_scores() {
  std::ifstream stream(BELLMAN_EXAMPLES_DATA_DIR "/globins45_hard_scores.csv");
  HardScores table;
  std::string line;
  std::getline(stream, line);
  EXPECT_TRUE(line.starts_with("first,second,local_linear4,")) << line;
  while (std::getline(stream, line)) {
    std::istringstream row(line);
    SequencePair pair{};
    double score = 0;
    char comma = 0;
    row >> pair.first >> comma >> pair.second >> comma >> score;
    EXPECT_TRUE(row.good()) << line;
    table.pairs.push_back(pair);
    table.scores.push_back(score);
  }
  return table;
}

template <class Real>
class Globins : public testing::Test {
 protected:
  std::vector<Real> score(const std::vector<SequencePair>& pairs, double temperature,
                          std::size_t batch_bytes = std::size_t{32} << 20) const {
    return score_pairs<Real>(Kokkos::DefaultExecutionSpace(), sequences_, matrix_, pairs,
                             {.gap = -4, .temperature = temperature}, {}, batch_bytes);
  }

  const SubstitutionMatrix matrix_ = read_substitution_matrix(BELLMAN_EXAMPLES_DATA_DIR "/BLOSUM62");
  const std::vector<FastaRecord> sequences_ = read_fasta(BELLMAN_EXAMPLES_DATA_DIR "/globins45.fa", matrix_.letters);
};

using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Globins, Reals);

TYPED_TEST(Globins, HardScoresAreExact) {
  const auto table = read_hard_scores();
  ASSERT_EQ(table.pairs.size(), 990u);
  const auto scores = this->score(table.pairs, 0);
  ASSERT_EQ(scores.size(), 990u);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_EQ(static_cast<double>(scores[i]), table.scores[i]) << table.pairs[i].first << ", " << table.pairs[i].second;
  }
}

TYPED_TEST(Globins, SoftScoresAtLowTemperatureAreNearTheHardOnes) {
  const auto table = read_hard_scores();
  const auto scores = this->score(table.pairs, 0.01);
  ASSERT_EQ(scores.size(), 990u);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    EXPECT_LT(std::abs(static_cast<double>(scores[i]) - table.scores[i]), 0.5)
        << table.pairs[i].first << ", " << table.pairs[i].second;
  }
}

// How pairs are put into batches must not show: neither the padding of hard scores nor the grouping of soft ones.
TYPED_TEST(Globins, ScoresDoNotDependOnTheBatch) {
  const auto pairs = all_pairs(12);
  for (const double temperature : {0.0, 0.5, 20.0}) {
    const auto together = this->score(pairs, temperature);
    const auto apart = this->score(pairs, temperature, 1);  // a pair a batch
    EXPECT_EQ(together, apart) << "temperature " << temperature;
  }
}

}  // namespace
