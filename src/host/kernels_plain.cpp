// SPDX-License-Identifier: Apache-2.0
#define BELLMAN_INSTRUCTIONS plain
#include "kernels.hpp"

namespace bellman::impl {

extern const HostKernels plain_kernels;
constinit const HostKernels plain_kernels = plain::make_kernels("the plain instruction set");

}  // namespace bellman::impl
