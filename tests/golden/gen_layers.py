#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# What Keras makes of small models, in float64: prediction, loss and gradients.
#   tests/golden/gen_layers.py tests/golden/layers/cases_merge.py ...      (needs keras, jax, numpy)
# Each file of cases has a list CASES of dicts:
#   name        of the case; the result is NAME.json beside the file of cases
#   model       the configuration's "model" object
#   inputs      {name: shape of one example, or {"shape": ..., "limit": n} for integers 0 .. n - 1}
#   batch       examples (default 3)
#   training    False: no loss and gradients (random layers)
#   tolerance   of the greatest magnitude; "why" then says why it is not 1e-5
# Inputs, weights and the target are golden_values' streams: input i is stream 1 + i, variable i stream 30 + i,
# halved (a variance: its absolute value plus a half), the target stream 20. The loss is the mean squared error
# plus what layers add; only the first output has a target. Read by tests/harness/layer_case.h.
import importlib.util
import json
import os
import sys

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
import jax  # noqa: E402
import keras  # noqa: E402
import numpy as np  # noqa: E402

from golden_values import values  # noqa: E402

jax.config.update("jax_enable_x64", True)
keras.backend.set_floatx("float64")
MODELS = ("Model", "Functional", "Sequential")
# What Keras takes when a layer is called.
CALL_ARGUMENTS = ("use_causal_mask",)


def sparsemax(z):
    """Martins & Astudillo 2016, algorithm 1. Keras 3.15's adds up the sums of all prefixes in the support instead
    of taking that of the last, which is no distribution when several elements stay."""
    jnp = jax.numpy
    ordered = -jnp.sort(-z, axis=-1)
    sums, k = jnp.cumsum(ordered, axis=-1), jnp.arange(1, z.shape[-1] + 1)
    count = (1 + k * ordered > sums).sum(-1, keepdims=True)
    return jnp.maximum(z - (jnp.take_along_axis(sums, count - 1, -1) - 1) / count, 0)


# What Keras has no name for, does not know the shape of, or gets wrong.
FUNCTIONS = {"sparsemax": sparsemax,
             "gelu_approximate": lambda x: keras.activations.gelu(x, approximate=True),
             "glu": keras.activations.glu}


def snake(name):
    out = ""
    for i, c in enumerate(name):
        if c.isupper() and i and (not name[i - 1].isupper() or (i + 1 < len(name) and name[i + 1].islower())):
            out += "_"
        out += c.lower()
    return out


def object_of(value, package):
    """{"type": "L2", "l2": 0.1} of `package`; names stay."""
    if isinstance(value, dict) and "type" in value:
        args = {k: v for k, v in value.items() if k != "type"}
        if hasattr(package, value["type"]):
            return getattr(package, value["type"])(**args)
        return package.get({"class_name": value["type"], "config": args})
    return value


def make_layer(row):
    args = {}
    if row["type"] == "Activation" and row["activation"] in FUNCTIONS:
        return keras.layers.Lambda(FUNCTIONS[row["activation"]])
    for key, value in row.items():
        if key in ("type", "inputs", "name", *CALL_ARGUMENTS):
            continue
        if key.endswith("_regularizer"):
            value = object_of(value, keras.regularizers)
        elif key.endswith("_constraint"):
            value = object_of(value, keras.constraints)
        elif key.endswith("_initializer"):
            value = object_of(value, keras.initializers)
        elif key in ("layer", "backward_layer") and isinstance(value, dict):
            value = make_layer(value)
        args[key] = tuple(value) if isinstance(value, list) and key == "target_shape" else value
    return getattr(keras.layers, row["type"])(**args)


class Scope:
    """Layers by name, in the order of first calls; values by name."""

    def __init__(self, spec, values, order):
        self.spec, self.values, self.layers, self.order = spec, dict(values), {}, order

    def pick(self, name):
        if name in self.values and not isinstance(self.values[name], (list, tuple)):
            return self.values[name]
        base, _, index = name.rpartition(":")
        value = self.values[base if base in self.values else name]
        return value[int(index) if base in self.values else 0] if isinstance(value, (list, tuple)) else value

    def run(self):
        last, counts = next(iter(self.values)), {}
        for row in self.spec["layers"]:
            refs = row.get("inputs", last)
            args = [self.pick(r) for r in ([refs] if isinstance(refs, str) else refs)]
            base = row["layer"] if "type" not in row else snake(row["type"])
            name = row.get("name")
            if not name:
                name = base if not counts.get(base) and "type" in row else f"{base}_{counts.get(base, 0) or 1}"
                counts[base] = counts.get(base, 0) + 1
            if "type" not in row:
                target = self.layers[row["layer"]]
            elif row["type"] in MODELS:
                target = self.nested(row, args)
            else:
                target = make_layer(row)
                self.order.append((name, target))
            self.layers[name] = target
            more = {k: row[k] for k in CALL_ARGUMENTS if k in row}
            if row.get("type") in ("MultiHeadAttention", "GroupQueryAttention"):
                more.update(zip(("query", "value", "key", "attention_mask"), args))
                # With the scores Keras takes its explicit way, not that of a backend's fused function, which (in
                # JAX) wants values as long as keys and lets a query that may see no key see all.
                self.values[name] = target(return_attention_scores=True, **more)[0]
            else:
                self.values[name] = target(args if len(args) > 1 else args[0], **more)
            last = name
        outputs = self.spec.get("outputs", last)
        return [self.pick(o) for o in ([outputs] if isinstance(outputs, str) else outputs)]

    def nested(self, row, args):
        names = row.get("model_inputs", ["input"])
        inputs = [keras.Input(a.shape[1:]) for a in args]
        order = []
        outputs = Scope(row, zip(names, inputs), order).run()
        self.order += [(f"{row['name']}/{n}", layer) for n, layer in order]
        return keras.Model(inputs, outputs if len(outputs) > 1 else outputs[0])


def array_of(index, name, spec, batch):
    shape = spec["shape"] if isinstance(spec, dict) else spec
    limit = spec.get("limit") if isinstance(spec, dict) else None
    x = values(1 + index, batch, *shape)
    if limit:
        return np.minimum(((x.astype(np.float64) + 1) / 2 * limit).astype(np.int32), limit - 1)
    return x.astype(np.float64)


def weight_of(index, path, shape):
    x = values(30 + index, *shape).astype(np.float64) / 2
    return np.abs(x) + 0.5 if "variance" in path else x


def numbers(array):
    return [float(f"{v:.9g}") for v in np.asarray(array, np.float64).ravel()]


def run_case(case):
    batch = case.get("batch", 3)
    arrays = {n: array_of(i, n, s, batch) for i, (n, s) in enumerate(case["inputs"].items())}
    inputs = {n: keras.Input(a.shape[1:], dtype="int32" if a.dtype == np.int32 else "float64")
              for n, a in arrays.items()}
    order = []
    outputs = Scope(case["model"], inputs, order).run()
    model = keras.Model(list(inputs.values()), outputs)
    named = []
    for name, layer in order:
        for w in layer.weights:
            if "seed_generator" in w.path:
                continue
            w.assign(weight_of(len(named), w.path, w.shape))
            named.append((name, w))
        if isinstance(layer, keras.layers.Normalization):
            layer.finalize_state()  # takes the numbers out of its weights
    feed = list(arrays.values())
    result = {"model": case["model"], "batch": batch,
              "inputs": [{"name": n, "shape": list(a.shape[1:]),
                          **({"limit": case["inputs"][n]["limit"]} if a.dtype == np.int32 else {})}
                         for n, a in arrays.items()],
              "variables": [f"{n}: {list(w.shape)}" for n, w in named]}
    for key in ("tolerance", "why"):
        if key in case:
            result[key] = case[key]
    prediction = model(feed, training=False)
    first = prediction[0] if isinstance(prediction, (list, tuple)) else prediction
    result["prediction"] = numbers(first)
    if not case.get("training", True):
        return result
    target = values(20, *first.shape).astype(np.float64)

    def loss_of(trainable, others):
        out, _, losses = model.stateless_call(trainable, others, feed, training=True, return_losses=True)
        out = out[0] if isinstance(out, (list, tuple)) else out
        return ((out - target) ** 2).mean() + sum(losses)

    trainable = [v.value for v in model.trainable_variables]
    others = [v.value for v in model.non_trainable_variables]
    loss, gradients = jax.value_and_grad(loss_of)(trainable, others)
    by_id = {id(v): g for v, g in zip(model.trainable_variables, gradients)}
    result["loss"] = float(f"{float(loss):.9g}")
    result["gradients"] = [numbers(by_id[id(w)]) if id(w) in by_id else None for _, w in named]
    return result


def main():
    for path in sys.argv[1:]:
        spec = importlib.util.spec_from_file_location("cases", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for case in module.CASES:
            keras.backend.clear_session()
            target = os.path.join(os.path.dirname(path), case["name"] + ".json")
            result = run_case(case)
            with open(target, "w", encoding="utf-8") as f:
                f.write("{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in result.items())
                        + "\n}\n")


main()
