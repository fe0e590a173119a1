#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl profile: every launch of a step, the same bits as a training of so many steps, cores in waves counted.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 96 32
make_config run.json

run profile run.json --steps 2 --json profile.json
expect_code 0
expect_in out 'launch' 'GFLOP/s' 'a step takes'
expect_json profile.json 'r["steps"] == 2 and r["step_seconds"] > 0'
expect_json profile.json 'all(set(l) == {"name", "kernel", "runs", "seconds", "flops", "bytes"} for l in r["launches"])'
expect_json profile.json 'all(l["runs"] == 1 and l["seconds"] > 0 for l in r["launches"])'
expect_json profile.json 'any("dense" in l["name"] and l["flops"] > 0 for l in r["launches"])'
expect_json profile.json 'abs(sum(l["seconds"] for l in r["launches"]) - r["launch_seconds"]) < 1e-9'
expect_json profile.json 'r["launch_seconds"] <= r["measured_seconds"]'

# A wave is a run of its own; the work of a step stays the same.
run profile run.json --steps 1 --wave-cores 4 --by-kernel --top 1 --json waves.json
expect_code 0
expect_in out 'more; --top shows them'
expect_json waves.json 'any(l["runs"] == 2 for l in r["launches"])'
python3 - <<'E2' || fail 'waves changed the work'
import json
a, b = (sum(l["flops"] for l in json.load(open(f))["launches"]) for f in ("profile.json", "waves.json"))
assert abs(a - b) < 1e-6 * a, (a, b)
E2

run profile run.json --device reference
expect_code 1
expect_in err 'reference interpreter has no launches'
run profile run.json --steps 0
expect_code 2
