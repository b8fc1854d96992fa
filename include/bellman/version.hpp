// SPDX-License-Identifier: Apache-2.0
#ifndef BELLMAN_VERSION_HPP
#define BELLMAN_VERSION_HPP

#define BELLMAN_VERSION_MAJOR 0
#define BELLMAN_VERSION_MINOR 1
#define BELLMAN_VERSION_PATCH 0

/// The version as one number, MAJOR * 10000 + MINOR * 100 + PATCH, for comparisons in the preprocessor.
#define BELLMAN_VERSION (BELLMAN_VERSION_MAJOR * 10000 + BELLMAN_VERSION_MINOR * 100 + BELLMAN_VERSION_PATCH)

#endif
