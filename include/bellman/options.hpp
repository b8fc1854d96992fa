// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_OPTIONS_HPP
#define BELLMAN_OPTIONS_HPP

/// \file
/// The options of each operation, with their defaults.

#include <cstdint>
#include <iosfwd>

namespace bellman {

struct SmithWatermanOptions {
  double gap = -1.0;         ///< added for each gap position, in the unit of the scores; -inf forbids gaps
  double temperature = 1.0;  ///< >= 0, in the unit of the scores; 0 is the hard maximum
};

struct HmmOptions {
  bool normalised = false;  ///< the rows of the model are log-probabilities already, not logits
};

enum class Reduction : std::uint8_t { sum, mean, min, max, count };

struct MaskedReduceOptions {
  Reduction reduction = Reduction::sum;
};

/// \brief The enumerator's name, for messages and tables.
const char* to_string(Reduction reduction);
std::ostream& operator<<(std::ostream& stream, Reduction reduction);

}  // namespace bellman

#endif
