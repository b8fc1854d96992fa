// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_EXAMPLES_COMMON_HMM_MODEL_FILE_HPP
#define BELLMAN_EXAMPLES_COMMON_HMM_MODEL_FILE_HPP

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "text_file.hpp"

namespace bellman_examples {

/// \brief A hidden Markov model in probabilities, and what its file says of a sequence under it.
struct HmmModelFile {
  std::size_t states = 0;
  std::string symbols;                   ///< the letter of each symbol: the columns of emit
  std::vector<double> init;              ///< (states)
  std::vector<double> trans;             ///< (states, states), row-major, from row to column
  std::vector<double> emit;              ///< (states, symbols), row-major
  std::optional<std::string> sequence;   ///< the name of the file with the sequence
  std::optional<std::size_t> length;     ///< of that sequence
  std::optional<double> log_likelihood;  ///< of that sequence, in nats
};

namespace impl {

/// Checks while it reads, so that each message has its place in the file.
class HmmModelReader {
 public:
  explicit HmmModelReader(const std::string& path) : path_(path) {}

  HmmModelFile read() const {
    std::string text;
    for_each_line(path_, [&](std::string_view line, std::size_t) { text.append(line).append(1, '\n'); });
    try {
      return read(YAML::Load(text));
    } catch (const YAML::Exception& error) {
      fail(error.mark, "The file is not valid YAML: " + error.msg + '.');
    }
  }

 private:
  HmmModelFile read(const YAML::Node& root) const {
    if (!root.IsMap()) fail(root.Mark(), "The file must hold a mapping with the keys init, trans and emit.");

    std::set<std::string> keys;
    for (const auto& entry : root) {
      if (entry.first.IsScalar() && !keys.insert(entry.first.Scalar()).second) {
        fail(entry.first.Mark(), "The key " + entry.first.Scalar() + " stands twice.");
      }
    }

    HmmModelFile model;
    model.symbols = root["symbols"] ? read_symbols(root["symbols"]) : "ACGT";
    const YAML::Node init = required(root, "init");
    if (!init.IsSequence() || init.size() == 0) fail(init.Mark(), "init must be a list of at least one probability.");
    model.states = init.size();
    model.init = read_distribution(init, "init", model.states);
    model.trans = read_rows(required(root, "trans"), "trans", model.states, model.states);
    model.emit = read_rows(required(root, "emit"), "emit", model.states, model.symbols.size());

    if (const YAML::Node node = root["sequence"]) {
      if (!node.IsScalar()) fail(node.Mark(), "sequence must be the name of a file.");
      model.sequence = node.Scalar();
    }
    if (const YAML::Node node = root["length"]) {
      const double length = read_number(node, "length");
      if (!(length >= 0 && length <= 0x1p53 && std::floor(length) == length)) {
        fail(node.Mark(), "length must be a whole number, not below 0.");
      }
      model.length = static_cast<std::size_t>(length);
    }
    if (const YAML::Node expected = root["expected"]) {
      if (!expected.IsMap()) fail(expected.Mark(), "expected must be a mapping.");
      if (const YAML::Node node = expected["log_likelihood"]) {
        model.log_likelihood = read_number(node, "log_likelihood");
      }
    }
    return model;
  }

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& sentence) const {
    // yaml-cpp counts from 0, and has no place for what is not there, such as the content of an empty file.
    throw FileError(
        path_,
        {static_cast<std::size_t>(std::max(mark.line, 0)) + 1, static_cast<std::size_t>(std::max(mark.column, 0)) + 1},
        sentence);
  }

  YAML::Node required(const YAML::Node& map, const std::string& key) const {
    const YAML::Node node = map[key];
    if (!node) fail(map.Mark(), "The key " + key + " is missing.");
    return node;
  }

  std::string read_symbols(const YAML::Node& node) const {
    std::string symbols = node.IsScalar() ? node.Scalar() : "";
    for (char& symbol : symbols) symbol = to_upper(symbol);
    std::string distinct = symbols;
    std::sort(distinct.begin(), distinct.end());
    const bool letters_only = std::all_of(symbols.begin(), symbols.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (symbols.empty() || !letters_only || std::adjacent_find(distinct.begin(), distinct.end()) != distinct.end()) {
      fail(node.Mark(), "symbols must be a word of different letters from A to Z, such as ACGT.");
    }
    return symbols;
  }

  double read_number(const YAML::Node& node, const std::string& name) const {
    const auto number = node.IsScalar() ? parse_number(node.Scalar()) : std::nullopt;
    if (!number || !std::isfinite(*number)) fail(node.Mark(), name + " must be a finite number.");
    return *number;
  }

  /// \p size probabilities whose sum is 1.
  std::vector<double> read_distribution(const YAML::Node& node, const std::string& name, std::size_t size) const {
    if (!node.IsSequence() || node.size() != size) {
      fail(node.Mark(), name + " must be a list of " + std::to_string(size) + " probabilities.");
    }
    std::vector<double> row;
    double sum = 0;
    for (const YAML::Node& entry : node) {
      row.push_back(read_number(entry, "A probability of " + name));
      if (row.back() < 0) fail(entry.Mark(), "A probability of " + name + " must not be negative.");
      sum += row.back();
    }
    if (std::abs(sum - 1) > 1e-9) {
      std::ostringstream message;
      message.precision(12);
      message << "The probabilities of " << name << " must sum to 1; they sum to " << sum << '.';
      fail(node.Mark(), message.str());
    }
    return row;
  }

  std::vector<double> read_rows(const YAML::Node& node, const std::string& name, std::size_t rows,
                                std::size_t columns) const {
    if (!node.IsSequence() || node.size() != rows) {
      fail(node.Mark(), name + " must be a list of " + std::to_string(rows) + " rows, one for each entry of init.");
    }
    std::vector<double> matrix;
    for (std::size_t i = 0; i < rows; ++i) {
      const auto row = read_distribution(node[i], name + " row " + std::to_string(i), columns);
      matrix.insert(matrix.end(), row.begin(), row.end());
    }
    return matrix;
  }

  const std::string& path_;
};

}  // namespace impl

/// \brief Read a hidden Markov model from YAML.
///
///     init: [0.5, 0.5]                       # a probability for each state
///     trans: [[0.9, 0.1], [0.2, 0.8]]        # from row to column
///     emit: [[0.4, 0.1, 0.1, 0.4], [0.25, 0.25, 0.25, 0.25]]
///     symbols: ACGT                          # optional: the letters of the columns of emit
///     sequence: genome.fa                    # optional, as all that follows
///     length: 48502
///     expected: {log_likelihood: -66684.77}
///
/// Other keys are left alone. A row holds probabilities >= 0 whose sum is 1 within 1e-9.
/// \throws FileError, with line and column
inline HmmModelFile read_hmm_model(const std::string& path) { return impl::HmmModelReader(path).read(); }

}  // namespace bellman_examples

#endif
