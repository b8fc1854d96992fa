#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes available what Bellman needs, and only what is missing: a C++20 compiler, CMake, Ninja, GoogleTest, yaml-cpp,
# Google Benchmark and Kokkos >= 4.6. A second run finds everything there and changes nothing.
#
# Kokkos is taken from the first of these that has it:
#   1. Kokkos_ROOT in the environment, or wherever CMake finds Kokkos by itself (module, Spack, own build);
#   2. the package libkokkos-dev of this system's release, if it is new enough;
#   3. on Debian, libkokkos-dev of the suite sid, unpacked into .deps/ of this repository, never into the system.
# The other packages come from apt, as root or through sudo.
#
# Usage: scripts/install_dependencies.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

kokkos_minimum=4.6
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# --- what is missing --------------------------------------------------------------------------------------------------

# Prints the Debian packages of the tools that are not on the PATH.
missing_tools() {
  command -v "${CXX:-c++}" >/dev/null || say g++
  command -v ninja >/dev/null || say ninja-build
  command -v cmake >/dev/null || say cmake
}

# probe [CMAKE FLAGS]: configures an empty project that looks for all libraries. Afterwards missing_libraries holds the
# Debian packages of those that CMake did not find, and kokkos_found the version and folder of Kokkos, or nothing.
probe() {
  mkdir -p "$scratch/probe"
  cat >"$scratch/probe/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.25)
project(probe LANGUAGES CXX)
foreach(pair GTest=libgtest-dev yaml-cpp=libyaml-cpp-dev benchmark=libbenchmark-dev)
  string(REPLACE "=" ";" pair \${pair})
  list(GET pair 0 package)
  find_package(\${package} QUIET)
  if(NOT \${package}_FOUND)
    list(GET pair 1 package)
    message(NOTICE "missing: \${package}")
  endif()
endforeach()
find_package(Kokkos QUIET)
if(Kokkos_FOUND AND Kokkos_VERSION VERSION_GREATER_EQUAL $kokkos_minimum)
  message(NOTICE "kokkos: \${Kokkos_VERSION} in \${Kokkos_DIR} (\${Kokkos_DEVICES})")
endif()
EOF
  rm -rf "$scratch/probe/build"
  # Kokkos comes last: one that is found but broken ends the configure step with an error, and counts as not found.
  cmake -S "$scratch/probe" -B "$scratch/probe/build" -G Ninja "$@" >"$scratch/probe/log" 2>&1 </dev/null ||
    sed -i '/^kokkos: /d' "$scratch/probe/log"
  mapfile -t missing_libraries < <(sed -n 's/^missing: //p' "$scratch/probe/log")
  kokkos_found=$(sed -n 's/^kokkos: //p' "$scratch/probe/log")
}

# --- Kokkos from sid, in a prefix of our own --------------------------------------------------------------------------

# candidate PACKAGE [APT OPTIONS]: the version that apt would install, or nothing.
candidate() {
  local package=$1
  shift
  apt-cache "$@" policy "$package" 2>/dev/null | sed -n 's/^ *Candidate: *//p' | grep -v '(none)' || true
}

# Prints the address of the Debian mirror that this machine is set up to use, whatever the form of its apt sources.
debian_mirror() {
  # shellcheck disable=SC2016  # apt expands it
  apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' \
    'Component: main' 2>/dev/null | sed -n 1p
}

# Downloads libkokkos-dev of sid, with all that it depends on, into $1/archives. apt works on a state of its own: the
# machine's lists, its packages and their database stay as they are. The machine's proxy settings and keys are kept.
download_kokkos() {
  local apt=$1 mirror keyring=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(debian_mirror)
  if [[ -z $mirror ]]; then
    update_apt_lists
    mirror=$(debian_mirror)
  fi
  [[ -n $mirror ]] || die "the apt sources of this machine name no Debian mirror, so sid cannot be reached."

  mkdir -p "$apt"/{lists/partial,archives/partial}
  : >"$apt/status"  # no package counts as installed, so that apt fetches libc and libstdc++ of sid as well
  local signed_by=''
  [[ ! -r $keyring ]] || signed_by="[signed-by=$keyring] "
  say "deb $signed_by$mirror sid main" >"$apt/sources.list"
  cat >"$apt/apt.conf" <<EOF
Dir::State "$apt";
Dir::State::lists "$apt/lists";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
Dir::Cache::archives "$apt/archives";
Dir::Log "$apt";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
APT::Default-Release "";
// A mirror may keep a sid that is past its date. Signatures are still checked.
Acquire::Check-Valid-Until "false";
// Files in a private folder, which the user _apt may not enter.
APT::Sandbox::User "root";
// Hooks of the machine that belong to its own lists and packages.
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Post-Invoke;
EOF
  run apt-get -c "$apt/apt.conf" update
  local version
  version=$(candidate libkokkos-dev -c "$apt/apt.conf")
  dpkg --compare-versions "${version:-0}" ge $kokkos_minimum ||
    die "libkokkos-dev $kokkos_minimum or newer is needed, but sid of $mirror has ${version:-none}." \
      "Build Kokkos and set Kokkos_ROOT."
  run apt-get -c "$apt/apt.conf" install --yes --no-install-recommends --download-only libkokkos-dev
}

# The package is made for sid. What it takes to use it on an older Debian:
# - its CMake targets name the absolute folder /usr/include/kokkos: ours is told relative to the prefix;
# - they list two archives of header-only parts that the package leaves out: empty ones do;
# - the library needs a newer glibc and libstdc++ than the system's, see write_toolchain.
repair_kokkos() {
  local prefix=$deps/kokkos/usr targets file archive
  targets=$(find "$prefix" -name KokkosTargets.cmake)
  [[ -n $targets ]] || die "libkokkos-dev holds no KokkosTargets.cmake; its layout has changed."
  # shellcheck disable=SC2016  # CMake expands it
  sed -i 's|"/usr/include/kokkos"|"${_IMPORT_PREFIX}/include/kokkos"|' "$targets"
  for file in "${targets%.cmake}"-*.cmake; do
    while read -r archive; do
      [[ -e $prefix/$archive ]] || run ar cr "$prefix/$archive"
    done < <(sed -n 's|.*IMPORTED_LOCATION_[A-Z]* "${_IMPORT_PREFIX}/\(.*\.a\)"|\1|p' "$file")
  done
}

# Programs must start with the dynamic linker of the same glibc that they load, and find the newer libraries before the
# system's, also on behalf of libraries of the system such as libyaml-cpp. Only a DT_RPATH is inherited so; hence
# --disable-new-dtags. The link itself uses the system's older libc, which lacks some of the symbols that libkokkoscore
# asks for; hence --allow-shlib-undefined.
write_toolchain() {
  local linker libraries
  linker=$(cd "$deps" && find runtime/usr/lib -maxdepth 2 -name 'ld-linux*.so.*' | sed -n 1p)
  [[ -n $linker ]] || die "libc6 of sid holds no dynamic linker; its layout has changed."
  libraries=$(dirname "${linker#runtime/}")
  cat >"$deps/toolchain.cmake" <<EOF
# SPDX-License-Identifier: Apache-2.0
# Written by scripts/install_dependencies.sh, which gives the reasons: builds programs on the Kokkos of this folder.
set(Kokkos_ROOT "\${CMAKE_CURRENT_LIST_DIR}/kokkos/usr")
string(
  CONCAT CMAKE_EXE_LINKER_FLAGS_INIT
  "-Wl,--dynamic-linker=\${CMAKE_CURRENT_LIST_DIR}/$linker "
  "-Wl,-rpath,\${CMAKE_CURRENT_LIST_DIR}/runtime/$libraries:\${CMAKE_CURRENT_LIST_DIR}/kokkos/$libraries "
  "-Wl,--disable-new-dtags -Wl,--allow-shlib-undefined"
)
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,--disable-new-dtags -Wl,--allow-shlib-undefined")
EOF
}

# Kokkos goes into .deps/kokkos, the newer C and C++ libraries into .deps/runtime: in one folder, CMake would warn that
# they hide the system's.
install_kokkos_into_deps() {
  [[ $deps != *[[:space:]]* ]] || die "the path \"$root\" contains a space, which linker flags do not allow."
  mkdir -p "$deps"
  rm -rf "$deps"/{toolchain.cmake,apt,kokkos,runtime}
  download_kokkos "$deps/apt"
  local package
  for package in "$deps/apt/archives"/*.deb; do
    case ${package##*/} in
      libkokkos*) run dpkg-deb -x "$package" "$deps/kokkos" ;;
      *) run dpkg-deb -x "$package" "$deps/runtime" ;;
    esac
  done
  repair_kokkos
  rm -rf "$deps/apt"
  write_toolchain  # last: this file says that the rest is complete
}

# --- main -------------------------------------------------------------------------------------------------------------

mapfile -t tools < <(missing_tools)
if ((${#tools[@]})); then
  apt_install "a build tool" "${tools[@]}"
fi

choose_toolchain
probe "${toolchain_flags[@]}"
if ((${#missing_libraries[@]})); then
  apt_install "a library" "${missing_libraries[@]}"
  probe "${toolchain_flags[@]}"
fi

if [[ -z $kokkos_found && -n ${Kokkos_ROOT:-} ]]; then
  cat "$scratch/probe/log" >&2
  die "Kokkos_ROOT is $Kokkos_ROOT, but CMake finds no usable Kokkos >= $kokkos_minimum there; see above."
fi

if [[ -z $kokkos_found ]] && command -v apt-cache >/dev/null; then
  version=$(candidate libkokkos-dev)
  if dpkg --compare-versions "${version:-0}" ge $kokkos_minimum; then
    apt_install Kokkos libkokkos-dev
    probe
    [[ -n $kokkos_found ]] || say "CMake cannot use this package as it is, because files are missing."
  fi
fi

if [[ -z $kokkos_found ]]; then
  grep -qsx 'ID=debian' /etc/os-release ||
    die "Kokkos >= $kokkos_minimum is missing, and this system has no package of it. Build it and set Kokkos_ROOT."
  install_kokkos_into_deps
  choose_toolchain
  probe "${toolchain_flags[@]}"
fi

if [[ -z $kokkos_found || ${#missing_libraries[@]} -gt 0 ]]; then
  cat "$scratch/probe/log" >&2
  die "CMake still does not find everything; see above."
fi
say "All dependencies are there. Kokkos $kokkos_found"
