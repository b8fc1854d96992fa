// SPDX-License-Identifier: Apache-2.0
#include "reference/reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#ifdef __FAST_MATH__
#error "the reference relies on NaN and infinity: compile it without -ffast-math"
#endif

namespace bellman::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// size == first * second, without forming a product that may overflow.
bool is_product(std::size_t size, std::size_t first, std::size_t second) {
  if (first == 0 || second == 0) return size == 0;
  return size % first == 0 && size / first == second;
}

void require(bool condition, const std::string& function, const std::string& sentence) {
  if (!condition) throw std::invalid_argument("bellman::reference::" + function + ": " + sentence);
}

/// Neumaier's sum: what each addition rounds away is kept and added at the end.
template <class Real>
class CompensatedSum {
 public:
  void add(Real x) {
    const Real next = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - next) + x : (x - next) + sum_;
    sum_ = next;
  }
  // Once the sum is inf or NaN, what was lost is inf - inf.
  Real value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  Real sum_ = 0;
  Real lost_ = 0;
};

/// a + b, where forbidden (-inf) stays forbidden even against +inf.
double extend(double a, double b) { return a == -infinity || b == -infinity ? -infinity : a + b; }

/// t log sum_k e^(x_k / t), exact maximum at t = 0; no x is NaN, and one is finite or +inf.
double soft_max(const std::array<double, 4>& x, double t) {
  const auto largest = std::max_element(x.begin(), x.end());
  if (t == 0 || *largest == infinity) return *largest;
  double others = 0;
  for (auto k = x.begin(); k != x.end(); ++k) {
    // Divide: for t below 1e-308, 1/t would be infinite and 0 * inf NaN.
    if (k != largest) others += std::exp((*k - *largest) / t);
  }
  return *largest + t * std::log1p(others);
}

/// log sum_k e^x_k; no x is NaN or +inf.
template <class Real>
Real log_sum_exp(std::span<const Real> x) {
  constexpr Real forbidden = -std::numeric_limits<Real>::infinity();
  const Real largest = x.empty() ? forbidden : *std::max_element(x.begin(), x.end());
  if (largest == forbidden) return forbidden;
  Real sum = 0;
  for (const Real value : x) sum += std::exp(value - largest);
  return largest + std::log(sum);
}

std::vector<long double> log_softmax(std::span<const double> logits, std::size_t columns) {
  std::vector<long double> out(logits.size());
  for (std::size_t row = 0; row < logits.size(); row += columns) {
    const auto x = logits.subspan(row, columns);
    const auto y = std::span(out).subspan(row, columns);
    if (std::any_of(x.begin(), x.end(), [](double value) { return std::isnan(value) || value == infinity; })) {
      std::fill(y.begin(), y.end(), not_a_number);
      continue;
    }
    const double largest = *std::max_element(x.begin(), x.end());
    if (largest == -infinity) {
      std::fill(y.begin(), y.end(), -infinity);
      continue;
    }
    // The largest logit goes first: next to a logit of 1e3, the log of a probability near 1 would drown.
    std::transform(x.begin(), x.end(), y.begin(),
                   [&](double value) { return static_cast<long double>(value) - largest; });
    const long double log_sum = log_sum_exp<long double>(y);
    for (long double& value : y) value -= log_sum;
  }
  return out;
}

/// A model in the type that it is computed in.
template <class Real>
struct ModelIn {
  std::size_t states;
  std::size_t symbols;
  std::vector<Real> log_init;
  std::vector<Real> log_trans;
  std::vector<Real> log_emit;
};

template <class Real>
ModelIn<Real> model_in(const HmmModel& model) {
  return {model.states,
          model.symbols,
          {model.log_init.begin(), model.log_init.end()},
          {model.log_trans.begin(), model.log_trans.end()},
          {model.log_emit.begin(), model.log_emit.end()}};
}

ModelIn<long double> wide_normalised(const HmmModel& logits) {
  return {logits.states, logits.symbols, log_softmax(logits.log_init, logits.states),
          log_softmax(logits.log_trans, logits.states), log_softmax(logits.log_emit, logits.symbols)};
}

void require_shape(const HmmModel& model, const std::string& function) {
  require(model.log_init.size() == model.states, function, "log_init does not have states values");
  require(is_product(model.log_trans.size(), model.states, model.states), function,
          "log_trans does not have states * states values");
  require(is_product(model.log_emit.size(), model.states, model.symbols), function,
          "log_emit does not have states * symbols values");
}

template <class Real>
double forward(const ModelIn<Real>& model, std::span<const std::int64_t> observations) {
  if (observations.empty()) return 0;
  const auto is_no_log_probability = [](Real value) { return std::isnan(value) || value == infinity; };
  for (const auto* values : {&model.log_init, &model.log_trans, &model.log_emit}) {
    if (std::any_of(values->begin(), values->end(), is_no_log_probability)) return not_a_number;
  }
  const auto is_bad = [&](std::int64_t symbol) {
    return symbol >= 0 && static_cast<std::uint64_t>(symbol) >= model.symbols;
  };
  if (std::any_of(observations.begin(), observations.end(), is_bad)) return not_a_number;

  const std::size_t states = model.states;
  const auto emission = [&](std::size_t state, std::int64_t symbol) -> Real {
    return symbol < 0 ? 0 : model.log_emit[state * model.symbols + static_cast<std::size_t>(symbol)];
  };
  std::vector<Real> alpha(model.log_init);
  for (std::size_t j = 0; j < states; ++j) alpha[j] += emission(j, observations[0]);

  // alpha is kept relative to its own sum, and the logs of those sums are added up apart: the states that matter stay
  // near 0, however long the sequence.
  CompensatedSum<Real> log_likelihood;
  std::vector<Real> next(states);
  std::vector<Real> arrivals(states);
  for (std::size_t step = 1;; ++step) {
    const Real log_sum = log_sum_exp<Real>(alpha);
    if (log_sum == -infinity) return -infinity;
    log_likelihood.add(log_sum);
    if (step == observations.size()) return static_cast<double>(log_likelihood.value());
    for (std::size_t j = 0; j < states; ++j) {
      for (std::size_t i = 0; i < states; ++i) arrivals[i] = (alpha[i] - log_sum) + model.log_trans[i * states + j];
      next[j] = log_sum_exp<Real>(arrivals) + emission(j, observations[step]);
    }
    std::swap(alpha, next);
  }
}

double reduce_column(Reduction reduction, const std::vector<double>& valid) {
  const auto count = static_cast<double>(valid.size());
  if (reduction == Reduction::count) return count;
  if (std::any_of(valid.begin(), valid.end(), [](double value) { return std::isnan(value); })) return not_a_number;
  if (reduction == Reduction::min) return valid.empty() ? infinity : *std::min_element(valid.begin(), valid.end());
  if (reduction == Reduction::max) return valid.empty() ? -infinity : *std::max_element(valid.begin(), valid.end());
  CompensatedSum<double> sum;
  for (const double value : valid) sum.add(value);
  if (reduction == Reduction::sum) return sum.value();
  return valid.empty() ? not_a_number : sum.value() / count;
}

}  // namespace

double smith_waterman_score(std::span<const double> scores, std::size_t rows, std::size_t columns, double gap,
                            double temperature) {
  require(is_product(scores.size(), rows, columns), __func__, "scores does not have rows * columns values");
  require(std::isfinite(temperature) && temperature >= 0, __func__, "temperature is not finite and >= 0");
  if (scores.empty()) return 0;
  if (std::isnan(gap) || std::any_of(scores.begin(), scores.end(), [](double value) { return std::isnan(value); })) {
    return not_a_number;
  }
  double score = 0;
  std::vector<double> above(columns + 1, 0.0);
  std::vector<double> current(columns + 1, 0.0);
  for (std::size_t i = 1; i <= rows; ++i) {
    for (std::size_t j = 1; j <= columns; ++j) {
      const double s = scores[(i - 1) * columns + (j - 1)];
      current[j] =
          soft_max({0.0, extend(above[j - 1], s), extend(above[j], gap), extend(current[j - 1], gap)}, temperature);
      score = std::max(score, current[j]);
    }
    std::swap(above, current);
  }
  return score;
}

std::vector<double> smith_waterman_scores(std::span<const double> scores, std::size_t batch, std::size_t rows,
                                          std::size_t columns, double gap, double temperature) {
  require(rows == 0 || columns == 0 ? scores.empty()
                                    : scores.size() % columns == 0 && is_product(scores.size() / columns, batch, rows),
          __func__, "scores does not have batch * rows * columns values");
  std::vector<double> out(batch);
  for (std::size_t b = 0; b < batch; ++b) {
    const auto problem = scores.subspan(b * rows * columns, rows * columns);
    out[b] = smith_waterman_score(problem, rows, columns, gap, temperature);
  }
  return out;
}

HmmModel normalised(const HmmModel& logits) {
  require_shape(logits, __func__);
  const auto wide = wide_normalised(logits);
  const auto rounded = [](const std::vector<long double>& values) {
    std::vector<double> out(values.size());
    std::transform(values.begin(), values.end(), out.begin(), [](long double x) { return static_cast<double>(x); });
    return out;
  };
  return {logits.states, logits.symbols, rounded(wide.log_init), rounded(wide.log_trans), rounded(wide.log_emit)};
}

double hmm_log_likelihood(const HmmModel& normalised_model, std::span<const std::int64_t> observations) {
  require_shape(normalised_model, __func__);
  return forward(model_in<long double>(normalised_model), observations);
}

double hmm_log_likelihood_in_double(const HmmModel& normalised_model, std::span<const std::int64_t> observations) {
  require_shape(normalised_model, __func__);
  return forward(model_in<double>(normalised_model), observations);
}

double hmm_log_likelihood_of_logits(const HmmModel& logits, std::span<const std::int64_t> observations) {
  require_shape(logits, __func__);
  return forward(wide_normalised(logits), observations);
}

std::vector<double> masked_reduce(Reduction reduction, std::span<const double> values,
                                  std::span<const std::uint8_t> mask, std::size_t ranks, std::size_t columns) {
  require(is_product(values.size(), ranks, columns), __func__, "values does not have ranks * columns values");
  require(is_product(mask.size(), ranks, columns), __func__, "mask does not have ranks * columns values");
  std::vector<double> out(columns);
  std::vector<double> valid;
  for (std::size_t column = 0; column < columns; ++column) {
    valid.clear();
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      if (mask[rank * columns + column] != 0) valid.push_back(values[rank * columns + column]);
    }
    out[column] = reduce_column(reduction, valid);
  }
  return out;
}

std::vector<std::uint8_t> mask_from_lengths(std::span<const std::int64_t> lengths, std::size_t ranks,
                                            std::size_t columns) {
  require(lengths.size() == ranks, __func__, "lengths does not have ranks values");
  std::vector<std::uint8_t> mask(ranks * columns);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::size_t column = 0; column < columns; ++column) {
      mask[rank * columns + column] = static_cast<std::int64_t>(column) < lengths[rank] ? 1 : 0;
    }
  }
  return mask;
}

}  // namespace bellman::reference
