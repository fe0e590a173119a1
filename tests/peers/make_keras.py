# SPDX-License-Identifier: Apache-2.0
# Models as people bring them, with random weights, saved by Keras: NAME.keras for each of the names given, and
# NAME.json with what it predicts, the losses of 20 steps of training from these weights, and what it predicts then.
# A model that compile() was not called for is not trained. ResNet-50 has its true width.
import json
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden"))
import keras
import keras_models
import numpy as np

L = keras.layers
keras.utils.set_random_seed(7)


def resnet50():
    """At this width even Keras' losses in f32 and f64 part within 20 steps at a rate of 0.001, by 7e-6 at 0.0001."""
    model = keras_models.resnet50()
    model.optimizer.learning_rate.assign(1e-4)
    shape = {"input_shape": (32, 32, 3), "classes": 10}
    assert model.count_params() == keras.applications.ResNet50(weights=None, **shape).count_params()
    return model


def mobile():
    x = inputs = L.Input((16, 16, 3))
    x = L.Rescaling(2.0, -0.5)(x)
    x = L.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = L.Conv2D(8, 3, strides=2, use_bias=False)(x)
    x = L.BatchNormalization(epsilon=1.001e-5)(x)
    x = L.ReLU(6.0)(x)
    y = L.DepthwiseConv2D(3, padding="same")(x)
    y = L.SeparableConv2D(8, 3, padding="same", activation="swish")(y)
    x = L.Multiply()([x, y])
    x = L.AveragePooling2D(2)(x)
    x = L.GlobalMaxPooling2D()(x)
    x = L.LayerNormalization()(x)
    return keras.Model(inputs, L.Dense(5, activation="softmax")(x), name="mobile")


def causal():
    ids = L.Input((6,), dtype="int32", name="tokens")
    x = L.Embedding(keras_models.TOKENS, 8)(ids)
    for is_causal in (True, False):
        y = L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=is_causal)
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, y]))
    return keras.Model(ids, L.Dense(2)(L.GlobalAveragePooling1D()(x)), name="causal")


MODELS = {"resnet50": resnet50, "unet": keras_models.unet, "encoder": keras_models.encoder,
          "lstm_text": keras_models.lstm_text, "mobile": mobile, "causal": causal}


def predict(model):
    inputs = keras_models.inputs_of(model, 0)
    return np.asarray(model.predict(inputs, batch_size=keras_models.BATCH, verbose=0), "float64").reshape(-1).tolist()


for name in sys.argv[1:]:
    model = MODELS[name]()
    keras_models.off_first_values(model, exact=False)
    model.save(f"{name}.keras")
    result = {"prediction": predict(model), "losses": [], "trained": []}
    if getattr(model, "optimizer", None):
        result |= {"losses": keras_models.train(model), "trained": predict(model)}
    with open(f"{name}.json", "w") as f:
        json.dump(result, f)
