// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_EXAMPLES_COMMON_SCORE_SEQUENCE_HPP
#define BELLMAN_EXAMPLES_COMMON_SCORE_SEQUENCE_HPP

#include <Kokkos_Core.hpp>
#include <bellman/hmm.hpp>
#include <bellman/status.hpp>
#include <cmath>
#include <cstddef>
#include <string_view>

#include "fasta.hpp"
#include "hmm_model_file.hpp"

namespace bellman_examples {

template <class Real>
struct SequenceScore {
  Real log_likelihood;  ///< in nats
  bellman::Status status;
};

/// \brief The log-likelihood of one sequence under a model. A letter that is no symbol of the model, such as N, counts
/// as missing.
template <class Real, class ExecutionSpace>
SequenceScore<Real> score_sequence(const ExecutionSpace& exec, std::string_view sequence, const HmmModelFile& file) {
  using Kokkos::view_alloc;
  using Kokkos::WithoutInitializing;
  using Matrix = Kokkos::View<Real**, Kokkos::LayoutRight, ExecutionSpace>;
  const std::size_t states = file.states;
  const std::size_t symbols = file.symbols.size();

  const bellman::HmmModel model{
      Kokkos::View<Real*, ExecutionSpace>(view_alloc(exec, WithoutInitializing, "bellman_examples::init"), states),
      Matrix(view_alloc(exec, WithoutInitializing, "bellman_examples::trans"), states, states),
      Matrix(view_alloc(exec, WithoutInitializing, "bellman_examples::emit"), states, symbols)};
  const auto init = Kokkos::create_mirror_view(model.init);
  const auto trans = Kokkos::create_mirror_view(model.trans);
  const auto emit = Kokkos::create_mirror_view(model.emit);
  const auto log = [](double probability) { return static_cast<Real>(std::log(probability)); };
  for (std::size_t i = 0; i < states; ++i) {
    init(i) = log(file.init[i]);
    for (std::size_t j = 0; j < states; ++j) trans(i, j) = log(file.trans[i * states + j]);
    for (std::size_t o = 0; o < symbols; ++o) emit(i, o) = log(file.emit[i * symbols + o]);
  }
  Kokkos::deep_copy(exec, model.init, init);
  Kokkos::deep_copy(exec, model.trans, trans);
  Kokkos::deep_copy(exec, model.emit, emit);

  const bellman::HmmObservations observations{Kokkos::View<signed char**, Kokkos::LayoutRight, ExecutionSpace>(
      view_alloc(exec, WithoutInitializing, "bellman_examples::observations"), 1, sequence.size())};
  const auto host_observations = Kokkos::create_mirror_view(observations.symbols);
  const auto encoded = encode(sequence, file.symbols);
  for (std::size_t t = 0; t < encoded.size(); ++t) host_observations(0, t) = encoded[t];
  Kokkos::deep_copy(exec, observations.symbols, host_observations);

  const Kokkos::View<std::byte*, ExecutionSpace> workspace(
      view_alloc(exec, WithoutInitializing, "bellman_examples::workspace"),
      bellman::hmm_log_likelihood_workspace_size<Real>(exec, states, symbols, sequence.size()));
  const Kokkos::View<Real*, ExecutionSpace> log_likelihood(
      view_alloc(exec, WithoutInitializing, "bellman_examples::log_likelihood"), 1);
  const Kokkos::View<bellman::Status*, ExecutionSpace> statuses(
      view_alloc(exec, WithoutInitializing, "bellman_examples::statuses"), 1);
  bellman::hmm_log_likelihood(exec, model, observations, log_likelihood, {.normalised = true}, statuses, workspace);

  const auto host_log_likelihood = Kokkos::create_mirror_view(log_likelihood);
  const auto host_statuses = Kokkos::create_mirror_view(statuses);
  Kokkos::deep_copy(exec, host_log_likelihood, log_likelihood);
  Kokkos::deep_copy(exec, host_statuses, statuses);
  exec.fence("bellman_examples::score_sequence::result");
  return {host_log_likelihood(0), host_statuses(0)};
}

}  // namespace bellman_examples

#endif
