#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Precision as a user sets it: state by kind, warnings, files in bf16, one set of bits.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 96 32
make_config run.json 'config["epochs"] = 1; config["input_shape"] = [28, 28]
config["model"]["layers"].append({"type": "Activation", "activation": "linear", "dtype": "float32"})'
all='precision={"policy":"bfloat16","weights_rounding":"stochastic","first_moment":"bfloat16","gradients":"bfloat16"}'

# Adafactor keeps m + n numbers of an m x n matrix, in the dtype of second moments.
run check run.json --state --json state.json --set optimizer=Adafactor \
    --set 'precision={"policy":"bfloat16","second_moment":"bfloat16"}'
expect_code 0
expect_in out 'second_moment  bf16  [784]' 'adafactor/dense/kernel/column' 'variables: '
expect_json state.json 'sum(v["elements"] for v in r["state"]["variables"] if v["of"] == "dense/kernel") == 784 + 16'
expect_json state.json 'r["state"]["second_moment_bytes"] == 2 * (784 + 16 + 16 + 16 + 10 + 10)'
expect_json state.json 'r["state"]["weight_bytes"] == 2 * (784 * 16 + 16 + 160 + 10)'
expect_json state.json 'r["state"]["bytes"] == sum(v["bytes"] for v in r["state"]["variables"])'
run check run.json --json state.json
expect_not_in out 'dense/kernel/velocity'
expect_json state.json 'sum(v["elements"] for v in r["state"]["variables"] if v["of"] == "dense/kernel") == 2 * 784 * 16'

# One set of bits, whoever computes.
run train run.json --set "$all" --set optimizer.use_ema=true --json result.json --output-dir kept
expect_code 0
expect_not_in err 'warning'
expect_json result.json 'r["precision"] == "bfloat16"'
expected=$(digest result.json)
for way in '--device reference' --wave-cores=2; do
    # shellcheck disable=SC2086
    run train run.json --set "$all" --set optimizer.use_ema=true $way --json way.json
    expect_code 0
    [[ $(digest way.json) == "$expected" ]] || fail "$way changed the bits"
done

# What fails is said once, at the start.
run train run.json --set precision=bfloat16 --set optimizer.learning_rate=1e-5 --steps 1
expect_code 0
expect_in err '[bfloat16-weights]' 'stochastic'
[[ $(grep -c 'bfloat16-weights' err) == 1 ]] || fail 'not said once'

# Files: bf16 weights as such; they and f32 ones become each other.
dtypes() {
    python3 -c 'import json, sys
data = open(sys.argv[1], "rb").read()
head = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
print(*sorted({v["dtype"] for k, v in head.items() if k != "__metadata__"}))' "$1"
}
[[ $(dtypes kept/params.safetensors) == BF16 ]] || fail "dtypes of the file: $(dtypes kept/params.safetensors)"
run train run.json --params kept/params.safetensors --steps 1 --output-dir wide
expect_code 0
[[ $(dtypes wide/params.safetensors) == F32 ]] || fail "dtypes of the file: $(dtypes wide/params.safetensors)"
run train run.json --set "$all" --params wide/params.safetensors --steps 1
expect_code 0
run eval kept/config.json --params kept/params.safetensors
expect_code 0

# Floats rounded in the input pipeline: half the bytes, the same bits of the run on the device and in the interpreter;
# and since this network's first layer would round them anyway, those of the run without.
python3 - <<'PY'
import struct
def npy(name, dtype, shape, payload):
    head = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + payload)
n, state, rows = 96, 7, []
for i in range(n * 24):
    state = (state * 1103515245 + 12345) % 2**31
    rows.append(state / 2**30 - 1)
npy("x.npy", "<f4", (n, 24), struct.pack(f"<{n * 24}f", *rows))
npy("y.npy", "<i4", (n,), struct.pack(f"<{n}i", *(int(rows[24 * i] > 0) for i in range(n))))
PY
make_config floats.json 'config["epochs"] = 1
config["data"] = {"dataset": "npy", "train": {"inputs": "x.npy", "labels": "y.npy"}}'
run train floats.json --set "$all" --json wide.json
expect_code 0
for device in '' '--device reference'; do
    # shellcheck disable=SC2086
    run train floats.json --set "$all" --set data.input_dtype=bfloat16 $device --json way.json
    expect_code 0
    [[ $(digest way.json) == "$(digest wide.json)" ]] || fail "data.input_dtype $device changed the bits"
done

# Keras' files have the policies of the run and of single layers.
run export kept/config.json -o model.keras
if [[ $code == 0 ]] || ! grep -q "HDF5" err; then
    expect_code 0
    checks=$((checks + 1))
    python3 - <<'PY' || fail 'other policies in the file'
import json, zipfile
layers = json.loads(zipfile.ZipFile("model.keras").read("config.json"))["config"]["layers"]
found = {l["config"]["name"]: l["config"]["dtype"] for l in layers}
names = {k: v if isinstance(v, str) else v["config"]["name"] for k, v in found.items()}
assert names["dense"] == names["dense_1"] == "bfloat16" and names["activation"] == "float32", names
PY
fi
finish
