/* SPDX-License-Identifier: Apache-2.0
 * The MXU's product on the host: see mxu.h. The matrix form works on strips of columns, so that the
 * fused multiply-adds of one k run side by side; each output still sees its own additions in the
 * contract's order.
 */
#include "num/mxu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "num/shape.h"

static const struct {
    const char *name;
    int passes;
    tp_mxu_pass parts[6];
} table[TP_PRECISION_COUNT] = {
    [TP_PRECISION_DEFAULT] = {"default", 1, {{0, 0}}},
    [TP_PRECISION_HIGH] = {"high", 3, {{1, 0}, {0, 1}, {0, 0}}},
    [TP_PRECISION_HIGHEST] = {"highest", 6, {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}}},
    [TP_PRECISION_F32] = {"f32", 1, {{0, 0}}},
};

const char *tp_precision_name(tp_precision precision)
{
    return (unsigned)precision < TP_PRECISION_COUNT ? table[precision].name : "invalid";
}

tpucl_status tp_precision_parse(const char *name, tp_precision *out_precision)
{
    for (int i = 0; i < TP_PRECISION_COUNT; i++) {
        if (strcmp(name, table[i].name) == 0) {
            *out_precision = (tp_precision)i;
            return TPUCL_OK;
        }
    }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "'%.32s' is no precision, expected default, high, highest or f32", name);
}

int tp_precision_passes(tp_precision precision)
{
    return table[precision].passes;
}

tp_mxu_pass tp_mxu_pass_parts(tp_precision precision, int pass)
{
    return table[precision].parts[pass];
}

float tp_mxu_part(float x, int part)
{
    float value = tp_bf16_round(x);
    for (int i = 0; i < part; i++) {
        x = x - value; /* exact: the difference has fewer bits than x */
        value = tp_bf16_round(x);
    }
    return value;
}

static float operand(tp_precision precision, float x, int part)
{
    return precision == TP_PRECISION_F32 ? x : tp_mxu_part(x, part);
}

/* Puts a finished chunk to its block. */
static void close_chunk(tp_mxu_sum *sum)
{
    sum->block = sum->in_block <= TP_MXU_CHUNK ? sum->chunk : sum->block + sum->chunk;
    sum->chunk = 0.0f;
}

static void close_block(tp_mxu_sum *sum)
{
    tp_tree_push(&sum->blocks, TP_REDUCE_ADD, sum->block);
    sum->in_block = 0;
}

void tp_mxu_sum_begin(tp_mxu_sum *sum)
{
    sum->in_block = 0;
    sum->chunk = 0.0f;
    sum->block = 0.0f;
    tp_tree_begin(&sum->blocks);
}

void tp_mxu_sum_add(tp_mxu_sum *sum, float a, float b)
{
    sum->chunk = fmaf(a, b, sum->chunk);
    sum->in_block++;
    if (sum->in_block % TP_MXU_CHUNK == 0) close_chunk(sum);
    if (sum->in_block == TP_MXU_BLOCK) close_block(sum);
}

float tp_mxu_sum_end(tp_mxu_sum *sum)
{
    if (sum->in_block % TP_MXU_CHUNK != 0) close_chunk(sum);
    if (sum->in_block != 0) close_block(sum);
    return tp_tree_end(&sum->blocks, TP_REDUCE_ADD);
}

void tp_mxu_dot_begin(tp_mxu_dot *dot, tp_precision precision)
{
    dot->precision = precision;
    for (int i = 0; i < table[precision].passes; i++)
        tp_mxu_sum_begin(&dot->pass[i]);
}

void tp_mxu_dot_add(tp_mxu_dot *dot, float a, float b)
{
    const tp_precision precision = dot->precision;
    for (int i = 0; i < table[precision].passes; i++) {
        const tp_mxu_pass parts = table[precision].parts[i];
        tp_mxu_sum_add(&dot->pass[i], operand(precision, a, parts.a_part),
                       operand(precision, b, parts.b_part));
    }
}

float tp_mxu_dot_end(tp_mxu_dot *dot)
{
    float sum = tp_mxu_sum_end(&dot->pass[0]);
    for (int i = 1; i < table[dot->precision].passes; i++)
        sum = sum + tp_mxu_sum_end(&dot->pass[i]);
    return tp_flush(sum);
}

#define STRIP 64

/* `width` <= STRIP outputs of one row: a[k], b[k, stride n]. */
static inline __attribute__((always_inline)) void
strip_body(int64_t n, int64_t k, int width, const float *a, const float *b, float *out)
{
    float level[40][STRIP];
    float block[STRIP] = {0.0f};
    uint64_t blocks = 0;
    for (int64_t start = 0; start < k; start += TP_MXU_CHUNK) {
        float chunk[STRIP] = {0.0f};
        const int64_t end = start + TP_MXU_CHUNK < k ? start + TP_MXU_CHUNK : k;
        for (int64_t i = start; i < end; i++) {
            const float *row = b + i * n;
            const float factor = a[i];
            if (width == STRIP)
                for (int j = 0; j < STRIP; j++)
                    chunk[j] = fmaf(factor, row[j], chunk[j]);
            else
                for (int j = 0; j < width; j++)
                    chunk[j] = fmaf(factor, row[j], chunk[j]);
        }
        if (start % TP_MXU_BLOCK == 0)
            for (int j = 0; j < STRIP; j++)
                block[j] = chunk[j];
        else
            for (int j = 0; j < STRIP; j++)
                block[j] = block[j] + chunk[j];
        if (end % TP_MXU_BLOCK == 0 || end == k) { /* tp_tree_push, a strip at a time */
            int at = 0;
            for (; (blocks >> at) & 1; at++)
                for (int j = 0; j < STRIP; j++)
                    block[j] = level[at][j] + block[j];
            for (int j = 0; j < STRIP; j++)
                level[at][j] = block[j];
            blocks++;
        }
    }
    float sum[STRIP] = {0.0f};
    bool first = true;
    for (int at = 0; (blocks >> at) != 0; at++) { /* tp_tree_end */
        if (((blocks >> at) & 1) == 0) continue;
        for (int j = 0; j < STRIP; j++)
            sum[j] = first ? level[at][j] : level[at][j] + sum[j];
        first = false;
    }
    for (int j = 0; j < width; j++)
        out[j] = sum[j];
}

static void strip_plain(int64_t n, int64_t k, int width, const float *a, const float *b, float *out)
{
    strip_body(n, k, width, a, b, out);
}

#if defined(__x86_64__)
#if defined(__clang__) /* vectorises at O2 and has no such attribute */
#define OPTIMIZE_O3
#else
#define OPTIMIZE_O3 __attribute__((optimize("O3")))
#endif
/* The same, for processors with a fused multiply-add instruction; without it fmaf is a call. */
__attribute__((target("avx2,fma"))) OPTIMIZE_O3 static void
strip_fused(int64_t n, int64_t k, int width, const float *a, const float *b, float *out)
{
    strip_body(n, k, width, a, b, out);
}
#endif

typedef void (*strip_function)(int64_t, int64_t, int, const float *, const float *, float *);

static strip_function choose_strip(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2")) return strip_fused;
#endif
    return strip_plain;
}

/* c (or c + the product, from the second pass on) for operands that are split already. */
static void matmul_pass(int64_t m, int64_t n, int64_t k, const float *a, const float *b, bool add,
                        float *c)
{
    const strip_function strip = choose_strip();
    float out[STRIP];
    for (int64_t column = 0; column < n; column += STRIP) {
        const int width = (int)(n - column < STRIP ? n - column : STRIP);
        for (int64_t row = 0; row < m; row++) {
            float *target = c + row * n + column;
            strip(n, k, width, a + row * k, b + column, out);
            for (int j = 0; j < width; j++)
                target[j] = add ? target[j] + out[j] : out[j];
        }
    }
}

tpucl_status tp_mxu_matmul(tp_precision precision, int64_t m, int64_t n, int64_t k, const float *a,
                           const float *b, float *c)
{
    tpucl_status status = TPUCL_OK;
    float *part_a = NULL, *part_b = NULL;
    if (precision == TP_PRECISION_F32) {
        matmul_pass(m, n, k, a, b, false, c);
    } else {
        part_a = malloc(((size_t)(m * k) + 1) * sizeof *part_a);
        part_b = malloc(((size_t)(k * n) + 1) * sizeof *part_b);
        if (part_a == NULL || part_b == NULL) {
            status = TP_FAIL(TPUCL_OUT_OF_MEMORY,
                             "no memory for the parts of a %lld x %lld x %lld product",
                             (long long)m, (long long)n, (long long)k);
            goto done;
        }
        for (int i = 0; i < table[precision].passes; i++) {
            const tp_mxu_pass parts = table[precision].parts[i];
            for (int64_t at = 0; at < m * k; at++)
                part_a[at] = tp_mxu_part(a[at], parts.a_part);
            for (int64_t at = 0; at < k * n; at++)
                part_b[at] = tp_mxu_part(b[at], parts.b_part);
            matmul_pass(m, n, k, part_a, part_b, i > 0, c);
        }
    }
    for (int64_t i = 0; i < m * n; i++)
        c[i] = tp_flush(c[i]);
done:
    free(part_a);
    free(part_b);
    return status;
}
