// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_PROGRAM_HPP
#define BELLMAN_PERF_TESTS_PROGRAM_HPP

#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>

#include "support/case_file.hpp"

namespace bellman::perf {

/// Something about the command line or a file that the user must change.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// \brief What every command here does in main: an error becomes a sentence on stderr and the exit status 2.
template <class Function>
int run_program(const std::string& name, const Function& function, int argc, char** argv) {
  try {
    return function(argc, argv);
  } catch (const support::CaseFileError& error) {
    std::cerr << error.what() << '\n';
  } catch (const std::exception& error) {
    std::cerr << name << ": " << error.what() << '\n';
  }
  return 2;
}

}  // namespace bellman::perf

#endif
