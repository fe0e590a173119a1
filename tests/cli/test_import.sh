#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Keras files become run configurations that train.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
golden=$TPUCL_SOURCE/tests/golden/keras

run import "$golden/mlp.keras"
if grep -q 'no libzip\|no libhdf5' err; then
    echo 'this build reads no Keras files'
    exit 0
fi
expect_code 0
expect_empty err
expect_in out 'dense ' 'layers/dense_1' '103 parameters in 8 weights' 'Keras 3.'
expect_not_in out 'written to'

run import "$golden/shared.keras" -o run --json import.json
expect_code 0
expect_in out 'encoder/norm' 'BatchNormalization' 'written to run'
expect_json import.json 'r["errors"] == 0 and r["weights"] == 11 and r["params"] == 115'
expect_json import.json '[l["source"] for l in r["layers"] if l["name"] == "encoder/proj"] == ["layers/functional/layers/dense"]'
expect_json run/run.json 'r["model"]["layers"][1] == {"layer": "encoder", "name": "encoder_again", "inputs": "b"}'
expect_json run/run.json 'r["optimizer"] == {"name": "SGD", "learning_rate": 0.1, "momentum": 0.9, "nesterov": True}'
[[ -s run/params.safetensors ]] || fail 'no params.safetensors'

run import "$golden/mlp.json" --weights "$golden/mlp.weights.h5" -o two
expect_code 0
[[ -s two/params.safetensors ]] || fail 'no params.safetensors'

# everything that cannot be taken over, at once, and nothing written
run import "$golden/custom.json" -o custom --json -
expect_code 2
expect_in err "Lambda 'double'" "Lambda 'more'" "Odd 'odd'" 'never run' '3 errors'
expect_json out 'r["errors"] == 3 and r["findings"][0]["severity"] == "error"'
expect_absent custom

run import "$golden/conv.keras" --weights "$golden/mlp.keras" -o custom
expect_code 2
expect_in err "Conv2D 'conv'" 'in the file'
expect_absent custom

run import nowhere.keras
expect_code 2
expect_in err 'nowhere.keras'
printf 'hello' >text.keras
run import text.keras
expect_code 1
expect_in err "'text.keras' is no file of Keras"
head -c 20000 "$golden/mlp.keras" >cut.keras
run import cut.keras
expect_code 1
expect_in err 'cut.keras'
run import "$golden/mlp.weights.h5"
expect_code 2
expect_in err 'weights alone'
run import
expect_code 2
run import "$golden/mlp.keras" -o
expect_code 2
expect_in err "'-o' needs a value: -o FOLDER"
: >taken
run import "$golden/mlp.keras" -o taken/run
expect_code 2

# and back
run export run/run.json -o back.keras --json -
expect_code 0
expect_json out 'r["written"]'
run import back.keras -o again
expect_code 0
cmp -s <(tail -c 400 run/params.safetensors) <(tail -c 400 again/params.safetensors) || fail 'other parameters came back'
run export run/run.json -o back.weights.h5
expect_code 0
run import run/nothing.json
expect_code 2
run export run/run.json -o back.txt
expect_code 1
expect_in err '.keras or .weights.h5'
run export two/run.json --params run/params.safetensors
expect_code 2
expect_in err 'the parameters has' 'is not in the parameters'
expect_absent model.keras

# a Sequential model with the data's shape trains
python3 - <<'PY'
import json
layers = [("Flatten", {}), ("Dense", {"units": 16, "activation": "relu"}), ("Dense", {"units": 10})]
first = [{"class_name": "InputLayer", "config": {"name": "x", "batch_shape": [None, 28, 28]}}]
config = {"class_name": "Sequential", "config": {"name": "tiny", "layers": first + [
    {"class_name": c, "config": dict(a, name=f"l{i}")} for i, (c, a) in enumerate(layers)]},
    "compile_config": {"loss": {"class_name": "SparseCategoricalCrossentropy", "config": {"from_logits": True}},
                       "optimizer": "adam", "metrics": ["accuracy"]}}
json.dump(config, open("tiny.json", "w"))
PY
make_data 64 32
run import tiny.json -o tiny
expect_code 0
run train tiny/run.json --device reference --steps 2 --set data.dataset=idx --set data.train.inputs=train-images \
    --set data.train.labels=train-labels --set per_core_batch=4
expect_code 0

finish
