// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_STATUS_HPP
#define BELLMAN_STATUS_HPP

#include <cstdint>
#include <iosfwd>

namespace bellman {

/// \brief What happened to one problem of a batch. One bad problem never touches its neighbours.
enum class Status : std::uint8_t {
  ok = 0,        ///< the result is a number of the promised accuracy (or an infinity that the input asks for)
  empty,         ///< the problem has no cell or no step; its result is 0
  impossible,    ///< every path has probability zero; the log-likelihood is -inf
  not_a_number,  ///< a score or a logit of the problem is NaN (or a logit is +inf); the result is NaN
  bad_symbol,    ///< an observed symbol is >= the number of symbols; the result is NaN
  bad_length     ///< a length is negative or larger than the view; the result is NaN
};

/// \brief The enumerator's name, for messages and tables.
const char* to_string(Status status);
std::ostream& operator<<(std::ostream& stream, Status status);

}  // namespace bellman

#endif
