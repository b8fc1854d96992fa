// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_SUPPORT_RANDOM_HPP
#define BELLMAN_UNIT_TESTS_SUPPORT_RANDOM_HPP

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace bellman::support {

inline std::vector<double> normal_values(std::size_t size, std::uint64_t seed, double scale = 1) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> distribution(0, scale);
  std::vector<double> values(size);
  for (double& value : values) value = distribution(engine);
  return values;
}

/// Integers in low..high, both included.
inline std::vector<std::int64_t> uniform_integers(std::size_t size, std::uint64_t seed, std::int64_t low,
                                                  std::int64_t high) {
  std::mt19937_64 engine(seed);
  std::uniform_int_distribution<std::int64_t> distribution(low, high);
  std::vector<std::int64_t> values(size);
  for (auto& value : values) value = distribution(engine);
  return values;
}

}  // namespace bellman::support

#endif
