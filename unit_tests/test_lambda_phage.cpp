// SPDX-License-Identifier: Apache-2.0
// A real chain of 48502 steps: the genome of phage lambda, as examples/02_lambda_phage scores it.
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <bellman/status.hpp>
#include <cmath>

#include "../examples/common/fasta.hpp"
#include "../examples/common/hmm_model_file.hpp"
#include "../examples/common/score_sequence.hpp"

namespace {

using namespace bellman_examples;

template <class Real>
void expect_log_likelihood(double tolerance) {
  const auto model = read_hmm_model(BELLMAN_EXAMPLES_DATA_DIR "/lambda_phage_hmm.yaml");
  const auto genome = read_fasta(BELLMAN_EXAMPLES_DATA_DIR "/lambda_phage.fa", model.symbols).at(0).sequence;
  const double expected = model.log_likelihood.value();
  const auto score = score_sequence<Real>(Kokkos::DefaultExecutionSpace(), genome, model);
  EXPECT_EQ(score.status, bellman::Status::ok);
  EXPECT_LE(std::abs(static_cast<double>(score.log_likelihood) - expected), tolerance * std::abs(expected))
      << score.log_likelihood << ", expected " << expected;
}

TEST(LambdaPhage, LogLikelihoodInFloat) { expect_log_likelihood<float>(1e-6); }
TEST(LambdaPhage, LogLikelihoodInDouble) { expect_log_likelihood<double>(1e-9); }

}  // namespace
