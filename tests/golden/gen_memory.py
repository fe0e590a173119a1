#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Results of gather, scatter, the dynamic slices, cumulative, sort and top_k: StableHLO's specification
# (https://openxla.org/stablehlo/spec) written down in numpy, sums in f32 in rising order, and compared with
# JAX wherever JAX has the same rule.
#   tests/golden/gen_memory.py > tests/golden/memory.h      (needs numpy and jax)
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from golden_values import F32, value, values


def integers(seed, low, high, *shape):
    """Whole numbers low .. high-1."""
    n = int(np.prod(shape))
    cells = [low + int((float(value(seed, i)) + 1) / 2 * (high - low)) for i in range(n)]
    return np.array(cells, np.int32).reshape(shape)


# ---- gather and scatter ----

def places(operand_shape, idx, window, collapsed, batch, idx_batch, index_map, vector_dim, slices, clamp):
    """(dense index, operand index or None) in rising order."""
    vec = idx.shape[vector_dim] if vector_dim < idx.ndim else 1
    batch_shape = [idx.shape[d] for d in range(idx.ndim) if d != vector_dim]
    kept = [d for d in range(len(operand_shape)) if d not in collapsed and d not in batch]
    rank = len(batch_shape) + len(window)
    batch_dims = [d for d in range(rank) if d not in window]
    shape = [0] * rank
    for d, size in zip(batch_dims, batch_shape):
        shape[d] = size
    for d, o in zip(window, kept):
        shape[d] = slices[o]
    for at in itertools.product(*map(range, shape)):
        index = [at[d] for d in batch_dims]
        full = [0] * len(operand_shape)
        for k in range(vec):
            where = list(index)
            if vector_dim < idx.ndim:
                where.insert(vector_dim, k)
            start = int(idx[tuple(where)])
            if clamp:
                start = min(max(start, 0), operand_shape[index_map[k]] - slices[index_map[k]])
            full[index_map[k]] = start
        for o, i in zip(batch, idx_batch):
            full[o] = index[i - (1 if i > vector_dim else 0)]
        for d, o in zip(window, kept):
            full[o] += at[d]
        inside = all(0 <= f < s for f, s in zip(full, operand_shape))
        yield at, tuple(full) if inside else None
    places.shape = shape


def gather(x, idx, dims, slices, clamp):
    cells = list(places(x.shape, idx, *dims, slices, clamp))
    out = np.zeros(places.shape, x.dtype)
    for at, full in cells:
        out[at] = x[full] if full is not None else 0
    if clamp:
        window, collapsed, batch, idx_batch, index_map, vector_dim = dims
        assert vector_dim == idx.ndim - 1 or vector_dim == idx.ndim
        jax_idx = idx if vector_dim < idx.ndim else idx[..., None]
        got = lax.gather(jnp.array(x), jnp.array(jax_idx), lax.GatherDimensionNumbers(
            tuple(window), tuple(collapsed), tuple(index_map), tuple(batch), tuple(idx_batch)),
            tuple(slices), mode="clip")
        assert np.array_equal(np.asarray(got), out), "JAX gathers something else"
    return out


COMBINE = {"add": lambda a, b: F32(a + b), "max": max, "min": min, "replace": lambda a, b: b}


def scatter(x, idx, updates, dims, slices, kind, clamp):
    out = x.copy()
    cells = list(places(x.shape, idx, *dims, slices, clamp))
    assert list(updates.shape) == places.shape, (updates.shape, places.shape)
    for at, full in cells:
        if full is not None:
            out[full] = COMBINE[kind](out[full], updates[at])
    if clamp:
        window, collapsed, batch, idx_batch, index_map, vector_dim = dims
        jax_idx = idx if vector_dim < idx.ndim else idx[..., None]
        call = {"add": lax.scatter_add, "max": lax.scatter_max, "min": lax.scatter_min,
                "replace": lax.scatter}[kind]
        got = call(jnp.array(x), jnp.array(jax_idx), jnp.array(updates), lax.ScatterDimensionNumbers(
            tuple(window), tuple(collapsed), tuple(index_map), tuple(batch), tuple(idx_batch)), mode="clip")
        if kind == "replace":  # JAX leaves open which of several updates stays
            once = np.zeros(x.shape, int)
            for _, full in cells:
                once[full] += 1
            assert np.array_equal(np.asarray(got)[once <= 1], out[once <= 1])
        else:
            assert np.allclose(np.asarray(got), out, rtol=1e-6, atol=1e-6), "JAX scatters something else"
    return out


# ---- output ----

def emit(name, array):
    array = np.asarray(array)
    flat = array.astype(F32).view(np.uint32) if array.dtype == F32 else array.astype(np.int64)
    flat = flat.reshape(-1)
    print("static const uint32_t golden_%s[%d] = {" % (name, len(flat)))
    for i in range(0, len(flat), 8):
        print("    " + " ".join("0x%08xu," % (int(v) & 0xFFFFFFFF) for v in flat[i:i + 8]))
    print("};")


# name, operand, indices (seed, low, high, shape), slices, dims: window, collapsed, batch, index batch, map,
# vector dim. The same numbers stand in tests/unit/ops/memory_cases.h.
CASES = [
    ("rows", (11, 5), (21, -3, 14, (3, 4)), (1, 5), ([2], [0], [], [], [0], 2)),
    ("middle", (3, 7, 4), (22, -2, 9, (5,)), (3, 1, 4), ([0, 2], [1], [], [], [1], 1)),
    ("along", (3, 6, 4), (23, -2, 8, (3, 2, 4)), (1, 1, 1), ([], [1], [0, 2], [0, 2], [1], 3)),
    ("boxes", (4, 3, 5), (24, -2, 6, (3, 2, 2)), (2, 1, 3), ([1, 3], [1], [], [], [2, 0], 2)),
    ("batched", (2, 4, 3, 3), (25, -2, 5, (3, 2, 2, 2)), (1, 2, 2, 1),
     ([0, 4], [], [0, 3], [1, 0], [2, 1], 3)),
]


def main():
    print("/* SPDX-License-Identifier: Apache-2.0\n * Generated by tests/golden/gen_memory.py. */")
    print("/* clang-format off */\n#include <stdint.h>")
    for name, shape, (seed, low, high, index_shape), slices, dims in CASES:
        x, idx = values(20, *shape), integers(seed, low, high, *index_shape)
        emit("index_%s" % name, idx)
        emit("gather_%s_clamp" % name, gather(x, idx, dims, slices, True))
        emit("gather_%s_zero" % name, gather(x, idx, dims, slices, False))
        updates = values(30, *places.shape)
        for kind in COMBINE:
            emit("scatter_%s_%s_clamp" % (name, kind), scatter(x, idx, updates, dims, slices, kind, True))
            emit("scatter_%s_%s_skip" % (name, kind), scatter(x, idx, updates, dims, slices, kind, False))


jax.config.update("jax_platforms", "cpu")
main()
