#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds the preset host, and runs every test.
#
# Usage: scripts/test.sh [CTEST FLAGS]   for example: scripts/test.sh -L hmm
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stage "Dependencies"
run scripts/install_dependencies.sh
stage "Build of the preset host"
build_preset host
stage "Tests"
run ctest --preset host "$@"
end_stage
