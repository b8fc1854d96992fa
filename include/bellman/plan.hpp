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
  int threads;                     ///< threads times lanes that run at the same time
  int register_bytes = 0;          ///< of a SIMD register on hosts; 0 elsewhere
};

/// \brief The ladder of algebras. Each rung is exact where its certificate holds; where it does not, the problem climbs
/// to the next rung within the same launch. The last rung needs no certificate.
enum class Rung : std::uint8_t {
  linear_float,   ///< Linear<float>: path sums e^(H/t) in float with a power-of-two scale
  linear_mixed,   ///< Linear<double, float>: path sums in double, weights in float
  linear_double,  ///< Linear<double>
  log_double,     ///< LogSumExp: path sums as logarithms in double; always valid for t > 0
  max_float,      ///< MaxPlus<float>: t = 0
  max_double      ///< MaxPlus<double>: t = 0
};

/// \brief Where a team keeps its rows: on chip, or in the global memory that Kokkos keeps for teams.
enum class ScratchLevel : std::uint8_t { fast = 0, large = 1 };

/// \brief How an alignment visits its cells. The first four round alike: which of them is chosen does not show. Hosts have the
/// last for all problems of a size.
enum class AlignmentSweep : std::uint8_t {
  tiles,   ///< lane groups with a problem each, tiles of a few rows by 16 bytes, scores by asynchronous copies: GPUs
  staged,  ///< a team per problem, all weights in scratch before the first cell: few small problems on GPUs
  strips,  ///< all lanes of a team on one problem, cell by cell, any layout: views that are not aligned, t = 0
  pipeline,  ///< many teams on each problem, a block of rows each, any layout: few large problems on GPUs, with a workspace
  packs      ///< a problem per SIMD lane of a thread, any layout: hosts
};

/// \brief Plan of an alignment score. Lanes march along the anti-diagonals of row strips.
struct AlignmentPlan {
  Rung first;                   ///< rung that every problem starts on
  Rung last;                    ///< rung that always succeeds
  AlignmentSweep sweep;         ///< how the cells are visited
  int lanes;                    ///< lanes that share a problem
  int rows_per_lane;            ///< rows of a strip that one lane owns, in registers
  ScratchLevel scratch_level;   ///< where scores and the row between two strips live
  std::size_t scratch_bytes;    ///< bytes of it per team
  std::size_t climb_bytes;      ///< tiles: bytes of large scratch per team, for problems that climb
  int most_teams;               ///< tiles, pipeline: what these teams do not hold is taken in turns
  int problems_per_thread;      ///< packs: problems side by side, one a SIMD lane
  std::size_t workspace_bytes;  ///< pipeline: bytes of workspace that the caller provides
};

/// \brief Who holds the states of a hidden Markov model. Matrices and lanes round alike: which of them is chosen does not
/// show. Among the others the numbers of states and of steps decide, and whether the backend is a host.
enum class HmmSweep : std::uint8_t {
  matrices,  ///< few states, many sequences: a few lanes per direction, the transitions in their registers
  lanes,     ///< few states, few sequences: a team per sequence, a lane per state, from both ends at once
  blocks,    ///< few states, long sequences: blocks of steps at the same time, each as what it does to every state
  packs,     ///< few states, hosts: a thread takes a few sequences at a time, a state per SIMD lane
  chain,     ///< any number of states: a team per sequence, whose threads share the states, one barrier a step
  tensors,   ///< dozens of states, float, on GPUs: a warp owns some sequences, a step is a product on tensor cores
  tiles,  ///< up to hundreds of states, on GPUs: a team owns some sequences, each thread a tile of sequences x states
  steps   ///< more states, on GPUs: a launch per step from both ends at once, a team per tile of sequences x states
};

/// \brief Sizes of the sweeps by tensor products, tiles and steps. How many sequences share a team does not show.
struct HmmTiles {
  int sequences;              ///< of a team; steps: sequences that are swept together
  std::int64_t league_size;   ///< tensors, tiles: number of teams
  int team_threads;           ///< tensors: warps of a team; tiles: threads
  bool weights_in_scratch;    ///< tiles: the transitions lie in scratch as well; else each team reads the workspace
  std::size_t scratch_bytes;  ///< tensors, tiles: bytes of fast scratch per team
};

/// \brief Plan of an HMM log-likelihood. With the sweeps by tensor products, tiles and steps, league, team and scratch are those of the
/// launch that takes what they cannot certify further up.
struct HmmPlan {
  Rung first;                   ///< rung that every sequence starts on
  Rung last;                    ///< rung that always succeeds
  HmmSweep sweep;               ///< who holds the states
  std::int64_t league_size;     ///< number of teams
  int team_threads;             ///< threads of a team
  bool model_in_scratch;        ///< each team normalises the model into its own scratch; else once, into the workspace
  ScratchLevel scratch_level;   ///< where the alpha vectors and a small model live
  std::size_t scratch_bytes;    ///< bytes of it per team
  std::size_t workspace_bytes;  ///< bytes of workspace that the caller provides
  HmmTiles tiles;               ///< for the sweeps by tensor products, tiles and steps
};

/// \brief Plan of a masked reduction: a thread per column, or per pack or block of neighbouring columns, or a team per column
/// where there are few columns and many ranks.
struct MaskedReducePlan {
  bool team_per_column;  ///< a team shares the ranks of one column
  int team_threads;      ///< threads of that team (1 for a thread per column)
  bool packs;            ///< a thread owns as many neighbours as one load takes, if rows are contiguous and aligned
  int block = 1;         ///< hosts: neighbours that a thread owns, if rows are contiguous
  bool streams = false;  ///< hosts: results are written past the caches
};

const char* to_string(Rung rung);
const char* to_string(ScratchLevel level);
const char* to_string(AlignmentSweep sweep);
const char* to_string(HmmSweep sweep);
std::ostream& operator<<(std::ostream& stream, const AlignmentPlan& plan);
std::ostream& operator<<(std::ostream& stream, const HmmPlan& plan);
std::ostream& operator<<(std::ostream& stream, const MaskedReducePlan& plan);

}  // namespace bellman

#endif
