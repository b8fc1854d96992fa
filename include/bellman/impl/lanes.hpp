// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_LANES_HPP
#define BELLMAN_IMPL_LANES_HPP

/// \file
/// Lane-group operations: the only place that names backend intrinsics. A lane group is the vector lanes of one thread of
/// a team: a warp on CUDA, a single lane elsewhere. All lanes of a group call an operation together.

#include <Kokkos_Core.hpp>

namespace bellman::impl {

/// The portable form: a group of one lane.
template <class ExecutionSpace>
struct LaneGroup {
  static constexpr int size = 1;

  /// This lane's place in the group, 0 .. size - 1.
  KOKKOS_FUNCTION static int rank() { return 0; }

  /// The value that the lane before this one holds; lane 0 gets its own.
  template <class T>
  KOKKOS_FUNCTION static T from_previous(const T& value) {
    return value;
  }

  /// op over the values of all lanes, given to every lane. op is associative and commutative, bitwise.
  template <class T, class Op>
  KOKKOS_FUNCTION static T reduce(const T& value, const Op&) {
    return value;
  }

  /// Memory written by a lane before is seen by all lanes after.
  KOKKOS_FUNCTION static void sync() {}
};

#ifdef KOKKOS_ENABLE_CUDA
template <>
struct LaneGroup<Kokkos::Cuda> {
  static constexpr int size = 32;
  static constexpr unsigned all_lanes = 0xffffffffu;

  KOKKOS_FUNCTION static int rank() {
    KOKKOS_IF_ON_DEVICE((return static_cast<int>(threadIdx.x);))
    KOKKOS_IF_ON_HOST((return 0;))
  }

  template <class T>
  KOKKOS_FUNCTION static T from_previous(const T& value) {
    KOKKOS_IF_ON_DEVICE((return __shfl_up_sync(all_lanes, value, 1);))
    KOKKOS_IF_ON_HOST((return value;))
  }

  template <class T, class Op>
  KOKKOS_FUNCTION static T reduce(T value, const Op& op) {
    KOKKOS_IF_ON_DEVICE((for (int distance = size / 2; distance > 0;
                              distance /= 2) { value = op(value, __shfl_xor_sync(all_lanes, value, distance)); }))
    return value;
  }

  KOKKOS_FUNCTION static void sync() { KOKKOS_IF_ON_DEVICE((__syncwarp();)) }
};
#endif

}  // namespace bellman::impl

#endif
