#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl bench in its quick form: that it runs, checks itself and reports; no figure is judged here.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"

run bench gemm --quick --json bench.json
expect_code 0
expect_in out 'gemm' 'tpucl bf16' 'GFLOP/s' 'measured' 'times as fast'
expect_in out "$("$TPUCL" version | cut -d' ' -f1,2) on " '; device '
expect_json bench.json 'set(r) >= {"host", "device", "suites", "notes"} and r["host"]["processors"] >= 1'
expect_json bench.json '[s["name"] for s in r["suites"]] == ["gemm"]'
expect_json bench.json 'all(set(w) == {"case", "side", "seconds", "spread", "value", "unit", "share", "kind", "note"} for s in r["suites"] for w in s["rows"])'
expect_json bench.json 'all(w["kind"] in ("measured", "projected") and w["seconds"] > 0 and w["value"] > 0 for w in r["suites"][0]["rows"])'
expect_json bench.json 'all(v > 0 for v in r["suites"][0]["ratios"].values()) and r["suites"][0]["ratios"]'

run bench roofline --quick --json bench.json
expect_code 0
expect_in out 'multiply-adds f32' 'copy' 'triad' 'GFLOP/s' 'GB/s'
expect_json bench.json 'all(w["value"] > 0 for w in r["suites"][0]["rows"])'

run bench train --quick --json bench.json
expect_code 0
expect_in out 'fashion-mlp' 'fashion-conv' 'TPU-like v2-8' 'CPU' 'examples/s' '% accuracy' 'projected' 'times as fast as'
expect_json bench.json 'all(w["value"] > 0 for w in r["suites"][0]["rows"]) and r["suites"][0]["sentence"]'

run bench gmem
expect_code 2
expect_in err "'gmem'" "'gemm'"

OCL_ICD_VENDORS=/nonexistent run bench gemm --quick --json none.json
expect_code 3
expect_absent none.json

finish
