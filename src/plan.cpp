// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bellman/accuracy.hpp>
#include <bellman/impl/algebra.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/block_sweep.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <bellman/impl/hmm_tables.hpp>
#include <bellman/impl/hmm_tile_sizes.hpp>
#include <bellman/impl/host_kernels.hpp>
#include <bellman/impl/masked_reduce.hpp>
#include <bellman/impl/matrix_sweep.hpp>
#include <bellman/impl/pipeline_sweep.hpp>
#include <bellman/impl/smith_waterman.hpp>
#include <bellman/plan.hpp>
#include <cmath>
#include <ostream>

namespace bellman {

const char* to_string(Rung rung) {
  switch (rung) {
    case Rung::linear_float: return "Linear<float>";
    case Rung::linear_mixed: return "Linear<double, float>";
    case Rung::linear_double: return "Linear<double>";
    case Rung::log_double: return "LogSumExp";
    case Rung::max_float: return "MaxPlus<float>";
    case Rung::max_double: return "MaxPlus<double>";
  }
  return "unknown rung";
}

const char* to_string(ScratchLevel level) { return level == ScratchLevel::fast ? "fast" : "large"; }

const char* to_string(AlignmentSweep sweep) {
  switch (sweep) {
    case AlignmentSweep::tiles: return "tiles";
    case AlignmentSweep::staged: return "staged tiles";
    case AlignmentSweep::strips: return "strips";
    case AlignmentSweep::pipeline: return "a pipeline of blocks";
    case AlignmentSweep::packs: return "packs";
  }
  return "unknown sweep";
}

const char* to_string(HmmSweep sweep) {
  switch (sweep) {
    case HmmSweep::matrices: return "a few lanes per direction";
    case HmmSweep::lanes: return "a lane per state";
    case HmmSweep::packs: return "a SIMD lane per state";
    case HmmSweep::blocks: return "blocks of steps at the same time";
    case HmmSweep::chain: return "states shared by a team";
    case HmmSweep::tensors: return "products on tensor cores";
    case HmmSweep::tiles: return "tiles of sequences and states";
    case HmmSweep::steps: return "a launch per step";
  }
  return "unknown sweep";
}

std::ostream& operator<<(std::ostream& stream, const AlignmentPlan& plan) {
  stream << to_string(plan.first) << " up to " << to_string(plan.last) << ", " << to_string(plan.sweep) << " of "
         << plan.lanes << " lanes per problem, " << plan.rows_per_lane << " rows per lane, " << plan.scratch_bytes
         << " bytes of " << to_string(plan.scratch_level) << " scratch";
  if (plan.sweep == AlignmentSweep::tiles || plan.sweep == AlignmentSweep::pipeline) {
    stream << ", at most " << plan.most_teams << " teams";
  }
  if (plan.workspace_bytes > 0) stream << ", " << plan.workspace_bytes << " bytes of workspace";
  if (plan.sweep == AlignmentSweep::packs) stream << ", " << plan.problems_per_thread << " problems side by side";
  return stream;
}

std::ostream& operator<<(std::ostream& stream, const HmmPlan& plan) {
  stream << to_string(plan.first) << " up to " << to_string(plan.last) << ", " << to_string(plan.sweep) << ", "
         << plan.league_size << " teams of " << plan.team_threads << " threads, model in "
         << (plan.model_in_scratch ? "scratch" : "the workspace") << ", " << plan.scratch_bytes << " bytes of "
         << to_string(plan.scratch_level) << " scratch, " << plan.workspace_bytes << " bytes of workspace";
  if (plan.sweep == HmmSweep::tensors || plan.sweep == HmmSweep::tiles || plan.sweep == HmmSweep::steps) {
    stream << "; " << plan.tiles.sequences << " sequences together";
  }
  if (plan.sweep == HmmSweep::tensors || plan.sweep == HmmSweep::tiles) {
    stream << ", " << plan.tiles.league_size << " teams of " << plan.tiles.team_threads << " threads, "
           << plan.tiles.scratch_bytes << " bytes of scratch";
  }
  return stream;
}

std::ostream& operator<<(std::ostream& stream, const MaskedReducePlan& plan) {
  if (plan.team_per_column) return stream << "a team of " << plan.team_threads << " threads per column";
  if (plan.block > 1) return stream << "a thread per " << plan.block << " neighbouring columns";
  return stream << (plan.packs ? "a thread per pack of neighbouring columns" : "a thread per column");
}

namespace impl {
namespace {

ScratchLevel level_for(const Backend& backend, std::size_t bytes) {
  return bytes <= backend.fast_scratch_bytes ? ScratchLevel::fast : ScratchLevel::large;
}

void check_options(const SmithWatermanOptions& options) {
  constexpr const char* function = "bellman::smith_waterman_score";
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    throw_option(function, "temperature", options.temperature, "a finite number >= 0");
  }
  if (std::isnan(options.gap) || options.gap == infinity<double>()) {
    throw_option(function, "gap", options.gap, "a finite number or -inf");
  }
}

/// The rungs of a score. MaxPlus<float> is provably within the bound only while its M + N roundings are.
std::pair<Rung, Rung> alignment_rungs(bool is_double, std::size_t rows, std::size_t columns,
                                      const SmithWatermanOptions& options) {
  if (options.temperature == 0) {
    const double worst_error = static_cast<double>(rows + columns) * roundoff<float>();
    const Rung rung = !is_double && worst_error <= 0.9 * score_tolerance<float> ? Rung::max_float : Rung::max_double;
    return {rung, rung};
  }
  if (!is_double && Linear<float>::is_usable(options.temperature, options.gap)) {
    // Scores of the size of t give H/t of about the shorter side, and float holds 150.
    return {std::min(rows, columns) <= 96 ? Rung::linear_float : Rung::linear_mixed, Rung::log_double};
  }
  if (Linear<double>::is_usable(options.temperature, options.gap)) return {Rung::linear_double, Rung::log_double};
  return {Rung::log_double, Rung::log_double};
}

/// Multiprocessors of a GPU, from the threads that it runs at a time.
int multiprocessors_of(const Backend& backend) {
  constexpr int threads_of_multiprocessor = 2048;
  return std::max(1, backend.threads / threads_of_multiprocessor);
}

/// Whether many teams on each problem are quicker than a warp each. Times are in tenths of a microsecond, as measured on an
/// H200: 9 for a stage of the pipeline, 3 for a step of a warp, which has four columns of 128 rows.
bool is_for_pipeline(int multiprocessors, std::size_t rows, std::size_t columns, std::int64_t problems) {
  using Shape = FewLargeShape<float>;
  constexpr std::int64_t most_problems = 4096, most_blocks = 1 << 19, most_columns = std::int64_t{1} << 40;
  const auto blocks = pipeline_blocks(static_cast<std::int64_t>(rows));
  const auto width = static_cast<std::int64_t>(columns);
  if (problems < 1 || problems > most_problems || blocks < 1 || blocks > most_blocks || width < 1 ||
      width > most_columns) {
    return false;
  }
  const std::int64_t teams = std::int64_t{pipeline_teams_of_multiprocessor} * multiprocessors;
  const std::int64_t turns = (problems * blocks + teams - 1) / teams;
  const std::int64_t delay = Shape::strips * Shape::strip_delay;
  const std::int64_t stages = width / Shape::stage;
  const std::int64_t shared = 9 * std::max(stages + delay * blocks, turns * (stages + delay));
  const std::int64_t alone = 3 * blocks * (width / 4 + 32);
  return shared < alone;
}

}  // namespace

AlignmentPlan plan_smith_waterman(const Backend& backend, bool is_double, std::size_t rows, std::size_t columns,
                                  const SmithWatermanOptions& options, bool is_aligned, std::int64_t problems,
                                  bool has_workspace) {
  check_options(options);
  AlignmentPlan plan{};
  std::tie(plan.first, plan.last) = alignment_rungs(is_double, rows, columns, options);
  plan.lanes = backend.lanes;
  plan.problems_per_thread = 1;
  const auto lanes = static_cast<std::size_t>(backend.lanes);

  if (backend.register_bytes > 0 && plan.first != Rung::log_double && rows > 0 && columns > 0 &&
      columns <= most_pack_columns) {
    const bool is_float_rung = plan.first == Rung::linear_float || plan.first == Rung::max_float;
    plan.sweep = AlignmentSweep::packs;
    plan.rows_per_lane = 4;
    plan.problems_per_thread =
        backend.register_bytes / static_cast<int>(is_float_rung ? sizeof(float) : sizeof(double));
    plan.scratch_bytes = columns * static_cast<std::size_t>(backend.register_bytes) + most_register_bytes;
    plan.scratch_level = level_for(backend, plan.scratch_bytes);
    return plan;
  }
  if (lanes == 32 && has_workspace && is_for_pipeline(multiprocessors_of(backend), rows, columns, problems)) {
    plan.sweep = AlignmentSweep::pipeline;
    plan.rows_per_lane = FewLargeShape<float>::rows_per_lane;
    plan.scratch_level = ScratchLevel::fast;
    plan.scratch_bytes = (is_double ? FewLargeShape<double>::bytes<double, double>
                                    : FewLargeShape<float>::bytes<double, float>)+sizeof(std::uint32_t) +
                         alignment_slack;
    plan.most_teams = pipeline_teams_of_multiprocessor * multiprocessors_of(backend);
    plan.workspace_bytes =
        alignment_slack + PipelineMemory(nullptr, problems, pipeline_blocks(static_cast<std::int64_t>(rows)),
                                         static_cast<std::int64_t>(columns))
                              .bytes();
    return plan;
  }
  const Rung best = is_double ? Rung::linear_double : Rung::linear_mixed;
  const auto use_shape = [&](auto shape) {
    using Shape = decltype(shape);
    // 48 KB of shared memory a team, less what Kokkos needs of it.
    constexpr std::size_t most_bytes = 48 * 1024 - 256;
    const bool is_one_strip = rows <= static_cast<std::size_t>(Shape::strip_rows);
    const std::size_t chunk_columns = Shape::chunk_tiles * 16 / (is_double ? sizeof(double) : sizeof(float));
    const std::size_t row = std::max((columns + chunk_columns - 1) / chunk_columns * chunk_columns, lanes * 4);
    plan.lanes = Shape::lanes;
    plan.rows_per_lane = Shape::rows_per_lane;
    const std::size_t behind = (Shape::lanes - 2) * chunk_columns / Shape::chunk_tiles;
    plan.scratch_bytes = Shape::ring_bytes + alignment_slack +
                         (is_one_strip ? 0 : lanes / std::size_t{Shape::lanes} * (row - behind) * sizeof(double));
    return plan.scratch_bytes <= most_bytes;
  };
  const bool is_few = rows <= most_rows_few && plan.first != Rung::linear_mixed;
  const bool is_tall = rows >= least_rows_tall && plan.first == Rung::linear_mixed;
  const bool has_tiles = lanes == 32 && is_aligned && rows > 0 && columns > 0 && plan.first <= best;
  const int multiprocessors = multiprocessors_of(backend);
  constexpr int staged_per_multiprocessor = 4;
  const std::size_t staged_bytes = StagedShape::rows * columns * (is_double ? sizeof(double) : sizeof(float)) +
                                   staged_threads * 2 * sizeof(double) + alignment_slack;
  if (has_tiles && rows <= static_cast<std::size_t>(StagedShape::rows) && plan.first != Rung::linear_mixed &&
      problems <= staged_per_multiprocessor * multiprocessors && staged_bytes <= backend.fast_scratch_bytes) {
    plan.sweep = AlignmentSweep::staged;
    plan.lanes = StagedShape::lanes;
    plan.rows_per_lane = StagedShape::rows_per_lane;
    plan.scratch_level = ScratchLevel::fast;
    plan.scratch_bytes = staged_bytes;
    return plan;
  }
  if (has_tiles &&
      ((is_few && use_shape(FewRows())) || (is_tall && use_shape(TallStrips())) || use_shape(ManyRows()))) {
    plan.sweep = AlignmentSweep::tiles;
    plan.scratch_level = ScratchLevel::fast;
    plan.climb_bytes = rows <= 4 * lanes ? 0 : columns * sizeof(double);
    // As many teams as fit on the chip at a time, in equal numbers on each of the four schedulers of a multiprocessor.
    constexpr std::size_t scratch_of_multiprocessor = 227 * 1024, scratch_of_system = 1024 + 64;
    constexpr int schedulers = 4;
    const auto resident = static_cast<int>(scratch_of_multiprocessor / (plan.scratch_bytes + scratch_of_system));
    plan.most_teams = multiprocessors * (resident < schedulers ? resident : resident / schedulers * schedulers);
    return plan;
  }
  plan.sweep = AlignmentSweep::strips;
  plan.rows_per_lane = rows <= 2 * lanes ? 1 : 4;
  const bool is_one_strip = rows <= lanes * static_cast<std::size_t>(plan.rows_per_lane);
  plan.scratch_bytes = is_one_strip ? 0 : columns * sizeof(double);
  plan.scratch_level = level_for(backend, plan.scratch_bytes);
  return plan;
}

namespace {

/// Models that fit the registers of a few lanes of a GPU, or SIMD registers of a host.
HmmPlan plan_small_hmm(const Backend& backend, bool is_double, std::size_t batch, std::size_t symbols,
                       std::size_t steps) {
  HmmPlan plan{};
  plan.first = is_double ? Rung::linear_double : Rung::linear_float;
  plan.last = Rung::log_double;
  plan.model_in_scratch = true;
  const std::size_t model = is_double ? SmallModel<double>::bytes(symbols) : SmallModel<float>::bytes(symbols);
  plan.scratch_bytes = model + alignment_slack;
  if (backend.register_bytes > 0) {
    plan.sweep = HmmSweep::packs;
    plan.scratch_bytes = model + most_register_bytes;
    plan.team_threads = 1;
    // Each team normalises the model, so there is one a thread.
    plan.league_size = static_cast<std::int64_t>(std::min(batch, static_cast<std::size_t>(backend.threads)));
  } else {
    // A team of matrices takes all registers of a multiprocessor, and so goes through many sequences.
    const auto multiprocessors = static_cast<std::size_t>(multiprocessors_of(backend));
    if (steps >= static_cast<std::size_t>(BlockCut::fewest_steps)) {
      plan.sweep = HmmSweep::blocks;
      plan.scratch_bytes += sizeof(BlockProduct);
      plan.team_threads = BlockCut::team_threads;
      plan.league_size = static_cast<std::int64_t>(multiprocessors);
      plan.workspace_bytes = BlockWorkspace::bytes(BlockCut(static_cast<std::int64_t>(steps))) + alignment_slack;
    } else if (batch <= 2 * multiprocessors) {
      plan.sweep = HmmSweep::lanes;
      plan.scratch_bytes += is_double ? sizeof(LaneExchange<double>) : sizeof(LaneExchange<float>);
      plan.team_threads = 2 + 11;  // two go through the chain; of a model of 16 states 11 normalise a tile each
      plan.league_size = static_cast<std::int64_t>(batch);
    } else {
      plan.sweep = HmmSweep::matrices;
      plan.team_threads = 8;
      plan.league_size = static_cast<std::int64_t>(multiprocessors);
    }
  }
  plan.scratch_level = level_for(backend, plan.scratch_bytes);
  return plan;
}

/// Teams of products on tensor cores: as many warps as give each multiprocessor one team, if they are that few.
void plan_tensor_team(const Backend& backend, std::size_t batch, HmmTiles& tiles) {
  const auto multiprocessors = static_cast<std::size_t>(multiprocessors_of(backend));
  const std::size_t warps = (batch + tensor_sequences - 1) / tensor_sequences;
  const std::size_t team =
      std::clamp<std::size_t>((warps + multiprocessors - 1) / multiprocessors, 1, tensor_threads / 32);
  tiles.team_threads = static_cast<int>(team);
  tiles.sequences = static_cast<int>(team * tensor_sequences);
  tiles.weights_in_scratch = true;
  tiles.league_size = static_cast<std::int64_t>((warps + team - 1) / team);
}

/// The sweeps of many states on GPUs. All shapes of a tile add up in the same order: the batch may choose.
template <class Real>
void plan_state_tiles(const Backend& backend, std::size_t batch, std::size_t states, std::size_t symbols,
                      HmmPlan& plan) {
  const std::size_t stride = padded_states(states, is_float<Real>);
  const bool by_steps = states > most_states_of_a_tile;
  plan.sweep = by_steps ? HmmSweep::steps : HmmSweep::tiles;
  plan.first = is_float<Real> ? Rung::linear_float : Rung::linear_double;
  plan.model_in_scratch = false;
  plan.scratch_bytes = HmmVectors<double>::bytes(states);
  plan.scratch_level = level_for(backend, plan.scratch_bytes);
  // A climb is rare: its teams look after several sequences where there are many.
  plan.league_size = static_cast<std::int64_t>(batch < 1024 ? batch : std::max<std::size_t>(1024, batch / 64));
  plan.workspace_bytes = alignment_slack + tables_bytes_in_workspace(states, symbols) +
                         PaddedModel<Real>::bytes(states, stride, symbols, by_steps);
  if (by_steps) {
    const std::size_t sequences = step_tile * std::clamp<std::size_t>(8192 / stride, 4, 32);
    plan.tiles.sequences = static_cast<int>(sequences);
    plan.workspace_bytes += step_memory_bytes(sizeof(Real), stride, sequences);
    return;
  }
  if (is_float<Real> && states <= most_states_of_tensors) {
    plan.sweep = HmmSweep::tensors;
    plan_tensor_team(backend, batch, plan.tiles);
    plan.tiles.scratch_bytes = tensor_scratch_bytes(stride);
    return;
  }
  const auto scratch_of = [&](int sequences, bool with_weights) {
    return tile_scratch_bytes(sizeof(Real), stride, sequences, with_weights);
  };
  // Below this many outputs a step, a thread for each of them is quicker.
  if (batch * stride < 300000) {
    plan.tiles.sequences = 1;
    plan.tiles.team_threads = static_cast<int>(stride);
  } else {
    // As many sequences as keep most lanes of a team's warps busy, and not more.
    double best = 0;
    for (const int sequences : {8, 16, 32, 64, 128, 256}) {
      const int threads = sequences / large_tile_rows<Real> * (static_cast<int>(stride) / large_tile_columns<Real>);
      if (scratch_of(sequences, false) > backend.fast_scratch_bytes || threads > 256) continue;
      const double busy = threads / ((threads + 31) / 32 * 32.0);
      if (busy > best + 0.01 || (threads <= 64 && busy >= best)) {
        best = busy;
        plan.tiles.sequences = sequences;
        plan.tiles.team_threads = threads;
      }
    }
    plan.tiles.weights_in_scratch = scratch_of(plan.tiles.sequences, true) <= backend.fast_scratch_bytes;
  }
  plan.tiles.league_size = (static_cast<std::int64_t>(batch) + plan.tiles.sequences - 1) / plan.tiles.sequences;
  plan.tiles.scratch_bytes = scratch_of(plan.tiles.sequences, plan.tiles.weights_in_scratch);
}

}  // namespace

HmmPlan plan_hmm_log_likelihood(const Backend& backend, bool is_double, std::size_t batch, std::size_t states,
                                std::size_t symbols, std::size_t steps) {
  if (states <= small_states && (backend.lanes > 1 || backend.register_bytes > 0)) {
    const HmmPlan small = plan_small_hmm(backend, is_double, batch, symbols, steps);
    if (small.scratch_level == ScratchLevel::fast) return small;
    // Hosts have no other memory for fast scratch: only what a thread's cache holds counts.
    constexpr std::size_t cache = std::size_t{1} << 20;
    if (small.sweep == HmmSweep::packs && small.scratch_bytes <= cache) return small;
  }
  const auto model = HmmTables<double>::bytes(states, symbols);
  const auto vectors = HmmVectors<double>::bytes(states);
  HmmPlan plan{};
  plan.sweep = HmmSweep::chain;
  plan.model_in_scratch = model + vectors <= backend.fast_scratch_bytes;
  plan.first = is_double || !plan.model_in_scratch ? Rung::linear_double : Rung::linear_float;
  plan.last = Rung::log_double;
  const auto lanes = static_cast<std::size_t>(backend.lanes);
  const std::size_t threads = (std::max<std::size_t>(states, 1) + lanes - 1) / lanes * lanes;
  plan.league_size = static_cast<std::int64_t>(batch);
  plan.team_threads = static_cast<int>(std::min<std::size_t>(threads, std::min(backend.max_team_threads, 256)));
  plan.scratch_bytes = vectors + (plan.model_in_scratch ? model : 0);
  plan.scratch_level = level_for(backend, plan.scratch_bytes);
  plan.workspace_bytes = plan.model_in_scratch ? 0 : model + alignment_slack;
  if (backend.lanes > 1 && states > small_states) {
    if (is_double) {
      plan_state_tiles<double>(backend, batch, states, symbols, plan);
    } else {
      plan_state_tiles<float>(backend, batch, states, symbols, plan);
    }
  }
  return plan;
}

MaskedReducePlan plan_masked_reduce(const Backend& backend, std::size_t ranks, std::size_t columns) {
  MaskedReducePlan plan;
  plan.team_per_column = backend.max_team_threads > 1 && columns < 4096 && ranks > 256;
  plan.team_threads = plan.team_per_column ? 128 : 1;
  if (backend.register_bytes > 0) {
    // Long runs suit the prefetcher; but every thread should have one, down to a few cache lines.
    constexpr std::size_t least = 64;
    const std::size_t share = columns / static_cast<std::size_t>(backend.threads) / least * least;
    plan.packs = false;
    // Where the values alone fill a cache, results written through it would be read first, for nothing.
    constexpr std::size_t cache_cells = std::size_t{1} << 22;
    plan.streams = ranks > 0 && columns > cache_cells / ranks;
    plan.block = static_cast<int>(std::clamp(share, least, static_cast<std::size_t>(most_columns_together)));
    return plan;
  }
  // With fewer columns than this, one each keeps more of a GPU busy.
  plan.packs = !plan.team_per_column && (backend.max_team_threads == 1 || columns >= 2048);
  return plan;
}

}  // namespace impl
}  // namespace bellman
