#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Small files of every kind that Keras writes, for the tests of the importer, and what Keras predicts with them.
#   tests/golden/gen_keras.py [NAME]...       (needs keras 3 with a back end; all models, or those of these names)
#   tests/golden/gen_keras.py --text          (needs keras 3 with TensorFlow, which alone has strings)
#   tests/golden/gen_keras.py --old           (needs tf_keras, which is Keras 2: files with the older schema)
# Weights follow a formula instead of a random generator, so that tests know them: element i of the n-th of
# model.weights is ((7 i + 3 n) mod 13 - 6) / 16, and its absolute value + 1/2 for moving variances.
# Inputs: element i is ((5 i) mod 11 - 5) / 8; class numbers are (5 i) mod 11.
import json
import os
import sys
import zipfile

import numpy as np

OLD, TEXT = "--old" in sys.argv, "--text" in sys.argv
if OLD:
    import tf_keras as keras
else:
    os.environ["KERAS_BACKEND"] = "tensorflow" if TEXT else "jax"
    import keras
L = keras.layers
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "keras")


def fill(model):
    for n, w in enumerate(model.weights):
        v = (((7 * np.arange(np.prod(w.shape)) + 3 * n) % 13 - 6) / 16).reshape(w.shape)
        w.assign(np.abs(v) + 0.5 if "moving_variance" in w.name else v)


def example(shape, is_integer, count=3):
    i = np.arange(count * np.prod(shape)) * 5 % 11
    return (i.astype("int32") if is_integer else ((i - 5) / 8).astype("float32")).reshape((count, *shape))


def mlp():
    model = keras.Sequential([L.Input((4, 3)), L.Flatten(), L.Dense(5, activation="relu"), L.BatchNormalization(),
                              L.Dropout(0.25), L.Dense(3, activation="softmax", name="classes")], name="mlp")
    model.compile(keras.optimizers.Adam(0.002), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def shared():
    enc_in = L.Input((6,), name="enc_in")
    y = L.Dense(4, activation="relu", name="proj")(enc_in)
    encoder = keras.Model(enc_in, L.BatchNormalization(name="norm")(y), name="encoder")
    head = keras.Sequential([L.Input((12,)), L.Dense(3, activation="tanh")], name="head")
    a, b = L.Input((6,), name="a"), L.Input((6,), name="b")
    both = L.Dense(4, use_bias=False, name="both")
    x = L.Add(name="sum")([encoder(a), encoder(b)])
    y = L.Concatenate(name="cat")([both(a), both(b), x])
    model = keras.Model([a, b], L.Dense(2, name="out")(head(y)), name="shared")
    model.compile(keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True), "mse")
    return model


def conv():
    x = inputs = L.Input((6, 6, 2), name="image")
    x = L.Conv2D(3, 3, padding="same", use_bias=False, name="conv")(x)
    x = L.BatchNormalization(epsilon=1.001e-5, name="bn")(x)
    x = L.Activation("relu", name="relu")(x)
    x = L.MaxPooling2D(name="pool")(x)
    x = L.GlobalAveragePooling2D(name="mean")(x)
    model = keras.Model(inputs, L.Dense(4, name="logits")(x), name="conv")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.SGD(0.05), loss, metrics=["accuracy"])
    return model


def lstm():
    model = keras.Sequential([L.Input((5,), dtype="int32"), L.Embedding(11, 4), L.LSTM(3), L.Dense(2)], name="lstm")
    model.compile("adam", "mse")
    return model


def bidirectional():
    x = inputs = L.Input((5, 3))
    x = L.Bidirectional(L.GRU(2, return_sequences=True), name="both_ways")(x)
    x = L.TimeDistributed(L.Dense(3), name="each")(x)
    x = L.MultiHeadAttention(2, 2, name="attention")(x, x)
    x = L.GlobalAveragePooling1D(name="mean")(x)
    return keras.Model(inputs, L.Dense(2, name="out")(x), name="sequence")


def functions():
    """Everything of keras.ops that becomes a layer."""
    ops = keras.ops
    x, image = L.Input((6, 4), name="x"), L.Input((4, 4, 3), name="picture")
    inputs = [x, image]
    across, y = ops.transpose(x, (0, 2, 1)), ops.sigmoid(x)
    parts = [x[:, 0], x[:, 1:3], x[:, :, 0], x[..., 1:], x[:, -1, :], image[:, 1:3, :-1, 1], across,
             ops.reshape(x, (-1, 24)), ops.mean(x, axis=1), ops.max(image, axis=(1, 2)), x + 1.0, 2.0 * x, 1 - x, x / 4,
             ops.mean(image, axis=(1, 2), keepdims=True), ops.cast(x, "float32"), ops.relu(x), ops.gelu(x), -x,
             ops.gelu(x, approximate=False), ops.softmax(x, axis=1), ops.squeeze(ops.expand_dims(x, axis=-1), axis=-1),
             ops.concatenate([x, y], axis=1), ops.matmul(x, across), ops.square(x), x * y, x + y, x - y,
             ops.maximum(x, y)]
    x = L.Concatenate()([L.Flatten()(part) for part in parts])
    return keras.Model(inputs, L.Dense(3, name="out")(x), name="functions")


def translator():
    """A decoder that sees what came before, the encoder through a mask, and starts from its last states; a frozen
    normalization that is called with training=False, as transfer learning does."""
    given, taken = L.Input((5, 4), name="given"), L.Input((3, 4), name="taken")
    seen = L.Input((3, 5), dtype="int32", name="seen")
    base = keras.Sequential([L.Input((5, 4)), L.BatchNormalization(), L.Dense(4)], name="base")
    base.trainable = False
    encoded, h, c = L.LSTM(4, return_sequences=True, return_state=True, name="encoder")(base(given, training=False))
    decoded = L.LSTM(4, return_sequences=True, name="decoder")(taken, initial_state=[h, c])
    x = L.MultiHeadAttention(2, 2, name="itself")(query=decoded, value=decoded, use_causal_mask=True)
    x = L.LayerNormalization(name="norm")(x + decoded)
    x = L.MultiHeadAttention(2, 2, name="cross")(x, encoded, key=encoded, attention_mask=seen)
    return keras.Model([given, taken, seen], L.Dense(2, name="out")(x[:, -1]), name="translator")


def custom():
    x = inputs = L.Input((4,), name="x")
    x = L.Lambda(lambda t: t * 2, name="double")(x)

    class Odd(L.Layer):
        def call(self, t):
            return t

    x = Odd(name="odd")(x)
    x = L.Lambda(lambda t: t + 1, name="more")(x)
    return keras.Model(inputs, L.Dense(1, name="out")(x), name="custom")


def problems():
    """What a TPU does not have, a piece of each kind."""
    ops = keras.ops
    text, word = L.Input((1,), dtype="string", name="text"), L.Input((1,), dtype="string", name="word")
    ids, series = L.Input((6,), dtype="int64", name="ids"), L.Input((None, 4), name="series")
    picture, rows = L.Input((3, 8, 8), name="picture"), L.Input((2,), sparse=True, name="rows")
    inputs = [text, word, ids, series, picture, rows]
    words = L.TextVectorization(output_sequence_length=6, vocabulary=["a", "b"], name="split")(text)
    number = L.StringLookup(vocabulary=["a", "b"], name="lookup")(word)
    series = L.LSTM(4, name="lstm")(L.Lambda(lambda t: t * 2, name="double")(series))
    picture = L.Flatten()(L.Conv2D(2, 3, data_format="channels_first", name="conv")(picture))
    kept = ops.where(picture > 0, picture, 0.0)
    parts = [L.GlobalAveragePooling1D()(L.Embedding(11, 4)(part)) for part in (words, number, ids)]
    x = L.Concatenate()([*parts, series, kept, L.Dense(2, name="sparse")(rows)])
    return keras.Model(inputs, L.Dense(1, name="out")(x), name="problems")


def deflate(path):
    """The same archive with deflated entries, to keep the tree small; Keras reads it as well."""
    with zipfile.ZipFile(path) as z:
        members = [(i, z.read(i)) for i in z.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for info, data in members:
            z.writestr(info.filename, data)


def save_json(model, name):
    """Without what differs from run to run: byte code, with the path of this file."""
    config = json.loads(model.to_json())
    for layer in config["config"]["layers"]:
        if layer["class_name"] == "Lambda":
            layer["config"]["function"]["config"]["code"] = "4wAA"
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        json.dump(config, f)


def save(model, name, kinds):
    fill(model)
    path = os.path.join(HERE, name)
    if "keras" in kinds or "deflated" in kinds:
        model.save(path + ".keras")
    if "deflated" in kinds:
        deflate(path + ".keras")
    if "h5" in kinds:
        model.save(path + ".h5", include_optimizer="shared" not in name)
    if "json" in kinds:
        save_json(model, name)
    if "weights" in kinds:
        model.save_weights(path + ".weights.h5")
    if "shards" in kinds:
        model.save_weights(path + "_sharded.weights.json", max_shard_size=3e-7)
    inputs = [example(i.shape[1:], "int" in str(i.dtype)) for i in model.inputs]
    return {"prediction": np.asarray(model.predict(inputs if len(inputs) > 1 else inputs[0], verbose=0),
                                     "float64").round(9).tolist()}


def small_half():
    """One layer in pure bfloat16: how Keras stores such weights."""
    model = keras.Sequential([L.Input((3,)), L.Dense(2, dtype="bfloat16", name="half")], name="half")
    return model


def pure():
    """Pure bfloat16 but for the softmax at the end, which is float32."""
    model = keras.Sequential([L.Input((6,)), L.Dense(8, activation="relu", dtype="bfloat16"),
                              L.BatchNormalization(dtype="bfloat16"), L.Dense(4, dtype="mixed_bfloat16"),
                              L.Dense(3, activation="softmax", dtype="float32", name="classes")], name="pure")
    return model


def masked():
    """Masks that go from layer to layer: the file has them as arguments of calls, made by functions."""
    a, b = keras.Input((6,), dtype="int32", name="a"), keras.Input((6,), dtype="int32", name="b")
    x = L.Add()([L.Embedding(11, 4, mask_zero=True)(a), L.Embedding(11, 4, mask_zero=True)(b)])
    x = L.GRU(3, return_sequences=True)(L.MultiHeadAttention(2, 2)(x, x))
    y = keras.Input((6, 3), name="y")
    z = L.Bidirectional(L.LSTM(2, return_sequences=True))(L.Masking(0.25)(y))
    z = L.GlobalAveragePooling1D()(L.LayerNormalization()(z))
    return keras.Model([a, b, y], L.Concatenate()([L.SimpleRNN(3)(x), z]), name="masked")


if TEXT:
    save_json(problems(), "problems")
    sys.exit()
if OLD:
    models = [(shared, "old_shared", ["h5"]), (lstm, "old_lstm", ["h5"]), (mlp, "old_mlp", ["keras"])]
else:
    models = [(mlp, "mlp", ["keras", "h5", "json", "weights", "shards"]), (shared, "shared", ["deflated"]),
              (conv, "conv", ["deflated"]), (lstm, "lstm", ["keras"]), (bidirectional, "sequence", ["deflated"]),
              (functions, "functions", ["deflated"]), (translator, "translator", ["deflated"]),
              (custom, "custom", ["json"]), (small_half, "half", ["weights"]),
              (pure, "pure", ["deflated"]), (masked, "masked", ["deflated"])]
os.makedirs(HERE, exist_ok=True)
chosen = [name for name in sys.argv[1:] if name != "--old"]
file = os.path.join(HERE, "old_predictions.json" if OLD else "predictions.json")
results = json.load(open(file)) if chosen else {}
results |= {name: save(make(), name, kinds) for make, name, kinds in models if not chosen or name in chosen}
with open(file, "w") as f:
    json.dump(results, f, indent=1)
    f.write("\n")
