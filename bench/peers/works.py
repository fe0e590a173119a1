# SPDX-License-Identifier: Apache-2.0
"""The trainings that are compared: models in tpucl's words, global batches, inputs of one example."""


def conv(name, inputs, filters, kernel, strides=1):
    return [{"type": "Conv2D", "name": name, "inputs": inputs, "filters": filters, "kernel_size": kernel,
             "strides": strides, "padding": "same", "use_bias": False},
            {"type": "BatchNormalization", "name": f"{name}_bn", "inputs": name, "momentum": 0.9}]


def relu(name, inputs):
    return [{"type": "ReLU", "name": name, "inputs": inputs}]


def basic_block(name, inputs, filters, strides):
    rows = conv(f"{name}_1", inputs, filters, 3, strides) + relu(f"{name}_1_relu", f"{name}_1_bn")
    return rows + conv(f"{name}_2", f"{name}_1_relu", filters, 3), f"{name}_2_bn"


def bottleneck(name, inputs, filters, strides):
    rows = conv(f"{name}_1", inputs, filters, 1) + relu(f"{name}_1_relu", f"{name}_1_bn")
    rows += conv(f"{name}_2", f"{name}_1_relu", filters, 3, strides) + relu(f"{name}_2_relu", f"{name}_2_bn")
    return rows + conv(f"{name}_3", f"{name}_2_relu", 4 * filters, 1), f"{name}_3_bn"


def resnet(block, widen, counts):
    """He et al. 2015, table 1; strides of bottlenecks in the 3x3 convolution, as everybody does."""
    rows = conv("stem", "image", 64, 7, 2) + relu("stem_relu", "stem_bn")
    rows += [{"type": "MaxPooling2D", "name": "pool", "inputs": "stem_relu", "pool_size": 3, "strides": 2,
              "padding": "same"}]
    at, features = "pool", 64
    for stage, count in enumerate(counts):
        filters = 64 << stage
        for i in range(count):
            name, strides = f"s{stage + 1}b{i + 1}", 2 if stage and i == 0 else 1
            inside, end = block(name, at, filters, strides)
            shortcut = at
            if strides != 1 or features != widen * filters:
                inside += conv(f"{name}_short", at, widen * filters, 1, strides)
                shortcut = f"{name}_short_bn"
            rows += inside + [{"type": "Add", "name": f"{name}_add", "inputs": [end, shortcut]}]
            rows += relu(name, f"{name}_add")
            at, features = name, widen * filters
    rows += [{"type": "GlobalAveragePooling2D", "name": "average", "inputs": at},
             {"type": "Dense", "name": "classes", "inputs": "average", "units": 100}]
    return rows


def encoder(layers, width, heads):
    """BERT's block (Devlin et al. 2018), normalised before (Xiong et al. 2020); no dropout, so that both sides
    compute the same."""
    rows = [{"type": "Embedding", "name": "tokens_in", "input_dim": 8192, "output_dim": width}]
    at = "tokens_in"
    for i in range(1, layers + 1):
        rows += [{"type": "LayerNormalization", "name": f"norm_{i}a", "inputs": at},
                 {"type": "MultiHeadAttention", "name": f"heads_{i}", "num_heads": heads,
                  "key_dim": width // heads, "inputs": [f"norm_{i}a", f"norm_{i}a"]},
                 {"type": "Add", "name": f"seen_{i}", "inputs": [at, f"heads_{i}"]},
                 {"type": "LayerNormalization", "name": f"norm_{i}b", "inputs": f"seen_{i}"},
                 {"type": "Dense", "name": f"wide_{i}", "units": 4 * width, "activation": "gelu",
                  "inputs": f"norm_{i}b"},
                 {"type": "Dense", "name": f"narrow_{i}", "units": width, "inputs": f"wide_{i}"},
                 {"type": "Add", "name": f"block_{i}", "inputs": [f"seen_{i}", f"narrow_{i}"]}]
        at = f"block_{i}"
    rows += [{"type": "LayerNormalization", "name": "norm", "inputs": at},
             {"type": "GlobalAveragePooling1D", "name": "average", "inputs": "norm"},
             {"type": "Dense", "name": "classes", "inputs": "average", "units": 100}]
    return rows


def dense(name, units, activation=None):
    return {"type": "Dense", "name": name, "units": units, **({"activation": activation} if activation else {})}


# name: layers, batch, input shape, tokens (0: floats), classes, steps of an epoch, rate of Adam
WORKS = {
    "mlp": ([dense("wide_1", 2048, "relu"), dense("wide_2", 2048, "relu"), dense("classes", 10)], 1024, [784], 0, 10, 8,
            2e-4),
    "resnet-18": (resnet(basic_block, 1, (2, 2, 2, 2)), 64, [64, 64, 3], 0, 100, 2, 1e-4),
    "resnet-50": (resnet(bottleneck, 4, (3, 4, 6, 3)), 16, [224, 224, 3], 0, 100, 1, 1e-4),
    "bert": (encoder(4, 256, 4), 32, [128], 8192, 100, 2, 1e-4),
    "lstm": ([{"type": "LSTM", "name": "lstm", "units": 256}, dense("classes", 10)], 64, [100, 64], 0, 10, 2, 2e-3),
}
