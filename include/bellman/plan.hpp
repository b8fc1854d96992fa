// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_PLAN_HPP
#define BELLMAN_PLAN_HPP

/// \file
/// How a call will be carried out. A plan is computed on the host from sizes, options and the backend alone, never from
/// data, and is the only place where such choices are made. Nobody needs to ask for one; everybody may print one.

#include <cstddef>
#include <cstdint>
#include <iosfwd>

namespace bellman {

/// \brief What a plan knows about the hardware.
struct Backend {
  int lanes;                       ///< lanes that step together in one thread of a team: 32 on CUDA, 1 on hosts
  int max_team_threads;            ///< largest team, in threads times lanes
  std::size_t fast_scratch_bytes;  ///< scratch of level 0 (on chip) that a team may use
};

/// \brief The ladder of algebras. Each rung is exact where its certificate holds; where it does not, the problem climbs
/// to the next rung within the same launch. The last rung needs no certificate.
enum class Rung : std::uint8_t {
  linear_float,   ///< Linear<float>: path sums e^(H/t) in float with a power-of-two scale
  linear_double,  ///< Linear<double>
  log_double,     ///< LogSumExp: path sums as logarithms in double; always valid for t > 0
  max_float,      ///< MaxPlus<float>: t = 0
  max_double      ///< MaxPlus<double>: t = 0
};

/// \brief Where a team keeps its rows: on chip, or in the global memory that Kokkos keeps for teams.
enum class ScratchLevel : std::uint8_t { fast = 0, large = 1 };

/// \brief Plan of an alignment score: one team per problem, whose lanes march along anti-diagonals of row strips.
struct AlignmentPlan {
  Rung first;                  ///< rung that every problem starts on
  Rung last;                   ///< rung that always succeeds
  int lanes;                   ///< lanes of a team
  int rows_per_lane;           ///< rows of a strip that one lane owns, in registers
  ScratchLevel scratch_level;  ///< where the row between two strips lives
  std::size_t scratch_bytes;   ///< bytes of it per team
};

/// \brief Plan of an HMM log-likelihood: one team per sequence, whose threads own states, one barrier a step.
struct HmmPlan {
  Rung first;                   ///< rung that every sequence starts on
  Rung last;                    ///< rung that always succeeds
  int team_threads;             ///< threads of a team
  bool model_in_scratch;        ///< each team normalises the model into its own scratch; else once, into the workspace
  ScratchLevel scratch_level;   ///< where the alpha vectors and a small model live
  std::size_t scratch_bytes;    ///< bytes of it per team
  std::size_t workspace_bytes;  ///< bytes of workspace that the caller provides
};

/// \brief Plan of a masked reduction: a thread per column, or a team per column where there are few columns.
struct MaskedReducePlan {
  bool team_per_column;  ///< a team shares the ranks of one column
  int team_threads;      ///< threads of that team (1 for a thread per column)
};

const char* to_string(Rung rung);
const char* to_string(ScratchLevel level);
std::ostream& operator<<(std::ostream& stream, const AlignmentPlan& plan);
std::ostream& operator<<(std::ostream& stream, const HmmPlan& plan);
std::ostream& operator<<(std::ostream& stream, const MaskedReducePlan& plan);

}  // namespace bellman

#endif
