// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_LAUNCH_PROBE_HPP
#define BELLMAN_PERF_TESTS_LAUNCH_PROBE_HPP

#include <Kokkos_Core.hpp>
#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <vector>

#include "graph_time.hpp"
#include "median.hpp"
#include "support/tool_events.hpp"
#include "workload.hpp"

/// \brief What a launch costs: nothing can be faster.
namespace bellman::perf {

#ifdef KOKKOS_ENABLE_CUDA

/// As large as the functors of the library's kernels, about.
struct LaunchArguments {
  std::byte bytes[512];
};

static __global__ void empty_kernel(const LaunchArguments) {}

inline void launch_empty_kernel(const Kokkos::Cuda& exec) {
  empty_kernel<<<1, 32, 0, exec.cuda_stream()>>>(LaunchArguments{});
}

#endif

template <class ExecutionSpace>
EmptyLaunch measure_empty_launch() {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) {
    const ExecutionSpace exec;
    const auto launch = [&] { launch_empty_kernel(exec); };
    std::vector<double> seconds;
    for (int k = 0; k < 101; ++k) {
      exec.fence("bellman::perf::measure_empty_launch");
      const Kokkos::Timer timer;
      launch();
      exec.fence("bellman::perf::measure_empty_launch");
      seconds.push_back(timer.seconds());
    }
    return {median(seconds), graph_seconds(exec, launch).value_or(0)};
  }
#endif
  return {};
}

/// \brief Measures the submission of a call: many calls, then one fence, and so few of them that the queue never fills.
/// Nothing on a backend whose calls do the work themselves.
template <class ExecutionSpace, class Launch>
std::optional<Submission> measure_submission(const ExecutionSpace& exec, const Launch& launch) {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) {
    constexpr int calls = 100;  // the queue holds about a thousand launches, a call has up to a few
    const auto seconds_of = [&](const auto& submit) {
      exec.fence("bellman::perf::measure_submission");
      const auto start = std::chrono::steady_clock::now();
      for (int k = 0; k < calls; ++k) submit();
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
      exec.fence("bellman::perf::measure_submission");
      return elapsed.count() / calls;
    };
    std::vector<double> call_seconds;
    std::vector<double> raw_seconds;
    launch();
    for (int k = 0; k < 15; ++k) {
      raw_seconds.push_back(seconds_of([&] { launch_empty_kernel(exec); }));
      call_seconds.push_back(seconds_of(launch));
    }
    const support::ToolEvents events;
    launch();
    return Submission{median(call_seconds), median(raw_seconds), events.fences().size(), events.allocations().size()};
  }
#endif
  (void)exec;
  (void)launch;
  return std::nullopt;
}

}  // namespace bellman::perf

#endif
