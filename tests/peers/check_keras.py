# SPDX-License-Identifier: Apache-2.0
# Keras loads what tpucl exported and predicts what it did before: for each name of a golden file, the folder of that
# name holds back.keras and back.weights.h5.
import json
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "keras")
expected = {}
for file in ("predictions.json", "old_predictions.json"):
    with open(os.path.join(GOLDEN, file)) as f:
        expected.update(json.load(f))


def example(shape, is_integer, count=3):  # as in gen_keras.py
    i = np.arange(count * np.prod(shape)) * 5 % 11
    return (i.astype("int32") if is_integer else ((i - 5) / 8).astype("float32")).reshape((count, *shape))


def check(model, name):
    inputs = [example(i.shape[1:], "int" in str(i.dtype)) for i in model.inputs]
    found = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    error = np.abs(found - np.array(expected[name]["prediction"])).max()
    print(f"{name}: largest difference {error:.2e}")
    return error < 1e-6


good = True
for name in sys.argv[1:]:
    model = keras.models.load_model(f"{name}/back.keras")
    good = check(model, name) and good
    for weight in model.weights:
        weight.assign(np.zeros(weight.shape))
    model.load_weights(f"{name}/back.weights.h5")
    good = check(model, name) and good
sys.exit(not good)
