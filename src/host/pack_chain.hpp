// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_SRC_HOST_PACK_CHAIN_HPP
#define BELLMAN_SRC_HOST_PACK_CHAIN_HPP

/// \file
/// The forward chain of a small hidden Markov model with its states in SIMD lanes:
///
///     alpha_t(j) = (sum_i alpha_(t-1)(i) trans(i,j)) emit(o_t, j) 2^-shift
///
/// A row of the matrix is a register or a few. Several sequences go together: each waits for its own sums, and they share
/// what is read of the matrix. The tests for what underflow may have lost are those of ChainArithmetic (register_sweep.hpp).

#include <bellman/impl/host_kernels.hpp>

#include "pack.hpp"

namespace bellman::impl::BELLMAN_INSTRUCTIONS {

/// Registers that a row of the matrix takes.
template <class Real>
inline constexpr int row_registers = chain_states* static_cast<int>(sizeof(Real)) / register_bytes;

/// As many sequences as give eight sums, an even and an odd one each, to work on at the same time.
template <class Real>
inline constexpr int chains_together = row_registers<Real> >= 4 ? 1 : 4 / row_registers<Real>;

template <class Real>
struct ChainStep {
  static constexpr int lanes = register_bytes / static_cast<int>(sizeof(Real));
  static constexpr int registers = row_registers<Real>;
  using Math = PackMath<Real, lanes>;
  using Values = typename Math::Values;
  using Bits = typename Math::Bits;

  static Values load(const Real* memory) {
    Values values;
    __builtin_memcpy(&values, memory, sizeof(values));
    return values;
  }
  static void store(Real* memory, Values values) { __builtin_memcpy(memory, &values, sizeof(values)); }

  /// sums[g](j) = sum_i chains[g](i) trans(i,j) for a part of the states j, even and odd i apart and joined at the end.
  template <int chain_count, int first_register, int count>
  static void multiply(const Real* trans, HostChain<Real>* const* chains, Values (&sums)[chain_count][registers]) {
    Values odd[chain_count][count];
#pragma GCC unroll 16
    for (int i = 0; i < chain_states; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < count; ++v) {
        const Values weights = load(trans + i * chain_states + (first_register + v) * lanes);
#pragma GCC unroll 4
        for (int g = 0; g < chain_count; ++g) {
          const Values from = Math::all(chains[g]->value[i]);
          Values& sum = i % 2 == 0 ? sums[g][first_register + v] : odd[g][v];
          sum = i < 2 ? from * weights : Math::multiply_add(from, weights, sum);
        }
      }
    }
    for (int g = 0; g < chain_count; ++g) {
      for (int v = 0; v < count; ++v) sums[g][first_register + v] += odd[g][v];
    }
  }

  template <int chain_count, int first_register = 0>
  static void multiply_all(const Real* trans, HostChain<Real>* const* chains, Values (&sums)[chain_count][registers]) {
    if constexpr (first_register < registers) {
      constexpr int count = registers < 4 ? registers : 4;
      multiply<chain_count, first_register, count>(trans, chains, sums);
      multiply_all<chain_count, first_register + count>(trans, chains, sums);
    }
  }

  /// Changes the exponent of a chain by that of the sum of its vector. Returns what to multiply with.
  static Real rescale(HostChain<Real>& chain) {
    constexpr int bias = static_cast<int>(Format<Real>::largest_exponent) + 1;
    constexpr int largest = bias - 2;
    Values total = load(chain.value);
    for (int v = 1; v < registers; ++v) total += load(chain.value + v * lanes);
    total = Math::reduced(total, [](Values a, Values b) { return a + b; });
    const auto bits = reinterpret_cast<Bits>(total)[0];
    const int exponent = static_cast<int>(bits >> Format<Real>::fraction_bits) - bias;
    const int shift = bits == 0 ? 0 : exponent < -largest ? -largest : exponent > largest ? largest : exponent;
    chain.exponent += shift;
    const Bits scale = Bits{} + (static_cast<decltype(bits)>(bias - shift) << Format<Real>::fraction_bits);
    return reinterpret_cast<Values>(scale)[0];
  }

  /// Of a step in which some number is small: whether all of them are structural zeros, or none the less large enough.
  static bool is_kept(const HostChainModel<Real>& model, const HostChain<Real>& chain, const Real* emit,
                      const Values (&sums)[registers], const Values (&next)[registers]) {
    Bits alive{};
    for (int v = 0; v < registers; ++v) {
      Bits bit;
      for (int k = 0; k < lanes; ++k) bit[k] = std::uint32_t{1} << (v * lanes + k);
      alive |= load(chain.value + v * lanes) != 0 ? bit : Bits{};
    }
    alive = Math::reduced(alive, [](Bits a, Bits b) { return a | b; });
    for (int v = 0; v < registers; ++v) {
      Bits into;
      for (int k = 0; k < lanes; ++k) into[k] = model.into[v * lanes + k];
      const auto is_zero = (load(emit + v * lanes) == 0) | ((alive & into) == 0);
      const auto is_large = (sums[v] >= model.lowest_sum) & (next[v] >= model.lowest_value);
      if (Math::any(~(is_zero | is_large))) return false;
    }
    return true;
  }
};

template <class Real, int chain_count>
void advance(const HostChainModel<Real>& model, HostChain<Real>* const* chains, const std::int32_t* const* rows,
             std::int64_t first_step, int steps) {
  using Step = ChainStep<Real>;
  using Math = typename Step::Math;
  using Values = typename Step::Values;
  constexpr int registers = Step::registers;
  constexpr int lanes = Step::lanes;
  // Copies: the compiler then knows that no chain is written to them, and keeps what it can in registers.
  alignas(most_register_bytes) Real trans[chain_states * chain_states];
  __builtin_memcpy(trans, model.trans, sizeof(trans));
  Values padding[registers];
  __builtin_memcpy(padding, model.padding, sizeof(padding));
  const Real lowest_sum = model.lowest_sum;

  for (int k = 0; k < steps; ++k) {
    Real scale[chain_count];
    for (Real& factor : scale) factor = 1;
    if ((first_step + k) % chain_rescale_period == 0) {
      for (int g = 0; g < chain_count; ++g) scale[g] = Step::rescale(*chains[g]);
    }
    Values sums[chain_count][registers];
    Step::template multiply_all<chain_count>(trans, chains, sums);
    for (int g = 0; g < chain_count; ++g) {
      const Real* const emit = model.emit + std::int64_t{rows[g][k]} * chain_states;
      Values next[registers];
      Values lowest = Math::all(infinity<Real>);
      for (int v = 0; v < registers; ++v) {
        next[v] = sums[g][v] * scale[g] * Step::load(emit + v * lanes);
        lowest = Math::smaller(sums[g][v] + padding[v], lowest);
        lowest = Math::smaller(next[v] + padding[v], lowest);
      }
      if (Math::any(lowest < lowest_sum)) {
        chains[g]->kept = chains[g]->kept && Step::is_kept(model, *chains[g], emit, sums[g], next);
      }
      for (int v = 0; v < registers; ++v) Step::store(chains[g]->value + v * lanes, next[v]);
    }
  }
}

template <class Real, int most_chains>
void advance_chains(const HostChainModel<Real>& model, HostChain<Real>* const* chains, const std::int32_t* const* rows,
                    int chain_count, std::int64_t first_step, int steps) {
  if constexpr (most_chains > 1) {
    if (chain_count < most_chains) {
      return advance_chains<Real, most_chains - 1>(model, chains, rows, chain_count, first_step, steps);
    }
  }
  advance<Real, most_chains>(model, chains, rows, first_step, steps);
}

template <class Symbol, class Unsigned>
bool emission_rows_of(const void* symbols, std::int64_t stride, int count, std::int64_t symbol_count,
                      std::int32_t* rows) {
  const auto* const memory = static_cast<const Symbol*>(symbols);
  const auto limit = static_cast<Unsigned>(symbol_count);
  int found = 0;
  const auto convert = [&](std::int64_t step) {
    for (int k = 0; k < count; ++k) {
      const Symbol symbol = memory[k * step];
      const bool is_out = static_cast<Unsigned>(symbol) >= limit;  // negative symbols are the largest
      rows[k] = static_cast<std::int32_t>(is_out ? limit : static_cast<Unsigned>(symbol));
      bool is_negative = false;
      if constexpr (static_cast<Symbol>(-1) < 0) is_negative = symbol < 0;
      found |= is_out && !is_negative ? 1 : 0;
    }
  };
  if (stride == 1) {
    convert(1);
  } else {
    convert(stride);
  }
  return found != 0;
}

inline bool emission_rows(const void* symbols, IntegerType type, std::int64_t stride, int count,
                          std::int64_t symbol_count, std::int32_t* rows) {
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  switch (type) {
    case IntegerType::int8: return emission_rows_of<std::int8_t, U32>(symbols, stride, count, symbol_count, rows);
    case IntegerType::int16: return emission_rows_of<std::int16_t, U32>(symbols, stride, count, symbol_count, rows);
    case IntegerType::int32: return emission_rows_of<std::int32_t, U32>(symbols, stride, count, symbol_count, rows);
    case IntegerType::int64: return emission_rows_of<std::int64_t, U64>(symbols, stride, count, symbol_count, rows);
    case IntegerType::uint8: return emission_rows_of<std::uint8_t, U32>(symbols, stride, count, symbol_count, rows);
    case IntegerType::uint16: return emission_rows_of<std::uint16_t, U32>(symbols, stride, count, symbol_count, rows);
    case IntegerType::uint32: return emission_rows_of<std::uint32_t, U32>(symbols, stride, count, symbol_count, rows);
    case IntegerType::uint64: return emission_rows_of<std::uint64_t, U64>(symbols, stride, count, symbol_count, rows);
  }
  return false;
}

}  // namespace bellman::impl::BELLMAN_INSTRUCTIONS

#endif
