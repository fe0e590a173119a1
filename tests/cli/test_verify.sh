#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Verification catches a wrong kernel variant and a wrong device, and training does without them: a variant that
# is sabotaged on purpose, and an OpenCL that flips bits behind certain kernels.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 96 32
cat >run.json <<JSON
{"name": "wide", "topology": "v2-8", "model": {"layers": [{"type": "Flatten"},
    {"type": "Dense", "units": 64, "activation": "relu"}, {"type": "Dense", "units": 10}]},
 "loss": {"name": "sparse_categorical_crossentropy", "from_logits": true},
 "optimizer": {"name": "Adam"}, "precision": "mixed_bfloat16", "per_core_batch": 12,
 "data": {"dataset": "idx", "train": {"inputs": "train-images", "labels": "train-labels"}}, "steps": 2, "epochs": 1}
JSON
export TPUCL_CACHE_DIR=$work/cache

run train run.json --json right.json
expect_code 0
expect_not_in err 'is not used'

# A variant that forgets all chunks of k but the last.
cp -r "$TPUCL_SOURCE/kernels" kernels
tile=mxu/register_tile.clh
sed -i -E 's/^( *|#define ADD\(r\) )sums\[([^]]*)\] = sums\[[^]]*\] \+ /\1sums[\2] = /' kernels/$tile
cmp -s kernels/$tile "$TPUCL_SOURCE/kernels/$tile" && fail 'the kernel was not sabotaged'
export TPUCL_KERNEL_DIR=$work/kernels
run verify --quick --variant mxu_register --json wrong.json
expect_code 1
expect_json wrong.json 'not r["exact"] and r["failed"] > 0'
expect_json wrong.json 'any(c["variant"] == "mxu_register" and c["status"] == "failed" and "bits" in c["reason"] for c in r["checks"])'
run train run.json --json other.json
expect_code 0
expect_in err "mxu_register is not used on"
[[ $(digest other.json) == $(digest right.json) ]] || fail 'the next variant gave other bits'
unset TPUCL_KERNEL_DIR

# A device that flips a bit behind the product kernel that it would use: passed over, the same bits all the same.
run profile run.json --steps 1 --json profile.json
expect_code 0
variant=$(python3 -c 'import json
launches = json.load(open("profile.json"))["launches"]
print(next(l["kernel"] for l in launches if "dot_general mxu_" in l["name"] and "pack" not in l["kernel"]))')
export TPUCL_OPENCL_LIBRARY=${FAKE_CL_LIBRARY:?}
export TPUCL_CACHE_DIR=$work/cache-of-the-wrong-device
FAKE_CL="corrupt=$variant" run train run.json --json device.json
expect_code 0
expect_in err "$variant is not used on"
[[ $(digest device.json) == $(digest right.json) ]] || fail 'the wrong device changed the bits'

# A device that gets generated kernels wrong is not used at all.
rm -rf "$TPUCL_CACHE_DIR"
FAKE_CL='corrupt=vpu' run train run.json --output-dir kept
expect_code 1
expect_in err 'does not reproduce the reference' 'tpucl verify'
expect_absent 'kept/params.safetensors'
finish
