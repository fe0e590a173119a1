# SPDX-License-Identifier: Apache-2.0
# Convolutions of groups: depthwise, separable, grouped.
FLAT = {"type": "Flatten"}


def conv(**args):
    return {"type": "Conv2D", "kernel_size": 3, "filters": 4, **args}


def depthwise(**args):
    return {"type": "DepthwiseConv2D", "kernel_size": 3, **args}


def separable(**args):
    return {"type": "SeparableConv2D", "kernel_size": 3, "filters": 3, **args}


def side_by_side(name, rows, shape, filters=4):
    """Each of the rows on the same convolution, all flattened and side by side."""
    layers, ends = [conv(filters=filters, kernel_size=1, name="fork")], []
    for i, row in enumerate(rows):
        layers += [{**row, "name": f"layer_{i}", "inputs": "fork"}, {**FLAT, "name": f"flat_{i}"}]
        ends.append(f"flat_{i}")
    return {"name": name, "inputs": {"x": shape},
            "model": {"layers": [*layers, {"type": "Concatenate", "inputs": ends}]}}


def transpose(dims, **args):
    return {"type": f"Conv{dims}DTranspose", "kernel_size": 3, "filters": 2, **args}


def transposes(name, dims, rows, shape):
    front = {"type": f"Conv{dims}D", "name": "fork", "filters": 3, "kernel_size": 1}
    layers, ends = [front], []
    for i, row in enumerate(rows):
        layers += [{**transpose(dims, **row), "name": f"layer_{i}", "inputs": "fork"}, {**FLAT, "name": f"flat_{i}"}]
        ends.append(f"flat_{i}")
    return {"name": name, "inputs": {"x": shape},
            "model": {"layers": [*layers, {"type": "Concatenate", "inputs": ends}]}}


CASES = [
    side_by_side("depthwise", [
        depthwise(), depthwise(padding="same", strides=2, depth_multiplier=3, use_bias=False),
        depthwise(kernel_size=[2, 3], dilation_rate=2, padding="same", activation="tanh")], [6, 5, 3]),
    side_by_side("separable", [
        separable(padding="same"), separable(kernel_size=2, strides=2, depth_multiplier=2, use_bias=False)], [5, 6, 2]),
    side_by_side("conv_groups", [
        conv(groups=2), conv(groups=4, filters=8, strides=2, padding="same", dilation_rate=1)], [5, 6, 2]),
    side_by_side("conv_groups_wide", [
        conv(groups=2, filters=16, kernel_size=2), conv(groups=16, filters=32, kernel_size=2, use_bias=False)],
        [3, 4, 2], 16),
    transposes("transpose1d", 1, [
        {}, {"strides": 2, "padding": "same"}, {"strides": 3, "output_padding": 2, "kernel_size": 2},
        {"strides": 3, "output_padding": 1, "padding": "same", "kernel_size": 4},
        {"dilation_rate": 2, "padding": "same", "use_bias": False}], [4, 2]),
    transposes("transpose2d", 2, [
        {"strides": 2, "padding": "same", "output_padding": 1}, {"strides": 2, "output_padding": 0},
        {"strides": [3, 2], "padding": "same", "output_padding": [2, 0], "kernel_size": [2, 4]},
        {"dilation_rate": [2, 1], "output_padding": 0, "padding": "same"},
        {"dilation_rate": 2, "activation": "tanh"}], [3, 2, 2]),
    transposes("transpose3d", 3, [
        {"kernel_size": 2}, {"kernel_size": [3, 2, 1], "strides": [2, 1, 2], "padding": "same"},
        {"kernel_size": [2, 1, 2], "strides": [3, 2, 1], "output_padding": [1, 1, 0]},
        {"kernel_size": [4, 1, 2], "strides": 2, "output_padding": 1, "padding": "same"}], [2, 2, 3, 2]),
]
