#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl verify: the report, and a device that is not there. That it finds wrong kernels is tested in
# test_verify.sh.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"

run verify --quick --variant generated --json verify.json
expect_code 0
expect_in out 'variant' 'generated' "exact: every result has the contract's bits"
expect_not_in out 'NOT EXACT'
expect_json verify.json 'set(r) >= {"device", "exact", "passed", "failed", "skipped", "checks"}'
expect_json verify.json 'r["exact"] and r["passed"] > 0 and r["failed"] == 0'
expect_json verify.json 'len(r["checks"]) == r["passed"] + r["failed"] + r["skipped"]'
expect_json verify.json 'all(set(c) == {"name", "variant", "status", "reason", "seconds"} for c in r["checks"])'
expect_json verify.json 'r["device"]["usable"] and r["contract"] == 1'

run verify --variant no-such-variant
expect_code 2
expect_in err "'no-such-variant'"

run verify --device no-such-device --json none.json
expect_code 3
expect_in err "'no-such-device'"
expect_absent none.json

OCL_ICD_VENDORS=/nonexistent run verify
expect_code 3
expect_in err 'OpenCL'

finish
