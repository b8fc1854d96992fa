// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_IMPL_MATRIX_SWEEP_HPP
#define BELLMAN_IMPL_MATRIX_SWEEP_HPP

/// \file
/// The chain of a small hidden Markov model (register_sweep.hpp) with its matrix in the registers of lanes. Two forms:
///
///     MatrixChain   a few lanes own a direction of a sequence, each some columns of the matrix: many sequences
///     LaneChain     a lane owns one column, the vector goes through scratch: few sequences, least time per step
///
/// Both add up a product in the same parts: part d of a sum is the chain of fused operations over block d of the states,
/// and parts are joined as a tree. So a result is the same bitwise whichever the plan chooses. Neither looks for structural
/// zeros: a SumWatch notes the smallest value, and what it cannot certify goes to the form of register_sweep.hpp.

#include <Kokkos_Core.hpp>
#include <bellman/impl/floating_point.hpp>
#include <bellman/impl/hmm_log_likelihood.hpp>
#include <bellman/impl/hmm_small_model.hpp>
#include <bellman/impl/lanes.hpp>
#include <bellman/impl/register_sweep.hpp>
#include <bellman/impl/unroll.hpp>
#include <cstdint>
#include <type_traits>

namespace bellman::impl {

/// The lanes that share a direction of a chain, and the parts of a sum: so many that a lane's share of the matrix takes 128
/// registers.
template <class Real>
inline constexpr int matrix_lanes = is_float<Real> ? 2 : 4;

/// A number that is not negative as an integer of the same order. Infinity and NaN are above all numbers.
template <class Real>
using BitsOf = std::conditional_t<is_float<Real>, std::uint32_t, std::uint64_t>;

/// Notes the smallest of all values of a chain: with zeros, or without (then they count as infinite). Emissions of up to 1
/// leave no value above its sum.
template <class Real>
struct SumWatch {
  using Bits = BitsOf<Real>;
  Bits lowest = ~Bits{0};

  template <bool without_zeros>
  KOKKOS_FORCEINLINE_FUNCTION void see(Real value) {
    const Bits bits = Kokkos::bit_cast<Bits>(value) - (without_zeros ? 1 : 0);
    lowest = bits < lowest ? bits : lowest;
  }
  /// Nothing below the sums that have lost nothing that matters, with room for weights that add up to 1 but for rounding.
  KOKKOS_FORCEINLINE_FUNCTION bool is_high() const {
    return lowest >= Kokkos::bit_cast<Bits>(2 * ChainArithmetic<Real>::lowest_sum());
  }
};

/// Whether the watch of a model is one without zeros.
KOKKOS_FORCEINLINE_FUNCTION bool watches_without_zeros(std::uint32_t flags) { return (flags & row_has_zero) != 0; }

/// Whether a chain is certified by a watch that is_high(). Where zeros do not count, a sum that is not a structural zero
/// must not become one: that takes a weight below those of an even model (docs/accuracy.md).
KOKKOS_FORCEINLINE_FUNCTION bool may_certify(std::uint32_t flags) {
  return (flags & (row_is_unusable | row_is_dense)) == 0 &&
         ((flags & row_has_zero) == 0 || (flags & row_is_steep) == 0);
}

/// The product of two joined entries, exact for float. In double it may be lost: then it is not kept.
template <class Real>
KOKKOS_FORCEINLINE_FUNCTION double joined(Real ahead, Real behind, bool& kept) {
  const double product = static_cast<double>(ahead) * static_cast<double>(behind);
  if constexpr (!is_float<Real>) {
    kept = kept && (ahead == 0 || behind == 0 || product >= ChainArithmetic<double>::lowest_sum());
  }
  return product;
}

/// The symbols that the steps of a chain take. They are read ahead and looked at later, because the memory is far away.
class SymbolReader {
 public:
  static constexpr int size = 4;

  /// Step k of the chain is step first + k of the sequence, or first - k where it goes back.
  KOKKOS_FORCEINLINE_FUNCTION SymbolReader(const HmmSequences& sequences, std::int64_t symbols, std::int64_t sequence,
                                           std::int64_t first, bool back, int steps)
      : data_(sequences.symbols.data),
        first_(sequence * sequences.symbols.strides[0] + first * sequences.symbols.strides[1]),
        stride_(back ? -sequences.symbols.strides[1] : sequences.symbols.strides[1]),
        type_(sequences.symbols.type),
        steps_(steps),
        symbols_(static_cast<int>(symbols)),
        is_bad_(false) {
    is_in_chunks_ = type_ == IntegerType::int32 && (stride_ == 1 || stride_ == -1) &&
                    reinterpret_cast<std::uintptr_t>(chunk(0)) % sizeof(Chunk) == 0;
  }

  /// Four symbols, in the order of the memory.
  using Chunk = RowChunk<std::int32_t>;
  /// The symbols of steps k .. k + 3, k a multiple of 4; those beyond the last step are missing ones.
  KOKKOS_FORCEINLINE_FUNCTION Chunk read(int k) const {
    if (is_in_chunks_ && k + size <= steps_) return *chunk(k);
    Chunk symbols;
    BELLMAN_UNROLL
    for (int r = 0; r < size; ++r) symbols.value[r] = read_one(k + (stride_ < 0 ? size - 1 - r : r));
    return symbols;
  }
  /// The symbol of step k; beyond the last step a missing one.
  KOKKOS_FORCEINLINE_FUNCTION std::int32_t read_one(int k) const {
    if (k >= steps_) return -1;
    const std::int64_t offset = first_ + k * stride_;
    if (type_ == IntegerType::int32) return static_cast<const std::int32_t*>(data_)[offset];
    const std::int64_t symbol = IntegerView<1>{data_, {}, {1}, type_}(offset);
    return static_cast<std::int32_t>(symbol < 0 ? -1 : symbol < symbols_ ? symbol : symbols_);
  }
  /// The row of emission weights of a symbol that was read. One out of range is noted, and taken for a missing one.
  KOKKOS_FORCEINLINE_FUNCTION int row_of(std::int32_t symbol) {
    is_bad_ = is_bad_ || symbol >= symbols_;
    const auto unsigned_symbol = static_cast<std::uint32_t>(symbol);  // a missing one becomes a large number
    const auto missing = static_cast<std::uint32_t>(symbols_);
    return static_cast<int>(unsigned_symbol < missing ? unsigned_symbol : missing);
  }
  /// Those that were read in the order of the steps.
  KOKKOS_FORCEINLINE_FUNCTION Chunk in_order(const Chunk& symbols) const {
    Chunk ordered;
    BELLMAN_UNROLL
    for (int r = 0; r < size; ++r) ordered.value[r] = stride_ < 0 ? symbols.value[size - 1 - r] : symbols.value[r];
    return ordered;
  }

  KOKKOS_FORCEINLINE_FUNCTION bool is_bad() const { return is_bad_; }

 private:
  KOKKOS_FORCEINLINE_FUNCTION const Chunk* chunk(int k) const {
    const auto* const symbols = static_cast<const std::int32_t*>(data_) + first_;
    return reinterpret_cast<const Chunk*>(stride_ < 0 ? symbols - k - (size - 1) : symbols + k);
  }

  const void* data_;
  std::int64_t first_;
  std::int64_t stride_;
  IntegerType type_;
  int steps_;
  int symbols_;
  bool is_in_chunks_;
  bool is_bad_;
};

/// Some values of a row in chunks.
template <class Real, int size>
KOKKOS_FORCEINLINE_FUNCTION void read_chunks(const Real* memory, Real (&values)[size]) {
  BELLMAN_UNROLL
  for (int chunk = 0; chunk < size; chunk += RowChunk<Real>::size) {
    const auto part = *reinterpret_cast<const RowChunk<Real>*>(memory + chunk);
    BELLMAN_UNROLL
    for (int k = 0; k < RowChunk<Real>::size; ++k) values[chunk + k] = part.value[k];
  }
}

/// A direction of a chain on matrix_lanes neighbouring lanes. Lane p owns the p-th block of the states: their entries of the
/// vector and their columns of the matrix, whose rows are in blocks as well, block d being that of lane p ^ d.
template <class Warp, class Real, bool without_zeros>
class MatrixChain {
 public:
  static constexpr int lanes = matrix_lanes<Real>;
  static constexpr int own = small_states / lanes;
  using Arithmetic = ChainArithmetic<Real>;

  /// \param matrix  (from, to) in the direction of the chain
  KOKKOS_FORCEINLINE_FUNCTION explicit MatrixChain(const Real* matrix) {
    const int part = Warp::rank() % lanes;
    BELLMAN_UNROLL
    for (int d = 0; d < lanes; ++d) {
      BELLMAN_UNROLL
      for (int i = 0; i < own; ++i) {
        BELLMAN_UNROLL
        for (int j = 0; j < own; ++j) {
          matrix_[d][i][j] = matrix[((part ^ d) * own + i) * small_states + part * own + j];
        }
      }
    }
  }

  /// Runs the chain, all lanes of the warp together, each group for its own number of steps; 0 leaves all entries 1.
  /// \param start  this lane's block of the vector to start from, before the first emission; null: all 1
  /// \param emit   this lane's block of the emissions: (symbol, state), SmallWeights::emit_pitch apart
  KOKKOS_FORCEINLINE_FUNCTION void run(const Real* start, const Real* emit, SymbolReader& symbols, int steps) {
    constexpr int period = Arithmetic::rescale_period;
    static_assert(period == SymbolReader::size);
    const int fewest = Warp::reduce(steps, [](int a, int b) { return b < a ? b : a; });
    const int most = Warp::reduce(steps, [](int a, int b) { return b > a ? b : a; });
    auto now = symbols.in_order(symbols.read(0));
    auto ahead = symbols.read(period);
    exponent_ = 0;
    watch_ = {};
    Real emission[own];
    read_chunks(emit + symbols.row_of(take(now)) * pitch, emission);
    BELLMAN_UNROLL
    for (int j = 0; j < own; ++j) {
      const Real first = start == nullptr ? Real(1) : start[j];
      value_[j] = steps > 0 ? first * emission[j] : Real(1);
      watch_.template see<without_zeros>(value_[j]);
    }
    int k = 1;
    const auto run_some = [&](int end, const auto& is_active) {
      for (; k < end; ++k) {
        if (k % period == 0) {
          now = symbols.in_order(ahead);
          ahead = symbols.read(k + period);
          rescale(is_active());
        }
        step(emit + symbols.row_of(take(now)) * pitch, is_active());
      }
    };
    run_some(fewest, [] { return true; });
    run_some(most, [&] { return k < steps; });
  }

  /// One transition further, without an emission.
  KOKKOS_FORCEINLINE_FUNCTION void advance(Real (&sums)[own]) const {
    Real part[lanes][own];
    BELLMAN_UNROLL
    for (int d = 0; d < lanes; ++d) {
      Real from[own];
      BELLMAN_UNROLL
      for (int i = 0; i < own; ++i) from[i] = d == 0 ? value_[i] : Warp::from_partner(value_[i], d);
      BELLMAN_UNROLL
      for (int i = 0; i < own; ++i) {
        BELLMAN_UNROLL
        for (int j = 0; j < own; ++j) {
          part[d][j] = i == 0 ? from[i] * matrix_[d][i][j] : Kokkos::fma(from[i], matrix_[d][i][j], part[d][j]);
        }
      }
    }
    BELLMAN_UNROLL
    for (int j = 0; j < own; ++j) {
      if constexpr (lanes == 2) {
        sums[j] = part[0][j] + part[1][j];
      } else {
        sums[j] = (part[0][j] + part[1][j]) + (part[2][j] + part[3][j]);
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION Real value(int j) const { return value_[j]; }
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t exponent() const { return exponent_; }
  KOKKOS_FORCEINLINE_FUNCTION SumWatch<Real>& watch() { return watch_; }

 private:
  static constexpr int pitch = SmallWeights<Real>::emit_pitch;

  /// The next symbol of some that were read.
  KOKKOS_FORCEINLINE_FUNCTION static std::int32_t take(SymbolReader::Chunk& symbols) {
    const std::int32_t next = symbols.value[0];
    BELLMAN_UNROLL
    for (int r = 0; r + 1 < SymbolReader::size; ++r) symbols.value[r] = symbols.value[r + 1];
    return next;
  }

  KOKKOS_FORCEINLINE_FUNCTION void rescale(bool is_active) {
    auto largest = Kokkos::bit_cast<BitsOf<Real>>(value_[0]);
    BELLMAN_UNROLL
    for (int j = 1; j < own; ++j) {
      const auto bits = Kokkos::bit_cast<BitsOf<Real>>(value_[j]);
      largest = bits > largest ? bits : largest;
    }
    BELLMAN_UNROLL
    for (int bit = 1; bit < lanes; bit *= 2) {
      const auto other = Warp::from_partner(largest, bit);
      largest = other > largest ? other : largest;
    }
    const int shift = is_active ? Arithmetic::shift_of(Kokkos::bit_cast<Real>(largest)) : 0;
    const Real scale = power_of_two<Real>(-shift);
    exponent_ += shift;
    BELLMAN_UNROLL
    for (int j = 0; j < own; ++j) value_[j] *= scale;
  }

  /// One step, of those lanes that are active.
  KOKKOS_FORCEINLINE_FUNCTION void step(const Real* emit, bool is_active) {
    Real emission[own];
    read_chunks(emit, emission);
    Real sums[own];
    advance(sums);
    if (is_active) {
      BELLMAN_UNROLL
      for (int j = 0; j < own; ++j) {
        value_[j] = sums[j] * emission[j];
        watch_.template see<without_zeros>(value_[j]);
      }
    }
  }

  Real matrix_[lanes][own][own];
  Real value_[own];
  std::int64_t exponent_;
  SumWatch<Real> watch_;
};

/// What the two directions of a chain in lanes tell each other through scratch.
template <class Real>
struct alignas(16) LaneExchange {
  Real vectors[2][2][small_states];  ///< direction, parity of the step
  std::int64_t exponent[2];
  std::uint32_t is_high[2][2];  ///< direction, watch
  std::uint32_t is_bad[2];
};

/// A direction of a chain on a warp, a state per lane; lanes beyond the states do the same work again and write nothing.
template <class Warp, class Real>
class LaneChain {
 public:
  using Arithmetic = ChainArithmetic<Real>;

  KOKKOS_FORCEINLINE_FUNCTION LaneChain(SymbolReader& symbols, int steps) : symbols_(symbols), steps_(steps) {
    first_ = symbols_.read_one(0);
    now_ = symbols_.read_one(1 + Warp::rank());
    ahead_ = symbols_.read_one(1 + Warp::size + Warp::rank());
  }

  /// Steps 1 to 4, 5 to 8 and so on are done in groups, of which the last one rescales. While a group is done, the emissions
  /// of the next one are read, and the rows of the one behind are handed round.
  /// \param exchange  two vectors of scratch; the last vector ends up in the one of (steps - 1) % 2
  KOKKOS_FORCEINLINE_FUNCTION void run(const Real* start, const Real* matrix, const Real* emit, Real* exchange) {
    const int state = Warp::rank() % small_states;
    BELLMAN_UNROLL
    for (int i = 0; i < small_states; ++i) column_[i] = matrix[i * small_states + state];
    emit += state;
    const Real first = start == nullptr ? Real(1) : start[state];
    put(exchange, first * emit[symbols_.row_of(first_) * pitch]);
    row_ = symbols_.row_of(now_) * pitch;

    Real emission[period];
    int offsets[period];
    hand_round(0, offsets);
    BELLMAN_UNROLL
    for (int r = 0; r < period; ++r) emission[r] = emit[offsets[r]];
    hand_round(1, offsets);
    int k = 1;
    int group = 2;
    for (; k + period <= steps_; k += period) {
      Real next[period];
      BELLMAN_UNROLL
      for (int r = 0; r < period; ++r) next[r] = emit[offsets[r]];
      if (group % groups == 0) fetch(1 + group * period);
      hand_round(group, offsets);
      ++group;
      step<false>(exchange, exchange + small_states, emission[0]);
      step<false>(exchange + small_states, exchange, emission[1]);
      step<false>(exchange, exchange + small_states, emission[2]);
      step<true>(exchange + small_states, exchange, emission[3]);
      BELLMAN_UNROLL
      for (int r = 0; r < period; ++r) emission[r] = next[r];
    }
    if (k < steps_) step<false>(exchange, exchange + small_states, emission[0]);
    if (k + 1 < steps_) step<false>(exchange + small_states, exchange, emission[1]);
    if (k + 2 < steps_) step<false>(exchange, exchange + small_states, emission[2]);
    Warp::sync();  // the last vector is there
  }

  /// The entry of this lane's state after one more transition.
  KOKKOS_FORCEINLINE_FUNCTION Real advance(const Real* vector) const {
    Real from[small_states];
    read_chunks(vector, from);
    return dot(from);
  }

  KOKKOS_FORCEINLINE_FUNCTION std::int64_t exponent() const { return exponent_; }
  /// Notes a sum or a value, and says whether those of all lanes were high, with zeros or without.
  KOKKOS_FORCEINLINE_FUNCTION void see(Real value) {
    all_.template see<false>(value);
    without_zeros_.template see<true>(value);
  }
  KOKKOS_FORCEINLINE_FUNCTION bool is_high(bool without_zeros) const {
    return Warp::ballot(without_zeros ? !without_zeros_.is_high() : !all_.is_high()) == 0;
  }

 private:
  static constexpr int pitch = SmallWeights<Real>::emit_pitch;

  static constexpr int period = Arithmetic::rescale_period;
  static constexpr int groups = Warp::size / period;  ///< whose rows the lanes hold at a time

  /// Takes the rows of the next Warp::size steps, from step k on, and sends for those behind.
  KOKKOS_FORCEINLINE_FUNCTION void fetch(int k) {
    row_ = symbols_.row_of(ahead_) * pitch;
    ahead_ = symbols_.read_one(k + Warp::size + Warp::rank());
  }
  KOKKOS_FORCEINLINE_FUNCTION void hand_round(int group, int (&offsets)[period]) const {
    BELLMAN_UNROLL
    for (int r = 0; r < period; ++r) offsets[r] = Warp::from_lane(row_, group % groups * period + r);
  }
  KOKKOS_FORCEINLINE_FUNCTION void put(Real* to, Real value) {
    see(value);
    if (Warp::rank() < small_states) to[Warp::rank()] = value;
  }

  /// sum_i vector(i) column(i), in the parts of MatrixChain.
  KOKKOS_FORCEINLINE_FUNCTION Real dot(const Real (&vector)[small_states]) const {
    constexpr int parts = matrix_lanes<Real>;
    constexpr int size = small_states / parts;
    Real part[parts];
    BELLMAN_UNROLL
    for (int i = 0; i < size; ++i) {
      BELLMAN_UNROLL
      for (int d = 0; d < parts; ++d) {
        const int k = d * size + i;
        part[d] = i == 0 ? vector[k] * column_[k] : Kokkos::fma(vector[k], column_[k], part[d]);
      }
    }
    if constexpr (parts == 2) {
      return part[0] + part[1];
    } else {
      return (part[0] + part[1]) + (part[2] + part[3]);
    }
  }

  template <bool rescales>
  KOKKOS_FORCEINLINE_FUNCTION void step(const Real* from, Real* to, Real emission) {
    Warp::sync();  // the vector before is there, and nobody reads the one before that any more
    Real vector[small_states];
    read_chunks(from, vector);
    if constexpr (rescales) {
      auto largest = Kokkos::bit_cast<BitsOf<Real>>(vector[0]);
      BELLMAN_UNROLL
      for (int i = 1; i < small_states; ++i) {
        const auto bits = Kokkos::bit_cast<BitsOf<Real>>(vector[i]);
        largest = bits > largest ? bits : largest;
      }
      const int shift = Arithmetic::shift_of(Kokkos::bit_cast<Real>(largest));
      exponent_ += shift;
      const Real scale = power_of_two<Real>(-shift);
      BELLMAN_UNROLL
      for (int i = 0; i < small_states; ++i) vector[i] *= scale;
    }
    put(to, dot(vector) * emission);
  }

  SymbolReader& symbols_;
  int steps_;
  std::int32_t first_;
  std::int32_t now_;
  std::int32_t ahead_;
  int row_ = 0;  ///< where the emissions of this lane's step begin
  Real column_[small_states];
  std::int64_t exponent_ = 0;
  SumWatch<Real> all_;
  SumWatch<Real> without_zeros_;
};

}  // namespace bellman::impl

#endif
