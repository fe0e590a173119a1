/* SPDX-License-Identifier: Apache-2.0
 * See product_check.h. A product is small talk next to what is timed: 32 elements are looked at. */
#include "bench/product_check.h"

#include <string.h>
#include "core/alloc.h"
#include "num/bf16.h"
#include "num/mxu.h"

enum { SAMPLES = 32 };

typedef struct operands {
    const tp_problem_line *line;
    tp_mxu_problem problem;
    float *tensors[3];
} operands;

/* x at an output's tap, +0 in the padding. */
static float image_at(const operands *o, int64_t image, int64_t oy, int64_t ox, int64_t ky,
                      int64_t kx, int64_t channel)
{
    const tp_mxu_conv *c = &o->line->conv;
    const int64_t y = oy * c->stride_h - c->pad_top + ky * c->dilation_h;
    const int64_t x = ox * c->stride_w - c->pad_left + kx * c->dilation_w;
    if (y < 0 || y >= c->in_h || x < 0 || x >= c->in_w) return 0.0f;
    return o->tensors[0][((image * c->in_h + y) * c->in_w + x) * c->in_c + channel];
}

/* dy of the output that reads pixel (iy, ix) by this tap; +0 where none does. */
static float gradient_at(const operands *o, int64_t image, int64_t iy, int64_t ix, int64_t ky,
                         int64_t kx, int64_t channel)
{
    const tp_mxu_conv *c = &o->line->conv;
    const int64_t y = iy + c->pad_top - ky * c->dilation_h;
    const int64_t x = ix + c->pad_left - kx * c->dilation_w;
    if (y < 0 || x < 0 || y % c->stride_h != 0 || x % c->stride_w != 0) return 0.0f;
    if (y / c->stride_h >= c->out_h || x / c->stride_w >= c->out_w) return 0.0f;
    const int64_t row = (image * c->out_h + y / c->stride_h) * c->out_w + x / c->stride_w;
    return o->tensors[0][row * c->out_c + channel];
}

/* A and B of the product's place k for element (m, n). */
static void places(const operands *o, int64_t m, int64_t n, int64_t k, float *out_a, float *out_b)
{
    const tp_mxu_conv *c = &o->line->conv;
    const tp_mxu_problem *p = &o->problem;
    const int64_t in = p->kind == TP_MXU_DOT ? 0 : c->in_c / c->groups;
    const int64_t out = p->kind == TP_MXU_DOT ? 0 : c->out_c / c->groups;
    if (p->kind == TP_MXU_DOT) {
        *out_a = o->tensors[0][m * p->a.stride_outer + k * p->a.stride_inner];
        *out_b = o->tensors[1][n * p->b.stride_outer + k * p->b.stride_inner];
    } else if (p->kind == TP_MXU_CONV) {
        const int64_t tap = k / in, pixel = m % (c->out_h * c->out_w);
        *out_a = image_at(o, m / (c->out_h * c->out_w), pixel / c->out_w, pixel % c->out_w,
                          tap / c->kernel_w, tap % c->kernel_w, n / out * in + k % in);
        *out_b = o->tensors[1][k * c->out_c + n];
    } else if (p->kind == TP_MXU_CONV_INPUT_GRAD) {
        const int64_t tap = k / out, pixel = m % (c->in_h * c->in_w);
        const int64_t filter = n / in * out + k % out;
        *out_a = gradient_at(o, m / (c->in_h * c->in_w), pixel / c->in_w, pixel % c->in_w,
                             tap / c->kernel_w, tap % c->kernel_w, filter);
        *out_b = o->tensors[1][(tap * in + n % in) * c->out_c + filter];
    } else {
        const int64_t tap = m / in, pixel = k % (c->out_h * c->out_w);
        *out_a = image_at(o, k / (c->out_h * c->out_w), pixel / c->out_w, pixel % c->out_w,
                          tap / c->kernel_w, tap % c->kernel_w, n / out * in + m % in);
        *out_b = o->tensors[1][k * c->out_c + n];
    }
}

static float expected(const operands *o, int64_t m, int64_t n)
{
    tp_mxu_dot dot;
    float a, b;
    tp_mxu_dot_begin(&dot, o->problem.precision);
    for (int64_t k = 0; k < o->problem.k; k++) {
        places(o, m, n, k, &a, &b);
        tp_mxu_dot_add(&dot, a, b);
    }
    const float sum = tp_mxu_dot_end(&dot);
    return o->problem.c_dtype == TP_BF16 ? tp_bf16_to_f32(tp_bf16_from_f32(sum)) : sum;
}

static tpucl_status check_samples(const operands *o)
{
    const tp_mxu_problem *p = &o->problem;
    char text[TP_PROBLEM_LINE_BYTES];
    for (int64_t i = 0; i < SAMPLES; i++) {
        const int64_t m = i == 0 ? p->m - 1 : i * 7919 % p->m; /* the last one, then all over */
        const int64_t n = i == 0 ? p->n - 1 : i * 104729 % p->n;
        const float wanted = expected(o, m, n), found = o->tensors[2][m * p->n + n];
        if (memcmp(&wanted, &found, sizeof found) == 0) continue;
        tp_problem_line_print(o->line, text);
        return TP_FAIL(TPUCL_NOT_EXACT, "'%s' gives %.9g at row %lld, column %lld, expected %.9g",
                       text, (double)found, (long long)m, (long long)n, (double)wanted);
    }
    return TPUCL_OK;
}

tpucl_status tp_bench_check_product(const tp_problem_line *line, tp_precision precision,
                                    tp_product_timer *timer)
{
    operands o = {.line = line};
    tpucl_status status = TPUCL_OK;
    tp_problem_line_to_mxu(line, precision, &o.problem);
    for (int32_t i = 0; i < 3; i++) {
        o.tensors[i] = TP_NEW_ARRAY(float, tp_product_timer_elements(timer, i));
        if (!o.tensors[i]) status = TPUCL_OUT_OF_MEMORY;
        if (status != TPUCL_OK) goto done;
        TP_TRY_GOTO(status, tp_product_timer_read_tensor(timer, i, o.tensors[i]), done);
    }
    TP_TRY_GOTO(status, check_samples(&o), done);
done:
    for (int32_t i = 0; i < 3; i++)
        tp_free(o.tensors[i]);
    return status;
}
