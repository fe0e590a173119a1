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

finish
