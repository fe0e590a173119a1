/* SPDX-License-Identifier: Apache-2.0
 * See mxu_cases.h. Expected results are computed by gathering both operands into dense matrices, by
 * the formulas of mxu.h and with none of the kernels' short cuts, and multiplying those with
 * num/mxu.h.
 */
#include "kernel/mxu_cases.h"

#include <math.h>
#include <string.h>
#include "core/alloc.h"
#include "num/bf16.h"
#include "num/mxu.h"

static int64_t out_extent(int64_t in, int64_t pads, int64_t kernel, int64_t dilation,
                          int64_t stride)
{
    return (in + pads - ((kernel - 1) * dilation + 1)) / stride + 1;
}

static void lay_out(tp_mxu_operand *operand, tp_mxu_layout layout, int64_t rows, int64_t columns,
                    bool outer_is_row)
{
    const int64_t along = layout == TP_MXU_GAPS ? 2 : 1;
    int64_t row = layout == TP_MXU_COLUMNS ? 1 : columns * along + (layout == TP_MXU_GAPS ? 3 : 0);
    const int64_t column = layout == TP_MXU_COLUMNS ? rows : along;
    operand->stride_batch = layout == TP_MXU_COLUMNS ? rows * columns : rows * row;
    operand->stride_outer = outer_is_row ? row : column;
    operand->stride_inner = outer_is_row ? column : row;
}

static void extents_of_convolution(tp_mxu_problem *problem)
{
    const tp_mxu_conv *c = &problem->conv;
    const int64_t taps = c->kernel_h * c->kernel_w;
    const int64_t own_in = c->in_c / tp_mxu_groups(c), own_out = c->out_c / tp_mxu_groups(c);
    problem->batch = 1;
    if (problem->kind == TP_MXU_CONV) {
        problem->m = c->images * c->out_h * c->out_w;
        problem->n = c->out_c;
        problem->k = taps * own_in;
    } else if (problem->kind == TP_MXU_CONV_INPUT_GRAD) {
        problem->m = c->images * c->in_h * c->in_w;
        problem->n = c->in_c;
        problem->k = taps * own_out;
    } else {
        problem->m = taps * own_in;
        problem->n = c->out_c;
        problem->k = c->images * c->out_h * c->out_w;
    }
}

tpucl_status tp_mxu_case_problem(const tp_mxu_case *row, tp_arena *arena,
                                 tp_mxu_problem *out_problem)
{
    *out_problem = (tp_mxu_problem){
        .kind = row->kind,
        .precision = row->precision,
        .batch = row->batch == 0 ? 1 : row->batch,
        .m = row->m,
        .n = row->n,
        .k = row->k,
        .a = {.dtype = row->a_dtype, .is_replicated = row->a_is_replicated},
        .b = {.dtype = row->b_dtype, .is_replicated = row->b_is_replicated},
        .conv = row->conv,
        .c_dtype = row->c_dtype,
        .c_is_replicated = row->c_is_replicated,
        .a_tensor = 0,
        .b_tensor = 1,
        .c_tensor = 2,
        .most_cores = row->sums_cores ? row->cores : 0,
        .sum_tensor = 2,
        .label = row->name,
    };
    if (row->kind == TP_MXU_DOT) {
        lay_out(&out_problem->a, row->a_layout, row->m, row->k, true);
        lay_out(&out_problem->b, row->b_layout, row->k, row->n, false);
    } else {
        tp_mxu_conv *c = &out_problem->conv;
        c->out_h = out_extent(c->in_h, c->pad_top + row->pad_bottom, c->kernel_h, c->dilation_h,
                              c->stride_h);
        c->out_w = out_extent(c->in_w, c->pad_left + row->pad_right, c->kernel_w, c->dilation_w,
                              c->stride_w);
        extents_of_convolution(out_problem);
    }
    return tp_mxu_plain_epilogue(out_problem, arena);
}

int64_t tp_mxu_case_elements(const tp_mxu_problem *problem, int32_t tensor)
{
    const tp_mxu_conv *c = &problem->conv;
    if (tensor == 2) return problem->batch * problem->m * problem->n;
    if (problem->kind == TP_MXU_DOT) {
        const tp_mxu_operand *operand = tensor == 0 ? &problem->a : &problem->b;
        return problem->batch * operand->stride_batch;
    }
    const bool is_filter = tensor == 1 && problem->kind != TP_MXU_CONV_FILTER_GRAD;
    if (is_filter) return c->kernel_h * c->kernel_w * (c->in_c / tp_mxu_groups(c)) * c->out_c;
    const bool is_input = tensor == 0 && problem->kind != TP_MXU_CONV_INPUT_GRAD;
    return is_input ? c->images * c->in_h * c->in_w * c->in_c
                    : c->images * c->out_h * c->out_w * c->out_c;
}

/* ---- operands ---- */

/* Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014), the mixer of
 * SplitMix64. */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static float make_value(tp_mxu_fill fill, int32_t tensor, uint64_t random)
{
    const float fraction = 1.0f + (float)(random & 0x7fffff) / 8388608.0f;
    const float sign = (random >> 23) & 1 ? -1.0f : 1.0f;
    const int spread = (int)((random >> 24) & 7);
    const unsigned odd = (unsigned)(random >> 32) % 64;
    switch (fill) {
    case TP_MXU_FILL_NONFINITE:
        if (odd == 0) return NAN;
        if (odd == 1) return sign * INFINITY;
        return sign * ldexpf(fraction, spread - 4);
    case TP_MXU_FILL_HUGE:
        return sign * ldexpf(fraction, odd < 4 ? 127 : odd < 32 ? spread : 60 + spread);
    case TP_MXU_FILL_TINY:
        return sign * ldexpf(fraction, odd < 4 ? -130 : -63 - spread / 2);
    case TP_MXU_FILL_VANISHING:
        return ldexpf(tensor == 0 ? -fraction : fraction, -100);
    case TP_MXU_FILL_BORDER:
        return sign * ldexpf(fraction, spread % 2 - 56);
    case TP_MXU_FILL_BEYOND:
        return sign * ldexpf(fraction, spread % 2 - (tensor == 0 ? 56 : 57));
    case TP_MXU_FILL_ORDINARY:
    default:
        return sign * ldexpf(fraction, spread - 4);
    }
}

void tp_mxu_case_fill(const tp_mxu_case *row, const tp_mxu_problem *problem, int32_t tensor,
                      int32_t core, void *out_elements)
{
    const tp_mxu_operand *operand = tensor == 0 ? &problem->a : &problem->b;
    const int64_t count = tp_mxu_case_elements(problem, tensor);
    const uint64_t seed =
        mix(((uint64_t)tensor << 32) + (operand->is_replicated ? 0 : (uint64_t)core));
    const tp_mxu_layout layout = tensor == 0 ? row->a_layout : row->b_layout;
    const int64_t stride_row = tensor == 0 ? operand->stride_outer : operand->stride_inner;
    const int64_t columns = tensor == 0 ? problem->k : problem->n;
    for (int64_t i = 0; i < count; i++) {
        float value = make_value(row->fill, tensor, mix(seed + (uint64_t)i));
        if (problem->kind == TP_MXU_DOT && layout == TP_MXU_GAPS &&
            (i % stride_row % 2 != 0 || i % stride_row >= 2 * columns))
            value = NAN;
        if (operand->dtype == TP_BF16)
            ((uint16_t *)out_elements)[i] = tp_bf16_from_f32(value);
        else
            ((float *)out_elements)[i] = value;
    }
}

/* ---- the result ---- */

static float element(const tp_mxu_operand *operand, const void *elements, int64_t index)
{
    return operand->dtype == TP_BF16 ? tp_bf16_to_f32(((const uint16_t *)elements)[index])
                                     : ((const float *)elements)[index];
}

/* dense[m][k] of an operand with strides. */
static void gather_array(const tp_mxu_problem *p, const void *a, int64_t z, float *dense)
{
    for (int64_t m = 0; m < p->m; m++)
        for (int64_t k = 0; k < p->k; k++)
            dense[m * p->k + k] = element(
                &p->a, a, z * p->a.stride_batch + m * p->a.stride_outer + k * p->a.stride_inner);
}

/* One tap of one output pixel, and the input pixel that it lies on. */
typedef struct meeting {
    int64_t image, oy, ox, ky, kx, iy, ix;
} meeting;

static void put_meeting(const tp_mxu_problem *p, const void *a, int64_t group, const meeting *at,
                        float *dense)
{
    const tp_mxu_conv *c = &p->conv;
    const int64_t own_in = c->in_c / tp_mxu_groups(c), own_out = c->out_c / tp_mxu_groups(c);
    const int64_t in_pixel = (at->image * c->in_h + at->iy) * c->in_w + at->ix;
    const int64_t out_pixel = (at->image * c->out_h + at->oy) * c->out_w + at->ox;
    const int64_t tap = at->ky * c->kernel_w + at->kx;
    if (p->kind == TP_MXU_CONV_INPUT_GRAD) {
        for (int64_t co = 0; co < own_out; co++)
            dense[in_pixel * p->k + tap * own_out + co] =
                element(&p->a, a, out_pixel * c->out_c + group * own_out + co);
        return;
    }
    for (int64_t ci = 0; ci < own_in; ci++) {
        const float value = element(&p->a, a, in_pixel * c->in_c + group * own_in + ci);
        if (p->kind == TP_MXU_CONV)
            dense[out_pixel * p->k + tap * own_in + ci] = value;
        else
            dense[(tap * own_in + ci) * p->k + out_pixel] = value;
    }
}

/* The same for a convolution: goes through the forward convolution's taps, whichever product is
 * wanted, and leaves +0 where no tap falls. */
static void gather_patches(const tp_mxu_problem *p, const void *a, int64_t group, float *dense)
{
    const tp_mxu_conv *c = &p->conv;
    const int64_t taps = c->images * c->out_h * c->out_w * c->kernel_h * c->kernel_w;
    memset(dense, 0, (size_t)(p->m * p->k) * sizeof *dense);
    for (int64_t i = 0; i < taps; i++) {
        meeting at = {.kx = i % c->kernel_w, .ky = i / c->kernel_w % c->kernel_h};
        const int64_t pixel = i / c->kernel_w / c->kernel_h;
        at.ox = pixel % c->out_w;
        at.oy = pixel / c->out_w % c->out_h;
        at.image = pixel / c->out_w / c->out_h;
        at.iy = at.oy * c->stride_h - c->pad_top + at.ky * c->dilation_h;
        at.ix = at.ox * c->stride_w - c->pad_left + at.kx * c->dilation_w;
        if (at.iy >= 0 && at.iy < c->in_h && at.ix >= 0 && at.ix < c->in_w)
            put_meeting(p, a, group, &at, dense);
    }
}

/* z is a batch entry or a group; n counts within it. */
static int64_t index_b(const tp_mxu_problem *p, int64_t z, int64_t k, int64_t n)
{
    const tp_mxu_conv *c = &p->conv;
    if (p->kind == TP_MXU_DOT)
        return z * p->b.stride_batch + n * p->b.stride_outer + k * p->b.stride_inner;
    const int64_t own_in = c->in_c / tp_mxu_groups(c), own_out = c->out_c / tp_mxu_groups(c);
    if (p->kind != TP_MXU_CONV_INPUT_GRAD) return k * c->out_c + z * own_out + n;
    return (k / own_out * own_in + n) * c->out_c + z * own_out + k % own_out;
}

tpucl_status tp_mxu_case_expect(const tp_mxu_problem *problem, const void *a, const void *b,
                                void *out_c)
{
    const bool is_dot = problem->kind == TP_MXU_DOT;
    const int64_t parts = is_dot ? problem->batch : tp_mxu_groups(&problem->conv);
    const int64_t m = problem->m, n = is_dot ? problem->n : problem->n / parts, k = problem->k;
    tpucl_status status = TPUCL_OK;
    float *dense_a = tp_alloc_array((size_t)(m * k), sizeof *dense_a);
    float *dense_b = tp_alloc_array((size_t)(k * n), sizeof *dense_b);
    float *dense_c = tp_alloc_array((size_t)(m * n), sizeof *dense_c);
    if (dense_a == NULL || dense_b == NULL || dense_c == NULL) {
        status = TPUCL_OUT_OF_MEMORY;
        goto done;
    }
    for (int64_t z = 0; z < parts; z++) {
        if (is_dot)
            gather_array(problem, a, z, dense_a);
        else
            gather_patches(problem, a, z, dense_a);
        for (int64_t i = 0; i < k * n; i++)
            dense_b[i] = element(&problem->b, b, index_b(problem, z, i / n, i % n));
        TP_TRY_GOTO(status, tp_mxu_matmul(problem->precision, m, n, k, dense_a, dense_b, dense_c),
                    done);
        for (int64_t i = 0; i < m * n; i++) {
            const int64_t at = is_dot ? z * m * n + i : i / n * problem->n + z * n + i % n;
            if (problem->c_dtype == TP_BF16)
                ((uint16_t *)out_c)[at] = tp_bf16_from_f32(dense_c[i]);
            else
                ((float *)out_c)[at] = dense_c[i];
        }
    }
done:
    tp_free(dense_a);
    tp_free(dense_b);
    tp_free(dense_c);
    return status;
}

int64_t tp_mxu_case_compare(tp_dtype dtype, const void *expected, const void *found, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t left, right, infinity = 0x7f800000u;
        if (dtype == TP_BF16) {
            left = ((const uint16_t *)expected)[i];
            right = ((const uint16_t *)found)[i];
            infinity >>= 16;
        } else {
            memcpy(&left, (const char *)expected + 4 * i, sizeof left);
            memcpy(&right, (const char *)found + 4 * i, sizeof right);
        }
        const uint32_t magnitude = dtype == TP_BF16 ? 0x7fffu : 0x7fffffffu;
        const bool both_nan = (left & magnitude) > infinity && (right & magnitude) > infinity;
        if (left != right && !both_nan) return i;
    }
    return -1;
}
