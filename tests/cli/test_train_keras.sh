#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Training in one step from a Keras file, from the weights in it.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
make_data 64 32
make_config run.json
data=(--data idx --set data.train.inputs=train-images --set data.train.labels=train-labels
    --set data.test.inputs=test-images --set data.test.labels=test-labels --set per_core_batch=4)

run train run.json --set 'input_shape=[28,28]' --steps 2 --output-dir first --json first.json
expect_code 0
run export first/config.json -o model.keras
if grep -q 'no libzip\|no libhdf5' err; then
    echo 'this build writes no Keras files'
    exit 0
fi
expect_code 0

# steps so small that no weight moves: the digest is that of the weights in the file
still=(--set 'loss={"name":"sparse_categorical_crossentropy","from_logits":true}' --set optimizer=SGD
    --set optimizer.learning_rate=1e-30 --steps 1)
run train model.keras "${data[@]}" "${still[@]}" --json second.json
expect_code 0
expect_in err "the run configuration has no 'loss'"
[[ $(digest second.json) == "$(digest first.json)" ]] || fail 'the weights of the file were not taken'
run train run.json --params first/params.safetensors "${still[@]}" --json third.json
expect_code 0
[[ $(digest third.json) == "$(digest first.json)" ]] || fail '--params was not taken'

# a real training; nothing is left where the weights went through
mkdir tmp
TMPDIR=$PWD/tmp run train model.keras "${data[@]}" --set 'loss={"name":"sparse_categorical_crossentropy","from_logits":true}' \
    --set optimizer=Adam --epochs 2 --output-dir trained
expect_code 0
expect_in out 'test acc.'
expect_absent 'tmp/*'
[[ -s trained/params.safetensors ]] || fail 'no parameters'

run train "$TPUCL_SOURCE/tests/golden/keras/mlp.keras" "${data[@]}"
expect_code 2
expect_in err 'input_shape'
cp "$TPUCL_SOURCE/tests/golden/keras/custom.json" custom.h5
run train custom.h5
expect_code 2
expect_in err "Lambda 'double'" 'cannot be taken over'
run train nowhere.keras
expect_code 2
run train run.json --params nowhere.safetensors
expect_code 2
expect_in err 'nowhere.safetensors'

finish
