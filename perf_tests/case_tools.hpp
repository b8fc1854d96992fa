// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_CASE_TOOLS_HPP
#define BELLMAN_PERF_TESTS_CASE_TOOLS_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "support/case_file.hpp"

/// \brief What bellman_compare and bellman_perf ask of a case, whatever its operation.
namespace bellman::perf {

using support::Case;
using support::HmmCase;
using support::MaskedReduceCase;
using support::SmithWatermanCase;

enum class RealType { float_type, double_type };

const char* to_string(RealType type);

/// \brief The sizes of a case in one word: BxMxN, BxTxSxO, or RxS followed by what says which cells are valid.
std::string shape(const Case& a_case);

/// \brief The same case with every real input rounded to float. Gap and temperature are options, and stay double.
Case rounded_to_float(Case a_case);

/// \brief The results of the serial reference, one per problem (one per column of a masked reduction).
std::vector<double> reference_results(const Case& a_case);

/// \brief The results that the file lists under `expected`, if it does.
const std::optional<std::vector<double>>& expected_results(const Case& a_case);

/// \brief The error that each result may have where the right one is \p wanted.
///
/// The `tolerance` of the case, absolute plus relative, if it has one; else the bound of the operation's contract
/// (bellman/accuracy.hpp), which is 0 for minimum, maximum and count.
std::vector<double> allowed_errors(const Case& a_case, RealType type, const std::vector<double>& wanted);

/// \brief How far a set of results is from another. NaN equals NaN, and infinities of one sign are equal.
struct Comparison {
  bool agrees = true;        ///< every result is as near as it may be
  double max_abs_error = 0;  ///< infinite where one side only is NaN or infinite
  double max_rel_error = 0;  ///< relative to |wanted|
  double allowed_error = 0;  ///< of the result with the largest absolute error
  double worst_share = 0;    ///< the largest error relative to what is allowed for that result; above 1 is wrong
  std::size_t worst = 0;     ///< the place of that result
  double got = 0;            ///< that result
  double wanted = 0;         ///< what it should be
};

Comparison compare(const std::vector<double>& got, const std::vector<double>& wanted,
                   const std::vector<double>& allowed);

/// \brief The largest difference of two sets of results.
double max_difference(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace bellman::perf

#endif
