// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_SUPPORT_NEAR_HPP
#define BELLMAN_UNIT_TESTS_SUPPORT_NEAR_HPP

#include <gtest/gtest.h>

#include <cmath>

namespace bellman::support {

/// EXPECT_TRUE(near(actual, expected, bound)): a NaN is near a NaN alone, an infinity near the same infinity alone.
inline testing::AssertionResult near(double actual, double expected, double bound) {
  const bool both_nan = std::isnan(actual) && std::isnan(expected);
  if (both_nan || actual == expected) return testing::AssertionSuccess();
  if (std::isfinite(actual) && std::isfinite(expected) && std::abs(actual - expected) <= bound) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << "got " << actual << ", expected " << expected << " within " << bound
                                     << ", off by " << std::abs(actual - expected);
}

}  // namespace bellman::support

#endif
