# SPDX-License-Identifier: Apache-2.0
# Keras loads what tpucl exported and predicts what it did before: for each name of a golden file or a NAME.txt of
# make_keras.py, the folder of that name holds back.keras and back.weights.h5. NAME.out is what tpucl predicted.
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


def wanted(name):
    if os.path.exists(f"{name}.txt"):
        return np.loadtxt(f"{name}.txt"), 2
    return np.array(expected[name]["prediction"]).reshape(-1), 3


def compare(found, name, what):
    values, _ = wanted(name)
    error = np.abs(found.reshape(-1) - values).max() / np.abs(values).max()
    print(f"{name}, {what}: largest difference {error:.2e} of the largest value")
    return error < 1e-5


def check(model, name, what):
    inputs = [example(i.shape[1:], "int" in str(i.dtype), wanted(name)[1]) for i in model.inputs]
    return compare(model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0), name, what)


good = True
for name in sys.argv[1:]:
    model = keras.models.load_model(f"{name}/back.keras")
    good = check(model, name, "exported") and good
    if os.path.exists(f"{name}.out"):
        good = compare(np.loadtxt(f"{name}.out"), name, "imported") and good
    for weight in model.weights:
        weight.assign(np.zeros(weight.shape))
    model.load_weights(f"{name}/back.weights.h5")
    good = check(model, name, "weights exported") and good
sys.exit(not good)
