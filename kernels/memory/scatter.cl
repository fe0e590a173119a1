/* SPDX-License-Identifier: Apache-2.0
 * scatter_keys, scatter_segments: dst[e] = dst[e] op the updates that lie at e, in rising order
 * computes  scatter_keys: a pair (place in dst, item) for each item, i.e. index vector; sorted, the items
 *           of one place stand together, in rising order. scatter_segments: the first item of each place
 *           combines all of them with what is there
 * layout    an item has `rows` * nx updates; its first lies at tp_table_offset(items) in the updates, and
 *           element (z, x) at tp_table_offset(inner) + x * update_stride from there
 * requires  dst holds the operand; items at two places have no element in common; fewer than 2^32 - 1
 *           elements in dst
 * knobs     SCATTER_ADD, _MAX, _MIN or _REPLACE (default add); MEMORY_DTYPE; SCATTER_WIDE (16 columns side
 *           by side; nx contiguous in both); the knobs of memory/indexing.clh
 * work      scatter_keys: x: items by chunk_x. scatter_segments: x: nx by chunk_x; y: items by chunk_y;
 *           z: rows of an item
 * numerics  in f32 in rising order of the updates, flushed (and rounded) once at the end
 * fallback  none: this is the only one
 */
#include "memory/indexing.clh"
#include "memory/pairs.clh"
#include "memory/combine.clh"
#define VPU_WIDTH 1
#include "lib/vpu.clh"
#include "memory/scatter_strip.clh"
#ifdef SCATTER_WIDE
#define VPU_WIDTH 16
#include "lib/vpu.clh"
#include "memory/scatter_strip.clh"
#endif

#define SCATTER_NOWHERE 0xffffffffu

__kernel void scatter_keys(TP_TENSOR(INDEX_TYPE, indices), TP_TENSOR(uint, table), TP_TENSOR(uint, pairs),
                           const int rank, const uint component_stride, const int items, int grid_z,
                           int chunk_x)
{
    const uint core = TP_CORE(grid_z);
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, items);
    for (int x = x0; x < x1; x++) {
        const ulong place = tp_table_locate(TP_AT(table, core), rank, rank, TP_AT(indices, core),
                                            component_stride, (uint)x);
        const uint key = place == ULONG_MAX ? SCATTER_NOWHERE : (uint)place;
        tp_pair_store(TP_AT(pairs, core), (ulong)x, PAIR_MAKE(key, x));
    }
}

__kernel void scatter_segments(TP_TENSOR(uint, pairs), TP_TENSOR(MEMORY_ELEMENT, updates),
                               TP_TENSOR(uint, table), TP_TENSOR(uint, inner),
                               TP_TENSOR(MEMORY_ELEMENT, dst), const int rank, const int inner_rank,
                               const int items, const int nx, const uint update_stride,
                               const uint stride, int grid_z, int chunk_x, int chunk_y)
{
    const uint core = TP_CORE(grid_z), z = TP_CORE_Z(grid_z);
    const __global uint *sorted = TP_AT(pairs, core), *numbers = TP_AT(table, core);
    const __global MEMORY_ELEMENT *from =
        TP_AT(updates, core) + tp_table_offset(TP_AT(inner, core), inner_rank, 3, z);
    __global MEMORY_ELEMENT *to =
        TP_AT(dst, core) + tp_table_offset(TP_AT(inner, core), inner_rank, 1, z);
    const int y0 = (int)get_global_id(1) * chunk_y, y1 = min(y0 + chunk_y, items);
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, nx);
    for (int y = y0; y < y1; y++) {
        const uint key = PAIR_KEY(tp_pair_load(sorted, (ulong)y));
        if (key == SCATTER_NOWHERE) break; /* the last ones */
        if (y > 0 && PAIR_KEY(tp_pair_load(sorted, (ulong)(y - 1))) == key) continue;
        int end = y + 1;
        while (end < items && PAIR_KEY(tp_pair_load(sorted, (ulong)end)) == key)
            end++;
        int x = x0;
#ifdef SCATTER_WIDE
        for (; x + 16 <= x1; x += 16)
            tp_scatter_strip_v16(sorted, y, end, numbers, rank, from + x, to + key + x);
#endif
        for (; x < x1; x++)
            tp_scatter_strip(sorted, y, end, numbers, rank, from + (ulong)x * update_stride,
                             to + (ulong)key + (ulong)x * stride);
    }
}
