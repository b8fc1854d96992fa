// SPDX-License-Identifier: Apache-2.0

/// \file
/// Hidden Markov models of more than most_states_of_a_tile states on GPUs: each step is a launch, from both ends of the chain
/// at once.

#include "hmm_step_sweep.hpp"

#include <algorithm>
#include <bellman/accuracy.hpp>
#include <bellman/impl/aligned.hpp>
#include <bellman/impl/hmm_tile_sizes.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/tensor_tile.hpp>

#include "instantiations.hpp"
#include "launch.hpp"

namespace bellman::impl {
namespace {

/// The vectors of a chunk of sequences, in the workspace; direction 0 goes forward, 1 backward. Small, as a part of functors:
/// Kokkos passes large ones in another way, which graphs do not take.
template <class Real>
struct StepMemory {
  std::byte* memory;
  std::int64_t stride;
  std::int64_t capacity;  ///< sequences

  /// (state, sequence); steps of one parity share a vector
  KOKKOS_FUNCTION Real* vectors(int direction, std::int64_t step) const {
    return reinterpret_cast<Real*>(memory) + (2 * direction + step % 2) * stride * capacity;
  }
  /// Steps of each sequence, 0 for one that has no result here.
  KOKKOS_FUNCTION std::int64_t* steps(int direction) const {
    return reinterpret_cast<std::int64_t*>(vectors(2, 0)) + direction * capacity;
  }
  /// Exponent of the scale of each sequence.
  KOKKOS_FUNCTION std::int64_t* exponents(int direction) const { return steps(2 + direction); }
  /// Exponent of the largest element of each sequence.
  KOKKOS_FUNCTION int* peaks(int direction, std::int64_t step) const {
    return reinterpret_cast<int*>(steps(4)) + (3 * direction + step % 3) * capacity;
  }
  /// Row of the emissions of each sequence in a step, or -1 if it has ended.
  KOKKOS_FUNCTION int* rows(int direction, std::int64_t step) const {
    return peaks(2, 0) + (2 * direction + step % 2) * capacity;
  }
  /// Sequences that are not certified.
  KOKKOS_FUNCTION int* lost() const { return rows(2, 0); }
  /// Sequences whose products may underflow.
  KOKKOS_FUNCTION int* low() const { return lost() + capacity; }

  KOKKOS_FUNCTION std::int64_t length(std::int64_t k) const { return steps(0)[k] + steps(1)[k]; }
};

/// The sum of 2^n terms, in pairs.
template <class Real, int count>
KOKKOS_FORCEINLINE_FUNCTION Real pairwise_sum(Real (&terms)[count]) {
  BELLMAN_UNROLL
  for (int distance = 1; distance < count; distance *= 2) {
    BELLMAN_UNROLL
    for (int k = 0; k < count; k += 2 * distance) terms[k] += terms[k + distance];
  }
  return terms[0];
}

/// What the kernels of the sweep by steps share.
template <class ExecutionSpace, class Real>
struct HmmSteps {
  using Team = typename Kokkos::TeamPolicy<ExecutionSpace>::member_type;
  using Lanes = LaneGroup<ExecutionSpace>;
  using Arithmetic = TileArithmetic<Real>;
  PaddedModel<Real> model;
  HmmSequences sequences;
  StepMemory<Real> memory;
  std::int64_t first_sequence;  ///< of the chunk
  std::int64_t chunk_sequences;
  std::int64_t first_problem = 0;

  /// The row of the emissions in a step, or -1 if the sequence has ended; a symbol out of range ends the certificate.
  KOKKOS_FUNCTION int row_of(int direction, std::int64_t k, std::int64_t step, std::int64_t length) const {
    const std::int64_t steps = direction == 0 ? (length + 1) / 2 : length / 2;
    if (step >= steps) return -1;
    const std::int64_t symbol = sequences.symbols(first_sequence + k, direction == 0 ? step : length - 1 - step);
    if (symbol < model.symbols) return static_cast<int>(model.emission_row(symbol));
    memory.lost()[k] = 1;
    return static_cast<int>(model.symbols);
  }
};

/// A team makes the first vector of one sequence in one direction.
template <class ExecutionSpace, class Real>
struct HmmFirstStep : HmmSteps<ExecutionSpace, Real> {
  using Base = HmmSteps<ExecutionSpace, Real>;
  using Arithmetic = typename Base::Arithmetic;
  std::size_t scratch_bytes;

  KOKKOS_FUNCTION void operator()(const typename Base::Team& team) const {
    const auto& model = this->model;
    const auto& memory = this->memory;
    const std::int64_t k = team.league_rank() / 2;
    const int direction = team.league_rank() % 2;
    const std::int64_t sequence = this->first_sequence + k;
    const bool is_there = k < this->chunk_sequences;
    const std::int64_t length = is_there ? this->sequences.length(sequence) : 0;
    const bool is_real = length > 0 && length <= this->sequences.steps();
    const std::int64_t steps = !is_real ? 0 : direction == 0 ? (length + 1) / 2 : length / 2;
    int* const peak = reinterpret_cast<int*>(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    if (team.team_rank() == 0) *peak = Arithmetic::no_peak;
    team.team_barrier();  // the peak is clear

    const int row = this->row_of(direction, k, 0, is_real ? length : 0);
    bool is_lost = !is_real;
    bool is_low = false;
    for (std::int64_t r = team.team_rank(); r < model.rows(); r += team.team_size()) {
      is_low = is_low || (model.flags[r] & row_is_wide) != 0;
    }
    int highest = Arithmetic::no_peak;
    for (std::int64_t state = team.team_rank(); state < model.stride; state += team.team_size()) {
      const Real start = direction == 0 ? model.init[state] : Real(1);
      const Real emission = model.emit[(row < 0 ? model.symbols : row) * model.stride + state];
      const Real value = start * emission;
      is_lost = is_lost || !(start == 0 || emission == 0 || value >= Arithmetic::lowest_value());
      is_low = is_low || (value != 0 && value < Arithmetic::low_value());
      memory.vectors(direction, 0)[state * memory.capacity + k] = value;
      highest = exponent_of(value) > highest ? exponent_of(value) : highest;
    }
    Kokkos::atomic_max(peak, highest);
    // Both directions may say so; the forward one clears the flag in the launch before.
    if (is_lost) memory.lost()[k] = 1;
    if (is_low) memory.low()[k] = 1;
    team.team_barrier();  // the peak is complete
    if (team.team_rank() == 0) {
      memory.steps(direction)[k] = steps;
      memory.exponents(direction)[k] = 0;
      memory.peaks(direction, 0)[k] = *peak;
      memory.peaks(direction, 1)[k] = Arithmetic::no_peak;
      memory.rows(direction, 1)[k] = this->row_of(direction, k, 1, is_real ? length : 0);
    }
  }
};

/// A step of all sequences of the chunk: teams own a tile of step_tile sequences and step_tile states.
template <class ExecutionSpace, class Real>
struct HmmOneStep : HmmSteps<ExecutionSpace, Real> {
  using Base = HmmSteps<ExecutionSpace, Real>;
  using Arithmetic = typename Base::Arithmetic;
  std::int64_t step;
  bool is_join;  ///< the transition between the two directions: forward only, nothing emitted

  /// What a team does.
  struct Place {
    bool prepares;  ///< the next step of its sequences; else it owns outputs
    int direction;
    std::int64_t first;  ///< sequence
    std::int64_t first_state;
    const Real* weights;  ///< (from, to)
  };
  /// What an output needs beside its sum.
  struct Output {
    int emission_row;  ///< -1 for a sequence that has ended
    int shift;         ///< of the scale
  };

  /// The first teams prepare the next step of a tile of sequences, the others own a tile of outputs.
  KOKKOS_FORCEINLINE_FUNCTION Place place(const typename Base::Team& team) const {
    const int directions = is_join ? 1 : 2;
    const int tiles = team.league_size() / static_cast<int>(this->model.stride / step_tile + 1);  // of sequences
    const int tile = team.league_rank() % tiles;
    const int direction = tile % directions;
    return {team.league_rank() < tiles, direction, std::int64_t{tile / directions} * step_tile,
            std::int64_t{team.league_rank() / tiles - 1} * step_tile,
            direction == 0 ? this->model.trans : this->model.transposed};
  }

  KOKKOS_FORCEINLINE_FUNCTION void prepare_next_step(int direction, std::int64_t k) const {
    const auto& memory = this->memory;
    if (row_in_step(direction, k) >= 0) {
      memory.exponents(direction)[k] += Arithmetic::shift_of(memory.peaks(direction, step + 2)[k]);
    }
    if (is_join) return;
    memory.peaks(direction, step + 1)[k] = Arithmetic::no_peak;
    memory.rows(direction, step + 1)[k] = this->row_of(direction, k, step + 1, memory.length(k));
  }

  KOKKOS_FORCEINLINE_FUNCTION Output read_output(int direction, std::int64_t k) const {
    return {row_in_step(direction, k), this->memory.peaks(direction, step + 2)[k]};
  }

  /// Emits the symbol, tests what the step may have lost, stores the entry, and returns it.
  KOKKOS_FORCEINLINE_FUNCTION Real store(const Place& place, const Output& output, std::int64_t k, std::int64_t state,
                                         Real sum, Real emission) const {
    const auto& model = this->model;
    const auto& memory = this->memory;
    const Real* const previous = memory.vectors(place.direction, step + 1) + k;
    Real value;
    if (output.emission_row >= 0) {
      value = sum * emission * power_of_two<Real>(-Arithmetic::shift_of(output.shift));
      if (emission != 0 && Kokkos::fmin(sum, value) < Arithmetic::low_value()) {
        bool is_kept = true;
        if (sum != 0) {
          is_kept = sum >= Arithmetic::lowest_sum(model.states) && value >= Arithmetic::lowest_value();
          if (value < Arithmetic::low_value()) memory.low()[k] = 1;
        } else if (memory.low()[k] != 0) {
          is_kept = Arithmetic::is_structural_zero(previous, memory.capacity, place.weights + state, model.stride,
                                                   model.states);
        }
        if (!is_kept) memory.lost()[k] = 1;
      }
    } else {
      value = previous[state * memory.capacity];
    }
    memory.vectors(place.direction, step)[state * memory.capacity + k] = value;
    return value;
  }

 private:
  /// The row of the emissions, that of a missing symbol in the join, or -1 for a sequence that has ended.
  KOKKOS_FORCEINLINE_FUNCTION int row_in_step(int direction, std::int64_t k) const {
    if (!is_join) return this->memory.rows(direction, step)[k];
    return this->memory.length(k) > 1 ? static_cast<int>(this->model.symbols) : -1;
  }
};

/// In double. The warps of a team share the states that lead there: each owns a tile of all outputs, in registers, over states
/// of its own, which it copies into scratch ahead; then the team adds up the tiles of all warps.
template <class ExecutionSpace>
struct HmmStepInDouble : HmmOneStep<ExecutionSpace, double> {
  using Step = HmmOneStep<ExecutionSpace, double>;
  using Team = typename Step::Team;
  using Arithmetic = typename Step::Arithmetic;
  using Lanes = typename Step::Lanes;

  static constexpr int warps = 16;
  static constexpr std::size_t scratch_bytes = step_scratch_bytes;
  static constexpr int rows = 8;
  static constexpr int columns = 4;
  static constexpr int column_members = step_tile / columns;
  static constexpr int row_members = step_tile / rows;
  static constexpr int stages = 4;
  static constexpr int piece = 2;
  static constexpr int rounds = 4;  ///< the partial sums go through scratch in so many rounds
  static constexpr int round_rows = step_tile / rounds;
  static constexpr int round_size = round_rows * step_tile;
  static_assert(row_members * column_members == 32 &&
                2 * step_tile / piece == 32);  // a lane copies one piece of a state
  static_assert(sizeof(double) * warps * round_size == step_scratch);
  static_assert(sizeof(double) * warps * stages * 2 * step_tile == step_scratch);

  /// The most that a path suffers in a step: the sums of a warp, of all warps, of the blocks of states, and the roundings of
  /// trans, emit and their product.
  KOKKOS_FUNCTION static double roundings(std::int64_t stride) {
    constexpr std::int64_t block = warps * Arithmetic::longest_sum;
    return Arithmetic::longest_sum + 4 + static_cast<double>((stride + block - 1) / block) + 3;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& model = this->model;
    const auto& memory = this->memory;
    const int thread = team.team_rank() * Lanes::size + Lanes::rank();
    const typename Step::Place place = this->place(team);
    if (place.prepares) {
      if (thread < step_tile) this->prepare_next_step(place.direction, place.first + thread);
      return;
    }
    std::byte* const scratch = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    int* const peaks = reinterpret_cast<int*>(scratch + step_scratch);
    if (thread < step_tile) peaks[thread] = Arithmetic::no_peak;

    // The outputs of this thread, one a round. What they need is read while the first copies are under way.
    const bool has_outputs = thread < round_size;
    const std::int64_t state = place.first_state + thread / round_rows;
    typename Step::Output outputs[rounds];
    double totals[rounds] = {};
    double emissions[rounds];
    constexpr std::int64_t block = warps * Arithmetic::longest_sum;
    for (std::int64_t begin = 0; begin < model.stride; begin += block) {
      const std::int64_t states = model.stride - begin < block ? model.stride - begin : block;
      double sums[rows][columns] = {};
      multiply(team.team_rank(), scratch,
               memory.vectors(place.direction, this->step + 1) + begin * memory.capacity + place.first,
               place.weights + begin * model.stride + place.first_state, static_cast<int>(states / warps), sums, [&] {
                 if (begin > 0 || !has_outputs) return;
                 BELLMAN_UNROLL
                 for (int round = 0; round < rounds; ++round) {
                   const int row = sequence_of(thread % round_rows, round);
                   outputs[round] = this->read_output(place.direction, place.first + row);
                 }
               });
      if (begin == 0 && has_outputs) {
        BELLMAN_UNROLL
        for (int round = 0; round < rounds; ++round) {
          const int row = outputs[round].emission_row;
          emissions[round] = row < 0 ? 1.0 : model.emit[row * model.stride + state];
        }
      }
      add_up(team, reinterpret_cast<double*>(scratch), sums, totals);
    }

    if (has_outputs) {
      BELLMAN_UNROLL
      for (int round = 0; round < rounds; ++round) {
        const int row = sequence_of(thread % round_rows, round);
        const double value =
            this->store(place, outputs[round], place.first + row, state, totals[round], emissions[round]);
        Kokkos::atomic_max(peaks + row, exponent_of(value));
      }
    }
    team.team_barrier();  // the peaks of this tile are there
    if (thread < step_tile) {
      Kokkos::atomic_max(memory.peaks(place.direction, this->step) + place.first + thread, peaks[thread]);
    }
  }

 private:
  /// The sequence, in the tile, of a row of the partial sums of a round.
  KOKKOS_FORCEINLINE_FUNCTION static int sequence_of(int row, int round) {
    return place_in_tile<double, rows>(row % row_members, 2 * round + row / row_members, step_tile);
  }

  /// Where the piece of a column lies in a row of partial sums: neighbouring rows do not share banks.
  KOKKOS_FORCEINLINE_FUNCTION static int partial_place(int row, int column) {
    const int swizzle = (row & 1) << 2 | (row & 2) | (row >> 2 & 1);
    return row * step_tile + ((column / piece) ^ swizzle) * piece + column % piece;
  }

  /// sums += vectors times weights over the states of this warp. It copies the elements of its states, some states ahead, into
  /// scratch of its own.
  ///
  /// \param meanwhile  is called once the first copies are under way
  template <class Meanwhile>
  KOKKOS_FORCEINLINE_FUNCTION void multiply(int warp, std::byte* scratch, const double* vectors, const double* weights,
                                            int states, double (&sums)[rows][columns],
                                            const Meanwhile& meanwhile) const {
    const int member = Lanes::rank();
    constexpr int stage_size = 2 * step_tile;
    double* const own = reinterpret_cast<double*>(scratch) + warp * stages * stage_size;
    // This lane copies a piece of the vectors or of the weights.
    const bool copies_weights = member >= 16;
    const std::int64_t stride = copies_weights ? this->model.stride : this->memory.capacity;
    const double* from =
        (copies_weights ? weights : vectors) + std::int64_t{warp} * states * stride + member % 16 * piece;
    double* const to = own + member * piece;
    int copied = 0;
    const auto copy_next = [&](int stage) {
      if (copied < states) Lanes::copy_16_bytes_or_zeros(to + stage * stage_size, from, true);
      Lanes::commit_copies();
      from += stride;
      ++copied;
    };
    BELLMAN_UNROLL
    for (int stage = 0; stage < stages - 1; ++stage) copy_next(stage);
    meanwhile();
    for (int begin = 0; begin < states; begin += stages) {
      BELLMAN_UNROLL
      for (int stage = 0; stage < stages; ++stage) {
        if (begin + stage < states) {
          Lanes::template wait_copies<stages - 2>();
          Lanes::sync();  // this state is there, and nobody reads that of the state before any more
          copy_next((stage + stages - 1) % stages);
          const double* const here = own + stage * stage_size;
          double a[rows];
          double b[columns];
          load_pieces(here, member / column_members, step_tile, a);
          load_pieces(here + step_tile, member % column_members, step_tile, b);
          add_products(a, b, sums);
        }
      }
    }
  }

  /// totals += the sums of all warps, pairwise.
  KOKKOS_FORCEINLINE_FUNCTION static void add_up(const Team& team, double* partial, const double (&sums)[rows][columns],
                                                 double (&totals)[rounds]) {
    const int member = Lanes::rank();
    const int thread = team.team_rank() * Lanes::size + member;
    BELLMAN_UNROLL
    for (int round = 0; round < rounds; ++round) {
      team.team_barrier();  // the scratch is free
      BELLMAN_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int row = member / column_members + row_members * i;
        BELLMAN_UNROLL
        for (int j = 0; j < columns; j += piece) {
          StateChunk<double, piece> stored;
          BELLMAN_UNROLL
          for (int c = 0; c < piece; ++c) stored.value[c] = sums[2 * round + i][j + c];
          const int column = place_in_tile<double, columns>(member % column_members, j, step_tile);
          *reinterpret_cast<StateChunk<double, piece>*>(partial + team.team_rank() * round_size +
                                                        partial_place(row, column)) = stored;
        }
      }
      team.team_barrier();  // the partial sums of all warps are there
      if (thread < round_size) {
        const double* const mine = partial + partial_place(thread % round_rows, thread / round_rows);
        double parts[warps];
        BELLMAN_UNROLL
        for (int w = 0; w < warps; ++w) parts[w] = mine[w * round_size];
        totals[round] += pairwise_sum(parts);
      }
    }
    team.team_barrier();  // everybody has read the partial sums
  }
};

/// In float, by products on tensor cores. The warps of a team share the states that lead there, 8 at a time: each reads what
/// it multiplies straight into registers, some products ahead, and owns a tile of all outputs; then the team adds up the
/// tiles of all warps.
///
/// Lane 4 g + t reads sequences 4 g to 4 g + 3 and next states 4 g to 4 g + 3 of the states t and t + 4. In the order of
/// add_tensor_product() these are row g or g + 8 of two tiles of sequences, and column g of four tiles of next states.
template <class ExecutionSpace>
struct HmmStepInFloat : HmmOneStep<ExecutionSpace, float> {
  using Step = HmmOneStep<ExecutionSpace, float>;
  using Team = typename Step::Team;
  using Arithmetic = typename Step::Arithmetic;
  using Warp = typename Step::Lanes;

  static constexpr int warps = 8;
  static constexpr std::size_t scratch_bytes = step_scratch_bytes;
  static constexpr int ring = 2;      ///< products whose factors are on their way
  static constexpr int block = 1024;  ///< states that are summed up at once
  static constexpr int outputs = 4;   ///< of a thread: neighbouring states of a sequence
  using Piece = StateChunk<float, outputs>;
  static constexpr int pieces = step_tile * step_tile / outputs;
  static_assert(pieces == warps * 32 && sizeof(Piece) * pieces * warps == step_scratch);

  /// The most that a path suffers in a step: a product, the sums of a warp, of all warps, of the blocks of states, and the
  /// roundings of trans, emit and their product.
  KOKKOS_FUNCTION static double roundings(std::int64_t stride) {
    return tensor_product_roundings + (block / (8 * warps) - 1) + 3 +
           static_cast<double>((stride + block - 1) / block) + 3;
  }

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto& model = this->model;
    const auto& memory = this->memory;
    const int thread = team.team_rank() * 32 + Warp::rank();
    const typename Step::Place place = this->place(team);
    if (place.prepares) {
      if (thread < step_tile) this->prepare_next_step(place.direction, place.first + thread);
      return;
    }
    std::byte* const scratch = aligned(team_scratch(team, ScratchLevel::fast, scratch_bytes));
    auto* const partial = reinterpret_cast<Piece*>(scratch);
    int* const peaks = reinterpret_cast<int*>(scratch + step_scratch);
    if (thread < step_tile) peaks[thread] = Arithmetic::no_peak;

    const int row = thread % step_tile;
    const std::int64_t state = place.first_state + thread / step_tile * outputs;
    const typename Step::Output output = this->read_output(place.direction, place.first + row);
    float emissions[outputs];
    float totals[outputs] = {};
    for (std::int64_t begin = 0; begin < model.stride; begin += block) {
      const auto states = static_cast<int>(model.stride - begin < block ? model.stride - begin : block);
      float sums[2][4][4] = {};
      multiply(team.team_rank(),
               memory.vectors(place.direction, this->step + 1) + begin * memory.capacity + place.first,
               place.weights + begin * model.stride + place.first_state, states / 8, sums, [&] {
                 if (begin > 0) return;
                 const std::int64_t symbol = output.emission_row < 0 ? model.symbols : output.emission_row;
                 load_pieces(model.emit + symbol * model.stride + state, 0, outputs, emissions);
               });
      if (begin > 0) team.team_barrier();  // everybody has read the partial sums
      put(partial + team.team_rank() * pieces, sums);
      team.team_barrier();  // the partial sums of all warps are there
      Piece parts[warps];
      BELLMAN_UNROLL
      for (int w = 0; w < warps; ++w) parts[w] = partial[w * pieces + partial_place(row, thread / step_tile)];
      BELLMAN_UNROLL
      for (int i = 0; i < outputs; ++i) {
        float of_output[warps];
        BELLMAN_UNROLL
        for (int w = 0; w < warps; ++w) of_output[w] = parts[w].value[i];
        totals[i] += pairwise_sum(of_output);
      }
    }

    int highest = Arithmetic::no_peak;
    BELLMAN_UNROLL
    for (int i = 0; i < outputs; ++i) {
      const float value = this->store(place, output, place.first + row, state + i, totals[i], emissions[i]);
      highest = exponent_of(value) > highest ? exponent_of(value) : highest;
    }
    Kokkos::atomic_max(peaks + row, highest);
    team.team_barrier();  // the peaks of this tile are there
    if (thread < step_tile) {
      Kokkos::atomic_max(memory.peaks(place.direction, this->step) + place.first + thread, peaks[thread]);
    }
  }

 private:
  /// sums += vectors times weights over every warps-th product, from that of this warp on.
  ///
  /// \param meanwhile  is called once the first reads are under way
  template <class Meanwhile>
  KOKKOS_FORCEINLINE_FUNCTION void multiply(int warp, const float* vectors, const float* weights, int products,
                                            float (&sums)[2][4][4], const Meanwhile& meanwhile) const {
    const std::int64_t capacity = this->memory.capacity;
    const std::int64_t stride = this->model.stride;
    const int column = Warp::rank() / 4 * 4;
    const int from = warp * 8 + Warp::rank() % 4;
    vectors += from * capacity + column;
    weights += from * stride + column;
    float a[ring][2][4];
    float b[ring][2][4];
    int to_read = warp;
    const auto read_next = [&](int place) {
      if (to_read < products) {
        BELLMAN_UNROLL
        for (int half = 0; half < 2; ++half) {
          load_pieces(vectors + half * 4 * capacity, 0, 4, a[place][half]);
          load_pieces(weights + half * 4 * stride, 0, 4, b[place][half]);
        }
      }
      vectors += 8 * warps * capacity;
      weights += 8 * warps * stride;
      to_read += warps;
    };
    BELLMAN_UNROLL
    for (int place = 0; place < ring - 1; ++place) read_next(place);
    meanwhile();
    for (int product = warp; product < products; product += ring * warps) {
      BELLMAN_UNROLL
      for (int place = 0; place < ring; ++place) {
        if (product + place * warps < products) {
          read_next((place + ring - 1) % ring);
          TensorFactor<4> left[2];
          BELLMAN_UNROLL
          for (int m = 0; m < 2; ++m) {
            BELLMAN_UNROLL
            for (int i = 0; i < 4; ++i) left[m].set(i, a[place][i / 2][2 * m + i % 2]);
          }
          BELLMAN_UNROLL
          for (int n = 0; n < 4; ++n) {
            TensorFactor<2> right;
            BELLMAN_UNROLL
            for (int i = 0; i < 2; ++i) right.set(i, b[place][i][n]);
            BELLMAN_UNROLL
            for (int m = 0; m < 2; ++m) add_tensor_products<Warp>(sums[m][n], left[m], right);
          }
        }
      }
    }
  }

  /// Where neighbouring states of a sequence lie among the partial sums of a warp: neighbours do not share banks.
  KOKKOS_FORCEINLINE_FUNCTION static int partial_place(int row, int piece) {
    return row * (step_tile / outputs) + (piece ^ ((row & 1) << 2 | (row & 2) | (row >> 2 & 1)));
  }

  /// Stores the sums of a warp.
  KOKKOS_FORCEINLINE_FUNCTION static void put(Piece* partial, const float (&sums)[2][4][4]) {
    BELLMAN_UNROLL
    for (int i = 0; i < 4; ++i) {
      BELLMAN_UNROLL
      for (int half = 0; half < 2; ++half) {
        Piece piece;
        BELLMAN_UNROLL
        for (int n = 0; n < 4; ++n) piece.value[n] = sums[i / 2][n][i % 2 * 2 + half];
        partial[partial_place(Warp::rank() / 4 * 4 + i, Warp::rank() % 4 * 2 + half)] = piece;
      }
    }
  }
};

template <class ExecutionSpace, class Real>
using HmmStepTeam = std::conditional_t<is_float<Real>, HmmStepInFloat<ExecutionSpace>, HmmStepInDouble<ExecutionSpace>>;

/// A thread of lanes joins the two directions of one sequence.
template <class ExecutionSpace, class Real>
struct HmmLastStep : HmmSteps<ExecutionSpace, Real> {
  using Base = HmmSteps<ExecutionSpace, Real>;
  using Arithmetic = typename Base::Arithmetic;
  using Lanes = typename Base::Lanes;
  TileResults<ExecutionSpace, Real> results;
  std::int64_t step;  ///< the join

  KOKKOS_FUNCTION void operator()(const typename Base::Team& team) const {
    const auto& memory = this->memory;
    const std::int64_t k = std::int64_t{team.league_rank()} * team.team_size() + team.team_rank();
    if (k >= this->chunk_sequences) return;
    std::uint32_t flags = row_is_fine;
    for (std::int64_t row = Lanes::rank(); row < this->model.rows(); row += Lanes::size)
      flags |= this->model.flags[row];
    flags = Lanes::reduce(flags, [](std::uint32_t a, std::uint32_t b) { return a | b; });

    const std::int64_t length = memory.length(k);
    const Real* const forward = memory.vectors(0, step) + k;
    const Real* const backward = memory.vectors(1, step + 1) + k;
    double total = 0;
    int meet = 0;
    for (std::int64_t j = Lanes::rank(); j < this->model.states; j += Lanes::size) {
      const auto ahead = static_cast<double>(forward[j * memory.capacity]);
      const double behind = length > 1 ? static_cast<double>(backward[j * memory.capacity]) : 1.0;
      total = Kokkos::fma(ahead, behind, total);
      meet |= ahead != 0 && behind != 0 ? 1 : 0;
    }
    total = Lanes::reduce(total, [](double a, double b) { return a + b; });
    meet = Lanes::reduce(meet, [](int a, int b) { return a | b; });
    if (Lanes::rank() != 0) return;
    Judgement judgement;
    const bool total_kept = meet == 0 || total >= TileArithmetic<double>::lowest_sum(this->model.states);
    if ((flags & ~row_is_wide) == row_is_fine && memory.lost()[k] == 0 && total_kept) {
      judgement = Arithmetic::finish(total, memory.exponents(0)[k] + memory.exponents(1)[k], length,
                                     HmmStepTeam<ExecutionSpace, Real>::roundings(this->model.stride),
                                     log_likelihood_tolerance<Real>);
    }
    results.write(this->first_sequence + k, judgement);
  }
};

/// Clears what both directions of the first step may set.
struct ClearFlags {
  int* lost;
  int* low;
  KOKKOS_FUNCTION void operator()(std::int64_t k) const { lost[k] = low[k] = 0; }
};

}  // namespace

template <class ExecutionSpace, class Real>
void sweep_by_steps(const ExecutionSpace& exec, const HmmPlan& plan, const PaddedModel<Real>& model,
                    const HmmSequences& sequences, const TileResults<ExecutionSpace, Real>& results,
                    std::byte* memory) {
  if constexpr (has_warps<ExecutionSpace>()) {
    const StepMemory<Real> chunk_memory{memory, model.stride, plan.tiles.sequences};
    const std::int64_t last = (sequences.steps() + 1) / 2 - 1;  // the last step of the longer direction
    static const std::string clear_label = "bellman::hmm_log_likelihood::clear";
    static const std::string first_label = "bellman::hmm_log_likelihood::first_step";
    static const std::string step_label = "bellman::hmm_log_likelihood::step";
    static const std::string join_label = "bellman::hmm_log_likelihood::join";
    static const std::string last_label = "bellman::hmm_log_likelihood::last_step";
    using Step = HmmStepTeam<ExecutionSpace, Real>;
    for (std::int64_t first = 0; first < sequences.batch(); first += plan.tiles.sequences) {
      const std::int64_t here = std::min<std::int64_t>(sequences.batch() - first, plan.tiles.sequences);
      const std::int64_t tiles = (here + step_tile - 1) / step_tile;
      const HmmSteps<ExecutionSpace, Real> base{model, sequences, chunk_memory, first, here};
      Kokkos::parallel_for(
          clear_label, Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(exec, 0, tiles * step_tile),
          ClearFlags{chunk_memory.lost(), chunk_memory.low()});
      launch_teams(first_label, exec, HmmFirstStep<ExecutionSpace, Real>{base, sizeof(double)}, 2 * tiles * step_tile,
                   128, 1, ScratchLevel::fast, sizeof(double));
      Step step{{base, 0, false}};
      const std::int64_t teams = tiles * (model.stride / step_tile + 1);
      for (step.step = 1; step.step <= last; ++step.step) {
        launch_teams<Step::warps * 32, 1>(step_label, exec, step, 2 * teams, Step::warps, 32, ScratchLevel::fast,
                                          Step::scratch_bytes);
      }
      step.is_join = true;
      launch_teams<Step::warps * 32, 1>(join_label, exec, step, teams, Step::warps, 32, ScratchLevel::fast,
                                        Step::scratch_bytes);
      launch_teams(last_label, exec, HmmLastStep<ExecutionSpace, Real>{base, results, step.step}, (here + 3) / 4, 4, 32,
                   ScratchLevel::fast, 0);
    }
  }
}

#define BELLMAN_INSTANTIATE_FOR(Space, Real)                                                        \
  template void sweep_by_steps<Space, Real>(const Space&, const HmmPlan&, const PaddedModel<Real>&, \
                                            const HmmSequences&, const TileResults<Space, Real>&, std::byte*);
#define BELLMAN_INSTANTIATE(Space)      \
  BELLMAN_INSTANTIATE_FOR(Space, float) \
  BELLMAN_INSTANTIATE_FOR(Space, double)
BELLMAN_FOR_EACH_SPACE(BELLMAN_INSTANTIATE)

}  // namespace bellman::impl
