/* SPDX-License-Identifier: Apache-2.0
 * Sorting pairs by merging: runs of SORT_RUN, then runs twice as long with every launch.
 */
#include "compile/lower_memory.h"

#include "graph/opdef.h"

enum { SORT_RUN = 32 }; /* sort_pairs.cl's default */

tpucl_status tp_lower_add_pairs(tp_lowering *l, const tp_cluster *cluster, int64_t count,
                                int32_t out_buffers[2])
{
    for (int i = 0; i < 2; i++)
        TP_TRY(tp_lower_add_scratch(l, "pairs to be sorted", TP_U32, (uint64_t)count * 8,
                                    !cluster->is_replicated, &out_buffers[i]));
    return TPUCL_OK;
}

/* One launch over all pairs; width 0: the first runs. */
static tpucl_status lower_pass(tp_lowering *l, const tp_cluster *cluster, int64_t rows, int64_t n,
                               int64_t width, int32_t from, int32_t to)
{
    tp_memory_launch m =
        tp_memory_launch_begin(l, cluster, "sort_pairs", width ? "sort_merge" : "sort_runs", "");
    tp_memory_launch_add_buffer(&m, from, false);
    tp_memory_launch_add_buffer(&m, to, true);
    tp_memory_launch_add_int(&m, n);
    tp_memory_launch_add_int(&m, rows);
    if (width) tp_memory_launch_add_int(&m, width);
    m.launch.bytes = 16.0 * (double)rows * (double)n;
    return tp_memory_launch_end(&m, n, rows, 1, true);
}

tpucl_status tp_lower_sort_pairs(tp_lowering *l, const tp_cluster *cluster, int64_t rows, int64_t n,
                                 int32_t first, int32_t second, int32_t *out_buffer)
{
    int32_t from = first, to = second;
    for (int64_t width = 0; width < n; width = width ? 2 * width : SORT_RUN) {
        TP_TRY(lower_pass(l, cluster, rows, n, width, from, to));
        const int32_t done = to;
        to = from;
        from = done;
    }
    *out_buffer = from;
    return TPUCL_OK;
}
