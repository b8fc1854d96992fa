// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_BELLMAN_HPP
#define BELLMAN_BELLMAN_HPP

/// \file
/// The whole of Bellman. Users include this header or those below, and nothing under impl/.

#include <bellman/accuracy.hpp>
#include <bellman/alignment.hpp>
#include <bellman/error.hpp>
#include <bellman/hmm.hpp>
#include <bellman/masked_reduce.hpp>
#include <bellman/options.hpp>
#include <bellman/plan.hpp>
#include <bellman/status.hpp>
#include <bellman/version.hpp>

#endif
