# SPDX-License-Identifier: Apache-2.0
# Normalization and image layers. A random layer whose range is one number does that in training, which loss and
# gradients show; prediction passes the images.
def case(name, shape, *layers, **more):
    return {"name": name, "inputs": {"x": list(shape)}, "model": {"layers": list(layers)}, **more}


def conv(filters=2, **more):
    return {"type": "Conv2D", "filters": filters, "kernel_size": 1, **more}


def affine(type, **args):
    return {"type": type, **args}


RANGE = {"value_range": [-0.5, 0.75]}
# Transformations are f32 in Keras: a position is off by 1e-6, an element by that times a difference of neighbours.
F32 = {"tolerance": 5e-5, "why": "Keras computes positions in f32"}

CASES = [
    case("normalization", (3, 4), {"type": "Dense", "units": 5}, {"type": "Normalization"}),
    case("normalization_axes", (3, 4), {"type": "Dense", "units": 5}, {"type": "Normalization", "axis": [1, 2]},
         {"type": "Normalization", "axis": None, "invert": True}),
    case("normalization_given", (3, 2), {"type": "Dense", "units": 2},
         {"type": "Normalization", "mean": [0.25, -0.5], "variance": [4.0, 0.5]},
         {"type": "Normalization", "axis": [1, 2], "mean": [0.25, -0.5], "variance": [4.0, 0.5], "invert": True},
         {"type": "Normalization", "mean": 0.5, "variance": 0.25}),
    case("resizing", (3, 5, 2), conv(), {"type": "Resizing", "height": 7, "width": 4},
         {"type": "Resizing", "height": 5, "width": 9, "interpolation": "nearest"}),
    case("center_crop", (6, 5, 2), conv(), {"type": "CenterCrop", "height": 3, "width": 4},
         {"type": "CenterCrop", "height": 5, "width": 3}),
    case("rotation_reflect", (5, 6, 2), conv(), affine("RandomRotation", factor=[0.11, 0.11]), conv(3), **F32),
    case("rotation_constant", (5, 6, 2), conv(),
         affine("RandomRotation", factor=[-0.07, -0.07], fill_mode="constant", fill_value=0.5), **F32),
    case("translation_wrap", (5, 6, 2), conv(),
         affine("RandomTranslation", height_factor=[0.23, 0.23], width_factor=[-0.71, -0.71], fill_mode="wrap"),
         **F32),
    case("translation_nearest", (5, 6, 1), conv(),
         affine("RandomTranslation", height_factor=[0.27, 0.27], width_factor=[0.22, 0.22], fill_mode="nearest",
                interpolation="nearest"), **F32),
    case("zoom", (5, 6, 2), conv(),
         affine("RandomZoom", height_factor=[0.33, 0.33], width_factor=[-0.21, -0.21]), **F32),
    case("zoom_one_factor", (4, 4, 1), conv(), affine("RandomZoom", height_factor=[-0.37, -0.37]), **F32),
    case("contrast", (4, 3, 2), conv(), affine("RandomContrast", factor=[-0.5, 0.5], **RANGE), conv(3), **F32),
    case("brightness", (4, 3, 2), conv(), affine("RandomBrightness", factor=[0.125, 0.125], **RANGE), conv(3),
         **F32),
]
