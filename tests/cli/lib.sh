# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests beside it. Each runs the command as a user would, in a folder of its own, and looks
# at output, messages, exit code and what is left behind.
# shellcheck shell=bash
# The environment holds TPUCL (the command) and TPUCL_SOURCE (the tree).
set -u
: "${TPUCL:?}" "${TPUCL_SOURCE:?}"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
unset TPUCL_DEVICE TPUCL_LOG NO_COLOR

failures=0 checks=0 current=
fail() {
    failures=$((failures + 1))
    printf 'FAILED %s: %s\n' "$current" "$*"
    printf '  exit code %s\n' "${code-?}"
    sed 's/^/  out| /' out 2>/dev/null | head -40
    sed 's/^/  err| /' err 2>/dev/null | head -40
}

# run ARGUMENTS...: runs the command; exit code in $code, streams in the files out and err.
run() {
    current="tpucl $*"
    "$TPUCL" "$@" >out 2>err </dev/null
    code=$?
    if grep -qE 'AddressSanitizer|LeakSanitizer|runtime error:' err; then fail 'a sanitizer reported an error'; fi
}

expect_code() {
    checks=$((checks + 1))
    [[ $code == "$1" ]] || fail "expected exit code $1"
}
# expect_in FILE TEXT...: each fixed text is in FILE (out, err or any other).
expect_in() {
    local file=$1 text
    shift
    for text; do
        checks=$((checks + 1))
        grep -qF -- "$text" "$file" || fail "expected '$text' in $file"
    done
}
expect_not_in() {
    checks=$((checks + 1))
    ! grep -qF -- "$2" "$1" || fail "unexpected '$2' in $1"
}
expect_empty() {
    checks=$((checks + 1))
    [[ ! -s $1 ]] || fail "$1 should be empty"
}
# expect_absent PATH...: nothing half-written was left.
expect_absent() {
    local path
    for path; do
        checks=$((checks + 1))
        ! compgen -G "$path" >/dev/null || fail "'$path' was left behind"
    done
}
# expect_json FILE EXPRESSION: a Python expression over the parsed file `r` is true.
expect_json() {
    checks=$((checks + 1))
    python3 - "$1" "$2" >json-check 2>&1 <<'PY' || fail "JSON in $1: $2 ($(tail -1 json-check))"
import json, sys
def unique(pairs):
    assert len(pairs) == len({k for k, _ in pairs}), "duplicate key"
    return dict(pairs)
r = json.load(open(sys.argv[1]), object_pairs_hook=unique)
assert eval(sys.argv[2], {"r": r}), "not true"
PY
}

# finish: the verdict; every test ends with it.
finish() {
    if ((checks == 0)); then
        echo 'no check was made'
        exit 1
    fi
    printf '%d checks, %d failed\n' "$checks" "$failures"
    exit $((failures != 0))
}
