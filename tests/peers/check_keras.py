# SPDX-License-Identifier: Apache-2.0
# What tpucl makes of models of Keras, and Keras of what tpucl exported, for each of the names given.
#   a golden file: NAME/back.keras and NAME/back.weights.h5 predict what gen_keras.py noted
#   NAME.json of make_keras.py: NAME.tpucl.json (steps_keras) has the same outputs and losses; NAME/back.keras, with the
#   weights that tpucl trained, predicts what tpucl does with them. A table of the differences is printed.
import json
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import keras
import keras_models
import numpy as np

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "keras")
expected = {}
for file in ("predictions.json", "old_predictions.json"):
    with open(os.path.join(GOLDEN, file)) as f:
        expected.update(json.load(f))
bad = []


def example(shape, is_integer, count=3):  # as in gen_keras.py
    i = np.arange(count * np.prod(shape)) * 5 % 11
    return (i.astype("int32") if is_integer else ((i - 5) / 8).astype("float32")).reshape((count, *shape))


def difference(found, wanted):
    """The largest, as a part of the largest value."""
    found, wanted = np.asarray(found).reshape(-1), np.asarray(wanted).reshape(-1)
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def within(name, what, value, bound):
    if not value <= bound:
        bad.append(f"{name}, {what}: {value:.2e} is more than {bound:.2e}")


def check_golden(name):
    model = keras.models.load_model(f"{name}/back.keras")
    inputs = [example(i.shape[1:], "int" in str(i.dtype)) for i in model.inputs]
    inputs = inputs if len(inputs) > 1 else inputs[0]
    exported = difference(model.predict(inputs, verbose=0), expected[name]["prediction"])
    for weight in model.weights:
        weight.assign(np.zeros(weight.shape))
    model.load_weights(f"{name}/back.weights.h5")
    weights = difference(model.predict(inputs, verbose=0), expected[name]["prediction"])
    within(name, "exported", exported, 1e-5)
    within(name, "weights exported", weights, 1e-5)
    print(f"{name}: exported {exported:.1e}, weights exported {weights:.1e}")


def check_live(name):
    with open(f"{name}.json") as f:
        theirs = json.load(f)
    with open(f"{name}.tpucl.json") as f:
        ours = json.load(f)
    model = keras.models.load_model(f"{name}/back.keras")
    back = model.predict(keras_models.inputs_of(model, 0), batch_size=keras_models.BATCH, verbose=0)
    f32, bf16 = difference(ours["prediction"], theirs["prediction"]), difference(ours["bf16"], theirs["prediction"])
    losses = trained = 0.0
    if theirs["losses"]:
        losses = np.abs(np.array(ours["losses"]) - np.array(theirs["losses"])).max()
        trained = difference(ours["trained"], theirs["trained"])
    again = difference(back, ours["trained"] if theirs["losses"] else ours["prediction"])
    within(name, "outputs, f32", f32, 1e-4)
    within(name, "outputs, bf16", bf16, ours["bf16_bound"])
    within(name, "losses", losses, 1e-3)
    within(name, "exported", again, 1e-5)
    values = f"{f32:.1e} | {bf16:.1e} | {ours['bf16_bound']:.1e} | {losses:.1e} | {trained:.1e} | {again:.1e}"
    print(f"| {name} | {model.count_params()} | {values} |")


names = sys.argv[1:]
for name in names:
    if name in expected:
        check_golden(name)
print("| model | parameters | outputs, f32 | outputs, bf16 | its bound | losses of 20 steps | trained outputs | exported |")
print("|---|---|---|---|---|---|---|---|")
for name in names:
    if name not in expected:
        check_live(name)
print("\n".join(bad))
sys.exit(bool(bad))
