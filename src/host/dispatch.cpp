// SPDX-License-Identifier: Apache-2.0
#include <bellman/impl/host_kernels.hpp>

namespace bellman::impl {

extern const HostKernels plain_kernels;
#ifdef BELLMAN_HAS_X86_KERNELS
extern const HostKernels avx2_kernels;
extern const HostKernels avx512_kernels;
#endif

namespace {

/// The kernels that this machine can run, in rising order.
struct Supported {
  const HostKernels* kernels[4] = {&plain_kernels};
  int count = 1;

  Supported() {
#ifdef BELLMAN_HAS_X86_KERNELS
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
    kernels[count++] = &avx2_kernels;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
      return;
    }
    kernels[count++] = &avx512_kernels;
#endif
  }
};

const Supported& supported() {
  static const Supported once;
  return once;
}

}  // namespace

const HostKernels& host_kernels() { return *supported().kernels[supported().count - 1]; }

const HostKernels* host_kernels_of_machine(int index) {
  return index < supported().count ? supported().kernels[index] : nullptr;
}

}  // namespace bellman::impl
