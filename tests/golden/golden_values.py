# SPDX-License-Identifier: Apache-2.0
# Inputs of golden cases, the same as golden_value() in golden.h.
import numpy as np

F32 = np.float32


def value(seed, i):
    """Element i of stream `seed`: a fraction of 24 bits in [-1, 1)."""
    h = (i * 2654435761 + seed * 40503 + 12345) & 0xFFFFFFFF
    h ^= h >> 15
    h = (h * 2246822519) & 0xFFFFFFFF
    h ^= h >> 13
    return F32(((h >> 8) - (1 << 23)) / (1 << 23))


def values(seed, *shape):
    n = int(np.prod(shape))
    return np.array([value(seed, i) for i in range(n)], F32).reshape(shape)
