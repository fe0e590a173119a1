/* SPDX-License-Identifier: Apache-2.0
 * Plans the variants that read their operands where they are: kernels/mxu/mxu_local.cl,
 * mxu_direct.cl and mxu_reference.cl.
 */
#include "kernel/mxu_plan.h"

static double operand_bytes(const tp_mxu_problem *problem)
{
    return tp_mxu_a_bytes(problem) + tp_mxu_b_bytes(problem) + tp_mxu_c_bytes(problem);
}

/* ---- local: 16 x 16 work-items, 4 x 4 outputs each, 2 x 2 where the result is small ---- */

#define LOCAL_THREADS 16
#define LOCAL_TILE_K 16

static int outputs_per_item(int64_t extent)
{
    return extent <= 2 * LOCAL_THREADS ? 2 : 4;
}

typedef struct local_tile {
    int threads_m, threads_n, thread_m, thread_n, k;
    int m, n; /* threads * outputs of each */
} local_tile;

static local_tile choose_local_tile(const tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    local_tile t = {
        .threads_m = tp_mxu_knob_value(builder, TP_MXU_THREADS_M, LOCAL_THREADS),
        .threads_n = tp_mxu_knob_value(builder, TP_MXU_THREADS_N, LOCAL_THREADS),
        .thread_m = tp_mxu_knob_value(builder, TP_MXU_THREAD_M, outputs_per_item(problem->m)),
        .thread_n = tp_mxu_knob_value(builder, TP_MXU_THREAD_N, outputs_per_item(problem->n)),
        .k = tp_mxu_knob_value(builder, TP_MXU_TILE_K, LOCAL_TILE_K),
    };
    t.m = t.threads_m * t.thread_m;
    t.n = t.threads_n * t.thread_n;
    return t;
}

static int64_t local_bytes(const local_tile *t)
{
    return (int64_t)t->k * (t->m + t->n + 2) * 4;
}

static tpucl_status decline_local(const tp_mxu_builder *builder, bool is_forced,
                                  const char **out_reason)
{
    const tp_device_caps *caps = builder->caps;
    const local_tile t = choose_local_tile(builder);
    const uint64_t items = (uint64_t)(t.threads_m * t.threads_n);
    const uint64_t bytes = (uint64_t)local_bytes(&t);
    TP_TRY(tp_mxu_check_units(builder, out_reason));
    if (*out_reason != NULL) return TPUCL_OK;
    if (caps->max_work_group_size < items || caps->local_memory_bytes < bytes) {
        *out_reason = tp_arena_printf(builder->arena,
                                      "needs groups of %llu work-items and %llu bytes of local "
                                      "memory, the device has %llu and %llu",
                                      (unsigned long long)items, (unsigned long long)bytes,
                                      (unsigned long long)caps->max_work_group_size,
                                      (unsigned long long)caps->local_memory_bytes);
        return *out_reason == NULL ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
    }
    if (is_forced) return TPUCL_OK;
    if (caps->local_memory_is_ordinary)
        *out_reason = "the device's local memory is ordinary memory, staging gains nothing";
    else if (builder->problem->m < LOCAL_THREADS || builder->problem->n < 8)
        *out_reason = "m or n is a small part of a tile";
    return TPUCL_OK;
}

static tpucl_status plan_local(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const local_tile t = choose_local_tile(builder);
    const char *what = tp_arena_printf(builder->arena, "mxu_local %dx%d", t.m, t.n);
    const char *options = tp_arena_printf(
        builder->arena,
        "-DTHREADS_M=%d -DTHREADS_N=%d -DTHREAD_M=%d -DTHREAD_N=%d -DTILE_K=%d -DA_RUNS_ALONG_M=%d"
        " -DB_RUNS_ALONG_N=%d",
        t.threads_m, t.threads_n, t.thread_m, t.thread_n, t.k, tp_mxu_a_runs_along_m(problem),
        tp_mxu_b_runs_along_n(problem));
    if (what == NULL || options == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = what,
        .text = "mxu/mxu_local.cl",
        .options = options,
        .entry = "mxu_local",
        .global = {(size_t)(tp_mxu_ceil_div(problem->n, t.n) * t.threads_n),
                   (size_t)(tp_mxu_ceil_div(problem->m, t.m) * t.threads_m), 1},
        .local = {(size_t)t.threads_n, (size_t)t.threads_m, 1},
        .bytes = operand_bytes(problem),
    };
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor,
                              local_bytes(&t));
}

const tp_mxu_variant tp_mxu_variant_local = {
    .name = "mxu_local", .decline = decline_local, .plan = plan_local};

/* ---- direct ---- */

#define DIRECT_ROWS 4

static tpucl_status decline_direct(const tp_mxu_builder *builder, bool is_forced,
                                   const char **out_reason)
{
    (void)is_forced;
    return tp_mxu_check_units(builder, out_reason);
}

static tpucl_status plan_direct(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const int columns = builder->caps->preferred_float_vector >= 4 ? 16 : 1;
    const int rows = tp_mxu_knob_value(builder, TP_MXU_TILE_M,
                                       problem->m < DIRECT_ROWS ? (int)problem->m : DIRECT_ROWS);
    const char *what = tp_arena_printf(builder->arena, "mxu_direct %dx%d", rows, columns);
    const char *options =
        tp_arena_printf(builder->arena, "-DTILE_M=%d -DCOLUMNS=%d -DB_RUNS_ALONG_N=%d", rows,
                        columns, tp_mxu_b_runs_along_n(problem));
    if (what == NULL || options == NULL) return TPUCL_OUT_OF_MEMORY;
    const tp_mxu_launch launch = {
        .what = what,
        .text = "mxu/mxu_direct.cl",
        .options = options,
        .entry = "mxu_direct",
        .global = {(size_t)tp_mxu_ceil_div(problem->n, columns),
                   (size_t)tp_mxu_ceil_div(problem->m, rows), 1},
        .bytes = operand_bytes(problem),
    };
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor, 16);
}

const tp_mxu_variant tp_mxu_variant_direct = {
    .name = "mxu_direct", .decline = decline_direct, .plan = plan_direct};

/* ---- reference: passes and blocks are loops in the kernel, so it is never split ---- */

static tpucl_status decline_reference(const tp_mxu_builder *builder, bool is_forced,
                                      const char **out_reason)
{
    (void)builder;
    (void)is_forced;
    (void)out_reason;
    return TPUCL_OK;
}

static tpucl_status plan_reference(tp_mxu_builder *builder)
{
    const tp_mxu_problem *problem = builder->problem;
    const tp_mxu_launch launch = {
        .what = "mxu_reference",
        .text = "mxu/mxu_reference.cl",
        .options = "",
        .entry = "mxu_reference",
        .global = {(size_t)problem->n, (size_t)problem->m, 1},
        .handles_units = true,
        .bytes = operand_bytes(problem),
    };
    return tp_mxu_add_product(builder, launch, problem->a_tensor, problem->b_tensor, 16);
}

const tp_mxu_variant tp_mxu_variant_reference = {.name = "mxu_reference",
                                                 .takes_groups = true,
                                                 .decline = decline_reference,
                                                 .plan = plan_reference};
