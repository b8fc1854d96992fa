// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_GRAPH_TIME_HPP
#define BELLMAN_PERF_TESTS_GRAPH_TIME_HPP

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "median.hpp"

namespace bellman::perf {

#ifdef KOKKOS_ENABLE_CUDA

/// A CUDA graph of some calls, captured from an instance's stream.
class CapturedCalls {
 public:
  template <class Launch>
  CapturedCalls(const Kokkos::Cuda& exec, int calls, const Launch& launch) : CapturedCalls(exec.cuda_stream()) {
    require(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
    std::exception_ptr failure;
    try {
      for (int k = 0; k < calls; ++k) launch();
    } catch (...) {
      failure = std::current_exception();
    }
    const auto end = cudaStreamEndCapture(stream_, &graph_);  // a capture must be ended, come what may
    if (failure) std::rethrow_exception(failure);
    require(end);
    require(cudaGraphInstantiate(&executable_, graph_, 0));
    for (auto& event : events_) require(cudaEventCreate(&event));
  }
  CapturedCalls(const CapturedCalls&) = delete;
  CapturedCalls& operator=(const CapturedCalls&) = delete;
  ~CapturedCalls() {
    for (auto& event : events_) {
      if (event) (void)cudaEventDestroy(event);
    }
    if (executable_) (void)cudaGraphExecDestroy(executable_);
    if (graph_) (void)cudaGraphDestroy(graph_);
  }

  /// Seconds from an event before the graph to one behind it.
  double replay() {
    require(cudaEventRecord(events_[0], stream_));
    require(cudaGraphLaunch(executable_, stream_));
    require(cudaEventRecord(events_[1], stream_));
    require(cudaEventSynchronize(events_[1]));
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, events_[0], events_[1]));
    return static_cast<double>(milliseconds) / 1e3;
  }

 private:
  /// Constructed from here on: whatever throws later, the destructor runs.
  explicit CapturedCalls(cudaStream_t stream) : stream_(stream) {}

  static void require(cudaError_t error) {
    if (error == cudaSuccess) return;
    (void)cudaGetLastError();  // or the next launch would report it once more
    throw std::runtime_error(cudaGetErrorString(error));
  }

  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  std::array<cudaEvent_t, 2> events_ = {};
};

#endif

/// \brief Seconds of one call within a graph of 20, without the cost of submitting it: the median of several replays.
///
/// Of calls longer than a few milliseconds there are fewer in the graph, and fewer replays; of calls longer than \p longest
/// none. Nothing on a backend without graphs, and where the calls cannot be captured; the first time, the error says why.
template <class ExecutionSpace, class Launch>
std::optional<double> graph_seconds(const ExecutionSpace& exec, const Launch& launch, double longest = 0.5) {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) {
    constexpr double longest_graph = 0.1;
    try {
      launch();  // what a first call allocates cannot be captured
      exec.fence("bellman::perf::graph");
      const Kokkos::Timer timer;
      launch();
      exec.fence("bellman::perf::graph");
      const double call = timer.seconds();
      if (call > longest) return std::nullopt;
      const int calls = std::clamp(static_cast<int>(longest_graph / call), 1, 20);
      CapturedCalls graph(exec, calls, launch);
      graph.replay();
      std::vector<double> seconds(call * calls < longest_graph / 2 ? 9 : 3);
      for (auto& each : seconds) each = graph.replay() / calls;
      return median(seconds);
    } catch (const std::exception& error) {
      static bool was_said = false;
      if (!was_said) std::cerr << "no graph_us: calls cannot be captured in a CUDA graph: " << error.what() << '\n';
      was_said = true;
    }
  }
#endif
  (void)exec;
  (void)launch;
  (void)longest;
  return std::nullopt;
}

}  // namespace bellman::perf

#endif
