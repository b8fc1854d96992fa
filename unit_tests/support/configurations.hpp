// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_SUPPORT_CONFIGURATIONS_HPP
#define BELLMAN_UNIT_TESTS_SUPPORT_CONFIGURATIONS_HPP

/// \file
/// What tests are typed over: every enabled space, float and double, three layouts.

#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "support/test_array.hpp"

namespace bellman::support {

template <class SpaceType, class RealType, class LayoutType>
struct Configuration {
  using Space = SpaceType;
  using Real = RealType;
  using Layout = LayoutType;

  template <class T, std::size_t rank>
  using Array = TestArray<Space, Layout, T, rank>;
};

using Spaces = decltype(std::tuple_cat(
#ifdef KOKKOS_ENABLE_SERIAL
    std::tuple<Kokkos::Serial>(),
#endif
#ifdef KOKKOS_ENABLE_OPENMP
    std::tuple<Kokkos::OpenMP>(),
#endif
#ifdef KOKKOS_ENABLE_CUDA
    std::tuple<Kokkos::Cuda>(),
#endif
    std::tuple<>()));

template <class Tuple>
struct ConfigurationList;
template <class... Space>
struct ConfigurationList<std::tuple<Space...>> {
  template <class Real, class Layout>
  using Each = std::tuple<Configuration<Space, Real, Layout>...>;
  using All = decltype(std::tuple_cat(
      std::declval<Each<float, Kokkos::LayoutRight>>(), std::declval<Each<float, Kokkos::LayoutLeft>>(),
      std::declval<Each<float, Kokkos::LayoutStride>>(), std::declval<Each<double, Kokkos::LayoutRight>>(),
      std::declval<Each<double, Kokkos::LayoutLeft>>(), std::declval<Each<double, Kokkos::LayoutStride>>()));
  using Contiguous = decltype(std::tuple_cat(std::declval<Each<float, Kokkos::LayoutRight>>(),
                                             std::declval<Each<double, Kokkos::LayoutRight>>()));
};

template <class Tuple>
struct AsTypes;
template <class... T>
struct AsTypes<std::tuple<T...>> {
  using type = testing::Types<T...>;
};

/// Every space, type and layout.
using AllConfigurations = AsTypes<ConfigurationList<Spaces>::All>::type;
/// Every space and type, contiguous: for tests that layouts have nothing to do with.
using ContiguousConfigurations = AsTypes<ConfigurationList<Spaces>::Contiguous>::type;

/// The default instance of a space and another one.
template <class Space>
std::vector<Space> instances() {
  return {Space(), Kokkos::Experimental::partition_space(Space(), 1)[0]};
}

/// The array rounded to Real: what a kernel in Real is given, and what the reference has to be given to be comparable.
template <class Real>
std::vector<double> rounded(std::vector<double> values) {
  for (double& value : values) value = static_cast<double>(static_cast<Real>(value));
  return values;
}

}  // namespace bellman::support

#endif
