#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Keras' files to tpucl and back to Keras: the same predictions, the same training. Needs Keras 3 with a back end:
#   TPUCL_PEERS_PYTHON=/path/to/python ctest --test-dir build/dev -L peers -R keras --verbose
# PEERS_MODELS: names of make_keras.py's models, default all of them.
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
python=${TPUCL_PEERS_PYTHON:-python3}
"$python" -c 'import keras' 2>import-error || {
    echo "no Keras: $(tail -1 import-error)"
    exit 77
}
golden=(mlp shared conv lstm sequence functions translator masked pure old_shared old_mlp old_lstm)
read -ra live <<<"${PEERS_MODELS:-resnet50 unet encoder lstm_text mobile causal}" # made by Keras now
current='models made by Keras'
"$python" "$TPUCL_SOURCE/tests/peers/make_keras.py" "${live[@]}" >out 2>err
code=$?
expect_code 0
for name in "${live[@]}"; do
    current="steps_keras $name"
    "$STEPS" "$name.keras" "$name.tpucl.json" "$name.safetensors" >out 2>err
    code=$?
    expect_code 0
done
for name in "${golden[@]}" "${live[@]}"; do
    file=$(compgen -G "$name.keras" || compgen -G "$TPUCL_SOURCE/tests/golden/keras/$name.keras" || echo "$TPUCL_SOURCE/tests/golden/keras/$name.h5")
    run import "$file" -o "$name"
    expect_code 0
    params=()
    [[ ! -f $name.safetensors ]] || params=(--params "$name.safetensors")
    run export "$name/run.json" "${params[@]}" -o "$name/back.keras"
    expect_code 0
    run export "$name/run.json" "${params[@]}" -o "$name/back.weights.h5"
    expect_code 0
done
current='predictions in Keras'
"$python" "$TPUCL_SOURCE/tests/peers/check_keras.py" "${golden[@]}" "${live[@]}" >out 2>err
code=$?
expect_code 0
cat out
finish
