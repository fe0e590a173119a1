#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tpucl devices, with and without drivers.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"

run devices
expect_code 0
expect_in out 'selector' 'units'
expect_not_in out $'\033'

run devices --json -
expect_code 0
expect_json out 'len(r["devices"]) >= 1 and isinstance(r["notes"], list)'
expect_json out 'all(set(d) >= {"selector", "name", "platform", "driver", "type", "compute_units", "memory_bytes", "usable"} for d in r["devices"])'
expect_json out 'any(d["usable"] and d["compute_units"] > 0 and d["memory_bytes"] > 0 for d in r["devices"])'
selector=$(python3 -c 'import json; print(next(d["selector"] for d in json.load(open("out"))["devices"] if d["usable"]))')

run devices --device "$selector" --json one.json
expect_code 0
expect_json one.json 'len(r["devices"]) == 1 and r["devices"][0]["selector"] == "'"$selector"'"'

run devices --device no-such-device
expect_code 3
expect_in err "'no-such-device'"

run devices --device cpu/0
expect_code 2
expect_in err 'cpu/0'

export OCL_ICD_VENDORS=/nonexistent
run devices
expect_code 3
expect_empty out
expect_in err 'no usable OpenCL device'
run devices --json -
expect_code 3
expect_json out 'r["devices"] == []'

mkdir vendors
echo 'libno-such-driver.so' >vendors/broken.icd
export OCL_ICD_VENDORS=$PWD/vendors
run devices
expect_code 3
expect_in err 'no usable OpenCL device'

finish
