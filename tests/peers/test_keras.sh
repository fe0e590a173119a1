#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Keras' files to tpucl and back to Keras: the same predictions. Needs Keras 3 with a back end:
#   TPUCL_PEERS_PYTHON=/path/to/python ctest --test-dir build/dev -L peers -R keras
# shellcheck source=tests/cli/lib.sh
. "$TPUCL_SOURCE/tests/cli/lib.sh"
python=${TPUCL_PEERS_PYTHON:-python3}
"$python" -c 'import keras' 2>import-error || {
    echo "no Keras: $(tail -1 import-error)"
    exit 77
}
names=(mlp shared conv lstm sequence functions translator pure old_shared old_mlp old_lstm)
live=(resnet50 unet mobile lstm_text encoder) # made by Keras now; tpucl predicts, too
current='models made by Keras'
"$python" "$TPUCL_SOURCE/tests/peers/make_keras.py" "${live[@]}" >out 2>err
code=$?
expect_code 0
for name in "${live[@]}"; do
    current="predict_keras $name"
    "$PREDICT" "$name.keras" 2 >"$name.out" 2>err
    code=$?
    expect_code 0
done
names+=("${live[@]}")
for name in "${names[@]}"; do
    file=$(compgen -G "$name.keras" || compgen -G "$TPUCL_SOURCE/tests/golden/keras/$name.keras" || echo "$TPUCL_SOURCE/tests/golden/keras/$name.h5")
    run import "$file" -o "$name"
    expect_code 0
    run export "$name/run.json" -o "$name/back.keras"
    expect_code 0
    run export "$name/run.json" -o "$name/back.weights.h5"
    expect_code 0
done
current='predictions in Keras'
"$python" "$TPUCL_SOURCE/tests/peers/check_keras.py" "${names[@]}" >out 2>err
code=$?
expect_code 0
cat out
finish
