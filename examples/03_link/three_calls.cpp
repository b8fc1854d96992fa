// SPDX-License-Identifier: Apache-2.0
/// \file
/// The smallest program on Bellman: one call of each operation, on problems small enough to work out by hand.

#include <Kokkos_Core.hpp>
#include <bellman/bellman.hpp>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <initializer_list>

namespace {

using Space = Kokkos::DefaultExecutionSpace;
using Vector = Kokkos::View<double*, Space>;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Space>;

/// A view of \p shape, a Kokkos::View type, with \p values in row-major order.
template <class View, class... Extents>
View make(std::initializer_list<double> values, Extents... extents) {
  const View view("values", extents...);
  const auto host = Kokkos::create_mirror_view(view);
  std::size_t i = 0;
  for (const double value : values) host.data()[i++] = static_cast<typename View::value_type>(value);
  Kokkos::deep_copy(view, host);
  return view;
}

double first(const Vector& view) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return host(0);
}

bool agrees(const char* what, double result, double expected) {
  const bool right = std::abs(result - expected) <= 1e-11 * std::abs(expected);
  std::printf("%-22s %.15g, %s\n", what, result, right ? "as expected" : "which is WRONG");
  return right;
}

double smith_waterman(const Space& exec) {
  const auto scores = make<Kokkos::View<double***, Kokkos::LayoutRight, Space>>({1, -1, 0.5, -0.5, 2, -1}, 1, 2, 3);
  const Vector score("score", 1);
  bellman::smith_waterman_score(exec, scores, score, {.gap = -1, .temperature = 1});
  exec.fence();
  return first(score);
}

double hmm(const Space& exec) {
  // log of init (0.6, 0.4), trans ((0.7, 0.3), (0.2, 0.8)), emit ((0.5, 0.4, 0.1), (0.1, 0.3, 0.6)). These logits need
  // not be normalised: log-softmax of log(p) is log(p).
  const bellman::HmmModel model{
      make<Vector>({std::log(0.6), std::log(0.4)}, 2),
      make<Matrix>({std::log(0.7), std::log(0.3), std::log(0.2), std::log(0.8)}, 2, 2),
      make<Matrix>({std::log(0.5), std::log(0.4), std::log(0.1), std::log(0.1), std::log(0.3), std::log(0.6)}, 2, 3)};
  const bellman::HmmObservations observations{make<Kokkos::View<int**, Kokkos::LayoutRight, Space>>({0, 1, 2}, 1, 3)};
  const Vector log_likelihood("log_likelihood", 1);
  bellman::hmm_log_likelihood(exec, model, observations, log_likelihood);
  exec.fence();
  return first(log_likelihood);
}

double masked_sum(const Space& exec) {
  // Column 0 of two ranks: 1.5 is valid, NaN is not.
  const auto values = make<Matrix>({1.5, 2, std::nan(""), 4}, 2, 2);
  const auto lengths = make<Kokkos::View<int*, Space>>({2, 0}, 2);
  const Vector sum("sum", 2);
  bellman::masked_reduce(exec, values, lengths, sum);
  exec.fence();
  return first(sum);
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  const Space exec;
  bool right = agrees("smith_waterman_score", smith_waterman(exec), 3.59680882686024);
  right = agrees("hmm_log_likelihood", hmm(exec), -3.2163789446696134) && right;
  right = agrees("masked_reduce", masked_sum(exec), 1.5) && right;
  return right ? 0 : 1;
}
