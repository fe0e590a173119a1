#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden_reduce.h: the contract's sums and products, computed from its text alone in rational
arithmetic with one rounding written out here. Shares nothing with src/num but the input generator.

    python3 tests/unit/num/golden_reduce.py > tests/unit/num/golden_reduce.h
"""
import struct
from fractions import Fraction

MASK = (1 << 64) - 1


def splitmix(seed):
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def round_to(value, digits):
    """The nearest number of `digits` significant bits, ties to even (no exponent limits are met here)."""
    if value == 0:
        return value
    sign, value = (-1, -value) if value < 0 else (1, value)
    exponent = 0
    while value >= 1 << digits:
        value, exponent = value / 2, exponent + 1
    while value < 1 << (digits - 1):
        value, exponent = value * 2, exponent - 1
    whole = value.numerator // value.denominator
    rest = value - whole
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1):
        whole += 1
    return sign * Fraction(whole) * Fraction(2) ** exponent


def f32(value):
    return round_to(value, 24)


def bf16(value):
    return round_to(value, 8)


def inputs(seed, count):
    """f32 numbers of mixed sign and magnitude: 24 random bits times 2^-24 .. 2^-17, exact in f32."""
    generator = splitmix(seed)
    for _ in range(count):
        word = next(generator)
        value = Fraction((word >> 40) - (1 << 23), 1 << 24) * 2 ** (word & 7)
        yield value


def cancelling(seed, count):
    """Operands of pairs k, k+1 whose high parts cancel in the product, so that the low parts, and the order
    in which the passes are added, decide the result: (-1)^k (high + low), high shared by the pair, 8 bits."""
    generator = splitmix(seed)
    high = 0
    for k in range(count):
        word = next(generator)
        if k % 2 == 0:
            high = 1 + Fraction(word & 127, 128)
        low = Fraction((word >> 48) - (1 << 15), 1 << 23)
        yield (high + low) * (-1) ** k, 1 + Fraction((word >> 8 & 0xffff) - (1 << 15), 1 << 23)


def tree(parts, combine):
    if len(parts) == 1:
        return parts[0]
    half = 1
    while half * 2 < len(parts):
        half *= 2
    return combine(tree(parts[:half], combine), tree(parts[half:], combine))


def add(a, b):
    return f32(a + b)


def multiply(a, b):
    return f32(a * b)


def vpu(elements, combine, identity):
    blocks = []
    for start in range(0, len(elements), 8192):
        lanes = [identity] * 128
        for i, element in enumerate(elements[start:start + 8192]):
            lanes[i % 128] = combine(lanes[i % 128], element)
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [combine(lanes[i], lanes[i + half]) for i in range(half)]
        blocks.append(lanes[0])
    return tree(blocks, combine)


def product(a, b):
    blocks = []
    for block in range(0, len(a), 8192):
        end = min(block + 8192, len(a))
        total = None
        for chunk in range(block, end, 128):
            part = Fraction(0)
            for k in range(chunk, min(chunk + 128, end)):
                part = f32(part + a[k] * b[k])
            total = part if total is None else add(total, part)
        blocks.append(total)
    return tree(blocks, add)


def parts(values, count):
    result = []
    for _ in range(count):
        part = [bf16(v) for v in values]
        result.append(part)
        values = [v - p for v, p in zip(values, part)]
    return result


def dot(a, b, precision):
    if precision == "f32":
        return product(a, b)
    pa, pb = parts(a, 3), parts(b, 3)
    order = {"default": [(0, 0)], "high": [(1, 0), (0, 1), (0, 0)],
             "highest": [(2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)]}[precision]
    total = None
    for i, j in order:
        p = product(pa[i], pb[j])
        total = p if total is None else add(total, p)
    return total


def bits(value):
    return struct.unpack("<I", struct.pack("<f", float(value)))[0]


def main():
    print("/* SPDX-License-Identifier: Apache-2.0\n * Written by golden_reduce.py; do not edit. Results as f32 bits. */\n#include <stdint.h>\n")
    print("static const struct golden_sum {\n    int64_t n;\n    uint32_t add, multiply;\n} golden_sums[] = {")
    for n in (1, 2, 3, 127, 128, 129, 300, 8191, 8192, 8193, 3 * 8192, 5 * 8192 + 77):
        values = list(inputs(n, n))
        near_one = [f32(1 + v / 4096) for v in values]
        print(f"    {{{n}, 0x{bits(vpu(values, add, Fraction(0))):08x}u, "
              f"0x{bits(vpu(near_one, multiply, Fraction(1))):08x}u}},")
    print("};\nstatic const struct golden_dot {\n    int64_t k;\n"
          "    uint32_t precision[4]; /* default, high, highest, f32 */\n} golden_dots[] = {")
    for k in (1, 2, 127, 128, 129, 257, 1000, 8192, 8193, 8192 * 3 + 130):
        a, b = list(inputs(2 * k + 1, k)), list(inputs(5 * k + 2, k))
        row = ", ".join(f"0x{bits(dot(a, b, p)):08x}u" for p in ("default", "high", "highest", "f32"))
        print(f"    {{{k}, {{{row}}}}},")
    print("};\nstatic const struct golden_dot golden_cancelling[] = {")
    for k in (2, 4, 10, 128, 400):
        a, b = zip(*cancelling(7 * k, k))
        row = ", ".join(f"0x{bits(dot(list(a), list(b), p)):08x}u" for p in ("default", "high", "highest", "f32"))
        print(f"    {{{k}, {{{row}}}}},")
    print("};")


main()
