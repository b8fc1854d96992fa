// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bellman/accuracy.hpp>
#include <bellman/masked_reduce.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
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

constexpr Reduction all_reductions[] = {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max,
                                        Reduction::count};

reference::Reduction as_reference(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return reference::Reduction::sum;
    case Reduction::mean: return reference::Reduction::mean;
    case Reduction::min: return reference::Reduction::min;
    case Reduction::max: return reference::Reduction::max;
    case Reduction::count: return reference::Reduction::count;
  }
  return reference::Reduction::sum;
}

/// Reduces on every instance of the space; all have to agree bitwise.
template <class Config, class ValidView>
std::vector<double> reduce(const std::vector<double>& values, std::size_t ranks, std::size_t columns,
                           const ValidView& valid, Reduction reduction) {
  using Real = typename Config::Real;
  typename Config::template Array<Real, 2> input({ranks, columns}, values);
  std::vector<double> result;
  for (const auto& exec : instances<typename Config::Space>()) {
    typename Config::template Array<Real, 1> output({columns});
    masked_reduce(exec, input.view(), valid, output.view(), {reduction});
    exec.fence();
    const auto now = output.values();
    EXPECT_TRUE(output.padding_is_untouched());
    for (std::size_t c = 0; c < result.size(); ++c) EXPECT_TRUE(near(static_cast<double>(now[c]), result[c], 0));
    result.assign(now.begin(), now.end());
  }
  return result;
}

template <class Config>
void expect_reference(const std::vector<double>& got, const std::vector<double>& values,
                      const std::vector<std::uint8_t>& mask, std::size_t ranks, std::size_t columns,
                      Reduction reduction) {
  using Real = typename Config::Real;
  const auto given = rounded<Real>(values);
  auto absolute = given;
  for (double& value : absolute) value = std::abs(value);
  const auto expected = reference::masked_reduce(as_reference(reduction), given, mask, ranks, columns);
  const auto magnitude = reference::masked_reduce(as_reference(reduction), absolute, mask, ranks, columns);
  const bool is_exact = reduction != Reduction::sum && reduction != Reduction::mean;
  for (std::size_t c = 0; c < columns; ++c) {
    const double bound = is_exact ? 0 : masked_sum_error_bound<Real>(expected[c], magnitude[c], ranks);
    EXPECT_TRUE(near(got[c], expected[c], bound))
        << to_string(reduction) << " of column " << c << " of " << ranks << " x " << columns;
  }
}

template <class Config>
class MaskedReduce : public testing::Test {};
TYPED_TEST_SUITE(MaskedReduce, AllConfigurations);

TYPED_TEST(MaskedReduce, EqualsReferenceForEverySizeAndMask) {
  for (const std::size_t ranks : {1, 2, 4, 33, 300}) {
    for (const std::size_t columns : {1, 20, 31, 129}) {
      const auto values = normal_values(ranks * columns, ranks + columns);
      std::vector<std::uint8_t> mask(ranks * columns);
      const auto bits = uniform_integers(mask.size(), 51, 0, 2);
      for (std::size_t k = 0; k < mask.size(); ++k) mask[k] = bits[k] == 0 ? 0 : 7;  // every value but 0 is valid
      typename TypeParam::template Array<std::uint8_t, 2> bytes({ranks, columns}, mask);
      typename TypeParam::template Array<bool, 2> booleans({ranks, columns}, mask);
      const auto lengths = uniform_integers(ranks, 52, -2, columns + 2);
      typename TypeParam::template Array<std::int16_t, 1> shards({ranks}, lengths);
      const auto shard_mask = reference::mask_from_lengths(lengths, ranks, columns);
      for (const Reduction reduction : all_reductions) {
        const auto by_bytes = reduce<TypeParam>(values, ranks, columns, bytes.view(), reduction);
        expect_reference<TypeParam>(by_bytes, values, mask, ranks, columns, reduction);
        const auto by_booleans = reduce<TypeParam>(values, ranks, columns, booleans.view(), reduction);
        expect_reference<TypeParam>(by_booleans, values, mask, ranks, columns, reduction);
        const auto by_lengths = reduce<TypeParam>(values, ranks, columns, shards.view(), reduction);
        expect_reference<TypeParam>(by_lengths, values, shard_mask, ranks, columns, reduction);
      }
    }
  }
}

TYPED_TEST(MaskedReduce, NothingToDo) {
  typename TypeParam::template Array<bool, 2> no_columns({3, 0});
  EXPECT_TRUE(reduce<TypeParam>({}, 3, 0, no_columns.view(), Reduction::sum).empty());
  typename TypeParam::template Array<bool, 2> no_ranks({0, 4});
  typename TypeParam::template Array<int, 1> no_lengths({0});
  const std::vector<double> expected{0, nan, inf, -inf, 0};
  for (const Reduction reduction : all_reductions) {
    for (std::size_t c = 0; c < 4; ++c) {
      const double wanted = expected[static_cast<std::size_t>(reduction)];
      EXPECT_TRUE(near(reduce<TypeParam>({}, 0, 4, no_ranks.view(), reduction)[c], wanted, 0));
      EXPECT_TRUE(near(reduce<TypeParam>({}, 0, 4, no_lengths.view(), reduction)[c], wanted, 0));
    }
  }
}

TYPED_TEST(MaskedReduce, MaskedCellsNeverLeak) {
  // Column 0: bad values masked. Column 1: no valid rank. Column 2: a valid NaN first, column 3: last. Column 4: infinities.
  const std::vector<double> values{1, nan, nan, 2, -inf, nan, inf, 3, nan, inf, inf, nan, -4, 5, nan};
  const std::vector<std::uint8_t> mask{1, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0};
  const std::vector<double> columns_of[] = {{1, 0, nan, nan, -inf},
                                            {1, nan, nan, nan, -inf},
                                            {1, inf, nan, nan, -inf},
                                            {1, -inf, nan, nan, -inf},
                                            {1, 0, 3, 3, 1}};
  typename TypeParam::template Array<bool, 2> valid({3, 5}, mask);
  for (const Reduction reduction : all_reductions) {
    const auto got = reduce<TypeParam>(values, 3, 5, valid.view(), reduction);
    for (std::size_t c = 0; c < 5; ++c) {
      EXPECT_TRUE(near(got[c], columns_of[static_cast<std::size_t>(reduction)][c], 0)) << to_string(reduction) << c;
    }
  }
}

/// The maximum of -inf alone is -inf, and not the lowest finite number.
TYPED_TEST(MaskedReduce, InfinitiesAreNumbers) {
  typename TypeParam::template Array<bool, 2> valid({2, 2}, std::vector<int>{1, 1, 1, 1});
  EXPECT_EQ(reduce<TypeParam>({-inf, inf, -inf, inf}, 2, 2, valid.view(), Reduction::max)[0], -inf);
  EXPECT_EQ(reduce<TypeParam>({-inf, inf, -inf, inf}, 2, 2, valid.view(), Reduction::min)[1], inf);
}

template <class Config>
class MaskedReduceContiguous : public testing::Test {};
TYPED_TEST_SUITE(MaskedReduceContiguous, ContiguousConfigurations);

TYPED_TEST(MaskedReduceContiguous, ManyRanksOrColumns) {
  const std::size_t shapes[][2] = {{20000, 3}, {300, 4099}, {2, 100000}};
  for (const auto& shape : shapes) {
    const auto values = normal_values(shape[0] * shape[1], 53);
    const std::vector<std::uint8_t> mask(values.size(), 1);
    typename TypeParam::template Array<bool, 2> valid({shape[0], shape[1]}, mask);
    for (const Reduction reduction : all_reductions) {
      const auto got = reduce<TypeParam>(values, shape[0], shape[1], valid.view(), reduction);
      expect_reference<TypeParam>(got, values, mask, shape[0], shape[1], reduction);
    }
  }
}

/// A window into memory whose rows lie \p pitch apart and whose first element is \p start behind an aligned address.
template <class View>
auto window(const View& memory, std::size_t start, std::size_t ranks, std::size_t columns, std::size_t pitch) {
  using T = typename View::value_type;
  using Window = Kokkos::View<T**, Kokkos::LayoutStride, typename View::memory_space>;
  return Window(memory.data() + start, Kokkos::LayoutStride(ranks, pitch, columns, 1));
}

/// Threads take neighbouring columns together where memory lets them. Neither the number of columns nor the place of any of
/// the views may change one bit, nor may what lies behind a row.
TYPED_TEST(MaskedReduceContiguous, AnyPlaceInMemoryGivesTheSameBits) {
  using Real = typename TypeParam::Real;
  const typename TypeParam::Space exec;
  for (const std::size_t ranks : {1, 3, 4, 5, 9}) {
    for (const std::size_t columns : {1, 2, 3, 4, 5, 7, 31, 32, 33, 63, 65, 2047, 2048, 2049, 2051}) {
      const auto normal = normal_values(ranks * columns, 54);
      const auto bits = uniform_integers(ranks * columns, 55, 0, 2);
      const std::vector<std::uint8_t> mask(bits.begin(), bits.end());
      const auto lengths = uniform_integers(ranks, 56, -2, columns + 2);
      typename TypeParam::template Array<std::uint64_t, 1> shards({ranks}, lengths);  // those below 0 become very long
      const auto long_if_negative = [&](std::int64_t length) { return length < 0 ? columns : length; };
      std::vector<std::int64_t> shard_lengths(ranks);
      std::ranges::transform(lengths, shard_lengths.begin(), long_if_negative);
      const auto shard_mask = reference::mask_from_lengths(shard_lengths, ranks, columns);
      for (const Reduction reduction : all_reductions) {
        std::vector<double> first_by_mask, first_by_lengths;
        for (const auto& [values_start, mask_start, out_start, pitch_remainder] :
             {std::array<std::size_t, 4>{0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}) {
          const std::size_t pitch = (columns + 31) / 32 * 32 + pitch_remainder;
          std::vector<double> padded_values(values_start + ranks * pitch, nan);
          std::vector<std::uint8_t> padded_mask(mask_start + ranks * pitch, 1);
          for (std::size_t k = 0; k < normal.size(); ++k) {
            const std::size_t place = k / columns * pitch + k % columns;
            padded_values[values_start + place] = normal[k];
            padded_mask[mask_start + place] = mask[k];
          }
          typename TypeParam::template Array<Real, 1> value_memory({padded_values.size()}, padded_values);
          typename TypeParam::template Array<std::uint8_t, 1> mask_memory({padded_mask.size()}, padded_mask);
          const auto values = window(value_memory.view(), values_start, ranks, columns, pitch);
          const auto valid = window(mask_memory.view(), mask_start, ranks, columns, pitch);
          const auto reduced = [&](const auto& valid_view, const std::vector<std::uint8_t>& valid_mask,
                                   std::vector<double>& first) {
            typename TypeParam::template Array<Real, 1> out_memory({out_start + columns + 1});
            const auto whole = out_memory.view();
            const auto out = Kokkos::subview(whole, std::make_pair(out_start, out_start + columns));
            masked_reduce(exec, values, valid_view, out, {reduction});
            const auto got = out_memory.values();
            EXPECT_TRUE(std::isnan(got.back()));
            EXPECT_TRUE(out_start == 0 || std::isnan(got.front()));
            const std::vector<double> now(got.begin() + static_cast<std::ptrdiff_t>(out_start), got.end() - 1);
            if (first.empty()) {
              expect_reference<TypeParam>(now, normal, valid_mask, ranks, columns, reduction);
              first = now;
            }
            for (std::size_t c = 0; c < columns; ++c) {
              EXPECT_TRUE(near(now[c], first[c], 0))
                  << to_string(reduction) << " of column " << c << " of " << ranks << " x " << columns << ", starts "
                  << values_start << mask_start << out_start << ", pitch " << pitch;
            }
          };
          reduced(valid, mask, first_by_mask);
          reduced(shards.view(), shard_mask, first_by_lengths);
        }
      }
    }
  }
}

/// More than 2^31 cells: the last one must be right. The values of all ranks share one row of memory.
TYPED_TEST(MaskedReduceContiguous, OffsetsBeyond32Bits) {
  using Real = typename TypeParam::Real;
  using Space = typename TypeParam::Space;
  using Memory = typename Space::memory_space;
  const std::size_t columns = 3, ranks = (std::size_t{1} << 31) / columns + 8;
  const Kokkos::View<std::uint8_t*, Memory> mask("mask", ranks * columns);
  Kokkos::deep_copy(mask, std::uint8_t{0});
  const auto last = Kokkos::subview(mask, std::make_pair(ranks * columns - 1, ranks * columns));
  Kokkos::deep_copy(last, std::uint8_t{1});
  typename TypeParam::template Array<Real, 2> row({1, columns}, std::vector<double>{1, 2, 3});
  const Kokkos::View<Real**, Kokkos::LayoutStride, Memory> values(row.view().data(),
                                                                  Kokkos::LayoutStride(ranks, 0, columns, 1));
  const Kokkos::View<std::uint8_t**, Kokkos::LayoutRight, Memory> valid(mask.data(), ranks, columns);
  typename TypeParam::template Array<Real, 1> output({columns});
  masked_reduce(Space(), values, valid, output.view());
  const auto got = output.values();
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], 0);
  EXPECT_EQ(got[2], 3);
}

TYPED_TEST(MaskedReduce, RefusesWhatDoesNotFit) {
  using Real = typename TypeParam::Real;
  const typename TypeParam::Space exec;
  typename TypeParam::template Array<Real, 2> values({4, 5});
  typename TypeParam::template Array<bool, 2> narrow({4, 4}), low({3, 5}), valid({4, 5});
  typename TypeParam::template Array<int, 1> lengths({3});
  typename TypeParam::template Array<Real, 1> output({5}), longer({6});
  EXPECT_THROW(masked_reduce(exec, values.view(), narrow.view(), output.view()), ShapeError);
  EXPECT_THROW(masked_reduce(exec, values.view(), low.view(), output.view()), ShapeError);
  EXPECT_THROW(masked_reduce(exec, values.view(), lengths.view(), output.view()), ShapeError);
  EXPECT_THROW(masked_reduce(exec, values.view(), valid.view(), longer.view()), ShapeError);
  const Kokkos::View<Real*, Kokkos::LayoutStride, typename TypeParam::Space::memory_space> inside(
      values.view().data() + 2, Kokkos::LayoutStride(5, 1));
  EXPECT_THROW(masked_reduce(exec, values.view(), valid.view(), inside), AliasError);
  for (const Real value : output.values()) EXPECT_TRUE(std::isnan(value));
}

}  // namespace
}  // namespace bellman
