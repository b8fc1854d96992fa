// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_EXAMPLES_COMMON_PROGRAM_HPP
#define BELLMAN_EXAMPLES_COMMON_PROGRAM_HPP

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

namespace bellman_examples {

/// \brief A command line that the program does not understand.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// \brief The exit status of \p body(), or 2 with a message on stderr when it throws.
template <class Body>
int run_program(const std::string& usage, Body body) {
  try {
    return body();
  } catch (const UsageError& error) {
    std::cerr << error.what() << '\n' << usage;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
  }
  return 2;
}

}  // namespace bellman_examples

#endif
