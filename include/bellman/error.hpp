// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_ERROR_HPP
#define BELLMAN_ERROR_HPP

#include <stdexcept>

namespace bellman {

/// \brief Base of every exception that Bellman throws. Thrown before anything is launched: no output has been touched.
class Error : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// \brief Extents that do not fit together; the message names function, view, axis, the extent got and the one wanted.
class ShapeError : public Error {
 public:
  using Error::Error;
};

/// \brief An option outside its domain, such as a negative temperature.
class OptionError : public Error {
 public:
  using Error::Error;
};

/// \brief An output view that overlaps an input or another output.
class AliasError : public Error {
 public:
  using Error::Error;
};

}  // namespace bellman

#endif
