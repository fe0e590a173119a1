# SPDX-License-Identifier: Apache-2.0
# Layers on images, and activations with parameters. A Conv2D or Dense in front makes the gradient of their
# input visible.
FRONT = {"type": "Conv2D", "name": "front", "filters": 2, "kernel_size": 1}


def image(name, row, shape=(6, 5, 3), **more):
    return {"name": name, "inputs": {"x": list(shape)}, "batch": 2, **more,
            "model": {"layers": [FRONT, {"name": "it", **row}]}}


def vector(name, row, shape=(4, 3)):
    return {"name": name, "inputs": {"x": list(shape)},
            "model": {"layers": [{"type": "Dense", "name": "front", "units": 5}, {"name": "it", **row}]}}


CASES = [
    image("conv2d_groups", {"type": "Conv2D", "filters": 4, "kernel_size": 3, "groups": 2, "padding": "same"}),
    image("conv2d_penalties", {"type": "Conv2D", "filters": 3, "kernel_size": [2, 1], "strides": [1, 2],
                               "kernel_regularizer": {"type": "L1L2", "l1": 0.1, "l2": 0.2},
                               "bias_regularizer": "l1", "activity_regularizer": {"type": "L2", "l2": 0.3}}),
    image("max_pooling2d", {"type": "MaxPooling2D", "pool_size": 3, "strides": 2, "padding": "same"}),
    image("average_pooling2d", {"type": "AveragePooling2D", "pool_size": [2, 3], "padding": "same"}),
    image("global_max_pooling2d", {"type": "GlobalMaxPooling2D"}),
    image("global_average_pooling2d", {"type": "GlobalAveragePooling2D", "keepdims": True}),
    image("batch_normalization", {"type": "BatchNormalization", "momentum": 0.9}),
    image("zero_padding2d", {"type": "ZeroPadding2D", "padding": [[1, 0], [2, 3]]}),
    image("zero_padding2d_one", {"type": "ZeroPadding2D", "padding": 2}),
    image("cropping2d", {"type": "Cropping2D", "cropping": [[1, 2], [0, 1]]}),
    image("up_sampling2d", {"type": "UpSampling2D", "size": [2, 3]}),
    image("up_sampling2d_bilinear", {"type": "UpSampling2D", "size": [2, 3], "interpolation": "bilinear"}),
    image("up_sampling2d_thin", {"type": "UpSampling2D", "size": [1, 4], "interpolation": "bilinear"}, (2, 1, 3)),
    image("depthwise_conv2d", {"type": "DepthwiseConv2D", "kernel_size": 3, "padding": "same",
                               "activation": "tanh"}),
    image("depthwise_conv2d_strides", {"type": "DepthwiseConv2D", "kernel_size": [2, 3], "strides": 2,
                                       "depth_multiplier": 3, "use_bias": False,
                                       "depthwise_regularizer": "l2"}, (7, 8, 3)),
    image("depthwise_conv2d_dilation", {"type": "DepthwiseConv2D", "kernel_size": 2, "dilation_rate": 2}),
    image("separable_conv2d", {"type": "SeparableConv2D", "filters": 4, "kernel_size": 3, "padding": "same",
                               "depth_multiplier": 2, "activation": "relu"}),
    image("conv2d_transpose", {"type": "Conv2DTranspose", "filters": 3, "kernel_size": 3, "strides": 2,
                               "padding": "same"}),
    image("conv2d_transpose_valid", {"type": "Conv2DTranspose", "filters": 3, "kernel_size": [3, 2],
                                     "strides": [2, 3], "activation": "tanh"}),
    image("conv2d_transpose_one", {"type": "Conv2DTranspose", "filters": 2, "kernel_size": 3, "padding": "same",
                                   "use_bias": False}, (4, 4, 1)),
    vector("leaky_re_lu", {"type": "LeakyReLU", "negative_slope": 0.2}),
    vector("elu", {"type": "ELU", "alpha": 1.5}),
    vector("p_re_lu", {"type": "PReLU"}),
    vector("p_re_lu_shared", {"type": "PReLU", "shared_axes": [1]}),
    vector("relu", {"type": "ReLU", "max_value": 0.5, "negative_slope": 0.1, "threshold": 0.1}),
    vector("softmax", {"type": "Softmax"}),
]
