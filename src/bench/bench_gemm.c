/* SPDX-License-Identifier: Apache-2.0
 * Square products: tpucl's bf16 and f32 (packing included, every step, as in training),
 * CLBlast's and OpenBLAS' f32. Every side's result is compared with the contract's, by bits or
 * within f32 rounding, before it is timed. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "baseline/openblas.h"
#include "bench/bench_internal.h"
#include "core/alloc.h"
#include "device/clblast.h"
#include "kernel/mxu_cases.h"
#include "num/mxu.h"
#include "tune/plan_run.h"

enum { MAX_SIDES = 4 };

/* One side of tpucl's own: a plan on tensors of its own. */
typedef struct own_side {
    tp_device *device;
    tp_mxu_case row;
    tp_mxu_problem problem;
    tp_mxu_plan plan;
    tp_plan_tensor tensors[3 + TP_MXU_MAX_SCRATCH];
    tp_plan_run *run;
} own_side;

typedef struct gemm {
    tp_bench *bench;
    tp_device *device;
    tp_arena *arena;
    tp_openblas *blas; /* NULL: not there */
    int64_t size;
    float *a, *b, *c;      /* host: f32 operands and what a side gave */
    tp_buffer *buffers[3]; /* CLBlast's */
    own_side own[2];       /* bf16, f32 */
} gemm;

/* ---- the sides ---- */

static tpucl_status run_own(void *user)
{
    own_side *own = user;
    TP_TRY(tp_plan_run_enqueue(own->run, 0, own->plan.launch_count));
    return tp_lane_finish(own->device, TP_LANE_COMPUTE);
}

static tp_clblast_problem clblast_problem(int64_t size)
{
    return (tp_clblast_problem){.batch = 1,
                                .m = size,
                                .n = size,
                                .k = size,
                                .lda = size,
                                .ldb = size,
                                .ldc = size,
                                .stride_a = size * size,
                                .stride_b = size * size,
                                .stride_c = size * size};
}

static tpucl_status run_clblast(void *user)
{
    gemm *g = user;
    tp_clblast_problem problem = clblast_problem(g->size);
    TP_TRY(
        tp_clblast_sgemm(g->device, &problem, g->buffers[0], g->buffers[1], g->buffers[2], NULL));
    return tp_lane_finish(g->device, TP_LANE_COMPUTE);
}

static tpucl_status run_openblas(void *user)
{
    gemm *g = user;
    tp_openblas_gemm product = {.m = g->size,
                                .n = g->size,
                                .k = g->size,
                                .lda = g->size,
                                .ldb = g->size,
                                .ldc = g->size,
                                .a = g->a,
                                .b = g->b,
                                .c = g->c};
    tp_openblas_sgemm(g->blas, &product);
    return TPUCL_OK;
}

/* ---- preparing ---- */

static tpucl_status prepare_own(gemm *g, own_side *own, tp_mxu_precision precision, tp_dtype dtype)
{
    own->device = g->device;
    own->row = (tp_mxu_case){.name = "square",
                             .kind = TP_MXU_DOT,
                             .precision = precision,
                             .a_dtype = dtype,
                             .b_dtype = dtype,
                             .c_dtype = TP_F32,
                             .m = g->size,
                             .n = g->size,
                             .k = g->size};
    TP_TRY(tp_mxu_case_problem(&own->row, g->arena, &own->problem));
    TP_TRY(tp_mxu_plan_create(&own->problem, tp_device_get_caps(g->device), NULL, 3, g->arena,
                              &own->plan));
    size_t count = (size_t)(g->size * g->size);
    for (int32_t t = 0; t < 3; t++) {
        size_t bytes = tp_dtype_size(t < 2 ? dtype : TP_F32);
        TP_TRY(tp_plan_tensor_create(g->device, "operand", bytes, count, 1, &own->tensors[t]));
        if (t == 2) break;
        tp_mxu_case_fill(&own->row, &own->problem, t, 0, g->c);
        TP_TRY(tp_plan_tensor_write(&own->tensors[t], 0, g->c));
    }
    for (int32_t i = 0; i < own->plan.scratch_count; i++) {
        const tp_mxu_scratch *scratch = &own->plan.scratch[i];
        size_t bytes = tp_dtype_size(scratch->dtype);
        TP_TRY(tp_plan_tensor_create(g->device, "scratch", bytes, scratch->bytes / bytes, 1,
                                     &own->tensors[3 + i]));
    }
    TP_TRY(tp_plan_run_create(g->device, own->plan.launches, own->plan.launch_count, own->tensors,
                              1, &own->run));
    return TPUCL_OK;
}

static void release_own(own_side *own)
{
    tp_plan_run_destroy(own->run);
    for (int32_t t = 0; t < 3 + TP_MXU_MAX_SCRATCH; t++)
        tp_plan_tensor_deinit(&own->tensors[t]);
    memset(own, 0, sizeof *own);
}

static tpucl_status prepare_clblast(gemm *g)
{
    static const char *const labels[] = {"A", "B", "C"};
    size_t bytes = (size_t)(g->size * g->size) * sizeof(float);
    for (int32_t i = 0; i < 3; i++)
        TP_TRY(tp_buffer_create(g->device, bytes, labels[i], &g->buffers[i]));
    TP_TRY(tp_buffer_write(g->buffers[0], 0, g->a, bytes));
    TP_TRY(tp_buffer_write(g->buffers[1], 0, g->b, bytes));
    return TPUCL_OK;
}

/* ---- checking ---- */

/* A few elements of the product of the f32 operands, rounded to bf16 or not, as the contract has
 * them. */
static float expected_element(const gemm *g, tp_precision precision, int64_t row, int64_t column)
{
    tp_mxu_dot dot;
    tp_mxu_dot_begin(&dot, precision);
    for (int64_t k = 0; k < g->size; k++)
        tp_mxu_dot_add(&dot, g->a[row * g->size + k], g->b[k * g->size + column]);
    return tp_mxu_dot_end(&dot);
}

static tpucl_status check(const gemm *g, const char *side, tp_precision precision, bool is_exact)
{
    enum { SAMPLES = 64 };
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t row = i * 7919 % g->size, column = i * 104729 % g->size;
        float wanted = expected_element(g, precision, row, column);
        float found = g->c[row * g->size + column];
        /* sums of k terms of magnitude up to 64: k * 64 * 2^-24 bounds any order of summation */
        double slack = is_exact ? 0 : (double)g->size * 64 * 0x1p-24;
        if (fabs((double)wanted - (double)found) <= slack) continue;
        return TP_FAIL(TPUCL_NOT_EXACT,
                       "%s gives %.9g at row %lld, column %lld of a product of size %lld, "
                       "expected %.9g",
                       side, (double)found, (long long)row, (long long)column, (long long)g->size,
                       (double)wanted);
    }
    return TPUCL_OK;
}

static tpucl_status check_all(gemm *g, const tp_bench_side *sides, int32_t count)
{
    size_t bytes = (size_t)(g->size * g->size) * sizeof(float);
    for (int32_t i = 0; i < count; i++) {
        bool is_own = sides[i].run == run_own;
        bool is_bf16 = sides[i].user == &g->own[0];
        memset(g->c, 0, bytes);
        TP_TRY(sides[i].run(sides[i].user));
        if (is_own)
            TP_TRY(tp_plan_tensor_read(&((own_side *)sides[i].user)->tensors[2], 0, g->c));
        else if (sides[i].run == run_clblast)
            TP_TRY(tp_buffer_read(g->buffers[2], 0, g->c, bytes));
        TP_TRY(check(g, sides[i].name, is_bf16 ? TP_PRECISION_DEFAULT : TP_PRECISION_F32, is_own));
    }
    return TPUCL_OK;
}

/* ---- a size ---- */

static tpucl_status add_rows(gemm *g, const tp_bench_side *sides, int32_t count)
{
    char name[64];
    snprintf(name, sizeof name, "%lld x %lld x %lld", (long long)g->size, (long long)g->size,
             (long long)g->size);
    for (int32_t i = 0; i < count; i++) {
        tp_bench_row row = {.name = name,
                            .side = sides[i].name,
                            .seconds = sides[i].seconds,
                            .spread = sides[i].spread,
                            .value = sides[i].work / sides[i].seconds,
                            .unit = "GFLOP/s",
                            .note = sides[i].note};
        TP_TRY(tp_bench_add_row(g->bench, &row));
        for (int32_t j = 0; i == 0 && j < count; j++)
            if (j != i)
                TP_TRY(tp_bench_add_ratio(g->bench, sides[j].seconds / sides[i].seconds,
                                          "%s / %s, %lld", sides[i].name, sides[j].name,
                                          (long long)g->size));
    }
    return TPUCL_OK;
}

static tpucl_status measure_size(gemm *g)
{
    size_t count = (size_t)(g->size * g->size);
    g->a = TP_NEW_ARRAY(float, count);
    g->b = TP_NEW_ARRAY(float, count);
    g->c = TP_NEW_ARRAY(float, count);
    if (!g->a || !g->b || !g->c) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(prepare_own(g, &g->own[1], TP_MXU_F32, TP_F32));
    tp_mxu_case_fill(&g->own[1].row, &g->own[1].problem, 0, 0, g->a);
    tp_mxu_case_fill(&g->own[1].row, &g->own[1].problem, 1, 0, g->b);
    TP_TRY(prepare_own(g, &g->own[0], TP_MXU_DEFAULT, TP_BF16));

    double work = 2e-9 * (double)g->size * (double)g->size * (double)g->size;
    tp_bench_side sides[MAX_SIDES];
    int32_t sides_count = 0;
    sides[sides_count++] = (tp_bench_side){
        .name = "tpucl bf16", .run = run_own, .user = &g->own[0], .note = g->own[0].plan.variant};
    sides[sides_count++] = (tp_bench_side){
        .name = "tpucl f32", .run = run_own, .user = &g->own[1], .note = g->own[1].plan.variant};
    if (tp_clblast_is_available()) {
        TP_TRY(prepare_clblast(g));
        sides[sides_count++] =
            (tp_bench_side){.name = "clblast f32", .run = run_clblast, .user = g};
    }
    if (g->blas)
        sides[sides_count++] = (tp_bench_side){.name = "openblas f32",
                                               .run = run_openblas,
                                               .user = g,
                                               .note = tp_openblas_core(g->blas)};
    for (int32_t i = 0; i < sides_count; i++)
        sides[i].work = work;
    TP_TRY(check_all(g, sides, sides_count));
    TP_TRY(tp_bench_measure(sides, sides_count, g->bench->options->quick ? 0 : 0.3));
    TP_TRY(add_rows(g, sides, sides_count));
    return TPUCL_OK;
}

static void release_size(gemm *g)
{
    for (int32_t i = 0; i < 2; i++)
        release_own(&g->own[i]);
    for (int32_t i = 0; i < 3; i++) {
        tp_buffer_release(g->buffers[i]);
        g->buffers[i] = NULL;
    }
    tp_free(g->a);
    tp_free(g->b);
    tp_free(g->c);
    g->a = g->b = g->c = NULL;
}

/* OpenBLAS is optional; what it corrected is worth a note. */
static tpucl_status open_openblas(gemm *g)
{
    tpucl_status status = tp_openblas_open(&g->blas);
    if (status == TPUCL_UNSUPPORTED)
        return tp_bench_add_note(g->bench, tpucl_last_error()->message);
    TP_TRY(status);
    if (*tp_openblas_note(g->blas)) TP_TRY(tp_bench_add_note(g->bench, tp_openblas_note(g->blas)));
    return TPUCL_OK;
}

tpucl_status tp_bench_gemm(tp_bench *bench)
{
    static const int64_t all_sizes[] = {256, 512, 1024, 2048}, quick_sizes[] = {256};
    const int64_t *sizes = bench->options->quick ? quick_sizes : all_sizes;
    int32_t count = bench->options->quick ? 1 : 4;
    gemm g = {.bench = bench, .device = bench->report->device};
    tpucl_status status;
    TP_TRY_GOTO(status, open_openblas(&g), done);
    for (int32_t i = 0; i < count; i++) {
        char what[32];
        g.size = sizes[i];
        snprintf(what, sizeof what, "products of %lld", (long long)g.size);
        tp_bench_progress(bench, what, i, count);
        TP_TRY_GOTO(status, tp_arena_create(0, &g.arena), done);
        status = measure_size(&g);
        release_size(&g);
        tp_arena_destroy(g.arena);
        g.arena = NULL;
        if (status != TPUCL_OK) goto done;
    }
    tp_bench_progress(bench, "products", count, count);
done:
    tp_openblas_close(g.blas);
    return status;
}
