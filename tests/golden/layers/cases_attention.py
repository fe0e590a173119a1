# SPDX-License-Identifier: Apache-2.0
# Embedding, attention, EinsumDense, TimeDistributed.
def numbers(*shape, limit):
    return {"shape": list(shape), "limit": limit}


def case(name, inputs, *layers):
    rows = [{"name": n, "dtype": "int32"} if isinstance(s, dict) else {"name": n} for n, s in inputs.items()]
    return {"name": name, "inputs": inputs, "model": {"inputs": rows, "layers": list(layers)}}


def dense(name, inputs, units=4):
    return {"type": "Dense", "name": name, "units": units, "inputs": inputs}


def heads(inputs, **args):
    return {"type": "MultiHeadAttention", "num_heads": 2, "key_dim": 3, "inputs": inputs, **args}


def attention(type="Attention", inputs=("q", "v"), **args):
    return {"type": type, "inputs": list(inputs), **args}


def embedding(**args):
    return {"type": "Embedding", "input_dim": 7, "output_dim": 4, **args}


def einsum(equation, output_shape, **args):
    return {"type": "EinsumDense", "equation": equation, "output_shape": output_shape, **args}


MEAN = {"type": "GlobalAveragePooling1D"}
TWO = {"x": [4, 3], "y": [5, 2]}
QV = [dense("q", "x"), dense("v", "y")]
THREE = {"x": [4, 3], "y": [5, 2], "z": [5, 3]}
QVK = [*QV, dense("k", "z")]
TOKENS = {"x": numbers(6, limit=3)}
MASKED = [{**embedding(mask_zero=True), "name": "e"}]

CASES = [
    case("embedding", {"x": numbers(6, limit=7)}, embedding(embeddings_regularizer="l2")),
    case("embedding_of_images", {"x": numbers(3, 2, limit=9)}, embedding(input_dim=9), {"type": "Dense", "units": 2}),
    case("embedding_mask", TOKENS, *MASKED, MEAN),
    case("heads_self", {"x": [4, 3]}, dense("q", "x"), heads(["q", "q"])),
    case("heads_cross", THREE, *QVK, heads(["q", "v", "k"], value_dim=2, output_shape=[2, 3], use_bias=False)),
    case("heads_causal", {"x": [5, 3]}, dense("q", "x"),
         heads(["q", "q"], use_causal_mask=True, sliding_window=3, use_gate=True, kernel_regularizer="l2",
               bias_regularizer="l1")),
    case("heads_mask_input", {**TWO, "m": numbers(4, 5, limit=4)}, *QV, heads(["q", "v", "v", "m"])),
    case("heads_masks", TOKENS, *MASKED, heads(["e", "e"], use_causal_mask=True), MEAN),
    case("heads_groups", TWO, *QV, {"type": "Identity", "name": "i"},
         {"type": "GroupQueryAttention", "head_dim": 3, "num_query_heads": 4, "num_key_value_heads": 2, "use_gate": True,
          "inputs": ["q", "i"], "use_causal_mask": True}),
    case("heads_dropout", {"x": [4, 3]}, dense("q", "x"), heads(["q", "q"], dropout=0.25)),
    case("attention_dot", TWO, *QV, attention()),
    case("attention_scale", THREE, *QVK, attention(inputs=("q", "v", "k"), use_scale=True, use_causal_mask=True)),
    case("attention_concat", THREE, *QVK, attention(inputs=("q", "v", "k"), use_scale=True, score_mode="concat")),
    case("attention_additive", THREE, *QVK, attention("AdditiveAttention", ("q", "v", "k"))),
    case("attention_additive_plain", TWO, *QV, attention("AdditiveAttention", use_scale=False)),
    case("attention_masks", TOKENS, *MASKED, attention(inputs=("e", "e"), use_causal_mask=True), MEAN),
    case("einsum", {"x": [4, 3]}, einsum("abc,cd->abd", [4, 5], bias_axes="d", activation="tanh"),
         einsum("abc,bd->adc", [2, 5], bias_axes="d"), einsum("...bc,bcd->...bd", [2, 3], bias_axes="bd"),
         einsum("ab...,bc->ac...", 2, bias_axes="c")),
    case("time_dense", {"x": [4, 3]},
         {"type": "TimeDistributed", "layer": {"type": "Dense", "units": 2, "activation": "tanh",
                                               "kernel_regularizer": "l2"}}),
    case("time_conv", {"x": [2, 4, 3, 2]},
         {"type": "TimeDistributed", "layer": {"type": "Conv2D", "filters": 3, "kernel_size": 2}},
         {"type": "TimeDistributed", "layer": {"type": "GlobalAveragePooling2D"}}),
]
next(c for c in CASES if c["name"] == "heads_dropout")["training"] = False
