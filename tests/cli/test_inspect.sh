#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl inspect: every kind of file that a training leaves, whole and damaged, and what it is not for.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
make_data 192 64
make_config run.json 'config["epochs"] = 2'
run train run.json --output-dir left
expect_code 0

run inspect left/checkpoints
expect_code 0
expect_in out 'checkpoints: 2 checkpoints' 'step 6' 'step 12' 'whole'
run inspect left/checkpoints/step-000000000012 --json -
expect_code 0
expect_json out '(r["kind"] == "checkpoint" and "step 12" in r["summary"] and r["faults"] == 0 and
    any(t["note"] == "params" and t["type"].startswith("f32[") and t["bytes"] > 0 for t in r["rows"]))'
run inspect left/params.safetensors --json -
expect_code 0
expect_json out 'r["kind"] == "safetensors" and len(r["rows"]) >= 2 and all(t["type"] for t in r["rows"])'
run inspect left/logs/train --json -
expect_code 0
expect_json out '(r["kind"] == "events" and r["faults"] == 0 and "1 start" in r["summary"] and
    any(t["type"] == "scalars" and "the last" in t["note"] for t in r["rows"]))'
events=$(ls left/logs/train/*tfevents*)
run inspect "$events"
expect_code 0
expect_in out 'events: 1 file' 'epoch_loss'

# damage: a bit of a tensor, of an event, a checkpoint without its manifest
flip() { # FILE OFFSET
    python3 -c 'import sys
with open(sys.argv[1], "r+b") as f:
    f.seek(int(sys.argv[2])); b = f.read(1)[0]; f.seek(int(sys.argv[2])); f.write(bytes([b ^ 1]))' "$1" "$2"
}
flip left/checkpoints/step-000000000006/params.safetensors 900
rm left/checkpoints/step-000000000012/manifest.json
run inspect left/checkpoints --json -
expect_code 1
expect_json out '(r["faults"] == 2 and all(t["bad"] for t in r["rows"]) and
    any("params.safetensors" in t["note"] for t in r["rows"]) and any("not finished" in t["note"] for t in r["rows"]))'
run inspect left/checkpoints/step-000000000006
expect_code 1
expect_in err 'params.safetensors'
flip "$events" 200
run inspect left/logs/train
expect_code 1
expect_in out 'tfevents'

# what it is not for, or is not there
run inspect nowhere
expect_code 2
expect_in err "'nowhere'"
mkdir empty
run inspect empty
expect_code 1
expect_in err 'without checkpoints' 'records inspect'
run inspect run.json --json run.json
expect_code 2
printf 'no file of ours, but long enough' >text
run inspect text
expect_code 1
expect_in err "'text'" 'records inspect'
run inspect
expect_code 2
finish
