// SPDX-License-Identifier: Apache-2.0
#include "workload.hpp"

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <bellman/bellman.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "arithmetic_probe.hpp"
#include "baselines/hmm_forward.hpp"
#include "baselines/masked_reduce.hpp"
#include "baselines/smith_waterman.hpp"
#include "graph_time.hpp"
#include "launch_probe.hpp"
#include "memory_probe.hpp"
#include "reference/reference.hpp"

namespace bellman::perf {
namespace {

template <class T, class ExecutionSpace>
using Flat = Kokkos::View<T*, Kokkos::LayoutRight, ExecutionSpace>;

/// An array (outer, count, inner) whose middle axis becomes repeat times as long.
struct Repetition {
  std::int64_t outer = 1;
  std::int64_t count = 1;
  std::int64_t inner = 1;
  std::int64_t repeat = 1;
  bool consecutive = false;  ///< each entry repeat times in turn; else the whole axis again and again

  KOKKOS_FUNCTION std::int64_t source(std::int64_t k) const { return consecutive ? k / repeat : k % count; }
  std::int64_t size() const { return outer * count * repeat * inner; }
};

template <class T, class ExecutionSpace>
struct CopyRepeatedly {
  Repetition repetition;
  Flat<const T, ExecutionSpace> from;
  Flat<T, ExecutionSpace> to;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto& r = repetition;
    const std::int64_t k = i / r.inner % (r.count * r.repeat);
    const std::int64_t o = i / (r.inner * r.count * r.repeat);
    to(i) = from((o * r.count + r.source(k)) * r.inner + i % r.inner);
  }
};

/// Copies values to the memory of the space, as T, and repeats them there: no host array of the full size is needed.
template <class T, class ExecutionSpace, class From>
Flat<T, ExecutionSpace> upload(const ExecutionSpace& exec, const std::vector<From>& values,
                               const Repetition& repetition) {
  std::vector<T> converted(values.size());
  std::ranges::transform(values, converted.begin(), [](From value) { return static_cast<T>(value); });
  const Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> host(converted.data(),
                                                                                                converted.size());
  const auto allocate = [&](std::int64_t size) {
    return Flat<T, ExecutionSpace>(Kokkos::view_alloc(exec, Kokkos::WithoutInitializing, "bellman::perf::input"), size);
  };
  auto uploaded = allocate(static_cast<std::int64_t>(values.size()));
  Kokkos::deep_copy(exec, uploaded, host);
  if (repetition.repeat > 1) {
    const auto repeated = allocate(repetition.size());
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("bellman::perf::repeat", Policy(exec, 0, repetition.size()),
                         CopyRepeatedly<T, ExecutionSpace>{repetition, uploaded, repeated});
    uploaded = repeated;
  }
  exec.fence("bellman::perf::upload");  // the host array ends here
  return uploaded;
}

template <class T, class ExecutionSpace, class From>
Flat<T, ExecutionSpace> upload(const ExecutionSpace& exec, const std::vector<From>& values) {
  return upload<T>(exec, values, {.count = static_cast<std::int64_t>(values.size())});
}

/// What is the same for every operation.
template <class ExecutionSpace, class Real>
class WorkloadOn : public Workload {
 public:
  WorkloadOn(std::size_t count, std::size_t repeat, bool consecutive)
      : repetition_{.count = static_cast<std::int64_t>(count),
                    .repeat = static_cast<std::int64_t>(repeat),
                    .consecutive = consecutive},
        out_(Kokkos::view_alloc(exec_, "bellman::perf::results"), count * repeat) {}

  std::optional<double> graph_seconds() override {
    return perf::graph_seconds(exec_, [this] { this->launch(); });
  }
  std::optional<double> graph_seconds_of_baseline() override {
    constexpr double longest = 5e-3;  // what a submission costs does not show beside it, and baselines are slow
    return perf::graph_seconds(
        exec_, [this] { this->launch_baseline(); }, longest);
  }

  std::optional<Submission> submission() override {
    return measure_submission(exec_, [this] { this->launch(); });
  }

  void use_threads(int threads) override {
#ifdef KOKKOS_ENABLE_OPENMP
    if constexpr (std::is_same_v<ExecutionSpace, Kokkos::OpenMP>) {
      exec_ = threads == 0 ? Kokkos::OpenMP() : Kokkos::OpenMP(threads);
    }
#endif
    (void)threads;
  }

  double bytes_written() const override { return static_cast<double>(out_.size() * sizeof(Real)); }

  void fence() override { exec_.fence("bellman::perf"); }

  std::vector<double> results() override {
    const Kokkos::View<Real*, Kokkos::HostSpace> host(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, "bellman::perf::results"), out_.extent(0));
    Kokkos::deep_copy(exec_, host, out_);
    exec_.fence("bellman::perf::results");
    return std::vector<double>(host.data(), host.data() + host.extent(0));
  }

  std::size_t source(std::size_t k) const override {
    return static_cast<std::size_t>(repetition_.source(static_cast<std::int64_t>(k)));
  }
  std::size_t first_copy(std::size_t source) const override {
    return repetition_.consecutive ? source * static_cast<std::size_t>(repetition_.repeat) : source;
  }

 protected:
  Repetition repetition(std::size_t outer, std::size_t inner) const {
    Repetition result = repetition_;
    result.outer = static_cast<std::int64_t>(outer);
    result.inner = static_cast<std::int64_t>(inner);
    return result;
  }
  double repeats() const { return static_cast<double>(repetition_.repeat); }

  ExecutionSpace exec_;
  Repetition repetition_;
  Flat<Real, ExecutionSpace> out_;
};

template <class ExecutionSpace, class Real>
class SmithWatermanWorkload : public WorkloadOn<ExecutionSpace, Real> {
  using Base = WorkloadOn<ExecutionSpace, Real>;
  using Base::exec_;
  using Base::out_;
  using Baseline = baselines::SmithWaterman<ExecutionSpace, Real>;

 public:
  SmithWatermanWorkload(const SmithWatermanCase& problem, std::size_t repeat)
      : Base(problem.batch, repeat, false),
        options_{.gap = problem.gap, .temperature = problem.temperature},
        data_(upload<Real>(exec_, problem.scores, this->repetition(1, problem.rows * problem.columns))),
        scores_(data_.data(), problem.batch * repeat, problem.rows, problem.columns),
        workspace_(Kokkos::view_alloc(exec_, Kokkos::WithoutInitializing, "bellman::perf::workspace"),
                   smith_waterman_score_workspace_size<Real>(exec_, problem.batch * repeat, problem.rows,
                                                             problem.columns, options_)) {}

  void launch() override { smith_waterman_score(exec_, scores_, out_, options_, {}, workspace_); }

  void launch_baseline() override {
    if (!baseline_) baseline_.emplace(exec_, scores_, out_, options_);
    baseline_->launch(exec_);
  }

  double cells() const override { return static_cast<double>(scores_.size()); }
  double bytes() const override { return cells() * sizeof(Real); }
  double operations() const override { return 3 * cells(); }

 private:
  SmithWatermanOptions options_;
  Flat<Real, ExecutionSpace> data_;
  typename Baseline::Scores scores_;
  Flat<std::byte, ExecutionSpace> workspace_;
  std::optional<Baseline> baseline_;
};

template <class ExecutionSpace, class Real>
class HmmWorkload : public WorkloadOn<ExecutionSpace, Real> {
  using Base = WorkloadOn<ExecutionSpace, Real>;
  using Base::exec_;
  using Base::out_;
  using Baseline = baselines::HmmForward<ExecutionSpace, Real>;

 public:
  HmmWorkload(const HmmCase& problem, std::size_t repeat)
      : Base(problem.batch, repeat, false),
        options_{.normalised = problem.normalised},
        model_(exec_, problem.model),
        host_model_(problem.model),
        symbol_data_(upload<std::int32_t>(exec_, int32_symbols(problem), this->repetition(1, problem.length))),
        symbols_(symbol_data_.data(), problem.batch * repeat, problem.length),
        workspace_(Kokkos::view_alloc(exec_, Kokkos::WithoutInitializing, "bellman::perf::workspace"),
                   hmm_log_likelihood_workspace_size<Real>(exec_, problem.model.states, problem.model.symbols,
                                                           problem.length)) {
    steps_ = static_cast<double>(problem.batch * problem.length);
    if (problem.lengths) {
      lengths_ = upload<std::int64_t>(exec_, *problem.lengths, this->repetition(1, 1));
      steps_ = std::accumulate(problem.lengths->begin(), problem.lengths->end(), 0.0);
    }
  }

  void launch() override {
    const HmmModel model{model_.init, model_.trans, model_.emit};
    if (lengths_.is_allocated()) {
      hmm_log_likelihood(exec_, model, HmmObservations{symbols_, lengths_}, out_, options_, {}, workspace_);
    } else {
      hmm_log_likelihood(exec_, model, HmmObservations{symbols_}, out_, options_, {}, workspace_);
    }
  }

  void launch_baseline() override {
    if (!baseline_) {
      normalised_model_.emplace(exec_, options_.normalised ? host_model_ : reference::normalised(host_model_));
      baseline_.emplace(normalised_model_->init, normalised_model_->trans, normalised_model_->emit, symbols_, lengths_,
                        out_);
    }
    baseline_->launch(exec_);
  }

  double cells() const override {
    const auto states = static_cast<double>(host_model_.states);
    return this->repeats() * steps_ * states * states;
  }
  double bytes() const override {
    const auto parameters = host_model_.log_init.size() + host_model_.log_trans.size() + host_model_.log_emit.size();
    return this->repeats() * steps_ * sizeof(std::int32_t) + static_cast<double>(parameters * sizeof(Real)) +
           static_cast<double>(lengths_.size() * sizeof(std::int64_t));
  }
  double operations() const override { return cells(); }

 private:
  struct Model {
    Model(const ExecutionSpace& exec, const reference::HmmModel& model)
        : init(upload<Real>(exec, model.log_init)),
          trans_data(upload<Real>(exec, model.log_trans)),
          emit_data(upload<Real>(exec, model.log_emit)),
          trans(trans_data.data(), model.states, model.states),
          emit(emit_data.data(), model.states, model.symbols) {}

    typename Baseline::Vector init;
    Flat<Real, ExecutionSpace> trans_data;
    Flat<Real, ExecutionSpace> emit_data;
    typename Baseline::Matrix trans;
    typename Baseline::Matrix emit;
  };

  /// A symbol beyond 32 bits stays what it means, missing or out of range.
  static std::vector<std::int64_t> int32_symbols(const HmmCase& problem) {
    auto symbols = problem.observations;
    const std::int64_t largest = std::numeric_limits<std::int32_t>::max();
    for (auto& symbol : symbols) symbol = std::clamp(symbol, std::int64_t{-1}, largest);
    return symbols;
  }

  HmmOptions options_;
  Model model_;
  reference::HmmModel host_model_;
  Flat<std::int32_t, ExecutionSpace> symbol_data_;
  typename Baseline::Symbols symbols_;
  typename Baseline::Lengths lengths_;
  Kokkos::View<std::byte*, ExecutionSpace> workspace_;
  double steps_ = 0;
  std::optional<Model> normalised_model_;
  std::optional<Baseline> baseline_;
};

Reduction library_reduction(reference::Reduction reduction) {
  switch (reduction) {
    case reference::Reduction::sum: return Reduction::sum;
    case reference::Reduction::mean: return Reduction::mean;
    case reference::Reduction::min: return Reduction::min;
    case reference::Reduction::max: return Reduction::max;
    case reference::Reduction::count: return Reduction::count;
  }
  return Reduction::sum;
}

/// Valid is the view that says which cells are: a mask (R,S) of bytes, or lengths (R).
///
/// Repeated columns follow each other where lengths are given, which are then that many times as long.
template <class ExecutionSpace, class Real, class Valid>
class MaskedReduceWorkload : public WorkloadOn<ExecutionSpace, Real> {
  using Base = WorkloadOn<ExecutionSpace, Real>;
  using Base::exec_;
  using Base::out_;
  using Baseline = baselines::MaskedReduce<ExecutionSpace, Real, Valid>;
  using ValidElement = typename Valid::non_const_value_type;
  static constexpr bool by_length = Valid::rank == 1;

 public:
  MaskedReduceWorkload(const MaskedReduceCase& problem, std::size_t repeat)
      : Base(problem.columns, repeat, by_length),
        options_{.reduction = library_reduction(problem.reduction)},
        data_(upload<Real>(exec_, problem.values, this->repetition(problem.ranks, 1))),
        values_(data_.data(), problem.ranks, problem.columns * repeat) {
    double valid_cells = static_cast<double>(values_.size());
    if constexpr (by_length) {
      auto lengths = *problem.lengths;
      for (auto& length : lengths) length *= static_cast<std::int64_t>(repeat);
      valid_data_ = upload<ValidElement>(exec_, lengths);
      valid_ = Valid(valid_data_.data(), problem.ranks);
      valid_cells = std::accumulate(lengths.begin(), lengths.end(), 0.0);
    } else {
      valid_data_ = upload<ValidElement>(exec_, problem.mask, this->repetition(problem.ranks, 1));
      valid_ = Valid(valid_data_.data(), problem.ranks, problem.columns * repeat);
    }
    bytes_ = valid_cells * sizeof(Real) + static_cast<double>(valid_data_.size() * sizeof(ValidElement));
  }

  void launch() override { masked_reduce(exec_, values_, valid_, out_, options_); }

  void launch_baseline() override { Baseline(values_, valid_, out_, options_.reduction).launch(exec_); }

  double cells() const override { return static_cast<double>(values_.size()); }
  double bytes() const override { return bytes_; }
  double operations() const override { return cells(); }

 private:
  MaskedReduceOptions options_;
  Flat<Real, ExecutionSpace> data_;
  typename Baseline::Values values_;
  Flat<ValidElement, ExecutionSpace> valid_data_;
  Valid valid_;
  double bytes_ = 0;
};

template <class ExecutionSpace, class Real>
std::unique_ptr<Workload> make_workload_of(const SmithWatermanCase& problem, std::size_t repeat) {
  return std::make_unique<SmithWatermanWorkload<ExecutionSpace, Real>>(problem, repeat);
}

template <class ExecutionSpace, class Real>
std::unique_ptr<Workload> make_workload_of(const HmmCase& problem, std::size_t repeat) {
  return std::make_unique<HmmWorkload<ExecutionSpace, Real>>(problem, repeat);
}

template <class ExecutionSpace, class Real>
std::unique_ptr<Workload> make_workload_of(const MaskedReduceCase& problem, std::size_t repeat) {
  using Mask = Kokkos::View<const std::uint8_t**, Kokkos::LayoutRight, ExecutionSpace>;
  using Lengths = Kokkos::View<const std::int64_t*, Kokkos::LayoutRight, ExecutionSpace>;
  if (problem.lengths) return std::make_unique<MaskedReduceWorkload<ExecutionSpace, Real, Lengths>>(problem, repeat);
  return std::make_unique<MaskedReduceWorkload<ExecutionSpace, Real, Mask>>(problem, repeat);
}

template <class ExecutionSpace>
std::unique_ptr<Workload> make_workload(const Case& a_case, RealType type, std::size_t repeat) {
  return std::visit(
      [&](const auto& problem) {
        return type == RealType::float_type ? make_workload_of<ExecutionSpace, float>(problem, repeat)
                                            : make_workload_of<ExecutionSpace, double>(problem, repeat);
      },
      a_case.problem);
}

template <class ExecutionSpace>
Roofs measure_roofs() {
  return {.read_rate = measure_read_rate<ExecutionSpace>(),
          .float_fma_rate = measure_fma_rate<ExecutionSpace, float>(),
          .double_fma_rate = measure_fma_rate<ExecutionSpace, double>(),
          .empty_launch = measure_empty_launch<ExecutionSpace>()};
}

template <class ExecutionSpace>
Backend backend_of(bool is_device, const std::string& hardware) {
  return {.name = ExecutionSpace::name(),
          .is_device = is_device,
          .threads = ExecutionSpace().concurrency(),
          .hardware = hardware,
          .make_workload = &make_workload<ExecutionSpace>,
          .measure_roofs = &measure_roofs<ExecutionSpace>,
          .evict_cache = &evict_cache<ExecutionSpace>};
}

std::string version(int major, int minor, int patch) {
  return std::to_string(major) + '.' + std::to_string(minor) + '.' + std::to_string(patch);
}

}  // namespace

bool has_baseline(const Case& a_case) {
  if (const auto* hmm = std::get_if<HmmCase>(&a_case.problem)) {
    const auto end = static_cast<std::int64_t>(hmm->model.symbols);
    return std::ranges::all_of(hmm->observations, [&](std::int64_t symbol) { return symbol < end; });
  }
  return true;
}

std::vector<Backend> backends() {
  std::vector<Backend> all;
#ifdef KOKKOS_ENABLE_SERIAL
  all.push_back(backend_of<Kokkos::Serial>(false, "1 thread"));
#endif
#ifdef KOKKOS_ENABLE_OPENMP
  const int threads = Kokkos::OpenMP().concurrency();
  all.push_back(backend_of<Kokkos::OpenMP>(false, std::to_string(threads) + (threads == 1 ? " thread" : " threads")));
#endif
#ifdef KOKKOS_ENABLE_CUDA
  all.push_back(backend_of<Kokkos::Cuda>(true, Kokkos::Cuda().cuda_device_prop().name));
#endif
  return all;
}

std::string kokkos_version() {
  return version(KOKKOS_VERSION / 10000, KOKKOS_VERSION / 100 % 100, KOKKOS_VERSION % 100);
}

std::string bellman_version() { return version(BELLMAN_VERSION_MAJOR, BELLMAN_VERSION_MINOR, BELLMAN_VERSION_PATCH); }

}  // namespace bellman::perf
