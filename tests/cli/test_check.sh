#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl check: everything at once, before anything runs and without a device.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 1024 32
export OCL_ICD_VENDORS=/nonexistent

# Six different problems: batch, padding of products, precision, statistics of few examples, the last batch,
# probabilities.
cat >five.json <<'JSON'
{"name": "five", "topology": "v2-8",
 "model": {"layers": [{"type": "Reshape", "target_shape": [28, 28, 1]},
    {"type": "Conv2D", "filters": 9, "kernel_size": 3, "activation": "relu", "name": "thin"},
    {"type": "BatchNormalization", "name": "normal"}, {"type": "Flatten"},
    {"type": "Dense", "units": 10, "activation": "softmax"}]},
 "loss": {"name": "sparse_categorical_crossentropy"}, "optimizer": {"name": "Adam"}, "precision": "float32",
 "per_core_batch": 15,
 "data": {"dataset": "idx", "train": {"inputs": "train-images", "labels": "train-labels"}}, "steps": 2}
JSON
run check five.json --json five-report.json
expect_code 0
expect_in out 'per_core_batch' 'take 8 or 16 per core' 'thin' 'normal' '120 on 8 cores' '[float32-policy]'
expect_json five-report.json '{f["rule"] for f in r["findings"]} >= {"batch-multiple", "mxu-padding", "float32-policy", "batch-statistics", "last-batch", "probabilities"}'
expect_json five-report.json 'all(f["text"] and f["severity"] in ("warning", "note") for f in r["findings"])'
expect_json five-report.json 'r["errors"] == 0 and r["warnings"] >= 4 and 0 < r["mxu_share"] < 1 and r["cores"] == 8'

# Statistics over a group of cores are those of more examples.
sed 's/"BatchNormalization"/"BatchNormalization", "cores_per_group": 2/; s/: 15/: 7/' five.json >pairs.json
run check pairs.json --json pairs-report.json
expect_code 0
expect_json pairs-report.json 'any("its cores\x27 14 examples" in f["text"] for f in r["findings"])'
sed 's/"BatchNormalization"/"BatchNormalization", "synchronized": true/' five.json >all.json
run check all.json --json all-report.json
expect_code 0
expect_json all-report.json '"batch-statistics" not in {f["rule"] for f in r["findings"]}'

# A run in order has no warnings.
cat >good.json <<'JSON'
{"name": "good", "topology": "v2-8",
 "model": {"layers": [{"type": "Flatten"}, {"type": "Dense", "units": 128, "activation": "relu"},
    {"type": "Dense", "units": 128}]},
 "loss": {"name": "sparse_categorical_crossentropy", "from_logits": true}, "optimizer": {"name": "Adam"},
 "precision": "mixed_bfloat16", "per_core_batch": 128,
 "data": {"dataset": "idx", "train": {"inputs": "train-images", "labels": "train-labels"}}, "steps": 2}
JSON
run check good.json
expect_code 0
expect_in out '0 errors, 0 warnings'
# ... and on the CPU, which has no tiles, neither
run check five.json --topology cpu
expect_code 0
expect_not_in out 'mxu-padding'

# What cannot run is an error each, and the exit code says so.
python3 - <<'PY'
import json
config = json.load(open("good.json"))
config["epohcs"] = 3
config["optimizer"]["learning_rate"] = -1
config["loss"]["name"] = "crossentropy"
json.dump(config, open("bad.json", "w"))
PY
run check bad.json --json bad-report.json
expect_code 2
expect_in out "'epohcs'" 'learning_rate' "'crossentropy'"
expect_json bad-report.json 'r["errors"] == 3 and all(f["severity"] == "error" for f in r["findings"])'
# Mistakes of expressions: each an error with the key, the column and a mark below the text.
python3 - <<'PY'
import json
config = json.load(open("good.json"))
config["loss"] = {"name": "expression", "expression": "mean(square(y_pred - one_hot(y_true, 128)))"}
config["metrics"] = [{"name": "expression", "expression": "y_perd", "weight": "1 +"}]
json.dump(config, open("formulas.json", "w"))
PY
run check formulas.json --json formulas-report.json
expect_code 2
expect_in out 'loss.expression, column 1' 'metrics[0].expression, column 1' "did you mean 'y_pred'" \
    '    mean(square(y_pred - one_hot(y_true, 128)))' '2 errors'
expect_json formulas-report.json 'r["errors"] == 2 and all("\n    ^" in f["text"] for f in r["findings"])'
run train formulas.json --device reference
expect_code 2
expect_in err 'loss.expression, column 1' 'metrics[0].expression, column 1'

# A model of Keras with more than five different problems: all of them in one go, those of the run, too.
golden=$TPUCL_SOURCE/tests/golden/keras
run check "$golden/problems.json" --topology v3-8 --set per_core_batch=12 --json problems.json
expect_code 2
expect_in out 'series: InputLayer: dimension 1 of the input is open' 'rows: InputLayer: it is sparse' \
    'text: InputLayer: it takes strings' 'split: TextVectorization' 'lookup: StringLookup' \
    'double: Lambda: it is Python code' 'conv: Conv2D: its data_format is channels_first' 'where: Where' \
    'ids: InputLayer: its dtype is int64' 'take 8 or 16 per core' 'problems on v3-8: 12 examples per core'
expect_json problems.json '{f["rule"] for f in r["findings"]} >= {"dynamic-shape", "string-op", "python-code", "channels-first", "data-dependent-shape", "wide-dtype", "no-such-layer", "batch-multiple", "float32-policy"}'
expect_json problems.json 'all(f["where"] and f["text"] and f["remedy"] for f in r["findings"])'
expect_json problems.json 'r["errors"] == 10 and r["warnings"] == 3 and r["topology"] == "v3-8"'
run check "$golden/problems.json" --topology nowhere --set epohcs=3
expect_code 2
expect_in out 'split: TextVectorization' "'epohcs'"

# One that can be taken over: what its training step costs, without any data
run check "$golden/mlp.json" --set precision=mixed_bfloat16 --json mlp.json
expect_code 0
expect_in out 'dense: its products use' 'mlp on v2-8: 128 examples per core'
expect_not_in out 'float32-policy'
expect_json mlp.json 'r["errors"] == 0 and 0 < r["mxu_share"] < 1 and 0 < r["hbm_share"] < 1'
run check "$golden/mlp.json" --data idx --set data.train.inputs=train-images --set data.train.labels=train-labels
expect_code 2
expect_in out 'input_shape'
run check missing.json
expect_code 2
expect_in out 'missing.json'
run check
expect_code 2
expect_in err 'CONFIG'
finish
