// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_EXP2_POLYNOMIAL_HPP
#define BELLMAN_IMPL_EXP2_POLYNOMIAL_HPP

namespace bellman::impl {

/// 2^r for |r| <= 1/2 in double, interpolated at Chebyshev nodes: 2e-17 off before rounding. Lowest power first. A type of
/// its own, since device code reads constants of a function, and not of a namespace.
struct Exp2Polynomial {
  static constexpr int degree = 11;
  double coefficients[degree + 1] = {0x1p0,
                                     0x1.62e42fefa39efp-1,
                                     0x1.ebfbdff82c5aep-3,
                                     0x1.c6b08d704a0c6p-5,
                                     0x1.3b2ab6fb9f1a5p-7,
                                     0x1.5d87fe78a3f9cp-10,
                                     0x1.430913112c61bp-13,
                                     0x1.ffcbfc6da6ed1p-17,
                                     0x1.62bfc2c86d700p-20,
                                     0x1.b524ebd13a55fp-24,
                                     0x1.e6228acd1c6e5p-28,
                                     0x1.e9ec1fcb69a7fp-32};
};

/// The same, 6e-11 of 2^r off: for what is then rounded to float.
struct Exp2PolynomialForFloat {
  static constexpr int degree = 7;
  double coefficients[degree + 1] = {0x1.ffffffffa7135p-1,  0x1.62e42fef9cc69p-1, 0x1.ebfbe0aa03df0p-3,
                                     0x1.c6b08da70cce3p-5,  0x1.3b29d8bb0b97ep-7, 0x1.5d877598350dep-10,
                                     0x1.446c79efd4834p-13, 0x1.00c0e4e15189cp-16};
};

}  // namespace bellman::impl

#endif
