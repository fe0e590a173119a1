#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derives the polynomial coefficients in src/num/exact_exp.h, exact_log.h and exact_trig.h.

    python3 tools/fit_exact_math.py          prints them all (needs mpmath)

Method: Remez exchange in 80-digit arithmetic for the weighted minimax polynomial, then the coefficients
are rounded to f32 one after the other, from the lowest degree up, the rest being fitted again each time,
so that later coefficients absorb the rounding of earlier ones. Prints each coefficient in hexadecimal,
and the largest weighted error of the rounded polynomial as a power of two.
"""
import struct
import mpmath as mp

mp.mp.dps = 80


def f32(x):
    """The f32 nearest to x (through double: the double rounding cannot matter for a coefficient)."""
    return mp.mpf(struct.unpack("<f", struct.pack("<f", float(x)))[0])


def remez(target, weight, lo, hi, powers, rounds=30):
    """Minimises max |weight(x) * (sum c_i x^p_i - target(x))| on [lo, hi]."""
    n = len(powers)
    points = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * (n + 1)))
              for i in range(n + 1)][::-1]
    coeffs = None
    for _ in range(rounds):
        rows, right = [], []
        for i, x in enumerate(points):
            w = weight(x)
            rows.append([w * x ** p for p in powers] + [mp.mpf((-1) ** i)])
            right.append(w * target(x))
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix(right))
        coeffs = [solution[i] for i in range(n)]
        level = abs(solution[n])
        new_points, worst = exchange(lambda x: weight(x) * (
            mp.fsum(c * x ** p for c, p in zip(coeffs, powers)) - target(x)), lo, hi, n + 1)
        if new_points is None:
            break
        points = new_points
        if worst - level <= level * mp.mpf("1e-4"):
            break
    return coeffs


def exchange(error, lo, hi, count):
    """`count` alternating extrema of `error`: those of a fine grid."""
    grid = [lo + (hi - lo) * (1 - mp.cos(mp.pi * i / 600)) / 2 for i in range(601)]
    values = [error(x) for x in grid]
    groups = []
    for x, v in zip(grid, values):
        if v == 0:
            continue
        if groups and (groups[-1][1] > 0) == (v > 0):
            if abs(v) > abs(groups[-1][1]):
                groups[-1] = (x, v)
        else:
            groups.append((x, v))
    worst = max(abs(v) for v in values)
    while len(groups) > count:
        groups.pop(0 if abs(groups[0][1]) < abs(groups[-1][1]) else -1)
    return ([x for x, _ in groups] if len(groups) == count else None), worst


def fit(name, target, weight, lo, hi, powers, wide=()):
    """Fits, rounds in turn, prints. Coefficients at the indexes in `wide` get a second f32, the rest of
    the first."""
    lo, hi, powers = mp.mpf(lo), mp.mpf(hi), list(powers)
    fixed = []
    for i in range(len(powers)):
        done = fixed[:]
        coeffs = remez(lambda x: target(x) - mp.fsum(c * x ** p for c, p in zip(done, powers)),
                       weight, lo, hi, powers[i:])
        first = f32(coeffs[0])
        fixed.append(first + f32(coeffs[0] - first) if i in wide else first)
    worst = max(abs(weight(x) * (mp.fsum(c * x ** p for c, p in zip(fixed, powers)) - target(x)))
                for x in [lo + (hi - lo) * mp.mpf(i) / 2000 for i in range(2001)])
    print(f"{name}: largest error 2^{mp.nstr(mp.log(worst, 2), 5)} on [{mp.nstr(lo, 8)}, {mp.nstr(hi, 8)}]")
    for c, p in zip(fixed, powers):
        first = f32(c)
        rest = "" if c == first else f" + {float(c - first).hex()}f"
        print(f"    x^{p}: {float(first).hex()}f{rest}  ({mp.nstr(c, 10)})")
    return fixed


def at_zero(function, limit):
    """function(x), and its limit where the formula cancels."""
    return lambda x: limit if abs(x) < mp.mpf("1e-15") else function(x)


def main():
    root = mp.sqrt
    half_log2 = mp.log(2) / 2 * mp.mpf("1.001")
    fit("exact_exp_poly", at_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2),
        lambda r: r * r * mp.exp(-r), -half_log2, half_log2, range(5))
    fit("math_tanh", at_zero(lambda z: (mp.tanh(root(z)) / root(z) - 1) / z, -mp.mpf(1) / 3),
        at_zero(lambda z: z * root(z) / mp.tanh(root(z)), mp.mpf(0)), 0, mp.mpf("0.625")**2, range(5))
    fit("math_erf, small", at_zero(lambda z: mp.erf(root(z)) / root(z) - 1, 2 / root(mp.pi) - 1),
        lambda z: mp.mpf(1), 0, mp.mpf("0.75")**2, range(6))
    fit("math_erf, large", lambda x: -mp.log(mp.erfc(x)) / x - 1,
        lambda x: x * mp.erfc(x) / mp.erf(x), "0.75", "3.95", range(7))
    fit("exact_log_tail", at_zero(lambda f: (mp.log(1 + f) - f + f * f / 2) / f**3, mp.mpf(1) / 3),
        at_zero(lambda f: abs(f**3 / mp.log(1 + f)), mp.mpf(0)), 1 / root(2) - 1, root(2) - 1, range(9))
    log2_series = at_zero(lambda z: 2 * mp.atanh(root(z)) / root(z) / mp.log(2), 2 / mp.log(2))
    fit("exact_power, log2", log2_series, lambda z: 1 / log2_series(z), 0, mp.mpf("0.1717")**2, range(5),
        wide=(0, 1))
    fit("exact_exp2", at_zero(lambda r: (mp.mpf(2)**r - 1) / r, mp.log(2)),
        lambda r: abs(r) * mp.mpf(2)**-r, "-0.5001", "0.5001", range(7))
    quarter = (mp.pi / 4 * mp.mpf("1.0001"))**2
    fit("exact_sin_poly", at_zero(lambda z: (mp.sin(root(z)) / root(z) - 1) / z, -mp.mpf(1) / 6),
        at_zero(lambda z: z * root(z) / mp.sin(root(z)), mp.mpf(0)), 0, quarter, range(4))
    fit("exact_cos_poly", at_zero(lambda z: (mp.cos(root(z)) - 1 + z / 2) / z**2, mp.mpf(1) / 24),
        lambda z: z * z / mp.cos(root(z)), 0, quarter, range(4))
    split("log 2", mp.log(2), 15)
    split("pi / 2", mp.pi / 2, 24)
    print("bits of 2/pi:", hex(int(mp.floor(2 / mp.pi * mp.mpf(2)**192))))


def split(name, value, bits):
    """value as a number of `bits` bits plus an f32."""
    exponent = int(mp.floor(mp.log(value, 2))) + 1
    high = mp.nint(mp.ldexp(value, bits - exponent)) * mp.mpf(2)**(exponent - bits)
    print(f"{name}: {float(high).hex()}f + {float(f32(value - high)).hex()}f")


if __name__ == "__main__":
    main()
