/* SPDX-License-Identifier: Apache-2.0
 * Convolutions that are plain products. */
#include "kernel/mxu.h"

/* A filter of one tap that visits each pixel once, in order: patches are the pixels themselves. */
static bool is_pointwise(const tp_mxu_conv *c)
{
    return tp_mxu_groups(c) == 1 && c->kernel_h == 1 && c->kernel_w == 1 && c->stride_h == 1 &&
           c->stride_w == 1 && c->pad_top == 0 && c->pad_left == 0 && c->in_h == c->out_h &&
           c->in_w == c->out_w;
}

static void set_strides(tp_mxu_operand *operand, int64_t outer, int64_t inner)
{
    operand->stride_batch = 0;
    operand->stride_outer = outer;
    operand->stride_inner = inner;
}

tp_mxu_problem tp_mxu_simplify(const tp_mxu_problem *problem)
{
    tp_mxu_problem plain = *problem;
    const tp_mxu_conv *c = &problem->conv;
    if (problem->kind == TP_MXU_DOT || !is_pointwise(c)) return plain;
    plain.kind = TP_MXU_DOT;
    plain.conv = (tp_mxu_conv){0};
    switch (problem->kind) {
    case TP_MXU_CONV: /* x[pixel][ci] w[ci][co] */
        set_strides(&plain.a, c->in_c, 1);
        set_strides(&plain.b, 1, c->out_c);
        break;
    case TP_MXU_CONV_INPUT_GRAD: /* dy[pixel][co] w[ci][co] */
        set_strides(&plain.a, c->out_c, 1);
        set_strides(&plain.b, c->out_c, 1);
        break;
    default: /* x[pixel][ci] dy[pixel][co], over pixels */
        set_strides(&plain.a, 1, c->in_c);
        set_strides(&plain.b, 1, c->out_c);
        break;
    }
    return plain;
}
