# SPDX-License-Identifier: Apache-2.0
# Activations, normalisations, shapes, masks, noise. Several layers of a kind share a case: they stand side by side
# behind a Dense and are concatenated.
def dense(units, **args):
    return {"type": "Dense", "units": units, **args}


def side_by_side(name, first, rows, shape, axis=-1):
    """Each of the rows (a layer, or several in a chain) on `first`."""
    layers, ends = [*first, {"type": "Activation", "name": "fork", "activation": "linear"}], []
    for i, row in enumerate(rows):
        chain = row if isinstance(row, list) else [row]
        for j, layer in enumerate(chain):
            inputs = {"inputs": "fork"} if j == 0 else {}
            layers.append({**layer, "name": f"{layer['type'].lower()}_{i}_{j}", **inputs})
        ends.append(layers[-1]["name"])
    return {"name": name, "inputs": {"x": shape},
            "model": {"layers": [*layers, {"type": "Concatenate", "axis": axis, "inputs": ends}]}}


def activations(name, names, shape=(5,), units=6, scale=8):
    """Values up to 8, so that all pieces of the piecewise ones are met."""
    return side_by_side(name, [dense(units), {"type": "Rescaling", "scale": scale}],
                        [{"type": "Activation", "activation": n} for n in names], list(shape))


def chain(name, shape, *layers, **more):
    return {"name": name, "inputs": {"x": list(shape)}, "model": {"layers": list(layers)}, **more}


CONV = {"type": "Conv2D", "filters": 4, "kernel_size": 1}
L1L2 = {"type": "L1L2", "l1": 0.125, "l2": 0.25}


def layer_norm(**args):
    return {"type": "LayerNormalization", **args}


def group_norm(**args):
    return {"type": "GroupNormalization", **args}


def conv1d(**args):
    return {"type": "Conv1D", "filters": 4, **args}


def conv3d(**args):
    return {"type": "Conv3D", "filters": 2, **args}


def pool(type, **args):
    return {"type": type, **args}


FLAT = {"type": "Flatten"}
CASES = [
    activations("activations_smooth", ["elu", "celu", "selu", "gelu", "mish", "sigmoid", "log_sigmoid", "tanh",
                                       "tanh_shrink", "softplus", "squareplus", "softsign", "silu", "swish"]),
    activations("activations_hard", ["linear", "relu", "relu6", "leaky_relu", "hard_sigmoid", "sparse_sigmoid",
                                     "hard_tanh", "soft_shrink", "hard_shrink", "sparse_plus", "hard_swish",
                                     "hard_silu"]),
    activations("activations_rows", ["softmax", "log_softmax", "sparsemax", "glu", "gelu_approximate",
                                     "exponential"], (2, 5), 6, 2),
    side_by_side("norm_vectors", [dense(6)],
                 [layer_norm(), layer_norm(scale=False, epsilon=0.0625), layer_norm(center=False),
                  layer_norm(rms_scaling=True), layer_norm(gamma_regularizer=L1L2, beta_regularizer="l2"),
                  {"type": "RMSNormalization"}, group_norm(groups=1, scale=False), {"type": "UnitNormalization"}],
                 [5]),
    side_by_side("norm_images", [CONV],
                 [layer_norm(axis=[1, 2, 3]), layer_norm(axis=[1]), {"type": "RMSNormalization", "axis": [2, 3]},
                  group_norm(groups=2), group_norm(groups=-1, center=False), group_norm(groups=3, axis=1),
                  {"type": "UnitNormalization", "axis": [1, 2]}], [3, 2, 3]),
    side_by_side("softmax_axes", [CONV],
                 [{"type": "Softmax", "axis": a} for a in (1, -1, [1, 2], [2, 3])], [3, 2, 3]),
    chain("permute", (2, 3, 4), {"type": "Permute", "dims": [3, 1, 2]}, dense(3)),
    chain("repeat", (4,), dense(3), {"type": "RepeatVector", "n": 3}, dense(2)),
    chain("activity_layer", (4,), dense(3), {"type": "ActivityRegularization", "l1": 0.125, "l2": 0.0625}),
    chain("noise", (4, 3), dense(3), {"type": "GaussianNoise", "stddev": 0.5},
          {"type": "GaussianDropout", "rate": 0.5}, {"type": "AlphaDropout", "rate": 0.5},
          {"type": "SpatialDropout1D", "rate": 0.5}, {"type": "Dropout", "rate": 0.5, "noise_shape": [None, 1, 3]},
          training=False),
    side_by_side("conv1d", [dense(4)],
                 [[layer, FLAT] for layer in (
                     conv1d(kernel_size=3), conv1d(kernel_size=2, padding="causal", activation="tanh"),
                     conv1d(kernel_size=2, padding="causal", dilation_rate=2),
                     conv1d(kernel_size=3, padding="same", strides=2, use_bias=False),
                     conv1d(kernel_size=2, groups=2, dilation_rate=3, padding="same",
                            activity_regularizer="l2", kernel_regularizer="l1"))], [7, 3]),
    side_by_side("pooling1d", [dense(3)],
                 [[pool("MaxPooling1D"), FLAT], [pool("MaxPooling1D", pool_size=3, strides=2, padding="same"), FLAT],
                  [pool("AveragePooling1D", pool_size=3, strides=1), FLAT],
                  [pool("AveragePooling1D", pool_size=3, padding="same"), FLAT],
                  pool("GlobalAveragePooling1D"), pool("GlobalMaxPooling1D"),
                  [pool("GlobalMaxPooling1D", keepdims=True), FLAT]], [7, 3]),
    side_by_side("padding1d", [dense(3)],
                 [[pool("ZeroPadding1D"), FLAT], [pool("ZeroPadding1D", padding=[0, 2]), FLAT],
                  [pool("Cropping1D"), FLAT], [pool("Cropping1D", cropping=[2, 0]), FLAT],
                  [pool("UpSampling1D", size=3), FLAT]], [4, 2]),
    side_by_side("batch_norm_axes", [CONV],
                 [{"type": "BatchNormalization", "axis": 1}, {"type": "BatchNormalization", "axis": -2, "scale": False},
                  {"type": "BatchNormalization", "axis": 3, "epsilon": 0.0625, "center": False}], [3, 2, 3]),
    chain("batch_norm_mask", (5, 3), {"type": "ZeroPadding1D", "padding": [1, 2]}, {"type": "Masking"},
          {"type": "BatchNormalization"}, dense(4), {"type": "GlobalAveragePooling1D"}),
    chain("masked_mean", (5, 3), {"type": "ZeroPadding1D", "padding": [1, 2]}, {"type": "Masking"}, dense(4),
          {"type": "GlobalAveragePooling1D"}),
    side_by_side("conv3d", [dense(4)],
                 [[layer, FLAT] for layer in (
                     conv3d(kernel_size=2), conv3d(kernel_size=[3, 2, 1], padding="same", strides=[2, 1, 2]),
                     conv3d(kernel_size=2, dilation_rate=[1, 2, 1], groups=2, activation="tanh"))], [3, 4, 3, 2]),
    side_by_side("pooling3d", [dense(2)],
                 [[pool("MaxPooling3D"), FLAT],
                  [pool("MaxPooling3D", pool_size=[2, 3, 2], strides=1, padding="same"), FLAT],
                  [pool("AveragePooling3D", pool_size=2, strides=[2, 1, 2], padding="same"), FLAT],
                  pool("GlobalAveragePooling3D"), pool("GlobalMaxPooling3D")], [3, 4, 2, 2]),
    side_by_side("padding3d", [dense(2)],
                 [[pool("ZeroPadding3D", padding=[1, [0, 1], 0]), FLAT],
                  [pool("Cropping3D", cropping=[[0, 1], [1, 0], [0, 0]]), FLAT],
                  [pool("UpSampling3D", size=[2, 1, 2]), FLAT]], [2, 3, 2, 1]),
]
