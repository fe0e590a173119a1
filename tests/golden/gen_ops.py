#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Bits that dot_general, the convolutions, reduce and the window ops must give: the numeric contract written
# down a second time, in Python, from its definition and sharing nothing with the C code.
#   tests/golden/gen_ops.py > tests/golden/ops.h      (needs python3-numpy)
import itertools
from fractions import Fraction

import numpy as np

from golden_values import F32, values


# ---- numbers ----

def bits(x):
    return np.asarray(x, F32).view(np.uint32)


def flush(x):
    x = np.array(x, F32)
    b = x.view(np.uint32)
    return np.where((b & 0x7F800000) == 0, b & 0x80000000, b).astype(np.uint32).view(F32)


def bf16(x):
    b = np.atleast_1d(flush(x)).view(np.uint32).astype(np.uint64)
    r = ((b + 0x7FFF + ((b >> 16) & 1)) >> 16) << 16
    return r.astype(np.uint32).view(F32).reshape(np.shape(x))


def round_f32(fraction):
    """Nearest f32 to an exact rational in the normal range, ties to even."""
    if fraction == 0:
        return F32(0)
    sign, f = (-1, -fraction) if fraction < 0 else (1, fraction)
    exponent = 0
    while f >= 2 ** (exponent + 1):
        exponent += 1
    while f < Fraction(2) ** exponent:
        exponent -= 1
    unit = Fraction(2) ** (exponent - 23)
    return F32(sign * float(round(f / unit) * unit))  # round() of a Fraction: ties to even


def fma(a, b, c):
    return round_f32(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


# ---- orders of summation ----

def tree(parts, op=lambda a, b: F32(a + b)):
    if len(parts) == 1:
        return parts[0]
    split = 1
    while split * 2 < len(parts):
        split *= 2
    return op(tree(parts[:split], op), tree(parts[split:], op))


def one_pass(a, b, exact):
    """Chunks of 128, blocks of 64 chunks. bf16 products are exact in f32; f32 operands need the fma."""
    blocks = []
    for block in range(0, len(a), 8192):
        total = None
        for chunk in range(block, min(block + 8192, len(a)), 128):
            s = F32(0)
            for k in range(chunk, min(chunk + 128, len(a))):
                s = F32(s + F32(a[k] * b[k])) if exact else fma(a[k], b[k], s)
            total = s if total is None else F32(total + s)
        blocks.append(total)
    return tree(blocks) if blocks else F32(0)


def parts(x, count):
    out = []
    for _ in range(count):
        out.append(bf16(x))
        x = F32(x - out[-1])
    return out


PASSES = {"default": [(0, 0)], "high": [(1, 0), (0, 1), (0, 0)],
          "highest": [(2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)]}


def dot(a, b, precision):
    if precision == "f32":
        return flush(one_pass(a, b, False))
    pa, pb = parts(a, 3), parts(b, 3)
    sums = [one_pass(pa[i], pb[j], True) for i, j in PASSES[precision]]
    total = sums[0]
    for s in sums[1:]:
        total = F32(total + s)
    return flush(total)


def vpu_max(a, b):
    if np.isnan(a) or np.isnan(b):
        return a if np.isnan(a) else b
    if a == b:
        return b if np.signbit(a) else a
    return a if a > b else b


def vpu_min(a, b):
    if np.isnan(a) or np.isnan(b):
        return a if np.isnan(a) else b
    if a == b:
        return a if np.signbit(a) else b
    return a if a < b else b


OPS = {"add": (lambda a, b: F32(a + b), 0), "multiply": (lambda a, b: F32(a * b), 1),
       "max": (vpu_max, -np.inf), "min": (vpu_min, np.inf)}


def vpu(x, kind):
    op, identity = OPS[kind]
    blocks = []
    for start in range(0, len(x), 8192):
        lanes = [F32(identity)] * 128
        for i, e in enumerate(x[start:start + 8192]):
            lanes[i % 128] = op(lanes[i % 128], e)
        half = 64
        while half:
            lanes = [op(lanes[i], lanes[i + half]) for i in range(half)]
            half //= 2
        blocks.append(lanes[0])
    return flush(tree(blocks, op))


# ---- the ops ----

def conv_cells(g):
    return itertools.product(range(g["n"]), range(g["oh"]), range(g["ow"]))


def conv_geometry(x, w, stride, pad, dilation):
    n, h, wd, _ = x
    kh, kw, ci, co = w
    oh = (h + pad[0] + pad[1] - ((kh - 1) * dilation[0] + 1)) // stride[0] + 1
    ow = (wd + pad[2] + pad[3] - ((kw - 1) * dilation[1] + 1)) // stride[1] + 1
    return dict(n=n, h=h, w=wd, ci=ci, kh=kh, kw=kw, co=co, oh=oh, ow=ow, s=stride, p=pad, d=dilation,
                groups=x[3] // ci)


def first_input(g, co):
    """Channel of x that channel co of y has as its first."""
    return co // (g["co"] // g["groups"]) * g["ci"]


def at(x, image, y, col, c):
    inside = 0 <= y < x.shape[1] and 0 <= col < x.shape[2]
    return x[image, y, col, c] if inside else F32(0)


def conv(x, w, g, precision):
    out = np.zeros((g["n"], g["oh"], g["ow"], g["co"]), F32)
    ks = list(itertools.product(range(g["kh"]), range(g["kw"]), range(g["ci"])))
    for i, oy, ox in conv_cells(g):
        for co in range(g["co"]):
            a = np.array([at(x, i, oy * g["s"][0] + ky * g["d"][0] - g["p"][0],
                             ox * g["s"][1] + kx * g["d"][1] - g["p"][2], first_input(g, co) + c)
                          for ky, kx, c in ks], F32)
            b = np.array([w[ky, kx, c, co] for ky, kx, c in ks], F32)
            out[i, oy, ox, co] = dot(a, b, precision)
    return out


def conv_input_grad(dy, w, g, precision):
    channels, own = g["ci"] * g["groups"], g["co"] // g["groups"]
    out = np.zeros((g["n"], g["h"], g["w"], channels), F32)

    def seen(i, iy, ix, ky, kx, co):
        y, x = iy + g["p"][0] - ky * g["d"][0], ix + g["p"][2] - kx * g["d"][1]
        if y % g["s"][0] or x % g["s"][1]:
            return F32(0)
        return at(dy, i, y // g["s"][0], x // g["s"][1], co)

    for i, iy, ix in itertools.product(range(g["n"]), range(g["h"]), range(g["w"])):
        for ci in range(channels):
            group = ci // g["ci"]
            ks = list(itertools.product(range(g["kh"]), range(g["kw"]), range(group * own, (group + 1) * own)))
            a = np.array([seen(i, iy, ix, *k) for k in ks], F32)
            b = np.array([w[ky, kx, ci % g["ci"], co] for ky, kx, co in ks], F32)
            out[i, iy, ix, ci] = dot(a, b, precision)
    return out


def conv_filter_grad(x, dy, g, precision):
    out = np.zeros((g["kh"], g["kw"], g["ci"], g["co"]), F32)
    ks = list(conv_cells(g))
    for ky, kx, ci in itertools.product(range(g["kh"]), range(g["kw"]), range(g["ci"])):
        for co in range(g["co"]):
            a = np.array([at(x, i, oy * g["s"][0] + ky * g["d"][0] - g["p"][0],
                             ox * g["s"][1] + kx * g["d"][1] - g["p"][2], first_input(g, co) + ci)
                          for i, oy, ox in ks], F32)
            b = np.array([dy[i, oy, ox, co] for i, oy, ox in ks], F32)
            out[ky, kx, ci, co] = dot(a, b, precision)
    return out


def windows(shape, size, stride, pad):
    """(out index, existing cells) in rising order."""
    out = [(shape[d] + pad[2 * d] + pad[2 * d + 1] - size[d]) // stride[d] + 1 for d in range(len(shape))]
    for o in itertools.product(*map(range, out)):
        cells = []
        for c in itertools.product(*map(range, size)):
            p = tuple(o[d] * stride[d] - pad[2 * d] + c[d] for d in range(len(shape)))
            if all(0 <= p[d] < shape[d] for d in range(len(shape))):
                cells.append(p)
        yield o, cells
    return


def out_shape(shape, size, stride, pad):
    return tuple((shape[d] + pad[2 * d] + pad[2 * d + 1] - size[d]) // stride[d] + 1
                 for d in range(len(shape)))


def reduce_window(x, kind, size, stride, pad):
    op, identity = OPS[kind]
    out = np.zeros(out_shape(x.shape, size, stride, pad), F32)
    for o, cells in windows(x.shape, size, stride, pad):
        v = F32(identity)
        for c in cells:
            v = op(v, x[c])
        out[o] = v
    return flush(out)


def select_and_scatter(x, dy, size, stride, pad):
    out = np.zeros(x.shape, F32)
    for o, cells in windows(x.shape, size, stride, pad):
        best = cells[0]
        for c in cells[1:]:
            a, b = x[best], x[c]
            if not np.isnan(a) and (np.isnan(b) or b > a or (a == b and np.signbit(a) and not np.signbit(b))):
                best = c
        out[best] = F32(out[best] + dy[o])
    return flush(out)


def window_grad(shape, dy, size, stride, pad):
    out = np.zeros(shape, F32)
    for o, cells in windows(shape, size, stride, pad):
        for c in cells:
            out[c] = F32(out[c] + dy[o])
    return flush(out)


# ---- output ----

def emit(name, array):
    array = np.asarray(array)
    flat = bits(array).reshape(-1) if array.dtype == F32 else array.astype(np.int64).reshape(-1)
    print("static const uint32_t golden_%s[%d] = {" % (name, len(flat)))
    for i in range(0, len(flat), 8):
        print("    " + " ".join("0x%08xu," % (int(v) & 0xFFFFFFFF) for v in flat[i:i + 8]))
    print("};")


def special(x):
    """The same with a NaN, infinities and zeros of both signs put in: element i of each 7 in turn."""
    y = x.reshape(-1).copy()
    for i, v in enumerate([np.nan, np.inf, -np.inf, 0.0, -0.0]):
        y[i * 7 % len(y)] = F32(v)
    return y.reshape(x.shape)


def main():
    print("/* SPDX-License-Identifier: Apache-2.0\n * Generated by tests/golden/gen_ops.py: bits of the numeric"
          " contract. */")
    print("/* clang-format off */")
    for precision, k in [("default", 300), ("high", 300), ("highest", 300), ("f32", 300), ("default", 16500)]:
        m, n = (3, 5) if k == 300 else (1, 2)
        a, b = values(1, m, k), values(2, k, n)
        emit("dot_%s_%d" % (precision, k),
             np.array([[dot(a[i], b[:, j], precision) for j in range(n)] for i in range(m)], F32))
    # two batch dims apart, two contracting dims named in reverse, lhs [2,5,3,4,6] . rhs [6,3,7,2,5]
    a, b = values(3, 2, 5, 3, 4, 6), values(4, 6, 3, 7, 2, 5)
    out = np.zeros((5, 2, 4, 7), F32)  # batch (lhs 1, 0), lhs free 3, rhs free 2
    for p, q, i, j in itertools.product(range(5), range(2), range(4), range(7)):
        ks = list(itertools.product(range(6), range(3)))  # contracting: lhs 4, then 2
        out[p, q, i, j] = dot(np.array([a[q, p, y, i, z] for z, y in ks], F32),
                              np.array([b[z, y, j, q, p] for z, y in ks], F32), "default")
    emit("dot_batched", out)

    cases = [("plain", (2, 5, 6, 3), (3, 2, 3, 4), (1, 1), (0, 0, 0, 0), (1, 1), "default"),
             ("strided", (1, 7, 6, 2), (3, 3, 2, 3), (2, 3), (1, 2, 0, 1), (1, 1), "highest"),
             ("dilated", (1, 8, 9, 1), (2, 3, 1, 2), (2, 1), (1, 0, 3, 1), (3, 2), "f32"),
             ("wide", (1, 4, 4, 20), (3, 3, 20, 2), (1, 1), (1, 1, 1, 1), (1, 1), "default"),
             ("groups", (2, 4, 5, 6), (3, 2, 3, 4), (1, 2), (1, 0, 0, 1), (1, 1), "default"),
             ("depthwise", (1, 6, 5, 3), (3, 3, 1, 3), (2, 1), (1, 1, 1, 1), (1, 1), "f32"),
             ("multiplier", (1, 5, 5, 2), (2, 2, 1, 6), (1, 1), (0, 1, 1, 0), (2, 1), "high")]
    for name, xs, ws, stride, pad, dilation, precision in cases:
        g = conv_geometry(xs, ws, stride, pad, dilation)
        x, w = values(5, *xs), values(6, *ws)
        dy = values(7, g["n"], g["oh"], g["ow"], g["co"])
        emit("conv_%s" % name, conv(x, w, g, precision))
        emit("conv_%s_input_grad" % name, conv_input_grad(dy, w, g, precision))
        emit("conv_%s_filter_grad" % name, conv_filter_grad(x, dy, g, precision))

    for kind in OPS:
        x = values(8, 3, 4, 50)
        emit("reduce_%s_outer" % kind, np.array([vpu(x[:, i, :].reshape(-1), kind) for i in range(4)]))
        emit("reduce_%s_first" % kind,
             np.array([[vpu(x[:, i, j], kind) for j in range(50)] for i in range(4)]))
    x = values(9, 2, 17000)
    for kind in ("add", "max", "min"):
        emit("reduce_%s_long" % kind, np.array([vpu(x[i], kind) for i in range(2)]))

    size, stride = (1, 3, 2, 1), (1, 2, 1, 1)
    pad = (0, 0, 1, 1, 0, 1, 0, 0)
    x = values(10, 2, 5, 4, 3)
    dy = values(11, *out_shape(x.shape, size, stride, pad))
    emit("window_add", reduce_window(x, "add", size, stride, pad))
    emit("window_max", reduce_window(x, "max", size, stride, pad))
    emit("window_scatter", select_and_scatter(x, dy, size, stride, pad))
    emit("window_grad", window_grad(x.shape, dy, size, stride, pad))
    s = special(x)
    emit("window_max_special", reduce_window(s, "max", size, stride, pad))
    emit("window_scatter_special", select_and_scatter(s, dy, size, stride, pad))


main()
