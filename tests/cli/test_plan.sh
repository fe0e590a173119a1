#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl plan: what it says is what a training then allocates, and what it refuses a training refuses.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 512 64

cat >run.json <<'JSON'
{"name": "small", "topology": "v2-8",
 "model": {"layers": [{"type": "Flatten"}, {"type": "Dense", "units": 64, "activation": "relu"},
    {"type": "Dense", "units": 10}]},
 "loss": {"name": "sparse_categorical_crossentropy", "from_logits": true}, "optimizer": {"name": "Adam"},
 "precision": "mixed_bfloat16", "per_core_batch": 8,
 "data": {"dataset": "idx", "train": {"inputs": "train-images", "labels": "train-labels"}}, "steps": 2}
JSON

# Byte for byte, on machines with eight cores and with one, in waves and with an evaluation.
same() {
    local name=$1
    shift
    run plan "$@" --json "plan-$name.json"
    expect_code 0
    run train "${@/--topology/--topology}" --json "train-$name.json"
    expect_code 0
    python3 -c 'import json, sys
p, t = (json.load(open(f"{k}-{sys.argv[1]}.json")) for k in ("plan", "train"))
row = p["topologies"][0]
print(json.dumps({"core": [row["core_bytes"], t["memory"]["core_bytes"]],
                  "device": [row["device"]["bytes"], t["memory"]["device_bytes"]],
                  "wave": [row["device"]["wave_cores"], t["memory"]["wave_cores"]]}))' "$name" >"same-$name.json"
    expect_json "same-$name.json" 'all(a == b and a > 0 for a, b in r.values())'
}
same v2 run.json --topology v2-8
same k80 run.json --topology k80
same waves run.json --topology v3-8 --set wave_cores=2 --set per_core_batch=16
same test run.json --topology v2-8 --set data.validation_split=0.25 --set precision=float32

# Accumulation: the memory of one micro-batch and one gradient more, the bits of so many times the cores.
same accumulate run.json --topology v2-8 --set accumulate=4
run plan run.json --topology v2-8 --set accumulate=2 --json twice.json
python3 - "$TPUCL_SOURCE/configs/topologies/v2-8.json" <<'PY'
import json, sys
t = json.load(open(sys.argv[1]))
json.dump({**t, "name": "v2-16", "cores": 16, "chips": 8}, open("sixteen.json", "w"))
one, two = (json.load(open(f))["topologies"][0]["here"]["kinds"] for f in ("plan-v2.json", "twice.json"))
json.dump({k: two[k] - one[k] for k in one} | {"weights_all": one["weights"]}, open("more.json", "w"))
PY
expect_json more.json 'r["weights_all"] <= r["collective"] < 1.05 * r["weights_all"] + 4096'
expect_json more.json 'all(v == 0 for k, v in r.items() if k not in ("collective", "infeed", "weights_all"))'
digests=()
for way in "--topology v2-8 --set accumulate=2" "--topology ./sixteen.json" "--topology v2-8 --set accumulate=2 --split 2" \
    "--topology v2-8 --set accumulate=2 --device reference"; do
    # shellcheck disable=SC2086
    run train run.json $way --json way.json
    expect_code 0
    digests+=("$(python3 -c 'import json; r = json.load(open("way.json")); print(r["params_sha256"], r["global_batch"])')")
done
for digest in "${digests[@]}"; do
    [[ $digest == "${digests[0]}" ]] || fail "accumulation changed bits: ${digests[*]}"
done
run plan run.json --topology v2-8 --set accumulate=300
expect_code 2
expect_in err "'accumulate' times the cores"

# Several machines at once; no device; what the table says.
run plan run.json --topology v2-8,v4-8,k80,cpu --no-device --json many.json
expect_code 0
expect_in out 'largest bf16' 'as a TPU' 'optimizer slots' 'reserve of the system' 'device has' 'host'
expect_json many.json '[t["topology"] for t in r["topologies"]] == ["v2-8", "v4-8", "k80", "cpu"]'
expect_json many.json 'all(t["device"] is None and t["host"]["limit_bytes"] > 0 for t in r["topologies"])'
expect_json many.json 'r["topologies"][3]["largest_batch"]["bfloat16"] is None'
expect_json many.json 'all(t["largest_batch"]["float32"] % t["largest_batch"]["step_float32"] == 0 for t in r["topologies"][:3])'
expect_json many.json 'r["topologies"][0]["tpu"]["kinds"]["reserve"] == 528 << 20'
expect_json many.json 'all(sum(t[v]["kinds"].values()) == t[v]["bytes"] for t in r["topologies"] for v in ("here", "tpu"))'

# A core with 1 MiB beside what its system takes: the largest batch trains, the next one is refused.
python3 - "$TPUCL_SOURCE/configs/topologies/v2-8.json" <<'PY'
import json, sys
t = json.load(open(sys.argv[1]))
t["name"] = "tight"
t["figures"]["hbm_bytes"] = {"value": 530, "unit": "MiB", "source": "test"}
json.dump(t, open("tight.json", "w"))
for key, figure in {"zero": ("hbm_bandwidth", 0), "negative": ("hbm_bytes", -1), "huge": ("hbm_bytes", 1e300)}.items():
    u = json.loads(json.dumps(t))
    u["figures"][figure[0]] = {"value": figure[1], "unit": "B/s" if "band" in figure[0] else "B", "source": "test"}
    json.dump(u, open(f"{key}.json", "w"))
u = json.loads(json.dumps(t)); u["cores"] = 0; json.dump(u, open("no-cores.json", "w"))
PY
run plan run.json --topology ./tight.json --json tight-plan.json
expect_code 0
read -r largest next < <(python3 -c 'import json
b = json.load(open("tight-plan.json"))["topologies"][0]["largest_batch"]
print(b["bfloat16"], b["bfloat16"] + b["step_bfloat16"])')
run train run.json --topology ./tight.json --set "per_core_batch=$largest"
expect_code 0
run train run.json --topology ./tight.json --set "per_core_batch=$next"
expect_code 4
expect_in err 'too much' "per_core_batch=$largest, the largest that fits" 'reserve of the system 528.00 MiB' \
    'largest at the peak' 'dense' 'on 8 cores'
run plan run.json --topology ./tight.json --set "per_core_batch=$next"
expect_code 0
expect_in out 'does not fit' "per_core_batch=$largest, the largest that fits"

# "batch": "auto" takes what fits, but no more than the data; both ways of giving a batch are one too many.
sed 's/"per_core_batch": 8/"batch": "auto"/' run.json >auto.json
run train auto.json --topology ./tight.json --json auto-run.json
expect_code 0
expect_json auto-run.json 'r["per_core_batch"] == 64 and r["global_batch"] == 512'
run train auto.json --set per_core_batch=8
expect_code 2
expect_in err "'batch' is \"auto\", but 'per_core_batch' is given, too"

# Without data: what the model says that it takes.
sed 's/"layers"/"inputs": [{"name": "image", "shape": [28, 28, 1]}], "layers"/; s/train-images/nowhere/' run.json >nodata.json
run plan nodata.json --topology v2-8
expect_code 0
expect_in out 'planned without data' 'nowhere'
run plan "$TPUCL_SOURCE/tests/golden/keras/mlp.json" --topology v2-8,k80 --no-device
expect_code 0
expect_in out 'k80'

# Projections: everything says so; known machines, what limits, what it costs.
run plan run.json --topology v2-8,k80,a100,cpu --no-device --examples 51200 --price 3.6 --json time.json
expect_code 0
expect_in out 'projected, never measured' 'projected time of layers on v2-8' 'ridge batch' 'epoch costs' 'no figures'
expect_json time.json 'r["topologies"][3]["projected"] is None'
expect_json time.json 'all(t["projected"]["kind"] == "projected" and t["projected"]["limiter"] and t["projected"]["layers"] for t in r["topologies"][:3])'
expect_json time.json '[t["projected"]["class"] for t in r["topologies"][:3]] == ["tpu", "gpu", "gpu-matrix"]'
expect_json time.json 'all(abs(t["projected"]["epoch_seconds"] / t["projected"]["step_seconds"] - 51200 / t["global_batch"]) < 1e-6 for t in r["topologies"][:3])'
expect_json time.json 'all(abs(t["projected"]["epoch_cost"] * 1000 / t["projected"]["epoch_seconds"] - 1) < 1e-9 for t in r["topologies"][:3])'
expect_json time.json 'all(p["step_low_seconds"] < p["step_seconds"] < p["step_high_seconds"] for p in (t["projected"] for t in r["topologies"][:3]))'
expect_json time.json '0 < r["topologies"][0]["projected"]["mxu_share"] < 1 and r["topologies"][1]["projected"]["mxu_share"] == 1'

# The device here: its figures are measured, its memory is the limit.
run plan run.json --topology here --json here.json
expect_code 0
expect_in out 'here'
expect_json here.json 'r["topologies"][0]["capacity_bytes"] == r["topologies"][0]["device"]["limit_bytes"]'
expect_json here.json 'r["topologies"][0]["cores"] == 1 and r["topologies"][0]["projected"]["step_seconds"] > 0'
OCL_ICD_VENDORS=/nonexistent run plan run.json --topology here
expect_code 3

# What others published: within the promise, with efficiencies that are the fit of these rows.
run plan --published --json published.json
expect_code 0
expect_in out 'projected' 'the band holds'
expect_json published.json 'len(r["rows"]) >= 40 and r["mean_factor"] <= 1.3 and r["worst_factor"] <= 2'
expect_json published.json 'r["in_band"] >= 0.8 * len(r["rows"]) and all(x["source"] for x in r["rows"])'
awk '/^```$/ { inside = !inside; next } inside' "$TPUCL_SOURCE/docs/plan.md" >documented
cmp -s documented out || fail "docs/plan.md has another table: $(diff documented out | head -4)"
python3 - >fit.json <<'PY'
import json, math, collections
groups = collections.defaultdict(lambda: collections.defaultdict(list))
for x in json.load(open("published.json"))["rows"]:
    if not x["over_network"]:
        groups[x["class"]][x["model"].split(",")[0], x["topology"]].append(math.log(x["published"] / x["projected"]))
mean = lambda v: sum(v) / len(v)
print(json.dumps({c: math.exp(mean([mean(v) for v in g.values()])) for c, g in groups.items()}))
PY
expect_json fit.json '{"tpu", "gpu", "gpu-matrix", "cpu"} <= set(r) and all(0.95 < v < 1.05 for c, v in r.items() if "v1" not in c)'

# Single arrays: sizes of public reports.
run plan --tensor 'f32[256,512,128,2]' --json tensor.json
expect_code 0
expect_in out '8.0 GiB' 'dimension 3 of 2 fills 128'
expect_json tensor.json 'r["bytes"] == 1 << 27 and r["row_major_bytes"] == 1 << 33'
run plan --tensor 's32[8388608,8,4]' --json tensor.json
expect_json tensor.json 'r["bytes"] == 1 << 30 and r["row_major_bytes"] == 1 << 35'
run plan --tensor 'f32[1099511627776,1099511627776]'
expect_code 2

# Nonsense is refused with a sentence.
for bad in zero negative no-cores; do
    run plan run.json --topology "./$bad.json"
    expect_code 2
done
expect_in err 'cores'
run plan run.json --topology ./huge.json --set per_core_batch=1048576 --no-device
expect_code 0
run plan run.json --price -3
expect_code 2
run plan run.json --topology nowhere
expect_code 2
finish
