/* SPDX-License-Identifier: Apache-2.0
 * sort_runs, sort_merge: sorts rows of pairs, each row by itself
 * computes  sort_runs: each run of SORT_RUN pairs in order; sort_merge: two neighbouring runs of `width`
 *           become one. Log2(n / SORT_RUN) merges sort a row. Of each merged run only the first `keep` pairs
 *           are made, and read by the next merge: top_k needs no more
 * layout    [rows][n] pairs, see memory/pairs.clh; src and dst are different memory
 * requires  no two pairs of a row equal
 * knobs     SORT_RUN: length of the first runs
 * work      x: n by chunk_x; y: rows by chunk_y; a work-item finds the place of each of its pairs
 * numerics  none: pairs are integers
 * fallback  none: this is the only one
 */
#include "memory/pairs.clh"

#ifndef SORT_RUN
#define SORT_RUN 32
#endif

#define SORT_BEGIN                                                                                        \
    const uint core = TP_CORE(grid_z);                                                                    \
    const int y0 = (int)get_global_id(1) * chunk_y, y1 = min(y0 + chunk_y, rows);                         \
    const int x0 = (int)get_global_id(0) * chunk_x, x1 = min(x0 + chunk_x, n);

__kernel void sort_runs(TP_TENSOR(uint, src), TP_TENSOR(uint, dst), const int n, const int rows,
                        int grid_z, int chunk_x, int chunk_y)
{
    SORT_BEGIN
    for (int y = y0; y < y1; y++) {
        const __global uint *from = TP_AT(src, core) + 2 * (ulong)y * (ulong)n;
        __global uint *to = TP_AT(dst, core) + 2 * (ulong)y * (ulong)n;
        for (int x = x0; x < x1; x++) {
            const int first = x / SORT_RUN * SORT_RUN, end = min(first + SORT_RUN, n);
            const ulong own = tp_pair_load(from, (ulong)x);
            int place = first;
            for (int i = first; i < end; i++)
                place += tp_pair_load(from, (ulong)i) < own;
            tp_pair_store(to, (ulong)place, own);
        }
    }
}

/* How many of the sorted pairs first .. end-1 are below `own`. */
static inline int tp_count_below(const __global uint *pairs, int first, int end, ulong own)
{
    int low = first, high = end;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (tp_pair_load(pairs, (ulong)middle) < own)
            low = middle + 1;
        else
            high = middle;
    }
    return low - first;
}

__kernel void sort_merge(TP_TENSOR(uint, src), TP_TENSOR(uint, dst), const int n, const int rows,
                         const int width, const int keep, int grid_z, int chunk_x,
                         int chunk_y)
{
    SORT_BEGIN
    for (int y = y0; y < y1; y++) {
        const __global uint *from = TP_AT(src, core) + 2 * (ulong)y * (ulong)n;
        __global uint *to = TP_AT(dst, core) + 2 * (ulong)y * (ulong)n;
        int run_of_last = -1, below = 0;
        for (int x = x0; x < x1; x++) {
            const int run = x / width, first = run * width;
            if (x - first >= keep) { /* on to the next run */
                x = first + width - 1;
                continue;
            }
            /* The partner starts at most one run further, which may lie behind the end. */
            const int partner = run % 2 ? first - width : first + min(width, n - first);
            const int partner_end = partner + min(min(width, keep), n - partner);
            const ulong own = tp_pair_load(from, (ulong)x);
            if (run == run_of_last) /* goes on where the pair before it stopped */
                while (partner + below < partner_end &&
                       tp_pair_load(from, (ulong)(partner + below)) < own)
                    below++;
            else
                below = tp_count_below(from, partner, partner_end, own);
            run_of_last = run;
            const int place = x - first + below;
            if (place < keep) tp_pair_store(to, (ulong)(min(first, partner) + place), own);
        }
    }
}
