# SPDX-License-Identifier: Apache-2.0
# Models as people bring them, with random weights, saved by Keras with what it predicts: NAME.keras, NAME.txt (the
# numbers, one a line) for each of the names given.
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "jax")
import keras
import numpy as np

L = keras.layers
keras.utils.set_random_seed(7)


def resnet50():
    return keras.applications.ResNet50(weights=None, input_shape=(32, 32, 3), classes=10, classifier_activation=None)


def unet():
    x = inputs = L.Input((16, 16, 3))
    skips = []
    for width in (4, 8):
        x = L.Conv2D(width, 3, padding="same", activation="relu")(x)
        x = L.BatchNormalization()(x)
        skips.append(x)
        x = L.MaxPooling2D()(x)
    x = L.Conv2D(16, 3, padding="same", activation="relu")(x)
    for width, skip in ((8, skips[1]), (4, skips[0])):
        x = L.Conv2DTranspose(width, 2, strides=2, padding="same")(x)
        x = L.Concatenate()([x, skip])
        x = L.Conv2D(width, 3, padding="same")(x)
        x = L.LeakyReLU(negative_slope=0.1)(x)
    x = L.UpSampling2D(2)(x)
    x = L.Cropping2D(8)(x)
    return keras.Model(inputs, L.Conv2D(2, 1, activation="sigmoid")(x))


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
    return keras.Model(inputs, L.Dense(5, activation="softmax")(x))


def lstm_text():
    return keras.Sequential([L.Input((7,), dtype="int32"), L.Embedding(11, 6), L.Bidirectional(L.LSTM(5)),
                             L.Dense(3, activation="softmax")])


def encoder():
    ids = L.Input((6,), dtype="int32")
    x = L.Embedding(11, 8)(ids)
    for is_causal in (True, False):
        y = L.MultiHeadAttention(2, 4)(x, x, use_causal_mask=is_causal)
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, y]))
        y = L.Dense(8)(L.Dense(16, activation="gelu")(x))
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, y]))
    return keras.Model(ids, L.Dense(2)(L.GlobalAveragePooling1D()(x)))


def example(shape, is_integer, count=2):  # as in golden/gen_keras.py
    i = np.arange(count * np.prod(shape)) * 5 % 11
    return (i.astype("int32") if is_integer else ((i - 5) / 8).astype("float32")).reshape((count, *shape))


for name in sys.argv[1:]:
    model = globals()[name]()
    rng = np.random.default_rng(3)
    for weight in model.weights:  # moving statistics, biases and gains off their first values, too
        value = np.asarray(weight)
        value = value + rng.normal(0, 0.05, value.shape) if value.ndim else value
        weight.assign(np.abs(value) if "variance" in weight.name else value)
    model.save(f"{name}.keras")
    inputs = [example(i.shape[1:], "int" in str(i.dtype)) for i in model.inputs]
    predicted = model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0)
    np.savetxt(f"{name}.txt", predicted.reshape(-1), fmt="%.9g")
