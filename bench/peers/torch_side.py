#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch side of bench/peers/train: a run configuration of tpucl as a PyTorch model, trained on the same
arrays from the same weights. Started once; each line on standard input asks for one epoch, which is answered by a
line of JSON: {"seconds": ..., "loss": ...}, seconds for all steps of the epoch, loss their mean.

Usage: torch_side.py FOLDER MODE   MODE: eager, compiled, eager-bf16 or compiled-bf16; FOLDER holds config.json,
inputs.npy, labels.npy, and gets params.safetensors unless it is there."""
import json
import os
import pathlib
import struct
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Dense(nn.Module):
    def __init__(self, row, features):
        super().__init__()
        self.inner = nn.Linear(features, row["units"])
        self.activation = {None: lambda x: x, "relu": F.relu, "gelu": F.gelu}[row.get("activation")]
        self.names = {"kernel": (self.inner.weight, lambda w: w.t()), "bias": (self.inner.bias, None)}

    def forward(self, x):
        return self.activation(self.inner(x))


class Conv2D(nn.Module):
    """Keras' "same": what is uneven goes to the end."""

    def __init__(self, row, features):
        super().__init__()
        self.kernel, self.strides = row["kernel_size"], row["strides"]
        self.inner = nn.Conv2d(features, row["filters"], self.kernel, self.strides, bias=False)
        self.names = {"kernel": (self.inner.weight, lambda w: w.permute(2, 3, 1, 0))}

    def forward(self, x):
        pads = same(x, self.kernel, self.strides)
        if pads[0] == pads[1] and pads[2] == pads[3]:
            return F.conv2d(x, self.inner.weight, None, self.strides, (pads[2], pads[0]))
        return self.inner(F.pad(x, pads))


def same(x, kernel, strides):
    pads = []
    for size in (x.shape[3], x.shape[2]):
        whole = max((-(-size // strides) - 1) * strides + kernel - size, 0)
        pads += [whole // 2, whole - whole // 2]
    return pads


class BatchNormalization(nn.Module):
    def __init__(self, row, features):
        super().__init__()
        self.inner = nn.BatchNorm2d(features, eps=1e-3, momentum=1 - row["momentum"])
        self.names = {"gamma": (self.inner.weight, None), "beta": (self.inner.bias, None),
                      "moving_mean": (self.inner.running_mean, None),
                      "moving_variance": (self.inner.running_var, None)}

    def forward(self, x):
        return self.inner(x)


class LayerNormalization(nn.Module):
    def __init__(self, row, features):
        super().__init__()
        self.inner = nn.LayerNorm(features, eps=1e-3)
        self.names = {"gamma": (self.inner.weight, None), "beta": (self.inner.bias, None)}

    def forward(self, x):
        return self.inner(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, row, features):
        super().__init__()
        self.heads, width = row["num_heads"], row["num_heads"] * row["key_dim"]
        self.parts = nn.ModuleDict({n: nn.Linear(features, width) for n in ("query", "key", "value")})
        self.out = nn.Linear(width, features)
        self.names = {}
        for name, part in self.parts.items():
            self.names[f"{name}/kernel"] = (part.weight, lambda w: w.t().reshape(features, self.heads, -1))
            self.names[f"{name}/bias"] = (part.bias, lambda b: b.reshape(self.heads, -1))
        self.names["attention_output/kernel"] = (self.out.weight, lambda w: w.t().reshape(self.heads, -1, features))
        self.names["attention_output/bias"] = (self.out.bias, None)

    def forward(self, x, _):
        q, k, v = (self.parts[n](x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for n in self.parts)
        seen = F.scaled_dot_product_attention(q, k, v)
        return self.out(seen.transpose(1, 2).flatten(-2))


class Embedding(nn.Module):
    def __init__(self, row, _):
        super().__init__()
        self.inner = nn.Embedding(row["input_dim"], row["output_dim"])
        nn.init.uniform_(self.inner.weight, -0.05, 0.05)
        self.names = {"embeddings": (self.inner.weight, None)}

    def forward(self, x):
        return self.inner(x)


class LSTM(nn.Module):
    """One bias, as in Keras: the second stays 0. The order of the gates is the same."""

    def __init__(self, row, features):
        super().__init__()
        self.inner = nn.LSTM(features, row["units"], batch_first=True)
        self.inner.bias_hh_l0.requires_grad_(False).zero_()
        self.names = {"kernel": (self.inner.weight_ih_l0, lambda w: w.t()),
                      "recurrent_kernel": (self.inner.weight_hh_l0, lambda w: w.t()),
                      "bias": (self.inner.bias_ih_l0, None)}

    def forward(self, x):
        return self.inner(x)[0][:, -1]


class MaxPooling2D(nn.Module):
    def __init__(self, row, _):
        super().__init__()
        self.size, self.strides = row["pool_size"], row["strides"]

    def forward(self, x):
        return F.max_pool2d(F.pad(x, same(x, self.size, self.strides), value=-float("inf")), self.size, self.strides)


class Plain(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.forward = function


PLAIN = {"ReLU": F.relu, "Add": torch.add, "Flatten": lambda x: x.flatten(1),
         "GlobalAveragePooling2D": lambda x: x.mean((2, 3)), "GlobalAveragePooling1D": lambda x: x.mean(1)}
WITH_WEIGHTS = {c.__name__: c for c in (Dense, Conv2D, BatchNormalization, LayerNormalization, MultiHeadAttention,
                                        Embedding, LSTM, MaxPooling2D)}


class Model(nn.Module):
    """Built by a first call, because layers want to know how many features come in."""

    def __init__(self, rows, x):
        super().__init__()
        self.rows, self.layers, values, last = [], nn.ModuleDict(), {}, None
        for row in rows:
            refs = row.get("inputs", last or "image")
            refs = [refs] if isinstance(refs, str) else refs
            args = [values.get(r, x) for r in refs]
            name = row["name"]
            features = args[0].shape[1] if args[0].dim() == 4 else args[0].shape[-1]
            layer = Plain(PLAIN[row["type"]]) if row["type"] in PLAIN else WITH_WEIGHTS[row["type"]](row, features)
            self.layers[name] = layer
            values[name], last = layer(*args), name
            self.rows.append((name, [r if r in values else None for r in refs]))

    def forward(self, x):
        values, last = {None: x}, None
        for name, refs in self.rows:
            values[name], last = self.layers[name](*(values[r] for r in refs)), name
        return values[last]

    def weights(self):
        """(tpucl's name, tensor, how tpucl lays it out)"""
        for name, layer in self.layers.items():
            for part, (tensor, layout) in getattr(layer, "names", {}).items():
                yield f"{name}/{part}", tensor, layout


def write_params(model, path):
    """safetensors: length of the header, header, data (formats.md of the format's own repository)."""
    header, chunks, at = {}, [], 0
    for name, tensor, layout in sorted(model.weights(), key=lambda w: w[0]):
        data = np.ascontiguousarray((layout(tensor) if layout else tensor).detach().float().numpy())
        header[name] = {"dtype": "F32", "shape": list(data.shape), "data_offsets": [at, at + data.nbytes]}
        chunks.append(data.tobytes())
        at += data.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def main():
    folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2]
    config = json.loads((folder / "config.json").read_text())
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    images = torch.from_numpy(np.load(folder / "inputs.npy"))
    labels = torch.from_numpy(np.load(folder / "labels.npy")).long()
    if images.dim() == 4:
        images = images.permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    elif not images.is_floating_point():
        images = images.long()
    batch = config["per_core_batch"] * config["cores"]
    with torch.no_grad():
        model = Model(config["model"]["layers"], images[:2])
    if images.dim() == 4:
        model = model.to(memory_format=torch.channels_last)
    for name, tensor, _ in model.weights():
        if name.endswith(("moving_mean", "/bias", "beta")):
            tensor.data.zero_()
        elif name.endswith(("moving_variance", "gamma")):
            tensor.data.fill_(1)
    if not (folder / "params.safetensors").exists():
        write_params(model, folder / "params.safetensors")
    model.train()
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad],
                                 lr=config["optimizer"]["learning_rate"], eps=1e-7)
    is_bf16 = mode.endswith("bf16")

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_bf16):
            logits = model(x)
        return F.cross_entropy(logits.float(), y)

    run = torch.compile(loss_of) if mode.startswith("compiled") else loss_of
    for _ in sys.stdin:
        total, start = [], time.perf_counter()
        for at in range(0, len(labels), batch):
            optimizer.zero_grad(set_to_none=True)
            loss = run(images[at:at + batch], labels[at:at + batch])
            loss.backward()
            optimizer.step()
            total.append(loss.detach())
        mean = float(torch.stack(total).mean())
        print(json.dumps({"seconds": time.perf_counter() - start, "loss": mean}), flush=True)


main()
