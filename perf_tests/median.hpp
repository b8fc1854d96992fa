// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_MEDIAN_HPP
#define BELLMAN_PERF_TESTS_MEDIAN_HPP

#include <algorithm>
#include <vector>

namespace bellman::perf {

/// The middle of the values, of which there is one at least; of an even number the mean of the two in the middle.
inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  const auto middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace bellman::perf

#endif
