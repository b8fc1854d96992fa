// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bellman/accuracy.hpp>
#include <bellman/hmm.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "reference/reference.hpp"
#include "support/configurations.hpp"
#include "support/near.hpp"
#include "support/random.hpp"

namespace bellman {
namespace {

using namespace support;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

using Model = reference::HmmModel;
using Symbols = std::vector<std::int64_t>;

Model random_model(std::size_t states, std::size_t symbols, std::uint64_t seed, double scale = 1) {
  return {states, symbols, normal_values(states, seed, scale), normal_values(states * states, seed + 1, scale),
          normal_values(states * symbols, seed + 2, scale)};
}

/// A model given by probabilities, as logits.
Model model_of(std::size_t states, std::size_t symbols, const std::vector<double>& init,
               const std::vector<double>& trans, const std::vector<double>& emit) {
  Model model{states, symbols, init, trans, emit};
  for (auto* values : {&model.log_init, &model.log_trans, &model.log_emit}) {
    for (double& value : *values) value = std::log(value);
  }
  return model;
}

/// The same model with states added that nothing leads to, so that a sweep for more states takes it.
Model padded(const Model& model, std::size_t states) {
  const std::size_t old = model.states;
  Model larger{states, model.symbols, std::vector<double>(states, -inf), std::vector<double>(states * states, -inf),
               std::vector<double>(states * model.symbols, 0)};
  for (std::size_t i = 0; i < states; ++i) {
    if (i < old) larger.log_init[i] = model.log_init[i];
    for (std::size_t j = 0; j < old; ++j) larger.log_trans[i * states + j] = i < old ? model.log_trans[i * old + j] : 0;
    for (std::size_t o = 0; i < old && o < model.symbols; ++o) {
      larger.log_emit[i * model.symbols + o] = model.log_emit[i * model.symbols + o];
    }
  }
  return larger;
}

/// Reference case W.
Model case_w() { return model_of(2, 3, {.6, .4}, {.7, .3, .2, .8}, {.5, .4, .1, .1, .3, .6}); }

struct Batch {
  std::size_t size;
  std::size_t steps;
  Symbols symbols;
  std::optional<Symbols> lengths = {};
  bool normalised = false;
};

struct Evaluated {
  std::vector<double> value;
  std::vector<Status> status;
};

/// Evaluates a batch on every instance of the space; all have to agree bitwise. Symbols are given as Symbol.
template <class Config, class Symbol = std::int32_t>
Evaluated evaluate(const Model& model, const Batch& batch) {
  using Real = typename Config::Real;
  using Space = typename Config::Space;
  const std::size_t states = model.states;
  typename Config::template Array<Real, 1> init({states}, model.log_init);
  typename Config::template Array<Real, 2> trans({states, states}, model.log_trans);
  typename Config::template Array<Real, 2> emit({states, model.symbols}, model.log_emit);
  typename Config::template Array<Symbol, 2> symbols({batch.size, batch.steps}, batch.symbols);
  typename Config::template Array<std::int16_t, 1> lengths({batch.size},
                                                           batch.lengths.value_or(Symbols(batch.size, 0)));
  const HmmModel parameters{init.view(), trans.view(), emit.view()};
  const HmmOptions options{batch.normalised};

  Evaluated result;
  for (const auto& exec : instances<Space>()) {
    const std::size_t bytes = hmm_log_likelihood_workspace_size<Real>(exec, states, model.symbols, batch.steps);
    const Kokkos::View<std::byte*, typename Space::memory_space> workspace("workspace", bytes);
    typename Config::template Array<Real, 1> output({batch.size});
    typename Config::template Array<Status, 1> statuses({batch.size});
    if (batch.lengths) {
      hmm_log_likelihood(exec, parameters, HmmObservations{symbols.view(), lengths.view()}, output.view(), options,
                         statuses.view(), workspace);
    } else {
      hmm_log_likelihood(exec, parameters, HmmObservations{symbols.view()}, output.view(), options, statuses.view(),
                         workspace);
    }
    exec.fence();
    const auto values = output.values();
    const Evaluated now{{values.begin(), values.end()}, statuses.values()};
    EXPECT_TRUE(output.padding_is_untouched());
    EXPECT_TRUE(statuses.padding_is_untouched());
    for (std::size_t b = 0; b < result.value.size(); ++b) {
      EXPECT_TRUE(near(now.value[b], result.value[b], 0)) << "instances differ";
      EXPECT_EQ(now.status[b], result.status[b]);
    }
    result = now;
  }
  return result;
}

template <class Real>
double expected_value(const Model& model, const Batch& batch, std::size_t b) {
  const Model given{model.states, model.symbols, rounded<Real>(model.log_init), rounded<Real>(model.log_trans),
                    rounded<Real>(model.log_emit)};
  const std::size_t length = batch.lengths ? batch.lengths->at(b) : batch.steps;
  const std::span<const std::int64_t> symbols(batch.symbols.data() + b * batch.steps, length);
  return batch.normalised ? reference::hmm_log_likelihood(given, symbols)
                          : reference::hmm_log_likelihood_of_logits(given, symbols);
}

/// Evaluates a batch and compares it with the reference on the same rounded model, within the documented bound.
template <class Config, class Symbol = std::int32_t>
void expect_reference(const Model& model, const Batch& batch) {
  using Real = typename Config::Real;
  const auto got = evaluate<Config, Symbol>(model, batch);
  for (std::size_t b = 0; b < batch.size; ++b) {
    const double expected = expected_value<Real>(model, batch, b);
    EXPECT_TRUE(near(got.value[b], expected, log_likelihood_error_bound<Real>(expected)))
        << "sequence " << b << ", S " << model.states << ", O " << model.symbols << ", T " << batch.steps;
    const bool is_empty = batch.steps == 0 || (batch.lengths && batch.lengths->at(b) == 0);
    EXPECT_EQ(got.status[b], is_empty ? Status::empty : expected == -inf ? Status::impossible : Status::ok);
  }
}

template <class Config>
class HmmLogLikelihood : public testing::Test {};
TYPED_TEST_SUITE(HmmLogLikelihood, AllConfigurations);

TYPED_TEST(HmmLogLikelihood, EqualsReferenceForEverySize) {
  for (const std::size_t states : {1, 2, 3, 16, 31, 32, 33, 64}) {
    for (const std::size_t steps : {1, 2, 9, 40}) {
      const std::size_t symbols = states % 7 + 1;
      const Batch batch{5, steps, uniform_integers(5 * steps, states + steps, 0, symbols - 1)};
      expect_reference<TypeParam>(random_model(states, symbols, 10 * states), batch);
    }
  }
}

TYPED_TEST(HmmLogLikelihood, TakesNormalisedModels) {
  const Model model = reference::normalised(random_model(6, 5, 21));
  expect_reference<TypeParam>(model, {4, 30, uniform_integers(120, 22, 0, 4), {}, true});
}

/// Log-probabilities are used as they are: rows need not sum to 1, and densities may pass 1.
TYPED_TEST(HmmLogLikelihood, TakesDensities) {
  Model model = reference::normalised(random_model(4, 3, 23));
  for (double& value : model.log_emit) value += 30;
  expect_reference<TypeParam>(model, {4, 30, uniform_integers(120, 24, 0, 2), {}, true});
  for (double& value : model.log_emit) value += 900;
  expect_reference<TypeParam>(model, {4, 30, uniform_integers(120, 24, 0, 2), {}, true});
}

TYPED_TEST(HmmLogLikelihood, NothingToDo) {
  EXPECT_TRUE(evaluate<TypeParam>(case_w(), {0, 4, {}}).value.empty());
  expect_reference<TypeParam>(case_w(), {3, 0, {}});
}

/// Beyond its length nothing of a sequence is read: a bad symbol there is not seen.
TYPED_TEST(HmmLogLikelihood, LengthsCutSequences) {
  const std::size_t steps = 12;
  auto symbols = uniform_integers(4 * steps, 27, 0, 2);
  const Symbols lengths{12, 5, 0, 1};
  for (std::size_t b = 0; b < 4; ++b) {
    for (std::size_t t = lengths[b]; t < steps; ++t) symbols[b * steps + t] = 99;
  }
  expect_reference<TypeParam>(random_model(5, 3, 28), {4, steps, symbols, lengths});
  // The same as a shorter batch, bitwise.
  const auto padded = evaluate<TypeParam>(random_model(5, 3, 28), {4, steps, symbols, lengths});
  const Symbols short_one(symbols.begin() + steps, symbols.begin() + steps + 5);
  EXPECT_EQ(evaluate<TypeParam>(random_model(5, 3, 28), {1, 5, short_one}).value[0], padded.value[1]);
}

/// Sequences that share a thread end at different steps, and some of them climb the ladder: each is as it would be alone.
TYPED_TEST(HmmLogLikelihood, LengthsOfEverySize) {
  const Symbols lengths{700, 1, 255, 0, 256, 257, 2, 513, 512, 3, 700, 31, 258};
  const std::size_t steps = 700, batch = lengths.size();
  for (const double scale : {1.0, 15.0}) {
    const Model model = random_model(9, 4, 40, scale);
    const auto symbols = uniform_integers(batch * steps, 41, -1, 3);
    expect_reference<TypeParam>(model, {batch, steps, symbols, lengths});
    const auto together = evaluate<TypeParam>(model, {batch, steps, symbols, lengths});
    for (const std::size_t b : {1, 5, 7}) {
      const Symbols own(symbols.begin() + b * steps, symbols.begin() + b * steps + lengths[b]);
      EXPECT_EQ(evaluate<TypeParam>(model, {1, own.size(), own}).value[0], together.value[b]) << b;
    }
  }
}

TYPED_TEST(HmmLogLikelihood, LengthOutOfRange) {
  const auto got = evaluate<TypeParam>(case_w(), {3, 2, {0, 1, 0, 1, 0, 1}, Symbols{-1, 3, 2}});
  EXPECT_TRUE(std::isnan(got.value[0]));
  EXPECT_EQ(got.status[0], Status::bad_length);
  EXPECT_TRUE(std::isnan(got.value[1]));
  EXPECT_EQ(got.status[1], Status::bad_length);
  EXPECT_EQ(got.status[2], Status::ok);
}

TYPED_TEST(HmmLogLikelihood, MissingSymbols) {
  auto symbols = uniform_integers(6 * 25, 29, -3, 4);
  for (std::size_t t = 0; t < 25; ++t) symbols[t] = -1;  // nothing observed: log-likelihood 0
  const Model model = random_model(7, 5, 30);
  expect_reference<TypeParam>(model, {6, 25, symbols});
}

TYPED_TEST(HmmLogLikelihood, BadSymbolStaysInItsSequence) {
  const std::size_t steps = 9;
  const auto clean = uniform_integers(4 * steps, 31, 0, 2);
  const Model model = random_model(3, 3, 32);
  const auto without = evaluate<TypeParam>(model, {4, steps, clean});
  for (const std::size_t place : {0, 4, 8}) {
    auto symbols = clean;
    symbols[2 * steps + place] = 3;
    const auto got = evaluate<TypeParam>(model, {4, steps, symbols});
    for (std::size_t b = 0; b < 4; ++b) {
      if (b == 2) {
        EXPECT_TRUE(std::isnan(got.value[b]));
        EXPECT_EQ(got.status[b], Status::bad_symbol);
      } else {
        EXPECT_EQ(got.value[b], without.value[b]);
        EXPECT_EQ(got.status[b], Status::ok);
      }
    }
  }
}

TYPED_TEST(HmmLogLikelihood, FindsTheFirstBadSymbol) {
  using Space = typename TypeParam::Space;
  auto values = uniform_integers(6 * 10, 33, -1, 4);
  typename TypeParam::template Array<std::uint64_t, 2> none({6, 10}, std::vector<std::int64_t>(60, 4));
  EXPECT_FALSE(first_bad_symbol(Space(), HmmObservations{none.view()}, 5).found);
  values[37] = 5;
  values[42] = 1000;
  typename TypeParam::template Array<std::int32_t, 2> some({6, 10}, values);
  const BadSymbol bad = first_bad_symbol(Space(), HmmObservations{some.view()}, 5);
  EXPECT_TRUE(bad.found);
  EXPECT_EQ(bad.sequence, 3u);
  EXPECT_EQ(bad.step, 7u);
  EXPECT_EQ(bad.symbol, 5);
  // Behind its length it does not count.
  typename TypeParam::template Array<std::int32_t, 1> lengths({6}, std::vector<std::int64_t>{10, 10, 10, 7, 10, 10});
  const BadSymbol next = first_bad_symbol(Space(), HmmObservations{some.view(), lengths.view()}, 5);
  EXPECT_TRUE(next.found);
  EXPECT_EQ(next.sequence, 4u);
  EXPECT_EQ(next.step, 2u);
  EXPECT_EQ(next.symbol, 1000);
  // An unsigned value beyond int64 is not taken for a missing one.
  typename TypeParam::template Array<std::uint64_t, 2> huge({1, 2}, std::vector<std::uint64_t>{1, ~std::uint64_t{0}});
  EXPECT_EQ(first_bad_symbol(Space(), HmmObservations{huge.view()}, 5).step, 1u);
  EXPECT_FALSE(first_bad_symbol(Space(), HmmObservations{some.view()}, 2000).found);
}

TYPED_TEST(HmmLogLikelihood, NanLogitMakesEveryResultNan) {
  for (const double bad : {nan, inf}) {
    for (int part = 0; part < 3; ++part) {
      for (const bool normalised : {false, true}) {
        Model model = reference::normalised(random_model(4, 3, 34));
        (part == 0 ? model.log_init : part == 1 ? model.log_trans : model.log_emit)[2] = bad;
        const auto got = evaluate<TypeParam>(model, {2, 4, Symbols{0, 1, 2, 0, 1, 1, 1, 1}, Symbols{4, 0}, normalised});
        EXPECT_TRUE(std::isnan(got.value[0]));
        EXPECT_EQ(got.status[0], Status::not_a_number);
        EXPECT_EQ(got.value[1], 0);
        EXPECT_EQ(got.status[1], Status::empty);
      }
    }
  }
}

TYPED_TEST(HmmLogLikelihood, StructuralZeros) {
  // Left to right; the value is worked by hand.
  const Model left_right = model_of(3, 2, {1, 0, 0}, {.5, .5, 0, 0, .5, .5, 0, 0, 1}, {.9, .1, .5, .5, .1, .9});
  const auto got = evaluate<TypeParam>(left_right, {1, 4, {0, 0, 1, 1}});
  EXPECT_TRUE(near(got.value[0], -1.57286493220, 3e-6));
  expect_reference<TypeParam>(left_right, {2, 6, {0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0}});
}

TYPED_TEST(HmmLogLikelihood, ImpossibleSequences) {
  // Two states that never change, each with a symbol of its own; a third symbol that nobody emits.
  const Model model{2, 3, {0, -inf}, {0, -inf, -inf, 0}, {0, -inf, -inf, -inf, 0, -inf}};
  const auto got = evaluate<TypeParam>(model, {3, 3, {0, 1, 0, 0, 0, 0, 0, 2, -1}, {}, true});
  EXPECT_EQ(got.value[0], -inf);
  EXPECT_EQ(got.status[0], Status::impossible);
  EXPECT_EQ(got.value[1], 0);
  EXPECT_EQ(got.status[1], Status::ok);
  EXPECT_EQ(got.value[2], -inf);
  EXPECT_EQ(got.status[2], Status::impossible);
  // A row without any way out.
  const Model dead{1, 1, {-inf}, {-inf}, {-inf}};
  expect_reference<TypeParam>(dead, {1, 3, {0, 0, 0}});
}

/// Without states no sequence is possible; without symbols only missing ones are.
TYPED_TEST(HmmLogLikelihood, NoStatesOrSymbols) {
  const auto no_states = evaluate<TypeParam>({0, 2, {}, {}, {}}, {2, 2, {0, 1, -1, 0}, Symbols{2, 0}});
  EXPECT_EQ(no_states.value[0], -inf);
  EXPECT_EQ(no_states.status[0], Status::impossible);
  EXPECT_EQ(no_states.value[1], 0);
  const auto no_symbols = evaluate<TypeParam>({2, 0, {0, 0}, {0, 0, 0, 0}, {}}, {2, 2, {-1, -1, -1, 0}});
  EXPECT_TRUE(near(no_symbols.value[0], 0, 1e-6));
  EXPECT_EQ(no_symbols.status[1], Status::bad_symbol);
}

TYPED_TEST(HmmLogLikelihood, DependsOnItsOwnSequenceAlone) {
  const auto symbols = uniform_integers(6 * 50, 35, 0, 4);
  const Model model = random_model(17, 5, 36, 2);
  const auto together = evaluate<TypeParam>(model, {6, 50, symbols});
  const auto alone = evaluate<TypeParam>(model, {1, 50, Symbols(symbols.begin() + 150, symbols.begin() + 200)});
  EXPECT_EQ(together.value[3], alone.value[0]);
}

TYPED_TEST(HmmLogLikelihood, HandWorkedCases) {
  using Real = typename TypeParam::Real;
  struct Row {
    Symbols symbols;
    double expected;
  };
  for (const Row& row : std::vector<Row>{{{0, 1, 2}, -3.2163789446696134},
                                         {{0, 1}, -2.0890879187316416},
                                         {{0}, -1.0788096613719298},
                                         {{0, -1, 2}, -2.1584847490202885}}) {
    const auto got = evaluate<TypeParam>(case_w(), {1, row.symbols.size(), row.symbols});
    EXPECT_TRUE(near(got.value[0], row.expected, log_likelihood_error_bound<Real>(row.expected)));
  }
  // The emission comes before the first transition: log .9802.
  const auto first =
      evaluate<TypeParam>(model_of(2, 2, {.99, .01}, {.01, .99, .01, .99}, {.99, .01, .01, .99}), {1, 1, {0}});
  EXPECT_TRUE(near(first.value[0], std::log(.9802), 1e-6));
}

template <class Config>
class HmmLogLikelihoodContiguous : public testing::Test {};
TYPED_TEST_SUITE(HmmLogLikelihoodContiguous, ContiguousConfigurations);

TYPED_TEST(HmmLogLikelihoodContiguous, TakesEveryIntegerType) {
  const Model model = random_model(3, 100, 25);
  const Batch batch{3, 17, uniform_integers(51, 26, 0, 99)};
  expect_reference<TypeParam, std::int8_t>(model, batch);
  expect_reference<TypeParam, std::int16_t>(model, batch);
  expect_reference<TypeParam, std::int64_t>(model, batch);
  expect_reference<TypeParam, std::uint8_t>(model, batch);
  expect_reference<TypeParam, std::uint16_t>(model, batch);
  expect_reference<TypeParam, std::uint32_t>(model, batch);
  expect_reference<TypeParam, std::uint64_t>(model, batch);
  expect_reference<TypeParam, long long>(model, batch);
}

/// Sequences that lie more than 2^31 elements apart. The memory between them is never touched.
TYPED_TEST(HmmLogLikelihoodContiguous, OffsetsBeyond32Bits) {
  using Real = typename TypeParam::Real;
  using Space = typename TypeParam::Space;
  using Memory = typename Space::memory_space;
  const std::size_t steps = 5, distance = (std::size_t{1} << 31) + 8;
  const Kokkos::View<std::int8_t*, Memory> memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, "memory"),
                                                  distance + steps);
  const Batch batch{2, steps, uniform_integers(2 * steps, 45, 0, 2)};
  for (std::size_t b = 0; b < 2; ++b) {
    const Kokkos::View<std::int8_t*, Kokkos::HostSpace> host("host", steps);
    for (std::size_t t = 0; t < steps; ++t) host(t) = static_cast<std::int8_t>(batch.symbols[b * steps + t]);
    Kokkos::deep_copy(Kokkos::subview(memory, std::make_pair(b * distance, b * distance + steps)), host);
  }
  const Kokkos::View<std::int8_t**, Kokkos::LayoutStride, Memory> symbols(memory.data(),
                                                                          Kokkos::LayoutStride(2, distance, steps, 1));
  const Model model = case_w();
  typename TypeParam::template Array<Real, 1> init({2}, model.log_init), output({2});
  typename TypeParam::template Array<Real, 2> trans({2, 2}, model.log_trans), emit({2, 3}, model.log_emit);
  hmm_log_likelihood(Space(), HmmModel{init.view(), trans.view(), emit.view()}, HmmObservations{symbols},
                     output.view());
  const auto got = output.values();
  for (std::size_t b = 0; b < 2; ++b) {
    const double expected = expected_value<Real>(model, batch, b);
    EXPECT_TRUE(near(static_cast<double>(got[b]), expected, log_likelihood_error_bound<Real>(expected)));
  }
}

/// Large batches are swept otherwise than small ones, on each rung of the ladder; it must not show in one bit.
TYPED_TEST(HmmLogLikelihoodContiguous, DoesNotDependOnTheSizeOfTheBatch) {
  const std::size_t many = 20000;
  for (const double scale : {1.0, 40.0, 1000.0}) {
    for (const std::size_t steps : {1, 2, 3, 70}) {
      const Model model = random_model(16, 7, 46, scale);
      const auto symbols = uniform_integers(3 * steps, 47 + steps, -1, 6);
      Symbols repeated;
      for (std::size_t b = 0; b < many; ++b) {
        const auto begin = symbols.begin() + b % 3 * steps;
        repeated.insert(repeated.end(), begin, begin + steps);
      }
      const auto few = evaluate<TypeParam>(model, {3, steps, symbols});
      const auto large = evaluate<TypeParam>(model, {many, steps, repeated});
      std::size_t differing = 0;
      for (std::size_t b = 0; b < many; ++b) differing += large.value[b] != few.value[b % 3];
      EXPECT_EQ(differing, 0u) << "scale " << scale << ", T " << steps;
    }
  }
}

/// Models beyond the range of the linear algebras. Each has to climb the ladder, and to keep the promised error.
TYPED_TEST(HmmLogLikelihoodContiguous, HostileModels) {
  struct Row {
    Model model;
    Batch batch;
  };
  std::vector<Row> rows;
  // States far behind the best one that are the only way on: the row maximum must not be taken out blindly.
  rows.push_back(
      {{2, 2, {0, 0}, {0, -1000, -1000, 0}, {0, -300, -110, 0}}, {2, 6, {0, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1, 0}}});
  // Sharp models.
  for (const double scale : {10.0, 30.0, 300.0, 1e4}) {
    rows.push_back({random_model(9, 6, 37, scale), {4, 60, uniform_integers(240, 38, 0, 5)}});
  }
  // Left to right with transitions of 1e-300.
  const double tiny = std::log(1e-300);
  rows.push_back({{3, 2, {0, -inf, -inf}, {0, tiny, -inf, -inf, 0, tiny, -inf, -inf, 0}, {0, -inf, -inf, 0, 0, -inf}},
                  {2, 6, {0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0}, {}, true}});
  // A state that is 1e-60 likely for long and later the only one alive.
  rows.push_back({model_of(2, 3, {1, 1e-60}, {1, 0, 0, 1}, {.5, .5, 0, .5, .25, .25}),
                  {1, 8, {0, 0, 0, 0, 0, 0, 2, 1}, {}, true}});
  // A state that falls behind step by step, beyond the range of float and then of double, until it is the only one
  // alive: no single weight is out of range.
  const Model falling = model_of(2, 3, {1, 1e-20}, {1, 0, 0, 1}, {.5, .5, 0, 1e-6, 1e-6, 1 - 2e-6});
  for (const std::size_t steps : {31, 301}) {
    Symbols symbols(steps, 0);
    symbols.back() = 2;
    rows.push_back({falling, {1, steps, symbols, {}, true}});
  }
  // Underflow of a whole step at once.
  const double half = std::log(.5);
  rows.push_back({{2, 1, {half, half}, {half, half, half, half}, {-800, -801}}, {1, 1, {0}, {}, true}});
  // -2e9 is a finite value like any other.
  rows.push_back({{2, 1, {-2e9, -2e9}, {0, 0, 0, 0}, {0, 0}}, {1, 1, {0}, {}, true}});

  for (const Row& row : rows) {
    expect_reference<TypeParam>(row.model, row.batch);
    expect_reference<TypeParam>(padded(row.model, 20), row.batch);
    if (row.batch.steps <= 31) expect_reference<TypeParam>(padded(row.model, 260), row.batch);
  }
}

/// Values of hostile models that are known without the reference.
TYPED_TEST(HmmLogLikelihoodContiguous, HostileModelsByHand) {
  using Real = typename TypeParam::Real;
  const auto behind = evaluate<TypeParam>({2, 2, {0, 0}, {0, -1000, -1000, 0}, {0, -300, -110, 0}}, {1, 2, {0, 1}});
  EXPECT_TRUE(near(behind.value[0], -110.693147, log_likelihood_error_bound<Real>(-110.693147) + 1e-6));
  const double half = std::log(.5);
  const auto sunk =
      evaluate<TypeParam>({2, 1, {half, half}, {half, half, half, half}, {-800, -801}}, {1, 1, {0}, {}, true});
  EXPECT_TRUE(near(sunk.value[0], -800.3798854930, log_likelihood_error_bound<Real>(-800.4)));
}

TYPED_TEST(HmmLogLikelihoodContiguous, LargeModels) {
  for (const std::size_t states : {65, 128, 257, 500}) {
    expect_reference<TypeParam>(random_model(states, 11, states), {3, 20, uniform_integers(60, 39, -1, 10)});
  }
  expect_reference<TypeParam>(random_model(4, 5000, 40), {3, 20, uniform_integers(60, 41, 0, 4999)});
}

/// Models on both sides of every border between sweeps and tiles, with sequences that end at different steps and symbols that
/// are missing.
TYPED_TEST(HmmLogLikelihoodContiguous, ManyStates) {
  for (const std::size_t states : {17, 33, 48, 64, 65, 96, 100, 256, 257, 352}) {
    for (const std::size_t steps : {1, 2, 3, 22}) {
      const Batch batch{7, steps, uniform_integers(7 * steps, states + steps, -1, 12),
                        uniform_integers(7, states + steps + 1, 0, static_cast<std::int64_t>(steps))};
      expect_reference<TypeParam>(random_model(states, 13, 10 * states), batch);
    }
  }
}

/// More states than are summed up at once.
TYPED_TEST(HmmLogLikelihoodContiguous, ThousandsOfStates) {
  expect_reference<TypeParam>(random_model(1100, 5, 50), {2, 6, uniform_integers(12, 51, 0, 4)});
}

/// Each sequence has its own status, in every sweep of many states.
TYPED_TEST(HmmLogLikelihoodContiguous, StatusesOfManyStates) {
  const std::size_t steps = 6;
  for (const std::size_t states : {20, 300}) {
    auto symbols = uniform_integers(8 * steps, 52, 0, 3);
    symbols[2 * steps + 5] = symbols[3 * steps + 2] = symbols[7 * steps] = 4;
    const Symbols lengths{6, -1, 5, 6, 0, 7, 1, 6};
    Model model = random_model(states, 4, 53);
    const auto got = evaluate<TypeParam>(model, {8, steps, symbols, lengths});
    const std::vector<Status> expected{Status::ok,    Status::bad_length, Status::ok, Status::bad_symbol,
                                       Status::empty, Status::bad_length, Status::ok, Status::bad_symbol};
    EXPECT_EQ(got.status, expected) << "S " << states;
    const Batch valid{8, steps, symbols, Symbols{6, 0, 5, 0, 0, 0, 1, 0}};
    for (const std::size_t b : {0, 2, 6}) {
      const double value = expected_value<typename TypeParam::Real>(model, valid, b);
      EXPECT_TRUE(near(got.value[b], value, log_likelihood_error_bound<typename TypeParam::Real>(value)));
    }
    for (const std::size_t b : {1, 3, 5, 7}) EXPECT_TRUE(std::isnan(got.value[b]));
    EXPECT_EQ(got.value[4], 0);

    model.log_emit[2] = nan;
    const auto with_nan = evaluate<TypeParam>(model, {8, steps, symbols, lengths});
    EXPECT_EQ(with_nan.status[0], Status::not_a_number);
    EXPECT_TRUE(std::isnan(with_nan.value[0]));
    EXPECT_EQ(with_nan.status[4], Status::empty);
  }
}

/// Sequences that share a tile or a chunk with few others and with many, and that climb while others do not.
TYPED_TEST(HmmLogLikelihoodContiguous, ManyStatesDoNotDependOnTheSizeOfTheBatch) {
  struct Row {
    std::size_t states;
    std::size_t many;  // more than fill a tile, or a chunk of sequences
    std::size_t steps;
    double scale;
  };
  for (const Row& row : std::vector<Row>{{20, 13001, 1, 1},
                                         {20, 13001, 11, 1},
                                         {20, 13001, 3, 40},
                                         {64, 4801, 5, 1},
                                         {96, 3201, 4, 8},
                                         {257, 1001, 2, 1},
                                         {257, 1001, 5, 10}}) {
    const Model model = random_model(row.states, 7, 54, row.scale);
    const auto symbols = uniform_integers(5 * row.steps, 55, -1, 6);
    const Symbols lengths = uniform_integers(5, 56, 0, static_cast<std::int64_t>(row.steps));
    Symbols repeated, repeated_lengths;
    for (std::size_t b = 0; b < row.many; ++b) {
      const auto begin = symbols.begin() + static_cast<std::ptrdiff_t>(b % 5 * row.steps);
      repeated.insert(repeated.end(), begin, begin + static_cast<std::ptrdiff_t>(row.steps));
      repeated_lengths.push_back(lengths[b % 5]);
    }
    const auto few = evaluate<TypeParam>(model, {5, row.steps, symbols, lengths});
    const auto large = evaluate<TypeParam>(model, {row.many, row.steps, repeated, repeated_lengths});
    std::size_t differing = 0;
    for (std::size_t b = 0; b < row.many; ++b) {
      differing += large.value[b] != few.value[b % 5] || large.status[b] != few.status[b % 5];
    }
    EXPECT_EQ(differing, 0u) << "S " << row.states << ", T " << row.steps << ", scale " << row.scale;
  }
}

TYPED_TEST(HmmLogLikelihoodContiguous, LongSequences) {
  expect_reference<TypeParam>(random_model(5, 4, 42), {2, 20000, uniform_integers(40000, 43, 0, 3)});
  expect_reference<TypeParam>(case_w(), {1, 100000, uniform_integers(100000, 44, 0, 2)});
}

/// Where every symbol is nearly certain, the bound is small while the steps are many.
TYPED_TEST(HmmLogLikelihoodContiguous, LongSequencesOfSmallLikelihood) {
  const Model model = model_of(2, 2, {.5, .5}, {.999, .001, .002, .998}, {.9999, .0001, .9998, .0002});
  expect_reference<TypeParam>(model, {1, 50000, Symbols(50000, 0)});
}

/// From so many steps on GPUs cut a sequence into blocks, done at the same time.
constexpr std::size_t long_steps = 65536;

/// Lengths around those that blocks, groups of them and the cut itself end at, more sequences than are taken at a time, and
/// missing symbols.
TYPED_TEST(HmmLogLikelihoodContiguous, BlocksOfSteps) {
  for (const std::size_t states : {2, 5}) {
    const Model model = random_model(states, 4, 50 + states, 2);
    for (const std::size_t steps : {long_steps - 1, long_steps, long_steps + 129}) {
      expect_reference<TypeParam>(model, {1, steps, uniform_integers(steps, 51 + steps, -1, 3)});
      const Symbols lengths{0, 1, 2, 129, 130, 8193, 8194, 20000, 3, 4, 5, 6, 7, 8, 9, 10, 11, 257};
      expect_reference<TypeParam>(
          model, {lengths.size(), steps, uniform_integers(lengths.size() * steps, 52 + steps, -1, 3), lengths});
    }
  }
  // More steps than one pass takes.
  const std::size_t steps = 8192 * 128 + 130;
  expect_reference<TypeParam>(case_w(), {1, steps, uniform_integers(steps, 52, 0, 2)});
}

TYPED_TEST(HmmLogLikelihoodContiguous, BlocksOfStepsWithAllStates) {
  const Model model = random_model(16, 9, 53);
  expect_reference<TypeParam>(model, {1, long_steps, uniform_integers(long_steps, 54, 0, 8)});
}

TYPED_TEST(HmmLogLikelihoodContiguous, BlocksDependOnTheirOwnSequenceAlone) {
  const std::size_t many = 20, steps = long_steps + 70;
  const Model model = random_model(7, 5, 55);
  const auto symbols = uniform_integers(many * steps, 56, 0, 4);
  const auto together = evaluate<TypeParam>(model, {many, steps, symbols});
  for (const std::size_t b : {0, 3, 19}) {
    const auto begin = symbols.begin() + b * steps;
    EXPECT_EQ(together.value[b], evaluate<TypeParam>(model, {1, steps, Symbols(begin, begin + steps)}).value[0]);
  }
}

TYPED_TEST(HmmLogLikelihoodContiguous, BlocksKeepStatuses) {
  const std::size_t steps = long_steps;
  const Model model = random_model(3, 3, 57);
  for (const std::size_t place : {std::size_t{0}, std::size_t{1}, std::size_t{40000}, steps - 1}) {
    auto symbols = uniform_integers(4 * steps, 58, 0, 2);
    symbols[steps + place] = 3;
    const auto got = evaluate<TypeParam>(model, {4, steps, symbols});
    EXPECT_EQ(got.status[0], Status::ok);
    EXPECT_EQ(got.status[1], Status::bad_symbol);
    EXPECT_TRUE(std::isnan(got.value[1]));
    EXPECT_EQ(got.status[2], Status::ok);
    // Beyond its length nothing of a sequence is read.
    const auto cut = evaluate<TypeParam>(model, {4, steps, symbols, Symbols{-1, 30000, 1, 0}});
    EXPECT_EQ(cut.status[0], Status::bad_length);
    EXPECT_EQ(cut.status[1], place < 30000 ? Status::bad_symbol : Status::ok);
    EXPECT_EQ(cut.status[2], Status::ok);
    EXPECT_EQ(cut.status[3], Status::empty);
  }
  Model broken = model;
  broken.log_trans[4] = nan;
  const auto got = evaluate<TypeParam>(broken, {2, steps, Symbols(2 * steps, 0), Symbols{20000, 0}});
  EXPECT_EQ(got.status[0], Status::not_a_number);
  EXPECT_EQ(got.status[1], Status::empty);
  // Two states that never change, each with a symbol of its own.
  const Model split{2, 2, {0, 0}, {0, -inf, -inf, 0}, {0, -inf, -inf, 0}};
  Symbols symbols(2 * steps, 1);
  symbols[steps + 50000] = 0;
  const auto impossible = evaluate<TypeParam>(split, {2, steps, symbols, {}, true});
  EXPECT_EQ(impossible.value[0], 0);
  EXPECT_EQ(impossible.status[1], Status::impossible);
}

TYPED_TEST(HmmLogLikelihoodContiguous, HostileModelsInBlocks) {
  const std::size_t steps = long_steps;
  // Left to right with transitions of 1e-300, the first of them early.
  const double tiny = std::log(1e-300);
  const Model left_right{
      3, 2, {0, -inf, -inf}, {0, tiny, -inf, -inf, 0, tiny, -inf, -inf, 0}, {0, -inf, -inf, 0, 0, -inf}};
  Symbols symbols(steps, 0);
  for (std::size_t t = 100; t < 60000; ++t) symbols[t] = 1;
  expect_reference<TypeParam>(left_right, {1, steps, symbols, {}, true});
  // A state that is 1e-60 likely for long and later the only one alive.
  Symbols late(steps, 0);
  late[steps - 100] = 2;
  expect_reference<TypeParam>(model_of(2, 3, {1, 1e-60}, {1, 0, 0, 1}, {.5, .5, 0, .5, .25, .25}),
                              {1, steps, late, {}, true});
  // A state that falls behind step by step until it is the only one alive: within a block, and over many.
  const Model falling = model_of(2, 3, {.5, .5}, {1, 0, 0, 1}, {.5, .5, 0, 1e-6, 1 - 2e-6, 1e-6});
  for (const std::size_t behind : {20, 90, 5000}) {
    Symbols falls(steps, 1);
    for (std::size_t t = 30000; t < 30000 + behind; ++t) falls[t] = 0;
    falls[steps - 1] = 2;
    expect_reference<TypeParam>(falling, {1, steps, falls, {}, true});
  }
  // Left to right without anything unlikely, and sharp models.
  expect_reference<TypeParam>(model_of(3, 2, {1, 0, 0}, {.5, .5, 0, 0, .5, .5, 0, 0, 1}, {.9, .1, .5, .5, .1, .9}),
                              {1, steps, uniform_integers(steps, 59, 0, 1)});
  expect_reference<TypeParam>(random_model(4, 3, 60, 30), {1, steps, uniform_integers(steps, 61, 0, 2)});
}

TYPED_TEST(HmmLogLikelihood, RefusesWhatDoesNotFit) {
  using Real = typename TypeParam::Real;
  const typename TypeParam::Space exec;
  typename TypeParam::template Array<Real, 1> init({3}), output({2}), longer({3});
  typename TypeParam::template Array<Real, 2> trans({3, 3}), narrow({3, 4}), emit({3, 5}), short_emit({2, 5});
  typename TypeParam::template Array<int, 2> symbols({2, 7});
  typename TypeParam::template Array<int, 1> lengths({3});
  const auto message = [&](const auto& model, const auto& observations, const auto& result) -> std::string {
    try {
      hmm_log_likelihood(exec, model, observations, result);
    } catch (const ShapeError& error) {
      return error.what();
    } catch (const AliasError& error) {
      return std::string("alias: ") + error.what();
    }
    return "nothing was thrown";
  };
  const HmmModel model{init.view(), trans.view(), emit.view()};
  const HmmObservations observations{symbols.view()};
  EXPECT_EQ(message(HmmModel{init.view(), narrow.view(), emit.view()}, observations, output.view()),
            "bellman::hmm_log_likelihood: view \"trans\" has extent(1) = 4, expected 3 (S = init.extent(0))");
  EXPECT_EQ(message(HmmModel{init.view(), trans.view(), short_emit.view()}, observations, output.view()),
            "bellman::hmm_log_likelihood: view \"emit\" has extent(0) = 2, expected 3 (S = init.extent(0))");
  EXPECT_EQ(
      message(model, observations, longer.view()),
      "bellman::hmm_log_likelihood: view \"log_likelihood\" has extent(0) = 3, expected 2 (B = symbols.extent(0))");
  EXPECT_EQ(message(model, HmmObservations{symbols.view(), lengths.view()}, output.view()),
            "bellman::hmm_log_likelihood: view \"lengths\" has extent(0) = 3, expected 2 (B = symbols.extent(0))");
  const Kokkos::View<Real*, Kokkos::LayoutStride, typename TypeParam::Space::memory_space> inside(
      init.view().data(), Kokkos::LayoutStride(2, 1));
  EXPECT_EQ(
      message(model, observations, inside),
      "alias: bellman::hmm_log_likelihood: output view \"log_likelihood\" shares memory with view \"init\"; give it "
      "memory of its own");
  for (const Real value : output.values()) EXPECT_TRUE(std::isnan(value));
}

TYPED_TEST(HmmLogLikelihoodContiguous, RefusesASmallWorkspace) {
  using Real = typename TypeParam::Real;
  using Space = typename TypeParam::Space;
  const Space exec;
  const std::size_t states = 200;
  typename TypeParam::template Array<Real, 1> init({states}), output({2});
  typename TypeParam::template Array<Real, 2> trans({states, states}), emit({states, 5});
  typename TypeParam::template Array<int, 2> symbols({2, 7});
  const std::size_t bytes = hmm_log_likelihood_workspace_size<Real>(exec, states, 5, 7);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(hmm_log_likelihood_workspace_size<Real>(exec, 4, 5, 7), 0u);
  const Kokkos::View<std::byte*, typename Space::memory_space> workspace("workspace", bytes - 1);
  const HmmModel model{init.view(), trans.view(), emit.view()};
  EXPECT_THROW(hmm_log_likelihood(exec, model, HmmObservations{symbols.view()}, output.view()), ShapeError);
  EXPECT_THROW(hmm_log_likelihood(exec, model, HmmObservations{symbols.view()}, output.view(), {}, {}, workspace),
               ShapeError);
  for (const Real value : output.values()) EXPECT_TRUE(std::isnan(value));
}

/// A constant added to a row of logits changes nothing, be it beyond the range of e^x in double, while its neighbours are
/// not, and whether a row is taken in one step or in several.
TYPED_TEST(HmmLogLikelihoodContiguous, RowsBeyondTheRangeOfExponentials) {
  for (const std::size_t states : {1, 5, 16}) {
    for (const std::size_t symbols : {3, 64, 65, 140}) {
      Model model = random_model(states, symbols, 70 + states, 2);
      const double constants[] = {0, 2000, -2000, 650, -720, 0, -690, 1e5};
      for (std::size_t i = 0; i < states; ++i) {
        for (std::size_t j = 0; j < states; ++j) model.log_trans[i * states + j] += constants[(i + 1) % 8];
        for (std::size_t o = 0; o < symbols; ++o) model.log_emit[i * symbols + o] += constants[i % 8];
        model.log_init[i] -= 3000;
      }
      model.log_emit[symbols - 1] = -inf;
      const int last = static_cast<int>(symbols) - 1;
      for (const std::size_t batch : {3, 300}) {
        const std::size_t steps = 9;
        expect_reference<TypeParam>(model, {batch, steps, uniform_integers(batch * steps, 71, -1, last)});
      }
    }
  }
}

/// Most transitions are structural zeros, and sequences that share a warp end at different steps.
TYPED_TEST(HmmLogLikelihoodContiguous, LeftRightModelsOfDozensOfStates) {
  const std::size_t batch = 19, steps = 30;
  for (const std::size_t states : {17, 32, 40, 64}) {
    for (const double scale : {1.0, 6.0}) {
      Model model = random_model(states, 5, 70 + states, scale);
      for (std::size_t i = 0; i < states; ++i) {
        if (i > 0) model.log_init[i] = -inf;
        for (std::size_t j = 0; j < states; ++j) {
          if (j < i || j > i + 3) model.log_trans[i * states + j] = -inf;
        }
        if (i % 3 == 1) model.log_emit[i * 5] = -inf;
      }
      const Batch sequences{batch, steps, uniform_integers(batch * steps, 71 + states, -1, 4),
                            uniform_integers(batch, 72 + states, 0, static_cast<std::int64_t>(steps))};
      expect_reference<TypeParam>(model, sequences);
    }
  }
}

}  // namespace
}  // namespace bellman
