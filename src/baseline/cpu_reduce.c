/* SPDX-License-Identifier: Apache-2.0
 * Sums and maxima over rows and columns, shared among threads; other reductions run by the op's own rule. */
#include <string.h>
#include "baseline/cpu_internal.h"
#include "core/alloc.h"
#include "graph/geometry.h"
#include "num/exact_math.h"

enum { COLUMN_PARTS = 16, LANES = 16 };

typedef struct reduction {
    const float *in;
    float *out;
    float *partials; /* [COLUMN_PARTS][columns] */
    int64_t rows, columns;
    bool is_max;
} reduction;

static float largest(const float *in, int64_t count)
{
    float result = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        result = tp_vpu_max(result, in[i]);
    return result;
}

static float sum(const float *in, int64_t count)
{
    float lanes[LANES] = {0};
    int64_t at = 0;
    for (; at + LANES <= count; at += LANES)
        for (int i = 0; i < LANES; i++)
            lanes[i] += in[at + i];
    for (; at < count; at++)
        lanes[0] += in[at];
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lanes[i] += lanes[i + half];
    return lanes[0];
}

static tpucl_status reduce_rows(void *user, size_t begin, size_t end, int worker)
{
    const reduction *r = user;
    (void)worker;
    for (int64_t row = (int64_t)begin; row < (int64_t)end; row++) {
        const float *in = r->in + row * r->columns;
        r->out[row] = r->is_max ? largest(in, r->columns) : sum(in, r->columns);
    }
    return TPUCL_OK;
}

static void add_row(float *sums, const float *in, int64_t columns, bool is_max)
{
    if (is_max)
        for (int64_t c = 0; c < columns; c++)
            sums[c] = tp_vpu_max(sums[c], in[c]);
    else
        for (int64_t c = 0; c < columns; c++)
            sums[c] += in[c];
}

/* Part p takes its share of the rows into its own partial sums. */
static tpucl_status reduce_part(void *user, size_t begin, size_t end, int worker)
{
    const reduction *r = user;
    (void)worker;
    for (int64_t part = (int64_t)begin; part < (int64_t)end; part++) {
        float *sums = r->partials + part * r->columns;
        for (int64_t c = 0; c < r->columns; c++)
            sums[c] = r->is_max ? -INFINITY : 0.0f;
        for (int64_t row = part * r->rows / COLUMN_PARTS; row < (part + 1) * r->rows / COLUMN_PARTS;
             row++)
            add_row(sums, r->in + row * r->columns, r->columns, r->is_max);
    }
    return TPUCL_OK;
}

static tpucl_status reduce_columns(tp_cpu_runner *runner, reduction *r)
{
    r->partials = tp_alloc_array((size_t)COLUMN_PARTS * (size_t)r->columns, sizeof *r->partials);
    if (!r->partials) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_pool_parallel_for(runner->pool, COLUMN_PARTS, 1, reduce_part, r);
    memcpy(r->out, r->partials, (size_t)r->columns * sizeof *r->out);
    for (int part = 1; part < COLUMN_PARTS; part++)
        add_row(r->out, r->partials + part * r->columns, r->columns, r->is_max);
    tp_free(r->partials);
    return status;
}

tpucl_status tp_cpu_run_reduce(tp_cpu_runner *runner, tp_node_id id)
{
    const tp_node *node = tp_cpu_node(runner, id);
    const tp_host_tensor *in = &runner->values[node->inputs[0]];
    const char *kind = tp_node_attr_text(node, "kind", "");
    tp_reduce_geometry g;
    int64_t kept = 0, reduced = 0;
    bool is_max = strcmp(kind, "max") == 0, is_add = strcmp(kind, "add") == 0;
    if (node->dtype != TP_F32 || (!is_max && !is_add)) return tp_cpu_run_plain(runner, id);
    TP_TRY(tp_reduce_geometry_read(node, &in->shape, &g));
    if (!g.reduced_elems || !g.kept_elems || !tp_index_map_stride(&g.kept, &kept) ||
        !tp_index_map_stride(&g.reduced, &reduced))
        return tp_cpu_run_plain(runner, id);
    reduction r = {.in = in->data, .out = runner->values[id].data, .is_max = is_max};
    if (g.kept_elems > 1 && kept == 1) { /* columns stay */
        r.rows = g.reduced_elems, r.columns = g.kept_elems;
        return reduce_columns(runner, &r);
    }
    r.rows = g.kept_elems, r.columns = g.reduced_elems;
    return tp_pool_parallel_for(runner->pool, (size_t)r.rows, 16, reduce_rows, &r);
}
