// SPDX-License-Identifier: Apache-2.0
/// \file
/// Prints the log-likelihood of a genome under a hidden Markov model and compares it with the value in the model's
/// file.

#include <Kokkos_Core.hpp>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <limits>
#include <string>

#include "../common/fasta.hpp"
#include "../common/hmm_model_file.hpp"
#include "../common/program.hpp"
#include "../common/score_sequence.hpp"
#include "../common/text_file.hpp"

namespace {

using namespace bellman_examples;

constexpr double tolerance = 1e-6;

const std::string usage =
    "usage: score_genome FASTA MODEL.yaml\n"
    "  FASTA       one sequence; N is a missing observation\n"
    "  MODEL.yaml  init, trans, emit in probabilities; optionally symbols (ACGT), length, expected: {log_likelihood}\n"
    "The exit status is 1 when the log-likelihood is off the expected one by more than 1e-6 of it.\n";

int score_genome(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::cout << usage;
      return 0;
    }
    if (argument.starts_with('-')) throw UsageError("There is no option " + argument + ".");
  }
  if (argc != 3) throw UsageError("Two files are needed, FASTA and MODEL.yaml.");
  const std::string fasta = argv[1];

  const auto model = read_hmm_model(argv[2]);
  const auto records = read_fasta(fasta, model.symbols + 'N');
  if (records.size() > 1) {
    throw FileError(fasta, {records[1].line}, "A second sequence: the file must hold one.");
  }
  const FastaRecord& genome = records[0];
  if (model.length && *model.length != genome.sequence.size()) {
    throw FileError(fasta, {genome.line},
                    "The sequence has " + std::to_string(genome.sequence.size()) +
                        " letters, but the model's file says " + std::to_string(*model.length) + ".");
  }
  std::cout << genome.name << ' ' << genome.description << '\n'
            << genome.sequence.size() << " steps, " << model.states << " states, " << model.symbols.size()
            << " symbols, on " << Kokkos::DefaultExecutionSpace::name() << "\n\n";

  const Kokkos::Timer timer;
  const auto score = score_sequence<double>(Kokkos::DefaultExecutionSpace(), genome.sequence, model);
  const double seconds = timer.seconds();

  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10) << "log-likelihood       "
            << score.log_likelihood << " nats, status " << score.status << '\n';
  bool agrees = true;
  if (model.log_likelihood) {
    const double difference = std::abs(score.log_likelihood - *model.log_likelihood) / std::abs(*model.log_likelihood);
    agrees = difference <= tolerance;  // false for NaN
    std::cout << "expected             " << *model.log_likelihood << " nats\n"
              << std::setprecision(2) << "relative difference  " << difference << (agrees ? " <= " : ", more than ")
              << tolerance << '\n';
  }
  std::cout << std::setprecision(3) << "time                 " << seconds << " s, transfers included\n";
  return agrees ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(usage, [&] { return score_genome(argc, argv); });
}
