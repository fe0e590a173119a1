#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Golden values of expressions (src/model/expression.h), from NumPy in float64.

    tests/golden/gen_expression.py > tests/golden/expression.h      (needs python3-numpy)

x, y: f32 [3, 4], seeds 1 and 2 of golden_value(); label: s32 [3] = 2, 0, 3; mask: label != 0.
"""
import numpy as np
from golden_values import values

x = values(1, 3, 4).astype(np.float64)
y = values(2, 3, 4).astype(np.float64)
label = np.array([2, 0, 3])


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


hot = np.eye(4)[label]
CASES = [
    ("x + y * 2", x + y * 2),
    ("-x ** 2", -(x ** 2)),
    ("2 ** -1 ** 2", 2.0 ** -(1.0 ** 2)),
    ("(x - y) / (1 + abs(y))", (x - y) / (1 + abs(y))),
    ("1 - 2 - 3", -4.0),
    ("8 / 2 / 2", 2.0),
    ("mean((x - y) ** 2, axis=-1)", ((x - y) ** 2).mean(-1)),
    ("sum(where(x > y, x, 0))", np.where(x > y, x, 0).sum()),
    ("where(label != 0, sum(x, axis=1), -1)", np.where(label != 0, x.sum(1), -1)),
    ("sum(x * one_hot(label, 4), axis=[1])", (x * hot).sum(1)),
    ("-sum(log_softmax(x) * one_hot(label, 4), axis=-1)", -(np.log(softmax(x)) * hot).sum(-1)),
    ("-log(sum(softmax(x) * one_hot(label, 4), axis=-1))", -np.log((softmax(x) * hot).sum(-1))),
    ("x[..., 1] - x[..., -1]", x[..., 1] - x[..., -1]),
    ("sum(x[..., 1:3], axis=-1) + max(y[..., :-1], axis=-1)", x[..., 1:3].sum(-1) + y[..., :-1].max(-1)),
    ("x - mean(x, axis=0, keepdims=true)", x - x.mean(0, keepdims=True)),
    ("cast(argmax(x) == label, f32)", (x.argmax(-1) == label).astype(float)),
    ("cast(x > 0 & y > 0 | !(x > -1), f32)", (((x > 0) & (y > 0)) | ~(x > -1)).astype(float)),
    ("label * 2 + 1", label * 2 + 1.0),
    ("label * 0.5", label * 0.5),
    ("expand_dims(label, -1) + x", label[:, None] + x),
    ("clip(x, -0.5, 0.5) + maximum(x, y) - minimum(x, 0)",
     np.clip(x, -0.5, 0.5) + np.maximum(x, y) - np.minimum(x, 0)),
    ("sigmoid(x) * tanh(y) + exp(-square(x)) + log1p(abs(y))",
     1 / (1 + np.exp(-x)) * np.tanh(y) + np.exp(-x * x) + np.log1p(abs(y))),
    ("sum(where(label != 0, sum(x * y, axis=-1), 0)) / sum(cast(label != 0, f32))",
     np.where(label != 0, (x * y).sum(-1), 0).sum() / (label != 0).sum()),
    ("sqrt(sum(flatten(x) ** 2, axis=-1)) + remainder(5, 3)", np.sqrt((x ** 2).sum(-1)) + 2),
    ("cast(all(x < 10) & any(y < 10), s32)", 1.0),
]

print("""/* SPDX-License-Identifier: Apache-2.0
 * Made by tests/golden/gen_expression.py (NumPy %s); do not edit. */
typedef struct expression_case {
    const char *text;
    int count;
    double values[12];
} expression_case;

static const expression_case expression_cases[] = {""" % np.__version__)
for text, value in CASES:
    values = np.asarray(value, np.float64).ravel()
    print('    {"%s", %d, {%s}},' % (text, values.size, ", ".join("%.17g" % v for v in values)))
print("};")
