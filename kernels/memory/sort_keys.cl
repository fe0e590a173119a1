/* SPDX-License-Identifier: Apache-2.0
 * sort_keys, sort_take: elements to pairs that are sorted instead of them, and back
 * computes  sort_keys: a pair (key, index) for each element of each line; keys are in the order of the op
 *           (ops/op_sort.c). sort_take: the elements, or their indices, of the first k pairs of each line
 * layout    src [outer][n][inner], pairs [outer * inner][n], dst [outer][k][inner], row-major
 * requires  nothing
 * knobs     the dtype of memory/combine.clh; SORT_FALLING, SORT_LARGEST_FIRST
 *           (top_k; default rising); SORT_INDICES (sort_take stores indices, int)
 * work      x: n (sort_take: k) by chunk_x; y: lines by chunk_y
 * numerics  bits stay as they are
 * fallback  none: this is the only one
 */
#include "memory/combine.clh"
#include "memory/pairs.clh"
#define VPU_WIDTH 1
#include "lib/vpu.clh"

#ifdef SORT_INDICES
#define SORT_RESULT int
#else
#define SORT_RESULT MEMORY_ELEMENT
#endif

static inline uint tp_float_key(uint bits)
{
    const int is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
#ifdef SORT_LARGEST_FIRST
    if (is_nan) return 0u;
#else
    if (is_nan) return 0xffffffffu;
    if (bits == 0x80000000u) bits = 0u;
#endif
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static inline uint tp_sort_key(MEMORY_ELEMENT element)
{
#if defined(MEMORY_F32) || defined(MEMORY_BF16)
#ifdef MEMORY_F32
    const uint bits = as_uint(element);
#else
    const uint bits = (uint)element << 16;
#endif
    const uint rising = tp_float_key(bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return rising; /* NaN has its place in any direction */
#elif defined(MEMORY_S32)
    const uint rising = as_uint(element) ^ 0x80000000u;
#else
    const uint rising = element;
#endif
#if defined(SORT_FALLING) || defined(SORT_LARGEST_FIRST)
    return ~rising;
#else
    return rising;
#endif
}

#define SORT_BEGIN(count)                                                                                 \
    const uint core = TP_CORE(grid_z);                                                                    \
    const int y0 = (int)get_global_id(1) * chunk_y, y1 = min(y0 + chunk_y, lines);                        \
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, count);

/* First element of line y among lines of `length`. */
#define SORT_LINE(y, length)                                                                              \
    ((ulong)((y) / inner) * (ulong)(length) * (ulong)inner + (ulong)((y) % inner))

__kernel void sort_keys(TP_TENSOR(MEMORY_ELEMENT, src), TP_TENSOR(uint, pairs), const int n,
                        const int inner, const int lines, int grid_z, int chunk_x, int chunk_y)
{
    SORT_BEGIN(n)
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            const MEMORY_ELEMENT element =
                TP_AT(src, core)[SORT_LINE(y, n) + (ulong)x * (ulong)inner];
            tp_pair_store(TP_AT(pairs, core), (ulong)y * (ulong)n + (ulong)x,
                          PAIR_MAKE(tp_sort_key(element), x));
        }
}

__kernel void sort_take(TP_TENSOR(MEMORY_ELEMENT, src), TP_TENSOR(uint, pairs),
                        TP_TENSOR(SORT_RESULT, dst), const int n, const int k, const int inner,
                        const int lines, int grid_z, int chunk_x, int chunk_y)
{
    SORT_BEGIN(k)
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            const uint index =
                PAIR_NUMBER(tp_pair_load(TP_AT(pairs, core), (ulong)y * (ulong)n + (ulong)x));
            __global SORT_RESULT *to = TP_AT(dst, core) + SORT_LINE(y, k) + (ulong)x * (ulong)inner;
#ifdef SORT_INDICES
            *to = (int)index;
#else
            *to = TP_AT(src, core)[SORT_LINE(y, n) + (ulong)index * (ulong)inner];
#endif
        }
}
