// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_WORKLOAD_HPP
#define BELLMAN_PERF_TESTS_WORKLOAD_HPP

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "case_tools.hpp"

namespace bellman::perf {

/// \brief What a launch costs at least, in seconds. Both are 0 on hosts, where a call is a call.
struct EmptyLaunch {
  double call = 0;      ///< an empty kernel from fence to fence
  double in_graph = 0;  ///< one of 20 in a CUDA graph
};

/// \brief What the host does to submit one call of the library.
struct Submission {
  double seconds = 0;      ///< of the host, until the call returns
  double raw_seconds = 0;  ///< of a raw launch of an empty kernel, measured in turns with it
  std::size_t fences = 0;  ///< in one call, as Kokkos' tools see it; likewise
  std::size_t allocations = 0;

  double above_raw() const { return seconds - raw_seconds; }
};

/// \brief One case, its inputs in the memory of one backend in one type, ready to be run any number of times.
class Workload {
 public:
  virtual ~Workload() = default;

  /// Enqueues the library's operation.
  virtual void launch() = 0;
  /// Enqueues the obvious kernel for the same inputs. Only where has_baseline says so.
  virtual void launch_baseline() = 0;
  /// Seconds of one launch of either kind within a CUDA graph; nothing where there are no such graphs.
  virtual std::optional<double> graph_seconds() = 0;
  virtual std::optional<double> graph_seconds_of_baseline() = 0;
  /// What submitting a launch costs the host; nothing where a launch does the work itself.
  virtual std::optional<Submission> submission() = 0;
  /// Runs on so many threads of the host from now on, or on all again (0). Without effect on backends but OpenMP.
  virtual void use_threads(int threads) = 0;
  /// Waits until all that was enqueued is done.
  virtual void fence() = 0;
  /// The results of the last launch of either kind.
  virtual std::vector<double> results() = 0;
  /// Of a repeated case: which problem (or column) of the case result k belongs to.
  virtual std::size_t source(std::size_t k) const = 0;
  /// Of a repeated case: the place of the first result of a problem (or column) of the case.
  virtual std::size_t first_copy(std::size_t source) const = 0;

  /// Cells of the recurrence: B M N (alignment), the steps of all sequences times S S (HMM), R S (masked reduction).
  virtual double cells() const = 0;
  /// Bytes that must be read: every input once, of values with shard lengths only the valid ones.
  virtual double bytes() const = 0;
  /// Bytes of results.
  virtual double bytes_written() const = 0;
  /// Multiply-adds that the recurrence needs at least, exponentials not counted: 3 B M N (alignment: a sum and two steps of
  /// a linear gap), a cell each of the others.
  virtual double operations() const = 0;
};

/// \brief Whether there is an obvious kernel for the case: not for sequences with bad symbols.
bool has_baseline(const Case& a_case);

/// \brief What a backend can do at best, as plain kernels show.
struct Roofs {
  double read_rate = 0;       ///< bytes per second
  double float_fma_rate = 0;  ///< multiply-adds per second, each of them one operation
  double double_fma_rate = 0;
  EmptyLaunch empty_launch;

  double fma_rate(RealType type) const { return type == RealType::float_type ? float_fma_rate : double_fma_rate; }
};

/// \brief A backend of this build, with its default execution space instance.
struct Backend {
  std::string name;      ///< Serial, OpenMP, Cuda
  bool is_device;        ///< not the host
  int threads;           ///< of a host; of a device, those that run at a time
  std::string hardware;  ///< the device's name, or the number of threads on a host

  /// The case, with its problems (or columns) repeated \p repeat times in that memory.
  std::unique_ptr<Workload> (*make_workload)(const Case& a_case, RealType type, std::size_t repeat);
  /// Measured now.
  Roofs (*measure_roofs)();
  /// Fills the last-level cache with something else.
  void (*evict_cache)();
};

/// \brief The backends of this build, hosts first. Kokkos must be initialised.
std::vector<Backend> backends();

/// \brief The version of Kokkos, and of Bellman.
std::string kokkos_version();
std::string bellman_version();

}  // namespace bellman::perf

#endif
