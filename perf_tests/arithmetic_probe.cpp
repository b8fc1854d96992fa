// SPDX-License-Identifier: Apache-2.0
#include "arithmetic_probe.hpp"

namespace bellman::perf {
namespace {

/// Chains in several vectors of so many bytes: enough to hide the latency of a multiply-add, few enough for the registers.
/// Written with the vector types of GCC and Clang, so that one text serves every width.
template <class Real, int bytes>
struct Vectors {
  static constexpr int count = 10;
  static constexpr int lanes = bytes / sizeof(Real);
  typedef Real Vector __attribute__((vector_size(bytes)));

  __attribute__((always_inline)) static Real run(Real factor, Real addend, std::int64_t steps) {
    Vector x[count];
    for (int k = 0; k < count; ++k) {
      for (int lane = 0; lane < lanes; ++lane) x[k][lane] = static_cast<Real>(k + lane);
    }
    for (std::int64_t step = 0; step < steps; ++step) {
      for (int k = 0; k < count; ++k) x[k] = x[k] * factor + addend;
    }
    Real sum = 0;
    for (int k = 0; k < count; ++k) {
      for (int lane = 0; lane < lanes; ++lane) sum += x[k][lane];
    }
    return sum;
  }
};

#if defined(__x86_64__)
template <class Real>
__attribute__((target("avx512f"))) Real run_512(Real factor, Real addend, std::int64_t steps) {
  return Vectors<Real, 64>::run(factor, addend, steps);
}
template <class Real>
__attribute__((target("avx2,fma"))) Real run_256(Real factor, Real addend, std::int64_t steps) {
  return Vectors<Real, 32>::run(factor, addend, steps);
}
#endif

/// Bytes of the widest vectors with multiply-adds; 16 where there are none, and a multiplication and an addition are one.
int vector_bytes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return 32;
#endif
  return 16;
}

}  // namespace

template <class Real>
Real HostFmaChains<Real>::run(Real factor, Real addend, std::int64_t steps) {
#if defined(__x86_64__)
  if (vector_bytes() == 64) return run_512(factor, addend, steps);
  if (vector_bytes() == 32) return run_256(factor, addend, steps);
#endif
  return Vectors<Real, 16>::run(factor, addend, steps);
}

template <class Real>
int HostFmaChains<Real>::chains() {
  return Vectors<Real, 16>::count * vector_bytes() / static_cast<int>(sizeof(Real));
}

template class HostFmaChains<float>;
template class HostFmaChains<double>;

}  // namespace bellman::perf
