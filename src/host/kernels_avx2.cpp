// SPDX-License-Identifier: Apache-2.0
#define BELLMAN_INSTRUCTIONS avx2
#include "kernels.hpp"

namespace bellman::impl {

extern const HostKernels avx2_kernels;
constinit const HostKernels avx2_kernels = avx2::make_kernels("AVX2");

}  // namespace bellman::impl
