# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts of this folder and .ci/run share. Sourced, not run; it changes to the root of the repository.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
root=$PWD
deps=$root/.deps

# Kokkos asks for a choice and warns without one. Tests start many short programs side by side: threads stay unpinned.
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}

say() { printf '%s\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# run COMMAND ARGS... shows the command, then runs it. No command of ours reads the standard input.
run() {
  printf '+ %s\n' "$*"
  "$@" </dev/null
}

# stage HEADING closes the stage before with the time that it took, then opens a new one.
stage_name=''
stage_start=0
end_stage() {
  if [[ -n $stage_name ]]; then
    printf -- '--- %s: %d s\n' "$stage_name" $((SECONDS - stage_start))
  fi
  stage_name=''
}
stage() {
  end_stage
  stage_name=$1
  stage_start=$SECONDS
  printf '\n=== %s\n' "$stage_name"
}

# as_root COMMAND...: runs it as root, directly or through sudo.
as_root() {
  if [[ $EUID -eq 0 ]]; then
    run env DEBIAN_FRONTEND=noninteractive "$@"
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
    printf '+ sudo %s\n' "$*"
    sudo env DEBIAN_FRONTEND=noninteractive "$@"  # keeps the terminal: sudo may ask for the password
  else
    die "\"$*\" must run as root, and this user is neither root nor may use sudo. Run it as root, then start again."
  fi
}

apt_lists_are_fresh=no
update_apt_lists() {
  [[ $apt_lists_are_fresh == no ]] || return 0
  as_root apt-get update
  apt_lists_are_fresh=yes
}

# apt_install WHY PACKAGES...
apt_install() {
  local why=$1
  shift
  command -v apt-get >/dev/null ||
    die "$why is missing, and this system has no apt to install it with. Debian calls the packages: $*"
  update_apt_lists
  as_root apt-get install --yes --no-install-recommends "$@"
}

# Sets toolchain_flags to the CMake flags that choose the project's own Kokkos, or to nothing: a Kokkos_ROOT of the
# user's comes first.
# shellcheck disable=SC2034  # used by those who source this file
choose_toolchain() {
  toolchain_flags=()
  if [[ -z ${Kokkos_ROOT:-} && -f $deps/toolchain.cmake ]]; then
    toolchain_flags=(--toolchain "$deps/toolchain.cmake")
  fi
}

# build_preset NAME [CMAKE FLAGS]: configures and builds it in build/NAME.
build_preset() {
  local preset=$1
  shift
  choose_toolchain
  run cmake --preset "$preset" "${toolchain_flags[@]}" "$@"
  run cmake --build --preset "$preset" --parallel "$(nproc)"
}
