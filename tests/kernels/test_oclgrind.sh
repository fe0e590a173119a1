#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels for devices with true local memory, which no device here has, in a simulator that looks for races between
# work-items and for reads and writes outside of buffers. $1: test_kernels_mxu.
set -u
icd=/usr/lib/oclgrind/liboclgrind-rt-icd.so
[[ -e $icd ]] || { echo "oclgrind is not installed: expected '$icd'"; exit 1; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
echo "$icd" >"$work/oclgrind.icd"
failed=0 runs=0
for test in local_tile subgroup_emulated matrix_unit_emulated matrix_unit_intel_emulated matrix_unit_amd_emulated; do
    for case in primes 'tile of 64 and one'; do
        OCL_ICD_VENDORS=$work OCLGRIND_DATA_RACES=1 TPUCL_VERIFY=0 TPUCL_TEST_SHORT=1 TPUCL_TEST_CASE=$case \
            "$1" --filter "mxu/$test" >"$work/out" 2>&1
        code=$?
        runs=$((runs + 1))
        if ((code != 0)) || ! grep -q 'Passing: 1 ' "$work/out" ||
            grep -qE 'Invalid (read|write)|[Rr]ace|[Dd]ivergence' "$work/out"; then
            echo "FAILED mxu/$test, case '$case', exit code $code"
            head -40 "$work/out"
            failed=1
        fi
    done
done
((failed)) || echo "$runs runs without a finding"
exit "$failed"
