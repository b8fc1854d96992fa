// SPDX-License-Identifier: Apache-2.0
#define BELLMAN_INSTRUCTIONS avx512
#include "kernels.hpp"

namespace bellman::impl {

extern const HostKernels avx512_kernels;
constinit const HostKernels avx512_kernels = avx512::make_kernels("AVX-512");

}  // namespace bellman::impl
