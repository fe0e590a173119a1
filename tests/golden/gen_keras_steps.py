#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Four narrow networks as Keras 3 saves them, what it predicts with them, and the losses of 20 steps of training from
# the weights in the file: keras/steps_*.keras and keras/steps.json.
#   tests/golden/gen_keras_steps.py           (needs keras 3 with a back end)
import json
import os
import zipfile

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import keras_models
import numpy as np

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras")
keras.utils.set_random_seed(7)


def deflate(path):
    """The same archive with deflated entries, to keep the tree small; Keras reads it as well."""
    with zipfile.ZipFile(path) as z:
        members = [(i, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for info, data in members:
            z.writestr(info.filename, data)


def rounded(array):
    return [float(f"{value:.8g}") for value in np.asarray(array, "float64").reshape(-1)]


results = {}
for model in (keras_models.resnet50(width=2), keras_models.unet(width=3, side=8),
              keras_models.encoder(width=16, heads=2, length=8), keras_models.lstm_text(width=8, length=8)):
    keras_models.off_first_values(model, exact=True)
    path = os.path.join(HERE, f"steps_{model.name}.keras")
    model.save(path)
    deflate(path)
    predicted = model.predict(keras_models.inputs_of(model, 0), batch_size=keras_models.BATCH, verbose=0)
    results[model.name] = {"prediction": rounded(predicted), "losses": rounded(keras_models.train(model))}
    print(model.name, model.count_params(), os.path.getsize(path), results[model.name]["losses"][::6])
with open(os.path.join(HERE, "steps.json"), "w") as f:
    json.dump(results, f)
    f.write("\n")
