#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Makes elementwise.txt, functions.txt and shape.txt: inputs and results of ops as NumPy computes them, as bits.
# Run in this folder: python3 gen_elementwise.py   (NumPy 1.24; results are exact, so any version gives the same)
#
# elementwise.txt   "set NAME" and a line of hexadecimal bit patterns; then cases: op, attribute, dtype, dtype of
#                   the result, names of the operands' sets, and a line with the result.
#                   Arithmetic is NumPy's float32, flushed; bf16 is rounded here, by integer arithmetic.
# functions.txt     the same for elementary functions, result as float64 of the f32 operands
# shape.txt         a line of graph text for the op (operands %0, %1), operand shapes, result shape and elements;
#                   operands are u32 iotas, so that every element's way is seen.
import struct
import numpy as np

np.seterr(all="ignore")
rng = np.random.default_rng(2)


def flush(a):
    bits = a.view(np.uint32)
    return np.where((bits & 0x7F800000) == 0, bits & 0x80000000, bits).astype(np.uint32).view(np.float32)


def bf16(a):
    """float32 -> bits of bfloat16, to nearest even, subnormals flushed, NaN quiet."""
    bits = flush(a).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(a), (bits >> 16).astype(np.uint16) | 0x40, rounded).astype(np.uint16)


def widen(b):
    return (b.astype(np.uint32) << 16).view(np.float32)


special = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.4028235e38, -3.4028235e38, 1.17549435e-38,
                    -1.17549435e-38, 2.0 ** 23, 2.0 ** 31, -(2.0 ** 31), 2.0 ** 32, 255.5, 256.0, np.inf, -np.inf, np.nan,
                    1e-30, -1e-30, 0.1], dtype=np.float32)
plain = (rng.standard_normal(40) * np.exp(rng.uniform(-20, 20, 40))).astype(np.float32)
near = rng.uniform(-4, 4, 40).astype(np.float32)
values = np.concatenate([special, plain, near])
pairs = np.array([0.0, -0.0, 1.0, -2.5, 3.4028235e38, 1.17549435e-38, np.inf, -np.inf, np.nan, 0.1], dtype=np.float32)
left = np.concatenate([np.repeat(pairs, len(pairs)), plain, near[:20], plain[:20]])
right = np.concatenate([np.tile(pairs, len(pairs)), np.roll(plain, 3), near[20:], near[:20]])

integers = np.array([0, 1, 7, -1, -2, 2 ** 31 - 1, -(2 ** 31), 123456789], dtype=np.int64)
int_left, int_right = np.repeat(integers, len(integers)), np.tile(integers, len(integers))


def hexes(a):
    kind = {4: "<I", 2: "<H", 1: "<B"}[a.dtype.itemsize]
    width = a.dtype.itemsize * 2
    return " ".join(f"{v[0]:0{width}x}" for v in struct.iter_unpack(kind, a.tobytes()))


def numpy_max(a, b):  # NaN if either is; +0 > -0
    result = np.where((a > b) | ((a == b) & ~np.signbit(a)), a, b)
    return np.where(np.isnan(a) | np.isnan(b), np.float32(np.nan), result).astype(np.float32)


def numpy_min(a, b):
    return -numpy_max(-a, -b)


unary = {
    "abs": np.abs, "negate": np.negative, "sign": lambda a: np.where(a == 0, a, np.sign(a)).astype(np.float32),
    "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "round_nearest_even": np.rint,
}
binary = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "maximum": numpy_max, "minimum": numpy_min, "remainder": np.fmod,
}
compares = {"EQ": np.equal, "NE": np.not_equal, "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}


def trunc_divide(a, b, bits):
    """XLA's integer division: towards zero; by zero all ones; overflow wraps."""
    out = []
    for x, y in zip(a.tolist(), b.tolist()):
        q = -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        out.append(q)
    return np.array(out, dtype=np.int64)


def trunc_remainder(a, b):
    return np.array([x if y == 0 else x - y * (abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))
                     for x, y in zip(a.tolist(), b.tolist())], dtype=np.int64)


int_binary = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b,
    "maximum": np.maximum, "minimum": np.minimum, "divide": lambda a, b: trunc_divide(a, b, 32), "remainder": trunc_remainder,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}


def write_elementwise(out):
    sets = {}

    def case(op, attr, dtype_in, operands, dtype_out, result):
        names = []
        for a in operands:
            text = hexes(a)
            if text not in sets:
                sets[text] = f"s{len(sets)}"
                print("set", sets[text], file=out)
                print(text, file=out)
            names.append(sets[text])
        print(op, attr, dtype_in, dtype_out, *names, file=out)
        print(hexes(result), file=out)

    narrow, narrow_l, narrow_r = bf16(values), bf16(left), bf16(right)
    for op, f in unary.items():
        case(op, "-", "f32", [values], "f32", flush(f(values)))
        case(op, "-", "bf16", [narrow], "bf16", bf16(f(widen(narrow))))
    for op, f in binary.items():
        case(op, "-", "f32", [left, right], "f32", flush(f(left, right)))
        case(op, "-", "bf16", [narrow_l, narrow_r], "bf16", bf16(f(widen(narrow_l), widen(narrow_r))))
    for direction, f in compares.items():
        case("compare", direction, "f32", [left, right], "pred", f(left, right).astype(np.uint8))
        case("compare", direction, "bf16", [narrow_l, narrow_r], "pred", f(widen(narrow_l), widen(narrow_r)).astype(np.uint8))
        case("compare", direction, "s32", [int_left.astype(np.int32), int_right.astype(np.int32)], "pred",
             f(int_left.astype(np.int32), int_right.astype(np.int32)).astype(np.uint8))
        case("compare", direction, "u32", [int_left.astype(np.uint32), int_right.astype(np.uint32)], "pred",
             f(int_left.astype(np.uint32), int_right.astype(np.uint32)).astype(np.uint8))
    case("is_finite", "-", "f32", [values], "pred", np.isfinite(values).astype(np.uint8))
    for dtype, numpy_type in (("s32", np.int32), ("u32", np.uint32)):
        a, b = int_left.astype(numpy_type), int_right.astype(numpy_type)
        wide_a, wide_b = a.astype(np.int64), b.astype(np.int64)
        for op, f in int_binary.items():
            case(op, "-", dtype, [a, b], dtype, f(wide_a, wide_b).astype(np.uint64).astype(np.uint32).astype(numpy_type))
        case("not", "-", dtype, [a], dtype, ~a)
    ints = integers.astype(np.int32)
    case("abs", "-", "s32", [ints], "s32", np.abs(integers).astype(np.uint32).astype(np.int32))
    case("negate", "-", "s32", [ints], "s32", (-integers).astype(np.uint64).astype(np.uint32).astype(np.int32))
    case("sign", "-", "s32", [ints], "s32", np.sign(ints))
    flags_a, flags_b = np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8)
    for op, f in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
        case(op, "-", "pred", [flags_a, flags_b], "pred", f(flags_a, flags_b))
    case("not", "-", "pred", [flags_a], "pred", 1 - flags_a)
    convert_cases(case, narrow)


def convert_cases(case, narrow):
    def saturate(a, low, high):
        with np.errstate(all="ignore"):
            truncated = np.trunc(a.astype(np.float64))
            return np.where(np.isnan(a), 0, np.clip(truncated, low, high)).astype(np.int64)

    case("convert", "bf16", "f32", [values], "bf16", bf16(values))
    case("convert", "f32", "bf16", [narrow], "f32", widen(narrow))
    case("convert", "s32", "f32", [values], "s32", saturate(values, -(2 ** 31), 2 ** 31 - 1).astype(np.int32))
    case("convert", "u32", "f32", [values], "u32", saturate(values, 0, 2 ** 32 - 1).astype(np.uint32))
    case("convert", "u8", "f32", [values], "u8", saturate(values, 0, 255).astype(np.uint8))
    case("convert", "pred", "f32", [values], "pred", (values != 0).astype(np.uint8))
    case("convert", "s32", "bf16", [narrow], "s32", saturate(widen(narrow), -(2 ** 31), 2 ** 31 - 1).astype(np.int32))
    s32 = np.concatenate([integers, np.array([2 ** 24 + 1, 2 ** 24 + 3, -(2 ** 24) - 1, 16777219, 33554435])]).astype(np.int32)
    u32 = s32.view(np.uint32)
    case("convert", "f32", "s32", [s32], "f32", s32.astype(np.float32))
    case("convert", "f32", "u32", [u32], "f32", u32.astype(np.float32))
    case("convert", "bf16", "s32", [s32], "bf16", bf16(s32.astype(np.float32)))
    case("convert", "u8", "s32", [s32], "u8", s32.astype(np.uint8))
    case("convert", "u32", "s32", [s32], "u32", u32)
    case("convert", "s32", "u32", [u32], "s32", s32)
    case("convert", "pred", "s32", [s32], "pred", (s32 != 0).astype(np.uint8))
    u8 = np.arange(0, 256, 5).astype(np.uint8)
    for target, numpy_type in (("f32", np.float32), ("s32", np.int32), ("u32", np.uint32)):
        case("convert", target, "u8", [u8], target, u8.astype(numpy_type))
        case("convert", target, "pred", [u8 % 2], target, (u8 % 2).astype(numpy_type))
    case("convert", "bf16", "u8", [u8], "bf16", bf16(u8.astype(np.float32)))
    case("convert", "pred", "u8", [u8], "pred", (u8 != 0).astype(np.uint8))


def write_functions(out):
    x = np.concatenate([near, np.array([1e-6, -1e-6, 10, -10, 0.999, 60], np.float32)])
    positive = np.abs(x) + np.float32(1e-3)
    d, p = x.astype(np.float64), positive.astype(np.float64)
    import math
    rows = {
        "exponential": (x, np.exp(d)), "exponential_minus_one": (x, np.expm1(d)), "log": (positive, np.log(p)),
        "log_plus_one": (positive, np.log1p(p)), "rsqrt": (positive, 1 / np.sqrt(p)), "cbrt": (x, np.cbrt(d)),
        "tanh": (x, np.tanh(d)), "logistic": (x, 1 / (1 + np.exp(-d))), "erf": (x, np.array([math.erf(v) for v in d])),
        "sine": (x, np.sin(d)), "cosine": (x, np.cos(d)),
    }
    for op, (a, y) in rows.items():
        print(op, 1, len(a), file=out)
        print(hexes(a), file=out)
        print(" ".join(f"{v.hex()}" for v in y.tolist()), file=out)
    print("power", 2, len(x), file=out)
    print(hexes(positive), file=out)
    print(hexes(x), file=out)
    print(" ".join(v.hex() for v in np.power(p, d).tolist()), file=out)


def write_shape(out):
    def case(op, attrs, operands, result):
        """operands: shapes; the i-th is an iota from 1000 * i"""
        print(op, "{" + ", ".join(f"{k} = {v}" for k, v in attrs.items()) + "}", file=out)
        for shape in operands:
            print(list(shape), file=out)
        print("=", list(result.shape), file=out)
        print(" ".join(str(v) for v in result.reshape(-1).tolist()), file=out)

    def iota(shape, index=0):
        return (np.arange(int(np.prod(shape))) + 1000 * index).reshape(shape).astype(np.uint32)

    a = iota((2, 3, 4))
    case("transpose", {"axes": [2, 0, 1]}, [(2, 3, 4)], a.transpose(2, 0, 1))
    case("transpose", {"axes": [0, 1, 2]}, [(2, 3, 4)], a)
    case("transpose", {"axes": []}, [()], iota(()))
    case("reshape", {"shape": [4, 6]}, [(2, 3, 4)], a.reshape(4, 6))
    case("reverse", {"axes": [0, 2]}, [(2, 3, 4)], a[::-1, :, ::-1])
    case("reverse", {"axes": []}, [(2, 3, 4)], a)
    case("broadcast_in_dim", {"shape": [2, 5, 3], "axes": [0, 2]}, [(2, 3)],
         np.broadcast_to(iota((2, 1, 3)), (2, 5, 3)))
    case("broadcast_in_dim", {"shape": [2, 3], "axes": [0, 1]}, [(2, 1)], np.broadcast_to(iota((2, 1)), (2, 3)))
    case("broadcast_in_dim", {"shape": [2, 2], "axes": []}, [()], np.broadcast_to(iota(()), (2, 2)))
    case("slice", {"start": [0, 1, 1], "limit": [2, 3, 4], "strides": [1, 1, 2]}, [(2, 3, 4)], a[0:2, 1:3, 1:4:2])
    case("slice", {"start": [1, 3, 0], "limit": [1, 3, 4], "strides": [1, 1, 1]}, [(2, 3, 4)], a[1:1, 3:3, 0:4])
    padded = np.full((2 + 1, 3 + 2 * 2 + 2 + 1, 4 - 1 + 2), 1000, np.uint32)
    padded[1:3, 2:9:3, 0:3] = a[:, :, 1:]
    case("pad", {"low": [1, 2, -1], "high": [0, 1, 2], "interior": [0, 2, 0]}, [(2, 3, 4), ()], padded)
    # interior between x0 . x1 . x2 . x3 is cut by low -3: x1's left neighbour goes, x2 is first at place 1
    line = np.array([1000, 2, 1000, 3, 1000], np.uint32)
    case("pad", {"low": [-3], "high": [1], "interior": [1]}, [(4,), ()], line)
    case("pad", {"low": [-5], "high": [7], "interior": [0]}, [(4,), ()], np.full(6, 1000, np.uint32))
    case("pad", {"low": [2], "high": [-5], "interior": [0]}, [(4,), ()], np.full(1, 1000, np.uint32))
    case("concatenate", {"axis": 1}, [(2, 1, 2), (2, 3, 2), (2, 0, 2)],
         np.concatenate([iota((2, 1, 2)), iota((2, 3, 2), 1), iota((2, 0, 2), 2)], axis=1))
    case("concatenate", {"axis": 0}, [(3,)], iota((3,)))


for name, write in (("elementwise.txt", write_elementwise), ("functions.txt", write_functions), ("shape.txt", write_shape)):
    with open(name, "w", encoding="ascii") as out:
        write(out)
