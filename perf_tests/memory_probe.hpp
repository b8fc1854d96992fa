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

/// On a GPU an item reads few words at a distance of all items, all of them in flight at once; on a host a long stretch,
/// in several sums that a compiler turns into vectors. Nothing is written, which no compiler can know: the words of
/// write_all never add up to 0.
template <class ExecutionSpace>
struct ReadAll {
  static constexpr bool on_host =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename ExecutionSpace::memory_space>::accessible;
  static constexpr std::int64_t words_per_item = on_host ? 4096 : 8;

  Kokkos::View<const Word*, ExecutionSpace> words;
  Kokkos::View<std::uint64_t, ExecutionSpace> sink;
  std::int64_t items;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    std::uint64_t sum = 0;
    if constexpr (on_host) {
      const Word* const first = words.data() + item * words_per_item;
      std::uint64_t sums[8] = {};
      for (std::int64_t k = 0; k < words_per_item; k += 4) {
        for (int i = 0; i < 4; ++i) {
          sums[2 * i] += first[k + i].low;
          sums[2 * i + 1] += first[k + i].high;
        }
      }
      for (const std::uint64_t each : sums) sum += each;
    } else {
      for (std::int64_t k = 0; k < words_per_item; ++k) {
        sum += words(item + k * items).low + words(item + k * items).high;
      }
    }
    if (sum == 0) sink() = sum;
  }
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

/// \brief The highest rate in bytes per second at which a plain kernel reads memory: the best of several measurements,
/// each of a few passes over a buffer that no cache holds; of two at least, of as many as a second allows.
template <class ExecutionSpace>
double measure_read_rate() {
  constexpr int passes = ReadAll<ExecutionSpace>::on_host ? 1 : 4;
  const ExecutionSpace exec;
  constexpr std::size_t least_bytes = std::size_t{1} << (ReadAll<ExecutionSpace>::on_host ? 28 : 31);
  const auto words = probe_buffer(exec, std::max(least_bytes, 8 * cache_bytes(exec)));
  const auto items = static_cast<std::int64_t>(words.extent(0)) / ReadAll<ExecutionSpace>::words_per_item;
  const Kokkos::View<std::uint64_t, ExecutionSpace> sink(Kokkos::view_alloc(exec, "bellman::perf::sink"));
  const ReadAll<ExecutionSpace> read_all{words, sink, items};
  const double bytes = static_cast<double>(items * read_all.words_per_item * passes) * sizeof(Word);
  using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  double best = 0;
  const Kokkos::Timer all;
  for (int k = 0; k < 10 && (k < 2 || all.seconds() < 1); ++k) {
    exec.fence("bellman::perf::measure_read_rate");
    const Kokkos::Timer timer;
    for (int pass = 0; pass < passes; ++pass) {
      Kokkos::parallel_for("bellman::perf::read_all", Policy(exec, 0, items), read_all);
    }
    exec.fence("bellman::perf::measure_read_rate");
    best = std::max(best, bytes / timer.seconds());
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
