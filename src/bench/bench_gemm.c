/* SPDX-License-Identifier: Apache-2.0
 * Square products: tpucl's bf16 and f32 (packing included, every time), CLBlast's and OpenBLAS'
 * f32. Every side's result is compared with the contract's, by bits or within f32 rounding,
 * before it is timed. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "baseline/openblas.h"
#include "bench/bench_internal.h"
#include "bench/cold.h"
#include "core/alloc.h"
#include "device/clblast.h"
#include "num/mxu.h"
#include "tune/product_timer.h"

enum { MAX_SIDES = 5 };

typedef struct gemm {
    tp_bench *bench;
    tp_device *device;
    tp_openblas *blas; /* NULL: not there */
    int64_t size;
    float *a, *b, *c;      /* host: operands of the f32 sides, and what a side gave */
    tp_buffer *buffers[3]; /* CLBlast's */
    tp_product_timer *bf16, *f32;
    tp_cold *cold;
} gemm;

/* ---- the sides ---- */

static tpucl_status run_own(void *user)
{
    double seconds;
    return tp_product_timer_run(user, 1, false, &seconds);
}

static tpucl_status run_clblast(void *user)
{
    gemm *g = user;
    int64_t size = g->size, count = size * size;
    tp_clblast_problem problem = {.batch = 1,
                                  .m = size,
                                  .n = size,
                                  .k = size,
                                  .lda = size,
                                  .ldb = size,
                                  .ldc = size,
                                  .stride_a = count,
                                  .stride_b = count,
                                  .stride_c = count};
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

static tpucl_status prepare_own(gemm *g, tp_precision precision, tp_product_timer **out_timer)
{
    tp_mxu_problem problem;
    tp_product_dot(precision, g->size, g->size, g->size, &problem);
    return tp_product_timer_create(g->device, &problem, NULL, 1, out_timer);
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

static tpucl_status prepare(gemm *g, tp_bench_side *sides, int32_t *out_count)
{
    size_t count = (size_t)(g->size * g->size);
    int32_t n = 0;
    g->a = TP_NEW_ARRAY(float, count);
    g->b = TP_NEW_ARRAY(float, count);
    g->c = TP_NEW_ARRAY(float, count);
    if (!g->a || !g->b || !g->c) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(prepare_own(g, TP_PRECISION_DEFAULT, &g->bf16));
    TP_TRY(prepare_own(g, TP_PRECISION_F32, &g->f32));
    TP_TRY(tp_product_timer_operands(g->f32, g->a, g->b));
    sides[n++] = (tp_bench_side){.name = "tpucl bf16",
                                 .run = run_own,
                                 .user = g->bf16,
                                 .note = tp_product_timer_plan(g->bf16)->variant};
    sides[n++] = (tp_bench_side){.name = "tpucl bf16, cold",
                                 .run = run_own,
                                 .user = g->bf16,
                                 .before = tp_cold_sweep,
                                 .before_user = g->cold,
                                 .note = tp_product_timer_plan(g->bf16)->variant};
    sides[n++] = (tp_bench_side){.name = "tpucl f32",
                                 .run = run_own,
                                 .user = g->f32,
                                 .note = tp_product_timer_plan(g->f32)->variant};
    if (tp_clblast_is_available()) {
        TP_TRY(prepare_clblast(g));
        sides[n++] = (tp_bench_side){.name = "clblast f32", .run = run_clblast, .user = g};
    }
    if (g->blas)
        sides[n++] = (tp_bench_side){.name = "openblas f32",
                                     .run = run_openblas,
                                     .user = g,
                                     .note = tp_openblas_core(g->blas)};
    for (int32_t i = 0; i < n; i++)
        sides[i].work = 2e-9 * (double)g->size * (double)g->size * (double)g->size;
    *out_count = n;
    return TPUCL_OK;
}

static void release(gemm *g)
{
    tp_product_timer_destroy(g->bf16);
    tp_product_timer_destroy(g->f32);
    g->bf16 = g->f32 = NULL;
    for (int32_t i = 0; i < 3; i++) {
        tp_buffer_release(g->buffers[i]);
        g->buffers[i] = NULL;
    }
    tp_free(g->a);
    tp_free(g->b);
    tp_free(g->c);
    g->a = g->b = g->c = NULL;
}

/* ---- checking ---- */

/* The contract's element from the operands in a and b. */
static float expected(const float *a, const float *b, int64_t size, tp_precision precision,
                      int64_t row, int64_t column)
{
    tp_mxu_dot dot;
    tp_mxu_dot_begin(&dot, precision);
    for (int64_t k = 0; k < size; k++)
        tp_mxu_dot_add(&dot, a[row * size + k], b[k * size + column]);
    return tp_mxu_dot_end(&dot);
}

/* Compares some elements of g->c. Not exact: k terms below 1 have partial sums of about sqrt(k),
 * each rounded to 2^-24 of that, whatever the order. */
static tpucl_status check(const gemm *g, const char *side, const float *a, const float *b,
                          tp_precision precision, bool is_exact)
{
    enum { SAMPLES = 64 };
    double size = (double)g->size;
    double slack = is_exact ? 0 : size * sqrt(size) * 0x1p-24;
    for (int64_t i = 0; i < SAMPLES; i++) {
        int64_t row = i * 7919 % g->size, column = i * 104729 % g->size;
        float wanted = expected(a, b, g->size, precision, row, column);
        float found = g->c[row * g->size + column];
        if (fabs((double)wanted - (double)found) <= slack) continue;
        return TP_FAIL(TPUCL_NOT_EXACT,
                       "%s gives %.9g at row %lld, column %lld of a product of size %lld, "
                       "expected %.9g",
                       side, (double)found, (long long)row, (long long)column, (long long)g->size,
                       (double)wanted);
    }
    return TPUCL_OK;
}

static tpucl_status check_own(gemm *g, tp_product_timer *timer, const char *side,
                              tp_precision precision)
{
    size_t count = (size_t)(g->size * g->size);
    float *a = TP_NEW_ARRAY(float, count), *b = TP_NEW_ARRAY(float, count);
    tpucl_status status = a && b ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = run_own(timer);
    if (status == TPUCL_OK) status = tp_product_timer_operands(timer, a, b);
    if (status == TPUCL_OK) status = tp_product_timer_read(timer, g->c);
    if (status == TPUCL_OK) status = check(g, side, a, b, precision, true);
    tp_free(a);
    tp_free(b);
    return status;
}

static tpucl_status check_all(gemm *g)
{
    size_t bytes = (size_t)(g->size * g->size) * sizeof(float);
    TP_TRY(check_own(g, g->bf16, "tpucl bf16", TP_PRECISION_DEFAULT));
    TP_TRY(check_own(g, g->f32, "tpucl f32", TP_PRECISION_F32));
    if (g->buffers[2]) {
        TP_TRY(run_clblast(g));
        TP_TRY(tp_buffer_read(g->buffers[2], 0, g->c, bytes));
        TP_TRY(check(g, "CLBlast", g->a, g->b, TP_PRECISION_F32, false));
    }
    if (g->blas) {
        memset(g->c, 0, bytes);
        TP_TRY(run_openblas(g));
        TP_TRY(check(g, "OpenBLAS", g->a, g->b, TP_PRECISION_F32, false));
    }
    return TPUCL_OK;
}

/* ---- a size ---- */

static tpucl_status add_rows(gemm *g, const tp_bench_side *sides, int32_t count)
{
    const tp_roofline *roofline;
    const double elements = (double)(g->size * g->size);
    char name[64];
    TP_TRY(tp_bench_get_roofline(g->bench, &roofline));
    snprintf(name, sizeof name, "%lld x %lld x %lld", (long long)g->size, (long long)g->size,
             (long long)g->size);
    for (int32_t i = 0; i < count; i++) {
        const bool is_bf16 = strstr(sides[i].name, "bf16") != NULL;
        const double least = tp_roofline_seconds(roofline, 1e9 * sides[i].work,
                                                 elements * (is_bf16 ? 8 : 12), is_bf16);
        tp_bench_row row = {.name = name,
                            .side = sides[i].name,
                            .seconds = sides[i].seconds,
                            .spread = sides[i].spread,
                            .value = sides[i].work / sides[i].seconds,
                            .unit = "GFLOP/s",
                            .share = least / sides[i].seconds,
                            .note = sides[i].note};
        TP_TRY(tp_bench_add_row(g->bench, &row));
    }
    for (int32_t i = 1; i < count; i++) /* of ours in bf16 to the others */
        TP_TRY(tp_bench_add_ratio(g->bench, sides[i].seconds / sides[0].seconds, "%s / %s, %lld",
                                  sides[0].name, sides[i].name, (long long)g->size));
    return TPUCL_OK;
}

static tpucl_status measure_size(gemm *g)
{
    tp_bench_side sides[MAX_SIDES];
    int32_t count;
    TP_TRY(prepare(g, sides, &count));
    TP_TRY(check_all(g));
    TP_TRY(tp_bench_measure(sides, count, g->bench->options->quick ? 0 : 0.3));
    TP_TRY(add_rows(g, sides, count));
    return TPUCL_OK;
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
    tpucl_status status = open_openblas(&g);
    if (status == TPUCL_OK) status = tp_cold_create(g.device, &g.cold);
    for (int32_t i = 0; i < count && status == TPUCL_OK; i++) {
        char what[32];
        g.size = sizes[i];
        snprintf(what, sizeof what, "products of %lld", (long long)g.size);
        tp_bench_progress(bench, what, i, count);
        status = measure_size(&g);
        release(&g);
    }
    tp_bench_progress(bench, "products", count, count);
    tp_cold_destroy(g.cold);
    tp_openblas_close(g.blas);
    return status;
}
