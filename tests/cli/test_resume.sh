#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl train: checkpoints, and going on from them after every kind of end.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
make_data 192 64
make_config run.json 'config["epochs"] = 10'

# what an uninterrupted run gives; 6 steps an epoch, 60 in all
run train run.json --output-dir whole --json whole.json
expect_code 0
expect_in err 'checkpoints are in' "'whole'"
[[ $(ls whole/checkpoints) == *step-000000000060 ]] || fail 'no checkpoint of the last step'
expect_json whole/checkpoints/step-000000000060/manifest.json \
    'r["step"] == 60 and len(r["state"]["epochs"]) == 10 and r["state"]["epoch_steps"] == 0'
expect_absent 'whole/checkpoints/*/*.part'
# the parameters in a checkpoint are a file that eval and --params take
run eval run.json --params whole/checkpoints/step-000000000060/params.safetensors --json -
expect_code 0
[[ $(digest out) == "$(digest whole.json)" ]] || fail 'the last checkpoint has other parameters'

# same_result FOLDER [WHOLE]: its result is that of the uninterrupted run, but for times and for what this process had
# allocated: one that found nothing left to do has loaded no evaluation.
same_result() {
    checks=$((checks + 1))
    python3 - "${2-whole}/result.json" "$1/result.json" <<'PY' || fail "$1 is not what an uninterrupted run gives"
import json, sys
def strip(value):
    if isinstance(value, list):
        return [strip(v) for v in value]
    if isinstance(value, dict):
        return {k: strip(v) for k, v in value.items()
                if "second" not in k and k not in ("breakdown", "input", "output_dir", "startup", "time",
                                              "device_bytes")}
    return value
a, b = (strip(json.load(open(name))) for name in sys.argv[1:])
for key in a:
    if a[key] != b.get(key):
        sys.exit(f"{key}: {a[key]} {b.get(key)}")
PY
}

# in the middle of an epoch, and longer than first asked for
run train run.json --steps 20 --output-dir longer
expect_code 0
run train run.json --output-dir longer
expect_code 2
expect_in err 'longer/checkpoints' 'step 20' '--resume' '--overwrite'
run train run.json --output-dir longer --resume
expect_code 0
expect_in err 'goes on from' 'step-000000000020' 'step 20 of 60'
same_result longer

# what TensorBoard reads: a file for each part of the training, as many scalars as in one go
events() { "$TPUCL" records count "$@" | sed 's/ records.*//'; }
checks=$((checks + 1))
[[ $(find longer/logs/train -type f | wc -l) == 2 ]] || fail 'not one event file for each part'
# each file begins with its version and a START; the first part ended within an epoch, whose figures it has
[[ $(($(events longer/logs/train/*) - 3)) == $(events whole/logs/train/*) ]] || fail 'other events'
[[ $(($(events longer/logs/validation/*) - 3)) == $(events whole/logs/validation/*) ]] || fail 'other events'

# nothing to go on from: from the beginning; and when all is done there is nothing left to do
run train run.json --output-dir fresh --resume
expect_code 0
expect_in err 'no checkpoint yet'
same_result fresh
run train run.json --output-dir fresh --resume
expect_code 0
expect_in err 'step 60 of 60'
same_result fresh
run train run.json --steps 3 --output-dir fresh --overwrite
expect_code 0
[[ $(ls fresh/checkpoints) == step-000000000003 ]] || fail 'the old checkpoints are there'
run train run.json --resume
expect_code 2
expect_in err 'output_dir' 'checkpoint.folder'

# in the reference interpreter begun, on the device ended
run train run.json --steps 20 --output-dir mixed --device reference
expect_code 0
run train run.json --output-dir mixed --resume
expect_code 0
[[ $(digest mixed/result.json) == "$(digest whole.json)" ]] || fail 'other bits'

# interrupted: the step ends, the state is saved, exit code 5
current='tpucl train, interrupted'
"$TPUCL" train run.json --output-dir stopped --set epochs=100000 >out 2>err &
pid=$!
for _ in $(seq 3000); do
    grep -q '^ *1 ' out && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
code=$?
expect_code 5
expect_in err 'interrupted after step' '--resume'
step=$(sed -n 's/.*interrupted after step \([0-9]*\).*/\1/p' err)
[[ -f stopped/checkpoints/$(printf 'step-%012d' "$step")/manifest.json ]] || fail 'the step is not saved'
run train run.json --output-dir stopped --resume --steps $((step + 3)) --json stopped.json
expect_code 0
run train run.json --set epochs=100000 --steps $((step + 3)) --json straight.json
[[ $(digest stopped.json) == "$(digest straight.json)" ]] || fail 'other bits after an interruption'

# killed at any moment, again and again
run train run.json --epochs 300 --output-dir long
expect_code 0
current='tpucl train, killed'
rounds=0
until [[ -f killed/result.json ]]; do
    "$TPUCL" train run.json --epochs 300 --output-dir killed --resume --set checkpoint.every=7 \
        --set checkpoint.keep=3 >out 2>err </dev/null &
    pid=$!
    # later and later, so that it ends
    sleep "$(python3 -c "print(0.1 + 0.04 * $rounds)")"
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    rounds=$((rounds + 1))
    ((rounds < 100)) || break
done
code=0
((rounds > 3)) || fail "it was killed $((rounds - 1)) times only"
same_result killed long

# a damaged one is passed over, with the reason
run train run.json --steps 24 --set checkpoint.every=8 --set checkpoint.keep=9 --output-dir damaged
expect_code 0
[[ $(echo damaged/checkpoints/*) == *08\ *16\ *24 ]] || fail "other checkpoints: $(ls damaged/checkpoints)"
printf 'x' | dd of=damaged/checkpoints/step-000000000024/state.safetensors bs=1 seek=300 conv=notrunc 2>/dev/null
rm damaged/checkpoints/step-000000000016/manifest.json
cp -r damaged/checkpoints/step-000000000024 torn
run train run.json --output-dir damaged --resume
expect_code 0
expect_in err 'passed over' 'step-000000000024' 'checksum' 'step-000000000016' 'not finished' 'step 8 of 60'
same_result damaged
run train run.json --output-dir one --resume-from torn
expect_code 1
expect_in err 'state.safetensors' 'checksum'
run train run.json --output-dir one --resume-from nowhere
expect_code 2
expect_in err 'nowhere/manifest.json'

# of another training: every difference at once, nothing done
run train run.json --steps 20 --output-dir other
make_config wide.json 'config["epochs"] = 10; config["model"]["layers"][1]["units"] = 8; config["per_core_batch"] = 2'
run train wide.json --output-dir other --resume
expect_code 2
expect_in err 'global batch is 32 there and 16 here' 'kernel' 'f32[784,16]' 'f32[784,8]'
run train run.json --output-dir other --resume --set optimizer.learning_rate=0.5
expect_code 0
expect_in err 'optimizer.learning_rate' 'differs'

# the best one stays
run train run.json --output-dir best --set checkpoint.best=loss --set checkpoint.keep=1 \
    --set optimizer.learning_rate=0.3
expect_code 0
best=$(python3 - <<'PY'
import json
epochs = json.load(open("best/result.json"))["epochs"]
print("step-%012d" % (6 * min(epochs, key=lambda e: e["eval"]["loss"])["epoch"]))
PY
)
[[ -f best/checkpoints/$best/manifest.json ]] || fail "no $best, but $(ls best/checkpoints)"
[[ $(find best/checkpoints -mindepth 1 -maxdepth 1 | wc -l) -le 2 ]] || fail 'more than two are kept'
run train run.json --output-dir best2 --set checkpoint.best=speed
expect_code 2
expect_in err "checkpoint.best is 'speed'" 'accuracy'

# a disk that fails: what was saved before stays, the message names what could not be written
for plan in 'fsync EIO step-000000000012/state' 'write ENOSPC step-000000000012/params' \
    'fsync EIO step-000000000012/manifest'; do
    rm -rf failing
    run train run.json --steps 6 --output-dir failing
    expect_code 0
    current="tpucl train with FAKE_DISK='$plan'"
    FAKE_DISK=$plan LD_PRELOAD=$FAKE_DISK_LIBRARY ASAN_OPTIONS=verify_asan_link_order=0 \
        "$TPUCL" train run.json --steps 12 --output-dir failing --resume >out 2>err </dev/null
    code=$?
    expect_code 1
    expect_in err "${plan##* }" 'step 6'
    expect_absent 'failing/checkpoints/*/*.part'
    [[ ! -f failing/checkpoints/step-000000000012/manifest.json ]] || fail 'it claims to be complete'
    run train run.json --output-dir failing --resume
    expect_code 0
    expect_in err 'step 6 of 60'
    same_result failing
done
# a failure on the way is told and does not end the training
FAKE_DISK='write ENOSPC step-000000000012' LD_PRELOAD=$FAKE_DISK_LIBRARY \
    ASAN_OPTIONS=verify_asan_link_order=0 \
    "$TPUCL" train run.json --set checkpoint.every=6 --output-dir bumpy >out 2>err </dev/null
code=$?
current='tpucl train with one save that fails'
expect_code 0
expect_in err 'no checkpoint of step 12' 'step 6'
same_result bumpy
finish
