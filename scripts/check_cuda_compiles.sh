#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Compiles everything that the preset host builds for CUDA as well (sm_90), without linking or running it, so that work
# on a machine without a GPU does not break CUDA. Needs nvcc; without it, the script says so and succeeds.
#
# A Kokkos of the host alone still has the headers of its CUDA backend, switched off in five files that Kokkos's own
# build generates. The build folder gets copies of these with CUDA switched on, and they go first on the include path.
#
# Usage: scripts/check_cuda_compiles.sh [FOLDER]   (FOLDER: a project with a preset host; default: Bellman itself)
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

source_folder=${1:-$root}
build=$source_folder/build/cuda-compile
overlay=$build/overlay
nvcc=$(command -v nvcc || command -v "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" || true)
if [[ -z $nvcc ]]; then
  say "No nvcc on this machine: CUDA is not checked."
  exit 0
fi

# Prints the folder with Kokkos's headers, as the commands of the build name it.
kokkos_headers() {
  local folder
  while read -r folder; do
    if [[ -f $folder/KokkosCore_config.h ]]; then
      say "$folder"
      return
    fi
  done < <(ninja -C "$build" -t commands | grep -oE -- '-(I|isystem) ?[^ ]+' | sed -E 's/^-(I|isystem) ?//' | sort -u)
  die "no folder on the include path holds KokkosCore_config.h."
}

# edit FILE SED_EXPRESSION...: writes the edited copy of a header of Kokkos into the overlay. An edit that changes
# nothing means that Kokkos has changed, and then this script must too.
edit() {
  local file=$1
  shift
  mkdir -p "$(dirname "$overlay/$file")"
  sed -E "$@" "$headers/$file" >"$overlay/$file.new"
  ! cmp -s "$headers/$file" "$overlay/$file.new" || die "$headers/$file has no place to switch CUDA on."
  # Unchanged files keep their time: nothing is compiled again for them.
  if cmp -s "$overlay/$file.new" "$overlay/$file"; then
    rm "$overlay/$file.new"
  else
    mv "$overlay/$file.new" "$overlay/$file"
  fi
}

export BELLMAN_NVCC=$nvcc BELLMAN_CUDA_OVERLAY=$overlay
choose_toolchain
run cmake -S "$source_folder" --preset host -B "$build" "${toolchain_flags[@]}" \
  -DCMAKE_CXX_COMPILER_LAUNCHER="$root/scripts/nvcc_launcher.sh"

headers=$(kokkos_headers)
if grep -q '^#define KOKKOS_ENABLE_CUDA$' "$headers/KokkosCore_config.h"; then
  say "This Kokkos has CUDA: the build itself compiles it, no further check is needed."
  exit 0
fi
edit KokkosCore_config.h -e 's,^/\* #undef (KOKKOS_ENABLE_CUDA|KOKKOS_ARCH_HOPPER|KOKKOS_ARCH_HOPPER90) \*/,#define \1,'
# sed's "$i" inserts before the last line, the #endif.
# shellcheck disable=SC2016
{
  edit KokkosCore_Config_DeclareBackend.hpp -e '$i #include <decl/Kokkos_Declare_CUDA.hpp>'
  edit KokkosCore_Config_FwdBackend.hpp -e '$i #include <fwd/Kokkos_Fwd_CUDA.hpp>'
  edit KokkosCore_Config_SetupBackend.hpp -e '$i #include <setup/Kokkos_Setup_Cuda.hpp>'
}
edit desul/atomics/Config.hpp -e 's,^/\* #undef (DESUL_ATOMICS_ENABLE_CUDA) \*/,#define \1,'

mapfile -t objects < <(ninja -C "$build" -t inputs all | grep '\.o$')
((${#objects[@]})) || die "the build has no object files."
say "+ ninja -C $build ... (${#objects[@]} object files)"
ninja -C "$build" -j "$(nproc)" "${objects[@]}" </dev/null
say "All ${#objects[@]} files compile for CUDA: $("$nvcc" --version | grep -o 'release.*')"
