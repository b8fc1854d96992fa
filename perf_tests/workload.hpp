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
};

/// \brief Whether there is an obvious kernel for the case: for sums, and for sequences without bad symbols.
bool has_baseline(const Case& a_case);

/// \brief A backend of this build, with its default execution space instance.
struct Backend {
  std::string name;      ///< Serial, OpenMP, Cuda
  bool is_device;        ///< not the host
  std::string hardware;  ///< the device's name, or the number of threads on a host

  /// The case, with its problems (or columns) repeated \p repeat times in that memory.
  std::unique_ptr<Workload> (*make_workload)(const Case& a_case, RealType type, std::size_t repeat);
  /// The highest read rate in bytes per second that a plain kernel reaches, measured now.
  double (*measure_read_rate)();
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
