# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: where things are, installing what is missing, building a preset.
# Everything that a build or a run writes goes below build/, so that a second run reuses it and
# 'rm -rf build' undoes it all.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
jobs=$(nproc 2>/dev/null || echo 2)

# Compiled kernels are kept between runs, but apart from those of an installed tpucl.
export TPUCL_CACHE_DIR=${TPUCL_CACHE_DIR:-$root/build/cache/tpucl}
export POCL_CACHE_DIR=${POCL_CACHE_DIR:-$root/build/cache/pocl}
mkdir -p "$root/build" "$TPUCL_CACHE_DIR" "$POCL_CACHE_DIR" || exit 1

say() { printf '%s\n' "--- $*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# need_packages KIND...: installs what scripts/packages lists under these kinds and is not there yet.
need_packages() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: CMake says what it misses
    local missing=() name kind wanted=" $* "
    while read -r name kind; do
        case $name in '' | '#'*) continue ;; esac
        [[ $wanted == *" $kind "* ]] || continue
        [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] || missing+=("$name")
    done <"$root/scripts/packages"
    ((${#missing[@]})) || return 0
    local as_root=()
    if [[ $(id -u) != 0 ]]; then
        command -v sudo >/dev/null || die "these packages are missing, and installing them needs root: ${missing[*]}"
        as_root=(sudo)
    fi
    say "installing ${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q -y)
    "${apt[@]}" update || die "apt-get could not fetch the lists of packages"
    "${apt[@]}" install --no-install-recommends "${missing[@]}" ||
        die "apt-get could not install: ${missing[*]}"
}

# only TARGET...: what build_preset builds from here on.
build_targets=()
only() { build_targets=("$@"); }

# build_preset PRESET [CMAKE ARGUMENTS...]: configures build/PRESET once, then builds what changed.
build_preset() {
    local preset=$1 log="$root/build/$1-configure.log" launcher=() target wanted=()
    shift
    command -v ccache >/dev/null && launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    say "building build/$preset"
    if ! cmake --preset "$preset" "${launcher[@]}" "$@" >"$log" 2>&1; then
        cat "$log" >&2
        die "CMake could not configure '$preset'"
    fi
    sed -n '/^-- tpucl /,/^-- Configuring/{/Configuring/!p}' "$log"
    for target in "${build_targets[@]}"; do wanted+=(--target "$target"); done
    cmake --build "build/$preset" -j "$jobs" "${wanted[@]}" || die "the '$preset' build failed"
}
