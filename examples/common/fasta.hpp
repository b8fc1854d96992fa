// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_EXAMPLES_COMMON_FASTA_HPP
#define BELLMAN_EXAMPLES_COMMON_FASTA_HPP

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text_file.hpp"

namespace bellman_examples {

/// \brief One record of a FASTA file.
struct FastaRecord {
  std::string name;         ///< the first word of the header line
  std::string description;  ///< the rest of the header line
  std::string sequence;     ///< upper case
  std::size_t line;         ///< of the header
};

/// \brief The letters that a FASTA sequence may hold where the caller knows no better: A to Z, and * for a stop.
inline constexpr std::string_view fasta_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ*";

/// \brief The place of each letter of \p sequence in \p letters (at most 127), and -1 for a letter that is not there.
inline std::vector<signed char> encode(std::string_view sequence, std::string_view letters) {
  std::array<signed char, 256> codes;
  codes.fill(-1);
  for (std::size_t i = 0; i < letters.size(); ++i) {
    codes[static_cast<unsigned char>(letters[i])] = static_cast<signed char>(i);
  }
  std::vector<signed char> encoded;
  encoded.reserve(sequence.size());
  for (const char letter : sequence) encoded.push_back(codes[static_cast<unsigned char>(letter)]);
  return encoded;
}

/// \brief Read the records of a FASTA file: `>name description`, then lines of letters.
///
/// Sequences may span lines; lower case becomes upper case. Blank lines, blanks inside a line and lines that start with
/// ';' (comments) are skipped; lines end in LF or CRLF. \p letters are the upper-case letters that a sequence may hold.
/// \throws FileError when there is no record, a record has no name or no letter, text comes before the first '>', or a
///         character is not one of \p letters
inline std::vector<FastaRecord> read_fasta(const std::string& path, std::string_view letters = fasta_letters) {
  std::vector<FastaRecord> records;
  const auto require_letters = [&] {
    if (records.empty() || !records.back().sequence.empty()) return;
    throw FileError(path, {records.back().line}, "The record \"" + records.back().name + "\" has no sequence.");
  };

  std::size_t lines = 0;
  for_each_line(path, [&](std::string_view text, std::size_t line) {
    lines = line;
    if (text.starts_with(';')) return;
    if (text.starts_with('>')) {
      require_letters();
      text.remove_prefix(1);
      const std::string_view name = take_word(text);
      if (name.empty()) throw FileError(path, {line}, "The record has no name: one must follow the '>'.");
      while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
      while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
      records.push_back({std::string(name), std::string(text), {}, line});
      return;
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (is_blank(text[i])) continue;
      if (records.empty()) {
        throw FileError(path, {line}, "Text before the first record: a FASTA record starts with a line '>name'.");
      }
      const char letter = to_upper(text[i]);
      if (letters.find(letter) == std::string_view::npos) {
        throw FileError(path, {line},
                        "The sequence \"" + records.back().name + "\" holds the character " + quoted(text[i]) +
                            ", which is none of " + std::string(letters) + ".");
      }
      records.back().sequence += letter;
    }
  });
  require_letters();
  if (records.empty()) throw FileError(path, {lines > 0 ? lines : 1}, "The file holds no FASTA record.");
  return records;
}

}  // namespace bellman_examples

#endif
