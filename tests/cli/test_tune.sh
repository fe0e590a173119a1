#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Tuning records never change a bit, whatever they say; what is wrong in them is told of; the tuner times nothing
# that is wrong, is interrupted and goes on.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
export TPUCL_TUNING_DIR=$work/records TPUCL_VERIFY=0 # records prove themselves here by the results alone
make_data 96 32
cat >run.json <<JSON
{"name": "tuned", "topology": "v2-8", "model": {"layers": [
    {"type": "Conv2D", "filters": 8, "kernel_size": 3, "padding": "same", "activation": "relu"},
    {"type": "Conv2D", "filters": 16, "kernel_size": 3, "strides": 2, "activation": "relu"}, {"type": "Flatten"},
    {"type": "Dense", "units": 64, "activation": "relu"}, {"type": "Dense", "units": 10}]},
 "loss": {"name": "sparse_categorical_crossentropy", "from_logits": true},
 "optimizer": {"name": "Adam"}, "precision": "mixed_bfloat16", "per_core_batch": 4,
 "data": {"dataset": "idx", "train": {"inputs": "train-images", "labels": "train-labels"}}, "steps": 2, "epochs": 1}
JSON

# ---- a record changes no bit ----

run train run.json --json right.json
expect_code 0
# The list of products, each with a record; `again` because a second is not enough to try anything.
run tune run.json --seconds 1 --rounds 3 --json tuned.json
expect_code 0
expect_json tuned.json 'len(r["products"]) >= 9 and r["device_class"] in r["file"] and not r["stopped"]'
expect_json tuned.json 'any(p["state"] in ("better", "default") for p in r["products"])'
expect_json tuned.json 'all(p["record"]["clock"] == "wall" and p["record"]["contract"] == r["contract"] and len(p["record"]["kernels"]) == 64 for p in r["products"] if p["record"])'
file=$(python3 -c 'import json; print(json.load(open("tuned.json"))["file"])')
[[ -s $file && $file == "$work"/records/* ]] || fail "records are not in '$file'"
expect_absent "$work/records/*.tmp*" "$work/records/.*"

# write_records: nonsense that is legal for every product of tuned.json, one kind after the other.
write_records() {
    python3 - "$file" <<'PY'
import json, sys
kinds = [
    {"variant": "mxu_direct", "TILE_M": 3},
    {"variant": "mxu_register", "TILE_M": 3, "VECTOR_WIDTH": 8, "TILE_VECTORS": 4, "PANEL_BY_ROW": 1,
     "B_IS_PACKED": 1, "GROUPS_PER_UNIT": 64},
    {"variant": "mxu_local", "THREADS_M": 4, "THREADS_N": 8, "THREAD_M": 1, "THREAD_N": 8, "TILE_K": 2},
    {"variant": "mxu_reference"},
]
tuned, file = json.load(open("tuned.json")), json.load(open(sys.argv[1]))
like = file["records"][0]
file["records"] = [dict(like, problem=p["name"], best=kinds[i % len(kinds)])
                   for i, p in enumerate(tuned["products"])]
json.dump(file, open(sys.argv[1], "w"))
PY
}
write_records
TPUCL_DUMP=$work/dump run train run.json --json other.json
expect_code 0
expect_not_in err 'record'
[[ $(digest other.json) == $(digest right.json) ]] || fail 'records changed the bits'
for variant in mxu_local mxu_reference 'TILE_M=3'; do
    grep -rqF -- "$variant" dump || fail "no record was followed: $variant is not in the dump"
done
TPUCL_TUNING=0 TPUCL_DUMP=$work/dump-off run train run.json --json off.json
[[ $(digest off.json) == $(digest right.json) ]] || fail 'records that are off changed the bits'
! grep -rqF mxu_local dump-off || fail 'TPUCL_TUNING=0 left records on'

# ---- what is wrong is told of once ----

python3 - "$file" <<'PY'
import json, sys
file = json.load(open(sys.argv[1]))
file["records"][0]["best"] = {"variant": "mxu_direct", "TILE_M": 1000000}
file["records"][1]["best"] = {"variant": "mxu_driect", "TILE_M": 1}
for record in file["records"][2:]: # legal, but not for products
    record["best"] = {"variant": "mxu_grouped", "TILE_M": 4}
json.dump(file, open(sys.argv[1], "w"), indent=1)
PY
run train run.json --json other.json
expect_code 0
expect_in err "$file" 'records[0].best.TILE_M' "did you mean 'mxu_direct'" 'expected an integer from 1 to 16'
[[ $(grep -c 'warning: kernel' err) == 1 ]] || fail "$(grep -c 'warning: kernel' err) warnings, expected one"
[[ $(digest other.json) == $(digest right.json) ]] || fail 'broken records changed the bits'
printf '{"format": 1, "records": [' >"$file"
run train run.json --json other.json
expect_code 0
expect_in err "$file:1:"
[[ $(digest other.json) == $(digest right.json) ]] || fail 'half a file of records changed the bits'

# ---- why ----

run devices --why dot_general:96x64x512 --json why.json
expect_code 0
expect_in out 'dot 96 64 512 bf16*bf16' 'overlay' "$file" 'shipped' 'heuristics choose' 'mxu_local' 'declines: ' 'taken: '
expect_json why.json 'r["record"] is None and [s["tier"] for s in r["sources"]][:2] == ["overlay", "shipped"]'
expect_json why.json 'r["sources"][0]["problems"] is not None'
expect_json why.json 'sum(v["state"] == "taken" for v in r["variants"]) == 1 and all(v["reason"] for v in r["variants"] if v["state"] == "declines")'
rm "$file"
run devices --why 'convolution_input_grad:2x9x9x4x8,3x3,stride=2,pad=1'
expect_code 0
expect_in out 'conv 2 9 9 4 8 3x3 stride=2 pad=1,1 out=5x5 bf16*bf16 op=input_grad' 'there is none'
for bad in 'dot_general:4x4' 'dot_general' 'softmax:3x3' 'dot_general:4x4x4,layout=XX' 'convolution:1x2x2x1x1,5x5,pad=valid' 'dot_general:0x1x1' ''; do
    run devices --why "$bad"
    expect_code 2
    expect_empty out
done

# ---- wrong settings are never timed ----

cp -r "$TPUCL_SOURCE/kernels" kernels
sed -i 's/MXU_FINISH_16(SUMS_16(r, i));/MXU_FINISH_16(SUMS_16(r, i)) * (TILE_M == 6 ? 1.5f : 1.0f);/' kernels/mxu/register_tile.clh
cmp -s kernels/mxu/register_tile.clh "$TPUCL_SOURCE/kernels/mxu/register_tile.clh" && fail 'the kernel was not sabotaged'
echo 'dot 96 512 256 # ragged tiles of most heights' >products.txt
TPUCL_KERNEL_DIR=$work/kernels run tune --problems products.txt --seconds 6 --rounds 3 --json wrong.json
expect_code 0
expect_in err 'not timed, it is wrong here: dot 96 512 256' 'TILE_M=6'
expect_json wrong.json 'all("TILE_M=6" in w["choice"] and "bits" in w["reason"] for p in r["products"] for w in p["wrong"]) and r["products"][0]["wrong"]'
expect_json "$file" 'all(not x["best"] or x["best"]["TILE_M"] != 6 for x in r["records"])'
rm "$file"

# ---- interrupted, and on ----

printf 'dot 8 16 32\n\ndot 16 16 64 layout=NT\nconv 1 8 8 4 4 3x3 op=filter_grad\n' >products.txt
current='tpucl tune, interrupted'
"$TPUCL" tune --problems products.txt --seconds 9 --json stopped.json >out 2>err </dev/null &
pid=$!
for _ in $(seq 600); do
    [[ -s $file ]] && break
    sleep 0.1
done
kill -INT $pid
wait $pid
code=$?
expect_code 5
expect_in out 'not done' 'the same command goes on'
expect_json stopped.json 'r["stopped"] and [p["state"] for p in r["products"]].count("left") >= 1'
kept=$(grep -c '"problem"' "$file")
run tune --problems products.txt --seconds 3 --json more.json
expect_code 0
expect_json more.json "[p['state'] for p in r['products']].count('known') == $kept"

# ---- a file that cannot be read is kept beside the new one ----

printf '{"format": 1, "records": [' >"$file"
run tune --problems products.txt --seconds 1 --rounds 3
expect_code 0
expect_in err 'left out' "$file.damaged"
[[ $(cat "$file.damaged") == '{"format": 1, "records": [' ]] || fail 'the damaged file is not what it was'

# ---- usage ----

run tune
expect_code 2
expect_in err 'either CONFIG or --problems FILE'
run tune run.json --problems products.txt
expect_code 2
run tune --problems missing.txt
expect_code 2
expect_in err 'missing.txt'
printf 'dot 1 2\nconv 1\n' >bad.txt
run tune --problems bad.txt
expect_code 2
expect_in err 'bad.txt:1' 'bad.txt:2'
run tune --problems /dev/null
expect_code 2
run tune --help
expect_code 0
expect_in out '--problems FILE' 'tpucl tune configs/fashion-conv.json'
touch plain
run tune --problems products.txt --output-dir plain/records
expect_code 2
expect_in err 'plain'

finish
