#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The suites of tpucl bench that run when they are asked for, in their quick form; no figure is judged here.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"

run bench conv --quick --json bench.json
expect_code 0
expect_in out 'conv 16 224 224 3 64 7x7 stride=2 pad=3' 'tpucl bf16, cold' 'geometric mean'
expect_json bench.json 'all(w["share"] > 0 for w in r["suites"][0]["rows"])'

run bench vpu --quick --json bench.json
expect_code 0
expect_in out 'layer normalization, gradient' 'Adam' 'GB/s' 'launch' 'of the copy measured here'
expect_json bench.json 'all(w["share"] > 0 for w in r["suites"][0]["rows"])'

run bench growth --quick --json bench.json
expect_code 0
expect_in out 'batch 16 per core' 'mlp of 4 layers' 'examples/s' 'ms/layer'

# a build without TurboJPEG has no images to train on
run bench input --quick --json bench.json
if grep -qF 'no TurboJPEG' err; then
    expect_code 1
else
    expect_code 0
    expect_in out 'augmentation: none' 'augmentation: host' 'augmentation: device' 'waiting for input' 'its input alone'
    expect_json bench.json '[w["unit"] for w in r["suites"][0]["rows"]] == ["examples/s", "%"] * 3 + ["examples/s"] * 2'
    expect_json bench.json 'all(0 <= w["value"] <= 100 for w in r["suites"][0]["rows"] if w["unit"] == "%")'
    expect_absent '/tmp/tpucl_input_*'
fi

finish
