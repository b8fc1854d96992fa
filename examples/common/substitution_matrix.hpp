// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_EXAMPLES_COMMON_SUBSTITUTION_MATRIX_HPP
#define BELLMAN_EXAMPLES_COMMON_SUBSTITUTION_MATRIX_HPP

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "text_file.hpp"

namespace bellman_examples {

/// \brief The score of each pair of letters.
struct SubstitutionMatrix {
  std::string letters;         ///< upper case, each once
  std::vector<double> scores;  ///< (letters, letters), row-major

  double operator()(std::size_t row, std::size_t column) const { return scores[row * letters.size() + column]; }
};

/// \brief Read a substitution matrix in NCBI's format, such as BLOSUM62.
///
/// `#` starts a comment line. The first other line names the columns, a letter or `*` each; then comes one line for
/// each of these letters, in any order: the letter and its scores. \throws FileError when a letter is none, stands
/// twice, has no column or no row, or a row holds too few or too many
///         scores or one that is not a finite number
inline SubstitutionMatrix read_substitution_matrix(const std::string& path) {
  SubstitutionMatrix matrix;
  std::string& letters = matrix.letters;
  std::vector<bool> has_row;
  std::size_t header_line = 0;
  std::size_t lines = 0;

  const auto read_letter = [&](std::string_view word, std::size_t line) {
    const char letter = to_upper(word.front());
    if (word.size() != 1 || !((letter >= 'A' && letter <= 'Z') || letter == '*')) {
      throw FileError(path, {line}, "\"" + std::string(word) + "\" is not a letter from A to Z or *.");
    }
    return letter;
  };

  for_each_line(path, [&](std::string_view text, std::size_t line) {
    lines = line;
    if (text.starts_with('#')) return;
    std::string_view word = take_word(text);
    if (word.empty()) return;

    if (letters.empty()) {
      for (; !word.empty(); word = take_word(text)) {
        const char letter = read_letter(word, line);
        if (letters.find(letter) != std::string::npos) {
          throw FileError(path, {line}, "The letter " + quoted(letter) + " names two columns.");
        }
        letters += letter;
      }
      header_line = line;
      matrix.scores.resize(letters.size() * letters.size());
      has_row.resize(letters.size());
      return;
    }

    const char letter = read_letter(word, line);
    const std::size_t row = letters.find(letter);
    if (row == std::string::npos) {
      throw FileError(path, {line}, "The row " + quoted(letter) + " has no column of that letter.");
    }
    if (has_row[row]) throw FileError(path, {line}, "The letter " + quoted(letter) + " names two rows.");
    has_row[row] = true;

    std::size_t column = 0;
    for (word = take_word(text); !word.empty(); word = take_word(text), ++column) {
      const auto score = parse_number(word);
      if (!score || !std::isfinite(*score)) {
        throw FileError(path, {line}, "The score \"" + std::string(word) + "\" is not a finite number.");
      }
      if (column < letters.size()) matrix.scores[row * letters.size() + column] = *score;
    }
    if (column != letters.size()) {
      throw FileError(path, {line},
                      "The row " + quoted(letter) + " holds " + std::to_string(column) + " scores, expected " +
                          std::to_string(letters.size()) + ", one for each column.");
    }
  });

  if (letters.empty()) throw FileError(path, {lines > 0 ? lines : 1}, "The file holds no substitution matrix.");
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (!has_row[i]) throw FileError(path, {header_line}, "The column " + quoted(letters[i]) + " has no row.");
  }
  return matrix;
}

}  // namespace bellman_examples

#endif
