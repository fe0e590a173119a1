#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Optimizers and schedules as Keras 3 computes them (any backend; made with Keras 3.15, jax 0.10, in f32): two
# weights, their values after each of three steps; learning rates at some steps. LARS, which Keras does not
# have, in numpy f64 from the formula of the MLPerf submissions (opt_layerwise.c).
#   KERAS_BACKEND=jax tests/golden/gen_keras_optim.py > tests/golden/keras_optim.h
import keras
import numpy as np

from golden_values import values

SHAPES = [(3, 4), (5,)]
STEPS = 3
# optimizer, arguments; "exclude" is a part of names of variables without decay
CASES = [
    ("SGD", {}), ("SGD", dict(learning_rate=0.1, momentum=0.9)),
    ("SGD", dict(learning_rate=0.1, momentum=0.9, nesterov=True, weight_decay=0.05)),
    ("Adam", {}), ("Adam", dict(learning_rate=0.1, amsgrad=True, beta_2=0.5)),
    ("Adam", dict(learning_rate=0.1, clipnorm=0.7)), ("Adam", dict(learning_rate=0.1, global_clipnorm=0.7)),
    ("Adam", dict(learning_rate=0.1, clipvalue=0.3, epsilon=0.01)),
    ("AdamW", dict(learning_rate=0.1)), ("AdamW", dict(learning_rate=0.1, weight_decay=0.3, exclude="bias")),
    ("Adamax", {}), ("Adamax", dict(learning_rate=0.1, beta_1=0.7)),
    ("Nadam", {}), ("Nadam", dict(learning_rate=0.1, beta_1=0.7)),
    ("RMSprop", {}), ("RMSprop", dict(learning_rate=0.1, momentum=0.5)),
    ("RMSprop", dict(learning_rate=0.1, momentum=0.5, centered=True, rho=0.6)),
    ("Adagrad", {}), ("Adagrad", dict(learning_rate=0.3, initial_accumulator_value=0.01)),
    ("Adadelta", {}), ("Adadelta", dict(learning_rate=1.0, rho=0.5, epsilon=0.01)),
    ("Adafactor", {}), ("Adafactor", dict(learning_rate=0.3, beta_2_decay=-0.5, clip_threshold=0.5)),
    ("Adafactor", dict(learning_rate=0.9, relative_step=False, weight_decay=0.1)),
    ("Lion", {}), ("Lion", dict(learning_rate=0.1, beta_1=0.5, weight_decay=0.1)),
    ("Lamb", {}), ("Lamb", dict(learning_rate=0.1, weight_decay=0.1, exclude="bias")),
    ("LARS", {}), ("LARS", dict(learning_rate=0.5, trust_coefficient=0.1, nesterov=True, weight_decay=0.2)),
    ("LARS", dict(learning_rate=0.5, trust_coefficient=0.1, exclude="bias")),
    ("SGD", dict(learning_rate=0.1, use_ema=True, ema_momentum=0.75, ema_overwrite_frequency=2)),
]
SCHEDULES = [
    ("constant", dict()),
    ("cosine", dict(decay_steps=10)),
    ("CosineDecay", dict(decay_steps=10, alpha=0.1)),
    ("CosineDecay", dict(decay_steps=10, alpha=0.1, warmup_steps=4, warmup_target=0.7)),
    ("CosineDecayRestarts", dict(first_decay_steps=4, alpha=0.1, m_mul=0.8)),
    ("CosineDecayRestarts", dict(first_decay_steps=4, t_mul=1.0, m_mul=0.5)),
    ("ExponentialDecay", dict(decay_steps=4, decay_rate=0.6)),
    ("ExponentialDecay", dict(decay_steps=4, decay_rate=0.6, staircase=True)),
    ("InverseTimeDecay", dict(decay_steps=4, decay_rate=0.6)),
    ("InverseTimeDecay", dict(decay_steps=4, decay_rate=0.6, staircase=True)),
    ("PolynomialDecay", dict(decay_steps=10, power=0.5)),
    ("PolynomialDecay", dict(decay_steps=10, power=2.0, end_learning_rate=0.05, cycle=True)),
    ("PiecewiseConstantDecay", dict(boundaries=[3, 9], values=[0.5, 0.25, 0.125])),
]
ALIASES = {"cosine": "CosineDecay"}
AT = [0, 1, 3, 4, 5, 7, 9, 10, 11, 13, 14, 20, 27, 28, 29, 100]


def weights():
    return [values(1 + i, *s).astype(np.float64) for i, s in enumerate(SHAPES)]


def gradients(step):
    return [values(10 * (step + 1) + i, *s).astype(np.float64) for i, s in enumerate(SHAPES)]


def keras_steps(name, arguments):
    arguments = dict(arguments)
    exclude = arguments.pop("exclude", None)
    optimizer = getattr(keras.optimizers, name)(**arguments)
    if exclude:
        optimizer.exclude_from_weight_decay(var_names=[exclude])
    variables = [keras.Variable(w.astype(np.float32), name=n) for w, n in zip(weights(), ("kernel", "bias"))]
    for step in range(STEPS):
        optimizer.apply([keras.ops.convert_to_tensor(g.astype(np.float32)) for g in gradients(step)], variables)
        yield [np.array(v.value) for v in variables]


def lars_steps(name, arguments):
    a = dict(learning_rate=0.1, momentum=0.9, nesterov=False, weight_decay=1e-4, trust_coefficient=1e-3, exclude="none")
    a.update(arguments)
    w, v = weights(), [np.zeros(s) for s in SHAPES]
    for step in range(STEPS):
        for i, g in enumerate(gradients(step)):
            decay, ratio = a["weight_decay"], 1.0
            if a["exclude"] == ("kernel", "bias")[i]:
                decay = 0.0
            else:
                norm, g_norm = np.linalg.norm(w[i]), np.linalg.norm(g)
                ratio = a["trust_coefficient"] * norm / (g_norm + decay * norm)
            s = a["learning_rate"] * ratio * (g + decay * w[i])
            v[i] = a["momentum"] * v[i] + s
            w[i] = w[i] - (a["momentum"] * v[i] + s if a["nesterov"] else v[i])
        yield [x.copy() for x in w]


def text(arguments):
    return " ".join("%s=%s" % (k, str(v).lower() if isinstance(v, bool) else v) for k, v in arguments.items()
                    if not isinstance(v, list))


def floats(array):
    return ", ".join("%.9gf" % v if "." in "%.9g" % v or "e" in "%.9g" % v else "%.9g.0f" % v for v in array)


print("/* SPDX-License-Identifier: Apache-2.0\n * Generated by tests/golden/gen_keras_optim.py. */")
print("#include <stdint.h>\n/* clang-format off */")
print("enum { GOLDEN_OPTIM_STEPS = %d, GOLDEN_OPTIM_ELEMS = 17, GOLDEN_RATES = %d };" % (STEPS, len(AT)))
print("static const struct {\n    const char *name, *arguments;\n"
      "    float weights[GOLDEN_OPTIM_STEPS * GOLDEN_OPTIM_ELEMS];\n} golden_keras_optim[] = {")
for name, arguments in CASES:
    steps = (lars_steps if name == "LARS" else keras_steps)(name, arguments)
    flat = np.concatenate([w.reshape(-1) for step in steps for w in step])
    print('    {"%s", "%s", {%s}},' % (name, text(arguments), floats(flat)))
print("};")
print("static const uint32_t golden_rate_steps[GOLDEN_RATES] = {%s};" % ", ".join(map(str, AT)))
print("/* of the rate 0.5 */")
print("static const struct {\n    const char *name, *arguments;\n    float rates[GOLDEN_RATES];\n"
      "} golden_keras_schedule[] = {")
for name, arguments in SCHEDULES:
    first = {} if name == "PiecewiseConstantDecay" else dict(initial_learning_rate=0.5)
    if name == "constant":
        schedule = lambda step: 0.5  # noqa: E731
    else:
        schedule = getattr(keras.optimizers.schedules, ALIASES.get(name, name))(**first, **arguments)
    print('    {"%s", "%s", {%s}},' % (name, text(arguments), floats([float(schedule(s)) for s in AT])))
print("};")
