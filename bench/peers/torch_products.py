#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The PyTorch side of bench/peers/products: products by torch.matmul, convolutions and each of their gradients alone
by oneDNN, channels last. A process that stays; speaks as bench/bench_products.c does, but takes a problem as the JSON
that `bench_products describe` gives:

  open PRECISION A B C {...}     PRECISION: f32 or bf16; {"note": ...}
  time REPEATS                   {"seconds": of one}

Usage: torch_products.py [--cpu-time]"""
import json
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

NOW = time.process_time if "--cpu-time" in sys.argv else time.perf_counter


def read(path, shape, dtype):
    return torch.from_numpy(np.fromfile(path, np.float32).reshape(shape)).to(dtype)


def images(path, c, side, dtype):
    """NHWC in the file; NCHW in shape and channels last in memory here."""
    x = read(path, (c["images"], c[f"{side}_h"], c[f"{side}_w"], c[f"{side}_c"]), dtype)
    return x.permute(0, 3, 1, 2)


def filters(path, c, dtype):
    """HWIO in the file; OIHW in shape and channels last in memory here."""
    w = read(path, (c["kernel_h"], c["kernel_w"], c["in_c"] // c["groups"], c["out_c"]), dtype)
    return w.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)


def pads(c):
    """What comes before and after rows and columns; after is cut where no stride reaches."""
    whole = []
    for axis, before in (("w", c["pad_left"]), ("h", c["pad_top"])):
        reach = (c[f"out_{axis}"] - 1) * c["stride"] + (c[f"kernel_{axis}"] - 1) * c["dilation"] + 1
        whole += [before, max(reach - c[f"in_{axis}"] - before, 0)]
    return whole


def plan_dot(problem, paths, dtype):
    batch, m, n, k = (problem[x] for x in ("batch", "m", "n", "k"))
    a = read(paths[0], (batch, k, m) if problem["a_is_transposed"] else (batch, m, k), dtype)
    b = read(paths[1], (batch, n, k) if problem["b_is_transposed"] else (batch, k, n), dtype)
    a = a.transpose(1, 2) if problem["a_is_transposed"] else a
    b = b.transpose(1, 2) if problem["b_is_transposed"] else b
    if batch == 1:
        a, b = a[0], b[0]
    return (lambda: torch.matmul(a, b)), (lambda c: c)


def plan_conv(problem, paths, dtype):
    """Padding that is as much on both sides is oneDNN's own; the rest is F.pad's, within the time."""
    c, op = problem["conv"], problem["op"]
    left, right, top, bottom = pads(c)
    stride, dilation, groups = [c["stride"]] * 2, [c["dilation"]] * 2, c["groups"]
    symmetric = is_symmetric(c, left, top)
    inner, outer = ([top, left], None) if symmetric else ([0, 0], (left, right, top, bottom))
    if op == "forward":
        x, w = images(paths[0], c, "in", dtype), filters(paths[1], c, dtype)

        def forward():
            return F.conv2d(F.pad(x, outer) if outer else x, w, None, stride, inner, dilation, groups)
        return forward, (lambda y: y.permute(0, 2, 3, 1))
    is_input = op == "input_grad"
    dy = images(paths[0] if is_input else paths[1], c, "out", dtype)
    if is_input:
        w = filters(paths[1], c, dtype)
        x = torch.zeros((c["images"], c["in_h"], c["in_w"], c["in_c"]), dtype=dtype).permute(0, 3, 1, 2)
    else:
        x = images(paths[0], c, "in", dtype)
        w = torch.zeros((c["out_c"], c["kernel_h"], c["kernel_w"], c["in_c"] // groups),
                        dtype=dtype).permute(0, 3, 1, 2)
    blank = F.pad(x, outer) if outer and is_input else x

    def backward():
        wide = blank if is_input or not outer else F.pad(x, outer)
        dx, dw, _ = torch.ops.aten.convolution_backward(dy, wide, w, None, stride, inner, dilation, False, [0, 0],
                                                        groups, [is_input, not is_input, False])
        if not is_input:
            return dw
        return dx[:, :, top:top + c["in_h"], left:left + c["in_w"]] if outer else dx
    return backward, (lambda d: d.permute(0, 2, 3, 1) if is_input else d.permute(2, 3, 1, 0))


def is_symmetric(c, left, top):
    """Whether the same padding on both sides gives as many outputs."""
    for axis, pad in (("w", left), ("h", top)):
        reach = (c[f"kernel_{axis}"] - 1) * c["dilation"] + 1
        if (c[f"in_{axis}"] + 2 * pad - reach) // c["stride"] + 1 != c[f"out_{axis}"]:
            return False
    return True


def main():
    torch.set_num_threads(1 if "--cpu-time" in sys.argv else os.cpu_count())
    run = None
    for line in sys.stdin:
        word, rest = line.split(" ", 1)
        with torch.no_grad():
            if word == "open":
                precision, *paths, text = rest.split(" ", 4)
                problem, dtype = json.loads(text), {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
                run, layout = (plan_dot if problem["op"] == "dot" else plan_conv)(problem, paths, dtype)
                layout(run()).contiguous().float().numpy().tofile(paths[2])
                answer = {"note": f"PyTorch {torch.__version__}"}
            else:
                run()
                start = NOW()
                for _ in range(int(rest)):
                    run()
                answer = {"seconds": (NOW() - start) / int(rest)}
        print(json.dumps(answer), flush=True)


main()
