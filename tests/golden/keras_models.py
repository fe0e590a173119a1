# SPDX-License-Identifier: Apache-2.0
# Networks as people bring them, in Keras, and what they are trained on: for gen_keras_steps.py, which makes small ones
# for the ordinary tests, and for peers/make_keras.py, which makes larger ones. Data follow golden_values.py, so that
# tests/harness/keras_steps.h makes the same.
import keras
import numpy as np
from golden_values import F32

L = keras.layers
BATCH, STEPS, TOKENS = 8, 20, 16


def values(seed, count):
    """golden_values.value(seed, i) for i below count, as one array."""
    h = (np.arange(count, dtype=np.uint64) * 2654435761 + seed * 40503 + 12345) & 0xFFFFFFFF
    h ^= h >> np.uint64(15)
    h = (h * 2246822519) & 0xFFFFFFFF
    h ^= h >> np.uint64(13)
    return (((h >> np.uint64(8)).astype(np.int64) - (1 << 23)) / (1 << 23)).astype(F32)


def below(seed, count, limit):
    """Whole numbers from 0, below limit."""
    return np.minimum(((values(seed, count) + 1) / 2 * F32(limit)).astype(np.int32), limit - 1)


def inputs_of(model, step):
    """Tokens from 1, the last few of an example 0 (padding); positions; two segments; other inputs in [-1, 1)."""
    arrays = []
    for number, tensor in enumerate(model.inputs):
        shape = (BATCH, *tensor.shape[1:])
        count, length, place = int(np.prod(shape)), shape[-1], np.arange(np.prod(shape)) % shape[-1]
        seed = 100 * step + number
        if tensor.name == "tokens":
            padding = np.arange(count) // length % 3
            array = np.where(place >= length - padding, 0, 1 + below(seed, count, TOKENS - 1))
        elif tensor.name == "positions":
            array = place
        elif tensor.name == "segments":
            array = place >= length // 2
        else:
            array = values(seed, count)
        arrays.append(array.astype(tensor.dtype).reshape(shape))
    return arrays if len(arrays) > 1 else arrays[0]


def labels_of(model, step):
    shape, seed = (BATCH, *model.outputs[0].shape[1:]), 100 * step + 50
    if shape[-1] == 1:
        return (values(seed, int(np.prod(shape))) > 0).astype(F32).reshape(shape)
    return below(seed, int(np.prod(shape[:-1])), shape[-1]).reshape(shape[:-1])


def resnet50(width=64, side=32):
    """keras.applications.ResNet50, of any width: the same layers, names and arguments. But the last gain of a block starts
    at 0 (Goyal et al., "Accurate, Large Minibatch SGD", 2017, section 5.1): with 1 the first steps of so deep a network
    blow up what rounding changes, so that Keras' losses in f32 and in f64 part by 0.5; with 0 by 2e-6."""
    def unit(x, filters, kernel, strides, name, padding="same", gain="ones"):
        x = L.Conv2D(filters, kernel, strides=strides, padding=padding, name=name + "_conv")(x)
        return L.BatchNormalization(epsilon=1.001e-5, gamma_initializer=gain, name=name + "_bn")(x)

    x = inputs = L.Input((side, side, 3), name="picture")
    x = L.ZeroPadding2D(3, name="conv1_pad")(x)
    x = L.Activation("relu", name="conv1_relu")(unit(x, width, 7, 2, "conv1", "valid"))
    x = L.MaxPooling2D(3, strides=2, name="pool1_pool")(L.ZeroPadding2D(1, name="pool1_pad")(x))
    for stage, (scale, blocks) in enumerate([(1, 3), (2, 4), (4, 6), (8, 3)], 2):
        for block in range(1, blocks + 1):
            name, filters = f"conv{stage}_block{block}", scale * width
            strides = 2 if block == 1 and stage > 2 else 1
            skip = unit(x, 4 * filters, 1, strides, name + "_0", "valid") if block == 1 else x
            y = L.Activation("relu", name=name + "_1_relu")(unit(x, filters, 1, strides, name + "_1", "valid"))
            y = L.Activation("relu", name=name + "_2_relu")(unit(y, filters, 3, 1, name + "_2"))
            y = L.Add(name=name + "_add")([skip, unit(y, 4 * filters, 1, 1, name + "_3", "valid", "zeros")])
            x = L.Activation("relu", name=name + "_out")(y)
    x = L.GlobalAveragePooling2D(name="avg_pool")(x)
    model = keras.Model(inputs, L.Dense(10, name="classes")(x), name="resnet50")
    model.compile(keras.optimizers.SGD(0.001, momentum=0.9), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def unet(width=16, side=32):
    def twice(x, filters):
        for _ in range(2):
            x = L.BatchNormalization()(L.Conv2D(filters, 3, padding="same", use_bias=False)(x))
            x = L.LeakyReLU(negative_slope=0.1)(x)
        return x

    x = inputs = L.Input((side, side, 3), name="picture")
    skips = []
    for scale in (1, 2):
        skips.append(twice(x, scale * width))
        x = L.MaxPooling2D()(skips[-1])
    x = L.SpatialDropout2D(0.0)(twice(x, 4 * width))
    for scale, skip in ((2, skips[1]), (1, skips[0])):
        x = L.Conv2DTranspose(scale * width, 2, strides=2, padding="same")(x)
        x = twice(L.Concatenate()([x, skip]), scale * width)
    model = keras.Model(inputs, L.Conv2D(3, 1, name="classes")(x), name="unet")
    model.compile(keras.optimizers.Adam(0.001), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def encoder(width=64, heads=4, blocks=2, length=16):
    """BERT-style: three embeddings, padding masked, blocks normalised after the sum, the first token's vector pooled."""
    names = ("tokens", "positions", "segments")
    inputs = [L.Input((length,), dtype="int32", name=name) for name in names]
    x = L.Add()([L.Embedding(limit, width, mask_zero=name == "tokens", name=name + "_table")(part)
                 for part, name, limit in zip(inputs, names, (TOKENS, length, 2))])
    x = L.Dropout(0.0)(L.LayerNormalization(epsilon=1e-12)(x))
    for _ in range(blocks):
        y = L.MultiHeadAttention(heads, width // heads, dropout=0.0)(x, x)
        x = L.LayerNormalization(epsilon=1e-12)(L.Add()([x, y]))
        y = L.Dense(width)(L.Dense(4 * width, activation="gelu")(x))
        x = L.LayerNormalization(epsilon=1e-12)(L.Add()([x, y]))
    x = L.Dense(width, activation="tanh", name="pooler")(x[:, 0])
    model = keras.Model(inputs, L.Dense(3, name="classes")(x), name="encoder")
    model.compile(keras.optimizers.Adam(0.001), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def lstm_text(width=32, length=12):
    model = keras.Sequential([L.Input((length,), dtype="int32", name="tokens"),
                              L.Embedding(TOKENS, width, mask_zero=True), L.Bidirectional(L.LSTM(width)),
                              L.Dropout(0.0), L.Dense(1, activation="sigmoid")], name="lstm_text")
    model.compile(keras.optimizers.Adam(0.002), "binary_crossentropy")
    return model


def off_first_values(model, exact):
    """Moving statistics, biases and gains off their first values, too; with `exact` all weights are bf16 numbers, which
    halves the files."""
    rng = np.random.default_rng(3)
    for weight in model.weights:
        value = np.asarray(weight)
        value = value + rng.normal(0, 0.05, value.shape) if value.ndim else value
        value = (np.abs(value) if "variance" in weight.name else value).astype(F32)
        if exact:
            value = (value.view(np.uint32) & np.uint32(0xFFFF0000)).view(F32)
        weight.assign(value)


def train(model):
    """Losses of the steps, each before its update."""
    losses = []
    for step in range(1, STEPS + 1):
        model.reset_metrics()
        losses.append(float(model.train_on_batch(inputs_of(model, step), labels_of(model, step))))
    return losses
