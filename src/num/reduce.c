/* SPDX-License-Identifier: Apache-2.0
 * The VPU's reduction on the host: see reduce.h.
 */
#include "num/reduce.h"

static void clear_lanes(tp_vpu_reduction *reduction)
{
    const float identity = tp_reduce_identity(reduction->op);
    for (int i = 0; i < TP_VPU_LANES; i++)
        reduction->lane[i] = identity;
    reduction->in_block = 0;
}

static void close_block(tp_vpu_reduction *reduction)
{
    float *lane = reduction->lane;
    for (int half = TP_VPU_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            lane[i] = tp_reduce_apply(reduction->op, lane[i], lane[i + half]);
    tp_tree_push(&reduction->blocks, reduction->op, lane[0]);
    clear_lanes(reduction);
}

void tp_vpu_reduction_begin(tp_vpu_reduction *reduction, tp_reduce_op op)
{
    reduction->op = op;
    tp_tree_begin(&reduction->blocks);
    clear_lanes(reduction);
}

void tp_vpu_reduction_add(tp_vpu_reduction *reduction, float element)
{
    float *lane = &reduction->lane[reduction->in_block % TP_VPU_LANES];
    *lane = tp_reduce_apply(reduction->op, *lane, element);
    if (++reduction->in_block == TP_VPU_BLOCK) close_block(reduction);
}

float tp_vpu_reduction_end(tp_vpu_reduction *reduction)
{
    if (reduction->in_block > 0) close_block(reduction);
    return tp_flush(tp_tree_end(&reduction->blocks, reduction->op));
}

float tp_vpu_reduce(tp_reduce_op op, const float *elements, int64_t n, int64_t stride)
{
    tp_vpu_reduction reduction;
    tp_vpu_reduction_begin(&reduction, op);
    for (int64_t i = 0; i < n; i++)
        tp_vpu_reduction_add(&reduction, elements[i * stride]);
    return tp_vpu_reduction_end(&reduction);
}
