#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs the build, then uses it as a stranger would.
set -eu
: "${TPUCL_BUILD:?}" "${TPUCL_SOURCE:?}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
flags=()
case ${TPUCL_SANITIZE:-} in
address) flags=(-fsanitize=address,undefined) ;;
thread) flags=(-fsanitize=thread) ;;
esac
strict=(-Wall -Wextra -pedantic -Werror)

cmake --install "$TPUCL_BUILD" --prefix "$prefix" >"$work/install.log"
for file in bin/tpucl include/tpucl/tpucl.h include/tpucl/run.h share/man/man1/tpucl.1 \
    share/man/man1/tpucl-train.1 share/bash-completion/completions/tpucl \
    share/zsh/site-functions/_tpucl share/tpucl/configs/fashion-mlp.json; do
    [[ -f $prefix/$file ]] || { echo "not installed: $file" >&2; exit 1; }
done
libdir=$(dirname "$(find "$prefix" -name 'libtpucl.so' | head -1)")
LD_LIBRARY_PATH='' "$prefix/bin/tpucl" version # finds its library by its own place

echo '--- pkg-config, C11 and C++17, both compilers where there are two'
export PKG_CONFIG_PATH=$libdir/pkgconfig LD_LIBRARY_PATH=$libdir
for compiler in gcc clang; do
    command -v "$compiler" >/dev/null || continue
    [[ $compiler == gcc || -z ${TPUCL_SANITIZE:-} ]] || continue
    cxx=${compiler/gcc/g++} && cxx=${cxx/clang/clang++}
    # shellcheck disable=SC2046
    "$compiler" -std=c11 "${strict[@]}" "${flags[@]}" "$TPUCL_SOURCE/tests/consumer/headers.c" \
        $(pkg-config --cflags --libs tpucl) -o "$work/headers-c"
    "$work/headers-c"
    command -v "$cxx" >/dev/null || continue
    # shellcheck disable=SC2046
    "$cxx" -std=c++17 "${strict[@]}" "${flags[@]}" -x c++ "$TPUCL_SOURCE/tests/consumer/headers.c" \
        -x none $(pkg-config --cflags --libs tpucl) -o "$work/headers-cpp"
    "$work/headers-cpp"
    # shellcheck disable=SC2046
    "$cxx" -std=c++17 "${strict[@]}" "${flags[@]}" -x c++ "$TPUCL_SOURCE/examples/minimal.c" \
        -x none $(pkg-config --cflags --libs tpucl) -o "$work/minimal-cpp"
done

echo '--- CMake package'
cmake -S "$TPUCL_SOURCE/tests/consumer/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" \
    -DTPUCL_SOURCE="$TPUCL_SOURCE" -DCMAKE_C_FLAGS="${flags[*]-}" -DCMAKE_CXX_FLAGS="${flags[*]-}" >"$work/cmake.log"
cmake --build "$work/build" >"$work/build.log" || { cat "$work/build.log" >&2; exit 1; }
"$work/build/headers_cpp"

echo '--- the example trains, the same bits from C and C++'
"$work/build/minimal" | tee "$work/c.out"
"$work/minimal-cpp" >"$work/cpp.out"
diff "$work/c.out" "$work/cpp.out"
grep -q 'epoch 2: .* test accuracy 8[0-9]\.' "$work/c.out"
