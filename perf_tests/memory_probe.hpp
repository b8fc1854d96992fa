// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PERF_TESTS_MEMORY_PROBE_HPP
#define BELLMAN_PERF_TESTS_MEMORY_PROBE_HPP

#include <unistd.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>

/// \brief What the memory of a backend can do, and how to empty its cache.
namespace bellman::perf {

/// 16 bytes: the widest load of one instruction on GPUs.
struct alignas(16) Word {
  std::uint64_t low;
  std::uint64_t high;
};

/// Reads every word once; integer sums may be reordered, so that compilers use SIMD.
template <class ExecutionSpace>
struct ReadAll {
  Kokkos::View<const Word*, ExecutionSpace> words;
  KOKKOS_FUNCTION void operator()(std::int64_t k, std::uint64_t& sum) const { sum += words(k).low + words(k).high; }
};

template <class ExecutionSpace>
struct WriteAll {
  Kokkos::View<Word*, ExecutionSpace> words;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { words(k) = {static_cast<std::uint64_t>(k), 1}; }
};

/// The size of the largest cache between the backend's cores and its memory.
template <class ExecutionSpace>
std::size_t cache_bytes(const ExecutionSpace& exec) {
#ifdef KOKKOS_ENABLE_CUDA
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>) {
    return static_cast<std::size_t>(exec.cuda_device_prop().l2CacheSize);
  }
#endif
  (void)exec;
#ifdef _SC_LEVEL3_CACHE_SIZE
  return static_cast<std::size_t>(std::max(0L, sysconf(_SC_LEVEL3_CACHE_SIZE)));
#else
  return 0;
#endif
}

template <class ExecutionSpace>
Kokkos::View<Word*, ExecutionSpace> probe_buffer(const ExecutionSpace& exec, std::size_t bytes) {
  const Kokkos::View<Word*, ExecutionSpace> words(
      Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "bellman::perf::probe"), bytes / sizeof(Word));
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for("bellman::perf::write_all", Policy(exec, 0, words.extent(0)), WriteAll<ExecutionSpace>{words});
  return words;
}

/// \brief The highest rate in bytes per second at which a plain kernel reads memory: the best of several passes over a
/// buffer that no cache holds.
template <class ExecutionSpace>
double measure_read_rate() {
  const ExecutionSpace exec;
  const auto words = probe_buffer(exec, std::max(std::size_t{1} << 28, 8 * cache_bytes(exec)));
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  double best = 0;
  std::uint64_t sum = 0;
  for (int pass = 0; pass < 10; ++pass) {
    exec.fence("bellman::perf::measure_read_rate");
    const Kokkos::Timer timer;
    Kokkos::parallel_reduce("bellman::perf::read_all", Policy(exec, 0, words.extent(0)), ReadAll<ExecutionSpace>{words},
                            sum);
    best = std::max(best, static_cast<double>(words.extent(0) * sizeof(Word)) / timer.seconds());
  }
  return best;
}

/// \brief Fills the cache with something else: writes a buffer of twice its size. Only enqueued.
template <class ExecutionSpace>
void evict_cache() {
  using Buffer = Kokkos::View<Word*, ExecutionSpace>;
  static Buffer words;
  const ExecutionSpace exec;
  if (!words.is_allocated()) {
    words = probe_buffer(exec, std::max(std::size_t{1} << 26, 2 * cache_bytes(exec)));
    Kokkos::push_finalize_hook([]() { words = Buffer(); });
  }
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for("bellman::perf::write_all", Policy(exec, 0, words.extent(0)), WriteAll<ExecutionSpace>{words});
}

}  // namespace bellman::perf

#endif
