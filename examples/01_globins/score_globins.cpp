// SPDX-License-Identifier: Apache-2.0
/// \file
/// Scores every pair of the sequences of a FASTA file by local alignment and prints the ten best.

#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../common/fasta.hpp"
#include "../common/program.hpp"
#include "../common/score_pairs.hpp"
#include "../common/substitution_matrix.hpp"
#include "../common/text_file.hpp"

namespace {

using namespace bellman_examples;
using Real = float;

const std::string usage =
    "usage: score_globins FASTA MATRIX [--gap G] [--temperature T] [--csv FILE]\n"
    "  FASTA            sequences, at least two\n"
    "  MATRIX           substitution matrix in NCBI's format, such as BLOSUM62\n"
    "  --gap G          added for each gap position (-4)\n"
    "  --temperature T  0 for the hard score, above 0 for a soft one, in the unit of the scores (0)\n"
    "  --csv FILE       write all scores: first,second,score with the places of the two sequences from 0\n";

struct Arguments {
  bool help = false;
  std::string fasta;
  std::string matrix;
  bellman::SmithWatermanOptions options{.gap = -4, .temperature = 0};
  std::optional<std::string> csv;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == argc) throw UsageError(argument + " needs a value.");
      return argv[++i];
    };
    const auto number = [&] {
      const std::string text = value();
      const auto parsed = parse_number(text);
      if (!parsed) throw UsageError(argument + " needs a number, got \"" + text + "\".");
      return *parsed;
    };
    if (argument == "--help" || argument == "-h") {
      arguments.help = true;
      return arguments;
    } else if (argument == "--gap") {
      arguments.options.gap = number();
    } else if (argument == "--temperature") {
      arguments.options.temperature = number();
    } else if (argument == "--csv") {
      arguments.csv = value();
    } else if (argument.starts_with('-')) {
      throw UsageError("There is no option " + argument + ".");
    } else {
      files.push_back(argument);
    }
  }
  if (files.size() != 2) throw UsageError("Two files are needed, FASTA and MATRIX.");
  arguments.fasta = files[0];
  arguments.matrix = files[1];
  return arguments;
}

void print_best(const std::vector<FastaRecord>& sequences, const std::vector<SequencePair>& pairs,
                const std::vector<Real>& scores, std::size_t count) {
  std::vector<std::size_t> ranking(pairs.size());
  std::iota(ranking.begin(), ranking.end(), std::size_t{0});
  std::stable_sort(ranking.begin(), ranking.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  ranking.resize(std::min(count, ranking.size()));

  std::size_t width = std::string_view("first").size();
  for (const std::size_t pair : ranking) width = std::max(width, sequences[pairs[pair].first].name.size());

  const auto name_width = static_cast<int>(width);
  std::cout << std::setprecision(7) << "rank       score  " << std::left << std::setw(name_width) << "first"
            << "  second\n";
  for (std::size_t rank = 0; rank < ranking.size(); ++rank) {
    const SequencePair pair = pairs[ranking[rank]];
    std::cout << std::right << std::setw(4) << rank + 1 << std::setw(12) << scores[ranking[rank]] << "  " << std::left
              << std::setw(name_width) << sequences[pair.first].name << "  " << sequences[pair.second].name << '\n';
  }
}

int score_globins(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Arguments arguments = parse(argc, argv);
  if (arguments.help) {
    std::cout << usage;
    return 0;
  }

  const auto matrix = read_substitution_matrix(arguments.matrix);
  const auto sequences = read_fasta(arguments.fasta, matrix.letters);
  if (sequences.size() < 2) {
    throw FileError(arguments.fasta, {sequences[0].line}, "The file holds one sequence, at least two are needed.");
  }
  // Opened before the work, so that a wrong name costs no time.
  std::ofstream csv;
  const auto require_csv = [&] {
    if (!csv) throw FileError(*arguments.csv, {}, "cannot be written: " + last_system_error());
  };
  if (arguments.csv) {
    csv.open(*arguments.csv);
    require_csv();
  }

  const auto pairs = all_pairs(sequences.size());
  std::cout << sequences.size() << " sequences, " << pairs.size() << " pairs, gap " << arguments.options.gap
            << ", temperature " << arguments.options.temperature << ", on " << Kokkos::DefaultExecutionSpace::name()
            << "\n\n";

  std::function<void(std::size_t)> progress;
  if (isatty(STDERR_FILENO)) {
    progress = [&](std::size_t done) { std::cerr << '\r' << done << " of " << pairs.size() << " pairs" << std::flush; };
  }
  const Kokkos::Timer timer;
  const auto scores =
      score_pairs<Real>(Kokkos::DefaultExecutionSpace(), sequences, matrix, pairs, arguments.options, progress);
  const double seconds = timer.seconds();
  if (progress) std::cerr << "\r\033[K";

  double cells = 0;
  for (const SequencePair& pair : pairs) {
    cells += static_cast<double>(sequences[pair.first].sequence.size()) *
             static_cast<double>(sequences[pair.second].sequence.size());
  }
  print_best(sequences, pairs, scores, 10);
  std::cout << '\n'
            << pairs.size() << " pairs, " << cells / 1e6 << " million cells in " << seconds
            << " s, transfers included\n";

  if (arguments.csv) {
    csv << "first,second,score\n" << std::setprecision(std::numeric_limits<Real>::max_digits10);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      csv << pairs[i].first << ',' << pairs[i].second << ',' << scores[i] << '\n';
    }
    csv.close();
    require_csv();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_program(usage, [&] { return score_globins(argc, argv); });
}
