#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes random.txt: what random ops and initial values draw, from a Philox4x32-10 of its own (Salmon et al.,
# SC'11) and the C library's log and sine. Run in this folder: python3 gen_random.py
#
# uniform VALUES        op uniform, seed 42, stream 5, core 3, step 7, f32 bits of the first 12 elements
# normal VALUES         op normal, the same key, as floats
# bernoulli VALUES      op bernoulli of 0.3, the same key: 0 or 1 for the first 100 elements
# random_bits VALUES    op random_bits, the same seed, stream and step: the first 12 words
# rounded VALUES        op stochastic_round of the uniform values, every other one negated, by those words: f32 bits
# init_uniform VALUES   tp_init_fill(UNIFORM, -2, 4, "dense/kernel", seed 2^32 + 9), f32 bits
# init_truncated VALUES tp_init_fill(TRUNCATED_NORMAL, 3, 0.5, "w", 9), elements 0 to 99, as floats
import hashlib
import math
from fractions import Fraction
import numpy as np

M0, M1, W0, W1, MASK = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 0xFFFFFFFF


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = M0 * c[0], M1 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & MASK, (p0 >> 32) ^ c[3] ^ k[1], p0 & MASK]
        k = [(k[0] + W0) & MASK, (k[1] + W1) & MASK]
    return c


def word(element, seed, op, core, step):
    return philox((element // 4, step, core, op), (seed & MASK, seed >> 32))[element % 4]


def uniform(element, *key):
    return np.float32((word(element, *key) >> 8) * 2.0 ** -24)


def normal(element, *key):
    first, second = word(element & ~1, *key), word(element | 1, *key)
    r = math.sqrt(-2 * math.log(((first >> 8) + 1) * 2.0 ** -24))
    angle = 2 * math.pi * (second >> 8) * 2.0 ** -24
    return r * (math.sin(angle) if element & 1 else math.cos(angle))


def rounded(x, word):
    """To the bf16 number (8 bits of fraction) before or after |x|: the latter when the share of the way to it and
    the upper half of the word make 1. Exact."""
    size = Fraction(float(abs(x)))
    unit = Fraction(2) ** (math.frexp(float(abs(x)))[1] - 8)
    below = size // unit
    up = (size / unit - below) + Fraction(word >> 16, 1 << 16) >= 1
    return math.copysign(float((below + up) * unit), float(x))


def stream_of(name):
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")


def truncated(element, seed, name):
    for refused in range(64):
        z = normal(element, seed, stream_of(name), MASK, refused)
        if abs(z) <= 2:
            return 3 + 0.5 * z


def bits(values):
    return " ".join(f"{np.float32(v).view(np.uint32):08x}" for v in values)


with open("random.txt", "w", encoding="ascii") as out:
    key = (42, 5, 3, 7)
    print("uniform", bits(uniform(i, *key) for i in range(12)), file=out)
    print("normal", " ".join(normal(i, *key).hex() for i in range(12)), file=out)
    print("bernoulli", " ".join(str(int(uniform(i, *key) < 0.3)) for i in range(100)), file=out)
    shared = (42, 5, MASK - 1, 7)
    print("random_bits", " ".join(f"{word(i, *shared):08x}" for i in range(12)), file=out)
    print("rounded", bits(rounded((-1) ** i * uniform(i, *key), word(i, *shared)) for i in range(12)), file=out)
    init = ((1 << 32) + 9, stream_of("dense/kernel"), MASK, 0)
    print("init_uniform", bits(np.float32(-2) + np.float32(6) * uniform(i, *init) for i in range(12)), file=out)
    print("init_truncated", " ".join(truncated(i, 9, "w").hex() for i in range(100)), file=out)
