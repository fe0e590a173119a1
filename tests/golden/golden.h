/* SPDX-License-Identifier: Apache-2.0
 * Inputs of golden cases: element i of stream `seed` is a fraction of 24 bits in [-1, 1), by the same
 * formula as value() in golden_values.py, so that only results have to be stored.
 */
#ifndef TESTS_GOLDEN_GOLDEN_H
#define TESTS_GOLDEN_GOLDEN_H

#include <stdint.h>

static inline float golden_value(uint32_t seed, uint32_t i)
{
    uint32_t h = i * 2654435761u + seed * 40503u + 12345u;
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return (float)((int32_t)(h >> 8) - (1 << 23)) / (float)(1 << 23);
}

#endif
