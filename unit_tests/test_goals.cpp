// SPDX-License-Identifier: Apache-2.0
// How bellman_perf judges a goal: what is measured in which unit, the floor, and when a goal is met.
#include <gtest/gtest.h>

#include <string>

#include "goals.hpp"

namespace bellman::perf {
namespace {

using Metric = Goal::Metric;

/// 1 TB/s, 10 T multiply-adds/s in float and half of that in double, 9 us for an empty call and 1 us for one in a graph.
const Roofs roofs{.read_rate = 1e12,
                  .float_fma_rate = 1e13,
                  .double_fma_rate = 5e12,
                  .empty_launch = {.call = 9e-6, .in_graph = 1e-6}};

/// 100 us a call, 80 us in a graph; 40 MB read, 10 MB written: 50 us.
Measured measured() {
  Measured out;
  out.call_seconds = 100e-6;
  out.graph_seconds = 80e-6;
  out.cells = 1e6;
  out.bytes = 40e6;
  out.bytes_written = 10e6;
  out.operations = 2e8;
  return out;
}

Goal at_most(Metric metric, double limit, bool in_graph = false) {
  return {.metric = metric, .in_graph = in_graph, .is_upper_limit = true, .limit = limit, .backend = "Cuda"};
}

Goal at_least(Metric metric, double limit, bool in_graph = false) {
  return {.metric = metric, .in_graph = in_graph, .is_upper_limit = false, .limit = limit, .backend = "Cuda"};
}

TEST(Goals, Times) {
  const auto call = judge(at_most(Metric::time, 100.0), measured(), roofs);
  EXPECT_DOUBLE_EQ(call.measured.value(), 100);
  EXPECT_DOUBLE_EQ(call.floor.value(), 50);
  EXPECT_TRUE(call.is_met);
  EXPECT_FALSE(judge(at_most(Metric::time, 99.9), measured(), roofs).is_met);
  EXPECT_TRUE(judge(at_most(Metric::time, 80.1, true), measured(), roofs).is_met);
  EXPECT_FALSE(judge(at_most(Metric::time, 79.9, true), measured(), roofs).is_met);
}

TEST(Goals, RatesAndShares) {
  const auto rate = judge(at_least(Metric::cell_rate, 1e10, true), measured(), roofs);
  EXPECT_DOUBLE_EQ(rate.measured.value(), 1e6 / 80e-6);
  EXPECT_DOUBLE_EQ(rate.floor.value(), 1e6 / 50e-6);
  EXPECT_TRUE(rate.is_met);
  EXPECT_FALSE(judge(at_least(Metric::cell_rate, 1.1e10), measured(), roofs).is_met);

  // Only what is read counts, so the writing keeps the best share below 1.
  const auto read = judge(at_least(Metric::read_share, 0.6, true), measured(), roofs);
  EXPECT_DOUBLE_EQ(read.measured.value(), 0.5);
  EXPECT_DOUBLE_EQ(read.floor.value(), 0.8);
  EXPECT_FALSE(read.is_met);

  auto goal = at_least(Metric::fma_share, 0.2);
  EXPECT_DOUBLE_EQ(judge(goal, measured(), roofs).measured.value(), 0.2);
  goal.is_double = true;
  EXPECT_DOUBLE_EQ(judge(goal, measured(), roofs).measured.value(), 0.4);
}

TEST(Goals, FloorIsTheLongestOfBytesArithmeticAndLaunch) {
  auto input = measured();
  EXPECT_DOUBLE_EQ(floor_seconds(input, roofs, RealType::float_type, true), 50e-6);
  input.operations = 6e8;
  EXPECT_DOUBLE_EQ(floor_seconds(input, roofs, RealType::float_type, true), 60e-6);
  EXPECT_DOUBLE_EQ(floor_seconds(input, roofs, RealType::double_type, true), 120e-6);
  input.bytes = input.bytes_written = input.operations = 0;
  EXPECT_DOUBLE_EQ(floor_seconds(input, roofs, RealType::float_type, true), 1e-6);
  EXPECT_DOUBLE_EQ(floor_seconds(input, roofs, RealType::float_type, false), 9e-6);
}

TEST(Goals, SubmissionFailsWithAFenceOrAnAllocation) {
  const auto goal = at_most(Metric::submit_time, 1.5);
  auto input = measured();
  EXPECT_FALSE(judge(goal, input, roofs).is_met);  // not measured
  input.submission = Submission{.seconds = 4e-6, .raw_seconds = 3e-6};
  EXPECT_DOUBLE_EQ(judge(goal, input, roofs).measured.value(), 1);
  EXPECT_TRUE(judge(goal, input, roofs).is_met);
  input.submission->fences = 1;
  EXPECT_FALSE(judge(goal, input, roofs).is_met);
  EXPECT_EQ(judge(goal, input, roofs).remark, "1 fence and 0 allocations in a call");
  input.submission->fences = 0;
  input.submission->allocations = 2;
  EXPECT_FALSE(judge(goal, input, roofs).is_met);
  input.submission = Submission{.seconds = 5e-6, .raw_seconds = 3e-6};
  EXPECT_FALSE(judge(goal, input, roofs).is_met);
}

TEST(Goals, WhatCannotBeMeasuredIsNotMet) {
  auto input = measured();
  input.graph_seconds.reset();
  const auto verdict = judge(at_most(Metric::time, 1e9, true), input, roofs);
  EXPECT_FALSE(verdict.measured.has_value());
  EXPECT_FALSE(verdict.is_met);
  EXPECT_EQ(verdict.remark, "cannot be captured in a graph");
  EXPECT_FALSE(judge(at_least(Metric::scaling_at_2, 1e-9), input, roofs).is_met);
  EXPECT_FALSE(judge(at_least(Metric::speed_up_per_core, 1e-9), input, roofs).is_met);
}

TEST(Goals, TableCountsWhatIsMetNotMetAndNotMeasured) {
  Case met, failed, missing;
  met.name = "met";
  met.goal = at_most(Metric::time, 100.0);
  failed.name = "failed";
  failed.goal = at_least(Metric::cell_rate, 950e9, true);
  missing.name = "missing";
  missing.goal = at_least(Metric::read_share, 0.95);
  const auto table = goal_table({{&met, judge(*met.goal, measured(), roofs), 12.5, ""},
                                 {&failed, judge(*failed.goal, measured(), roofs), {}, ""},
                                 {&missing, {}, {}, "no Cuda in this build"}});
  EXPECT_NE(table.find("<= 100 us                      100 us    50.00 us       12.5 x  pass\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find(">= 950 Gcell/s in graph  12.5 Gcell/s  20 Gcell/s            -  FAIL\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find(">= 95.0 % of read roof              -           -            -  not measured: no Cuda in this "
                       "build\n"),
            std::string::npos)
      << table;
  EXPECT_NE(table.find("3 goals: 1 met, 1 not met, 1 not measured.\n"), std::string::npos) << table;
}

}  // namespace
}  // namespace bellman::perf
