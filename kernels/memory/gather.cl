/* SPDX-License-Identifier: Apache-2.0
 * gather: dst[c] = src[place of c]; put: dst[place of c] = src[c]
 * computes  copies between a dense tensor and the places in an indexed one that `indices` say
 * layout    the dense tensor row-major, seen as rows of `nx` elements; see memory/indexing.clh
 * requires  put: no two elements at one place
 * knobs     MEMORY_TYPE: the elements' type in memory; GATHER_RUN: a row has one index vector, its
 *           elements lie run_stride apart; the knobs of memory/indexing.clh
 * work      x: nx by chunk_x; y: rows by chunk_y
 * numerics  bits stay as they are; elements without a place are 0 (gather) or left out (put)
 * fallback  none: this is the only one
 */
#include "memory/indexing.clh"

#ifndef MEMORY_TYPE
#define MEMORY_TYPE uint
#endif

#define GATHER_PARAMS                                                                                     \
    TP_TENSOR(MEMORY_TYPE, indexed), TP_TENSOR(INDEX_TYPE, indices), TP_TENSOR(uint, table),              \
        TP_TENSOR(MEMORY_TYPE, dense), const int rank, const uint component_stride, const int nx,         \
        const int rows, const uint run_stride, int grid_z, int chunk_x, int chunk_y

/* Runs `move(place, element)` for the work-item's elements; place is ULONG_MAX for none. */
#ifdef GATHER_RUN
#define GATHER_LOOP(move)                                                                                 \
    for (int y = y0; y < y1; y++) {                                                                       \
        const ulong first = tp_table_locate(numbers, rank - 1, rank, index, component_stride, (uint)y);   \
        const ulong row = (ulong)y * (ulong)nx;                                                           \
        for (int x = x0; x < x1; x++)                                                                     \
            move(first == ULONG_MAX ? first : first + (ulong)x * run_stride, row + (ulong)x)              \
    }
#else
#define GATHER_LOOP(move)                                                                                 \
    for (int y = y0; y < y1; y++)                                                                         \
        for (int x = x0; x < x1; x++) {                                                                   \
            const uint number = (uint)y * (uint)nx + (uint)x;                                             \
            const ulong place = tp_table_locate(numbers, rank, rank, index, component_stride, number);    \
            move(place, number)                                                                           \
        }
#endif

#define GATHER_BEGIN                                                                                      \
    const uint core = TP_CORE(grid_z);                                                                    \
    const __global uint *numbers = TP_AT(table, core);                                                    \
    const __global INDEX_TYPE *index = TP_AT(indices, core);                                              \
    const int y0 = (int)get_global_id(1) * chunk_y, y1 = min(y0 + chunk_y, rows);                         \
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, nx);

__kernel void gather(GATHER_PARAMS)
{
    GATHER_BEGIN
    const __global MEMORY_TYPE *src = TP_AT(indexed, core);
    __global MEMORY_TYPE *dst = TP_AT(dense, core);
#define GATHER_MOVE(place, element)                                                                       \
    {                                                                                                     \
        const ulong from = (place);                                                                       \
        dst[element] = from == ULONG_MAX ? (MEMORY_TYPE)0 : src[from];                                    \
    }
    GATHER_LOOP(GATHER_MOVE)
}

__kernel void put(GATHER_PARAMS)
{
    GATHER_BEGIN
    __global MEMORY_TYPE *dst = TP_AT(indexed, core);
    const __global MEMORY_TYPE *src = TP_AT(dense, core);
#define PUT_MOVE(place, element)                                                                          \
    {                                                                                                     \
        const ulong to = (place);                                                                         \
        if (to != ULONG_MAX) dst[to] = src[element];                                                      \
    }
    GATHER_LOOP(PUT_MOVE)
}
