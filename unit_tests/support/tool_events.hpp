// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_SUPPORT_TOOL_EVENTS_HPP
#define BELLMAN_UNIT_TESTS_SUPPORT_TOOL_EVENTS_HPP

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bellman::support {

/// \brief What Kokkos' tools interface reports while it lives: kernels, regions, fences, allocations. One at a time.
class ToolEvents {
 public:
  ToolEvents() {
    using namespace Kokkos::Tools::Experimental;
    recorded() = {};
    set_begin_parallel_for_callback(kernel_begins);
    set_begin_parallel_reduce_callback(kernel_begins);
    set_push_region_callback([](const char* name) { recorded().regions.emplace_back(name); });
    set_begin_fence_callback([](const char* name, std::uint32_t, std::uint64_t*) {
      // Kokkos fences for the sake of the callbacks themselves.
      if (!std::string_view(name).starts_with("Kokkos::Tools::")) recorded().fences.emplace_back(name);
    });
    set_allocate_data_callback([](Kokkos::Profiling::SpaceHandle, const char* name, const void*, std::uint64_t) {
      recorded().allocations.emplace_back(name);
    });
  }
  ~ToolEvents() {
    using namespace Kokkos::Tools::Experimental;
    set_begin_parallel_for_callback(nullptr);
    set_begin_parallel_reduce_callback(nullptr);
    set_push_region_callback(nullptr);
    set_begin_fence_callback(nullptr);
    set_allocate_data_callback(nullptr);
  }
  ToolEvents(const ToolEvents&) = delete;
  ToolEvents& operator=(const ToolEvents&) = delete;

  // The names that they were given, in their order; devices() has an entry per kernel.
  const std::vector<std::string>& kernels() const { return recorded().kernels; }
  const std::vector<std::string>& regions() const { return recorded().regions; }
  const std::vector<std::string>& fences() const { return recorded().fences; }
  const std::vector<std::string>& allocations() const { return recorded().allocations; }
  const std::vector<std::uint32_t>& devices() const { return recorded().devices; }

 private:
  struct Record {
    std::vector<std::string> kernels;
    std::vector<std::string> regions;
    std::vector<std::string> fences;
    std::vector<std::string> allocations;
    std::vector<std::uint32_t> devices;
  };

  /// Callbacks are plain functions: what they write to is global.
  static Record& recorded() {
    static Record record;
    return record;
  }

  static void kernel_begins(const char* name, std::uint32_t device, std::uint64_t*) {
    recorded().kernels.emplace_back(name);
    recorded().devices.push_back(device);
  }
};

}  // namespace bellman::support

#endif
