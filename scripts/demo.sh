#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing, builds the preset host, compares every backend of the build with the serial reference on the
# seed workloads and on cases with known answers, and runs the two examples on real data. Succeeds if all agree.
#
# Usage: scripts/demo.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

stage "Dependencies"
run scripts/install_dependencies.sh
stage "Build of the preset host"
build_preset host

build=build/host
failed=()
# try NAME COMMAND...: runs it and goes on, so that one disagreement does not hide the next.
try() {
  local name=$1
  shift
  run "$@" || failed+=("$name (exit $?)")
}

stage "Seed workloads"
try "the seed workloads" $build/perf_tests/bellman_compare perf_tests/cases/seed.yaml --json $build/demo_seed.json
stage "Cases with known answers"
try "the cases with known answers" $build/perf_tests/bellman_compare unit_tests/data/golden/[0-9]*.yaml \
  --json $build/demo_golden.json
stage "Globins: all pairs of 45 proteins"
try "the globins" $build/examples/01_globins/score_globins examples/data/globins45.fa examples/data/BLOSUM62
stage "Phage lambda: a genome under a hidden Markov model"
try "phage lambda" $build/examples/02_lambda_phage/score_genome examples/data/lambda_phage.fa \
  examples/data/lambda_phage_hmm.yaml
end_stage

if ((${#failed[@]})); then
  printf '\nNot everything agrees with the reference. Failed:'
  printf ' %s;' "${failed[@]}"
  printf ' see above.\n'
  exit 1
elif grep -qi cuda $build/demo_seed.json; then
  printf '\nHost and device agree with the reference, and the examples ran.\n'
else
  printf '\nThe host agrees with the reference, and the examples ran. This Kokkos has no device to compare with.\n'
fi
