// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_UNIT_TESTS_SUPPORT_CASE_FILE_HPP
#define BELLMAN_UNIT_TESTS_SUPPORT_CASE_FILE_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "reference/reference.hpp"

/// \brief Case files: inputs of an operation, and optionally what must come out, in YAML.
///
/// A file holds one case (a mapping), or several as `cases: [{name: first, operation: ...}, ...]`. Keys by operation:
///
///     smith_waterman      batch rows columns gap temperature scores
///                         expected: score (batch), score_gradient (batch,rows,columns)
///     hmm_log_likelihood  batch length states symbols log_init log_trans log_emit observations
///                         [normalised] [lengths (batch)]
///                         expected: log_likelihood (batch), log_init_gradient, log_trans_gradient, log_emit_gradient
///     masked_sum|mean|min|max|count   ranks columns values, and one of: mask (ranks,columns), lengths (ranks)
///                         expected: sum|mean|min|max|count (columns)
///     every operation     [name] [tolerance] [expected]
///                         [repeat] [goal]: for bellman_perf; all others ignore them
///
/// repeat: bellman_perf copies the problems so many times. goal: what it must measure, see Goal:
///
///     goal: {metric: time_us, in_graph: true, at_most: 3.0, backend: Cuda, type: float}
///
/// Arrays are flat and row-major; `-.inf`, `.inf` and `.nan` are legal reals; a mask holds 0/1 or false/true. An input
/// array may be drawn instead of listed. The stream is that of std::mt19937_64 seeded with `seed`, afresh for each
/// array, and u = (draw >> 11) 2^-53 is uniform in [0,1):
///
///     {random: normal, seed: 7, scale: 1.0}             reals: Box-Muller on pairs u, v of the stream,
///                                                       scale sqrt(-2 log(1 - u)) cos(2 pi v), then the same with sin
///     {random: uniform, seed: 7}                        integers: draw mod n; observations n = symbols,
///                                                       lengths n = their largest legal value + 1
///     {random: bernoulli, seed: 7, probability: 0.5}    mask: u < probability
///
/// Integers and masks are the same on every platform, reals up to the last bits of the C library's log, cos and sin.
namespace bellman::support {

/// \brief what() is `file:line:column: sentence`, counted from 1, or `file: cannot be opened: reason`.
class CaseFileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct SmithWatermanCase {
  struct Expected {
    std::optional<std::vector<double>> score;
    std::optional<std::vector<double>> score_gradient;  ///< of the sum of the scores
  };
  std::size_t batch = 0;
  std::size_t rows = 0;
  std::size_t columns = 0;
  double gap = 0;
  double temperature = 0;
  std::vector<double> scores;
  Expected expected;
};

struct HmmCase {
  struct Expected {
    std::optional<std::vector<double>> log_likelihood;
    std::optional<std::vector<double>> log_init_gradient;  ///< gradients of the sum of the log-likelihoods
    std::optional<std::vector<double>> log_trans_gradient;
    std::optional<std::vector<double>> log_emit_gradient;
  };
  std::size_t batch = 0;
  std::size_t length = 0;
  reference::HmmModel model;
  bool normalised = false;  ///< false: the model is logits
  std::vector<std::int64_t> observations;
  std::optional<std::vector<std::int64_t>> lengths;  ///< each in [0, length]
  Expected expected;
};

struct MaskedReduceCase {
  reference::Reduction reduction = reference::Reduction::sum;
  std::size_t ranks = 0;
  std::size_t columns = 0;
  std::vector<double> values;
  std::vector<std::uint8_t> mask;                    ///< 0 or 1; empty where lengths are given instead
  std::optional<std::vector<std::int64_t>> lengths;  ///< each in [0, columns]
  std::optional<std::vector<double>> expected;
};

/// \brief What bellman_perf must measure of a case, on which backend and in which type.
///
///     metric              unit                                           limit      backend
///     time_us             microseconds of a call                         at_most    any
///     cells/s             cells of a call over its time                  at_least   any
///     read_share          bytes that must be read over time, relative    at_least   any
///                         to the measured read rate
///     fma_share           multiply-adds over time, relative to the       at_least   any
///                         measured rate
///     submit_us           microseconds of submitting a call, above       at_most    Cuda
///                         those of a raw launch
///     speed_up_per_core   over the serial reference in double, on        at_least   Serial, OpenMP
///                         one thread
///     scaling_at_2        time on one thread over twice that on two      at_least   OpenMP
///
/// in_graph: true makes the first four those of a call within a CUDA graph.
struct Goal {
  enum class Metric { time, cell_rate, read_share, fma_share, submit_time, speed_up_per_core, scaling_at_2 };

  Metric metric = Metric::time;
  bool in_graph = false;
  bool is_upper_limit = true;  ///< at_most; else at_least
  double limit = 0;            ///< positive and finite
  std::string backend;         ///< Serial, OpenMP or Cuda
  bool is_double = false;
};

struct Case {
  std::string name;  ///< as given; else the file's stem, with #1, #2, ... where the file holds several
  std::string file;
  std::string operation;
  std::optional<double> tolerance;
  std::size_t repeat = 1;    ///< for bellman_perf; at least 1
  std::optional<Goal> goal;  ///< for bellman_perf
  std::variant<SmithWatermanCase, HmmCase, MaskedReduceCase> problem;
};

/// \brief The cases of a file, every size, key, type and array length checked.
/// \throws CaseFileError
std::vector<Case> read_case_file(const std::string& file);

/// \brief As read_case_file, of a text in memory; \p file is the name used in messages.
/// \throws CaseFileError
std::vector<Case> parse_case_file(const std::string& text, const std::string& file);

}  // namespace bellman::support

#endif
