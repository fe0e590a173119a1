# SPDX-License-Identifier: Apache-2.0
# Merge layers and graphs of layers. A Dense in front makes the gradient of the inputs visible.
A = {"type": "Dense", "name": "a", "units": 4, "inputs": "x"}
B = {"type": "Dense", "name": "b", "units": 4, "inputs": "y"}
TWO = {"x": [5, 3], "y": [5, 2]}


def merge(name, row, inputs=None, first=A, second=B):
    return {"name": name, "inputs": inputs or TWO, "model": {
        "inputs": [{"name": "x"}, {"name": "y"}], "layers": [first, second, {**row, "inputs": ["a", "b"]}]}}


CASES = [
    merge("add", {"type": "Add"}),
    merge("add_broadcast", {"type": "Add"}, {"x": [5, 3], "y": [2]}),
    merge("add_ones", {"type": "Add"}, {"x": [5, 3], "y": [1, 2]}),
    merge("subtract", {"type": "Subtract"}),
    merge("multiply", {"type": "Multiply"}),
    merge("average", {"type": "Average"}),
    merge("maximum", {"type": "Maximum"}),
    merge("minimum", {"type": "Minimum"}),
    merge("concatenate", {"type": "Concatenate"}),
    merge("concatenate_time", {"type": "Concatenate", "axis": 1}, {"x": [5, 3], "y": [2, 2]}),
    merge("dot", {"type": "Dot", "axes": 2}),
    merge("dot_pair", {"type": "Dot", "axes": [1, 2]}, {"x": [4, 3], "y": [5, 2]}),
    merge("dot_vectors", {"type": "Dot", "axes": -1}, {"x": [3], "y": [2]}),
    merge("dot_normalize", {"type": "Dot", "axes": 2, "normalize": True}),
    {"name": "add_three", "inputs": {"x": [3]}, "model": {"layers": [
        {"type": "Dense", "name": "a", "units": 3}, {"type": "Dense", "name": "b", "units": 3},
        {"type": "Add", "inputs": ["a", "x", "b"]}]}},
    {"name": "shared", "inputs": {"x": [4]}, "model": {"layers": [
        {"type": "Dense", "name": "d", "units": 4, "activation": "tanh", "kernel_regularizer": "l2"},
        {"layer": "d", "name": "d_again"}, {"type": "Multiply", "inputs": ["d", "d_again"]}]}},
    {"name": "nested", "inputs": {"x": [3], "y": [3]}, "model": {
        "inputs": [{"name": "x"}, {"name": "y"}],
        "layers": [
            {"type": "Model", "name": "block", "inputs": "x", "layers": [
                {"type": "Dense", "name": "d", "units": 5, "activation": "relu"},
                {"type": "Dense", "name": "e", "units": 3},
                {"type": "Add", "inputs": ["e", "input"]}]},
            {"layer": "block", "name": "again", "inputs": "y"},
            {"type": "Concatenate", "inputs": ["block", "again"]},
            {"type": "Dense", "name": "end", "units": 2}]}},
    {"name": "activity", "inputs": {"x": [4]}, "batch": 5, "model": {"layers": [
        {"type": "Dense", "name": "a", "units": 3,
         "activity_regularizer": {"type": "L1L2", "l1": 0.125, "l2": 0.5}},
        {"type": "Dense", "name": "b", "units": 2, "bias_regularizer": {"type": "L1", "l1": 0.25}}]}},
]
