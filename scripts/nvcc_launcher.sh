#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles one file with nvcc instead of the compiler that the command names, unless it is of src/host.
# check_cuda_compiles.sh gives it to CMake as CMAKE_CXX_COMPILER_LAUNCHER.
#
# Usage: BELLMAN_NVCC=nvcc BELLMAN_CUDA_OVERLAY=FOLDER nvcc_launcher.sh COMPILER FLAGS... -o OBJECT -c SOURCE
set -euo pipefail

# The units for one instruction set of a host are plain C++ for every compiler.
if [[ ${*: -1} == */src/host/*.cpp ]]; then
  exec "$@"
fi
compiler=$1
shift
command=("$BELLMAN_NVCC" -ccbin "$compiler" -x cu -arch=sm_90 --extended-lambda --expt-relaxed-constexpr
  -I "$BELLMAN_CUDA_OVERLAY")
while (($#)); do
  case $1 in
    -std=gnu++*) command+=("-std=c++${1#-std=gnu++}") ;;
    -MT | -MF | -isystem)  # nvcc knows these, but only with a separate value
      command+=("$1" "$2")
      shift
      ;;
    -W* | -f* | -m* | -pedantic*) command+=(-Xcompiler "$1") ;;
    *) command+=("$1") ;;
  esac
  shift
done
exec "${command[@]}"
