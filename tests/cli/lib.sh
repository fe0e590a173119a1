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
export TPUCL_TUNING_DIR=$work/tuning # not what the user has tuned

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

# make_data TRAIN TEST: IDX files train-images, train-labels, test-images, test-labels of so many examples;
# the class can be learnt from the picture.
make_data() {
    python3 - "$1" "$2" <<'PY'
import sys
def write(name, dims, payload):
    head = bytes([0, 0, 8, len(dims)]) + b"".join(d.to_bytes(4, "big") for d in dims)
    open(name, "wb").write(head + payload)
state = 12345
def next_byte():
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return state >> 16 & 255
for part, count in (("train", int(sys.argv[1])), ("test", int(sys.argv[2]))):
    labels, images = bytearray(), bytearray()
    for i in range(count):
        label = next_byte() % 10
        labels.append(label)
        images += bytes(min(255, next_byte() // 4 + (160 if p // 78 == label else 0)) for p in range(784))
    write(part + "-images", (count, 28, 28), bytes(images))
    write(part + "-labels", (count,), bytes(labels))
PY
}
# make_config FILE [PYTHON]: a small run on that data, changed by a statement about `config`.
make_config() {
    python3 - "$1" "${2-}" <<'PY'
import json, sys
config = {
    "name": "tiny", "topology": "v2-8",
    "model": {"layers": [{"type": "Flatten"}, {"type": "Dense", "units": 16, "activation": "relu"},
                         {"type": "Dense", "units": 10}]},
    "loss": {"name": "sparse_categorical_crossentropy", "from_logits": True},
    "metrics": ["accuracy"], "optimizer": {"name": "Adam"}, "precision": "mixed_bfloat16",
    "per_core_batch": 4, "epochs": 2, "seed": 1,
    "data": {"dataset": "idx", "train": {"inputs": "train-images", "labels": "train-labels"},
             "test": {"inputs": "test-images", "labels": "test-labels"}},
}
exec(sys.argv[2])
json.dump(config, open(sys.argv[1], "w"), indent=1)
PY
}
# digest FILE: the params_sha256 of a result.
digest() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["params_sha256"])' "$1"
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
