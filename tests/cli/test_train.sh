#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl train and eval as a user runs them: results, files, interruption.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 200 80
make_config run.json

run train run.json --json result.json --output-dir kept
expect_code 0
expect_in out 'epoch' 'test acc.' 'params_sha256'
expect_not_in out $'\033'
expect_not_in err $'\r'
expect_in err '8 cores on 1 device' 'batch 4 per core, 32 in all'
expect_json result.json 'r["topology"] == "v2-8" and r["cores"] == 8'
expect_json result.json 'r["per_core_batch"] == 4 and r["global_batch"] == 32'
expect_json result.json 'len(r["config_sha256"]) == 64 and len(r["params_sha256"]) == 64'
expect_json result.json 'r["steps"] == 14 and [e["epoch"] for e in r["epochs"]] == [1, 2]'
expect_json result.json 'all(e["examples_per_second"] > 0 and 0 <= e["eval"]["accuracy"] <= 1 for e in r["epochs"])'
expect_json result.json 'abs(sum(r["breakdown"][k] for k in ("input", "compute", "memory", "idle")) - 1) < 1e-6'
expect_json kept/result.json 'r["steps"] == 14 and not r["interrupted"]'
expect_json kept/config.json 'r["name"] == "tiny" and r["epochs"] == 2'
[[ $(ls kept) == $'checkpoints\nconfig.json\nlogs\nparams.safetensors\nresult.json' ]] || fail "files kept: $(ls kept)"
grep -q "$(digest result.json)" out || fail 'the digest on the terminal is not the one in the file'
expected=$(digest result.json)

# other ways to compute the same
for way in --wave-cores=1 --wave-cores=2 --synchronous --split=2 '--set steps_per_loop=1'; do
    # shellcheck disable=SC2086
    run train run.json $way --json way.json
    if [[ $way == --split=2 && $code == 1 ]] && grep -q 'compute unit' err; then continue; fi
    expect_code 0
    [[ $(digest way.json) == "$expected" ]] || fail "$way changed the bits"
done
run train run.json --set seed=2 --json way.json
[[ $(digest way.json) != "$expected" ]] || fail 'another seed gave the same bits'

# every optimizer through the whole of it, some with all that a step may hold; the device has the
# interpreter's bits
average='"use_ema":true,"ema_momentum":0.5'
warm='"schedule":{"name":"PolynomialDecay","warmup_steps":2,"warmup_target":0.01}'
for optimizer in "{\"name\":\"RMSprop\",$average}" "{\"name\":\"Adafactor\",$warm,\"clipnorm\":0.1}" \
    '{"name":"LARS","exclude_from_weight_decay":["bias"],"global_clipnorm":0.1,"clip":"per_replica"}'; do
    run train run.json --set optimizer="$optimizer" --set steps=3 --json way.json
    expect_code 0
    run train run.json --set optimizer="$optimizer" --set steps=3 --device reference --json reference.json
    expect_code 0
    [[ $(digest way.json) == "$(digest reference.json)" ]] || fail "$optimizer: not the reference's bits"
done
run train run.json --set optimizer=RMSprop --set steps=3 --json way.json
run train run.json --set optimizer="{\"name\":\"RMSprop\",$average}" --set steps=3 --json average.json
[[ $(digest way.json) != "$(digest average.json)" ]] || fail 'the weights did not become their average'

# metrics: one that is the accuracy by another name, in training and evaluation, on devices and in the interpreter
metrics='["accuracy","sparse_categorical_accuracy","auc","mean_io_u"]'
run train run.json --set metrics="$metrics" --json metrics.json
expect_code 0
expect_in out 'mean_io_u'
[[ $(digest metrics.json) == "$expected" ]] || fail 'metrics changed the bits'
expect_json metrics.json 'all(e[p]["accuracy"] == e[p]["sparse_categorical_accuracy"] for e in r["epochs"] for p in ("train", "eval"))'
expect_json metrics.json 'all(0 < e[p]["auc"] < 1 and 0 <= e[p]["mean_io_u"] <= 1 for e in r["epochs"] for p in ("train", "eval"))'
run train run.json --set metrics="$metrics" --device reference --json reference.json
expect_code 0
expect_json reference.json 'r["epochs"][0]["train"] == '"$(python3 -c 'import json; print(json.load(open("metrics.json"))["epochs"][0]["train"])')"
run train run.json --set 'metrics=["mean_squared_error"]'
expect_code 2
expect_in err 'compares numbers'

# the parameters that were kept are those that were trained
run eval run.json --params kept/params.safetensors --json eval.json
expect_code 0
expect_in out 'accuracy'
expect_json eval.json 'r["params_sha256"] == "'"$expected"'" and r["examples"] == 80 and r["part"] == "test"'
trained=$(python3 -c 'import json; print(json.load(open("result.json"))["epochs"][-1]["eval"]["loss"])')
expect_json eval.json "r['loss'] == $trained"
run eval run.json --params kept/params.safetensors --part train --json -
expect_code 0
expect_json out 'r["examples"] == 200'
run eval run.json --set output_dir=kept --json -
expect_code 0
run eval run.json --params kept/params.safetensors --set output_dir=unused
expect_code 0
expect_absent unused
run eval run.json
expect_code 2
expect_in err '--params is missing'
run eval run.json --params kept/params.safetensors --part valid
expect_code 2
expect_in err "'valid'"
run eval run.json --params kept/config.json
expect_code 1
expect_in err 'kept/config.json'
head -c 300 kept/params.safetensors >cut.safetensors
run eval run.json --params cut.safetensors
expect_code 1
expect_in err 'cut.safetensors'
make_config other.json 'config["model"]["layers"][1]["units"] = 7'
run eval other.json --params kept/params.safetensors
expect_code 2
expect_in err 'kept/params.safetensors' '[784,16]' '[784,7]'

# names of data files begin in data.folder
mkdir data elsewhere && ln train-* test-* data/ && cd elsewhere || exit 1
run train ../run.json --set data.folder=../data --json ../folder.json
expect_code 0
run train ../run.json
expect_code 2
expect_in err 'train-images'
cd .. || exit 1
[[ $(digest folder.json) == "$expected" ]] || fail 'the folder of the data changed the bits'

# the configuration that was kept is one, and says the same
make_config brief.json 'del config["metrics"]'
run train brief.json --output-dir brief --json brief-result.json
expect_code 0
run eval brief/config.json --json eval.json
expect_code 0
expect_json eval.json 'r["accuracy"] is not None'
[[ $(digest eval.json) == "$expected" ]] || fail 'the kept configuration gave other parameters'

# --json -: nothing else on standard output
run train run.json --steps 3 --json -
expect_code 0
expect_json out 'r["steps"] == 3'

# options that change the configuration
run train run.json --topology k80 --set per_core_batch=16 --epochs 1 --json k80.json
expect_code 0
expect_json k80.json 'r["topology"] == "k80" and r["cores"] == 1 and r["global_batch"] == 16'

# interruption: the step ends, what is done is kept, exit code 5
current='tpucl train, interrupted'
: >out # of the run before: what is waited for stands in there too
"$TPUCL" train run.json --epochs 100000 --output-dir stopped --json stopped.json >out 2>err &
pid=$!
for _ in $(seq 3000); do
    grep -q '^ *1 ' out && break
    sleep 0.1
done
kill -INT $pid
wait $pid
code=$?
expect_code 5
expect_in err 'interrupted after step' "'stopped'"
expect_json stopped.json 'r["interrupted"] and r["steps"] > 0'
expect_json stopped/result.json 'r["interrupted"]'
expect_absent 'stopped/*.part' '*.part'
run eval run.json --params stopped/params.safetensors --json -
expect_code 0
[[ $(digest out) == "$(digest stopped.json)" ]] || fail 'what was kept is not what was reported'

# without an output folder nothing is kept, and the message says so
current='tpucl train, interrupted without an output folder'
: >out
"$TPUCL" train run.json --epochs 100000 >out 2>err &
pid=$!
for _ in $(seq 3000); do
    grep -q '^ *1 ' out && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
code=$?
expect_code 5
expect_in err 'nothing was kept' '--output-dir'

# a terminal that goes away is an interruption, except under nohup
current='tpucl train, hung up'
: >out
"$TPUCL" train run.json --epochs 100000 --output-dir hung >out 2>err &
pid=$!
for _ in $(seq 600); do
    grep -q '^ *1 ' out && break
    sleep 0.1
done
kill -HUP $pid
wait $pid
code=$?
expect_code 5
expect_json hung/result.json 'r["interrupted"]'
current='nohup tpucl train, hung up'
: >out
(
    trap - EXIT
    trap '' HUP
    exec "$TPUCL" train run.json --epochs 100000 >out 2>err
) &
pid=$!
for _ in $(seq 600); do
    grep -q '^ *1 ' out && break
    sleep 0.1
done
kill -HUP $pid
before=$(wc -l <out)
for _ in $(seq 600); do
    (($(wc -l <out) > before + 1)) && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
code=$?
expect_code 5
(($(wc -l <out) > before + 1)) || fail 'it did not go on'

# the reference interpreter computes the same without any device
run train run.json --steps 3 --json way.json
OCL_ICD_VENDORS=/nonexistent run train run.json --steps 3 --device reference --json reference.json
expect_code 0
expect_in err 'the reference interpreter computes'
[[ $(digest reference.json) == "$(digest way.json)" ]] || fail 'the interpreter has other bits'

# and goes on from parameters that a device left, and a device from its own
run train run.json --steps 2 --output-dir begun
run train run.json --steps 2 --params begun/params.safetensors --json way.json
OCL_ICD_VENDORS=/nonexistent run train run.json --steps 2 --device reference --params begun/params.safetensors \
    --output-dir unreal --json reference.json
expect_code 0
[[ $(digest reference.json) == "$(digest way.json)" ]] || fail 'the interpreter goes on with other bits'
run train run.json --steps 1 --params unreal/params.safetensors --json way.json
OCL_ICD_VENDORS=/nonexistent run train run.json --steps 1 --device reference --params unreal/params.safetensors \
    --json reference.json
[[ $(digest reference.json) == "$(digest way.json)" ]] || fail 'the device goes on with other bits'
OCL_ICD_VENDORS=/nonexistent run train run.json --steps 1 --device reference --params begun/config.json
expect_code 1
expect_in err 'begun/config.json'

# Nobody reads the table any more: the results are written all the same.
current='train into a closed pipe'
make_config piped.json
"$TPUCL" train piped.json --output-dir piped 2>err </dev/null | true
code=${PIPESTATUS[0]}
expect_code 1
expect_in err 'standard output could not be written'
checks=$((checks + 1))
[[ -s piped/result.json && -s piped/params.safetensors ]] || fail 'the results are missing'
finish
