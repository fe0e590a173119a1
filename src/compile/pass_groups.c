/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of groups that are worth a product each: slices of the operands, one convolution a group, and
 * their results side by side. The order of every sum is that of the whole, so no bit changes. Groups with few
 * channels, depthwise convolutions above all, stay together for a kernel that has the channels in its lanes
 * (kernels/mxu/mxu_grouped.cl).
 */
#include "compile/pass.h"

#include "graph/builder.h"
#include "graph/geometry.h"
#include "graph/opdef.h"
#include "graph/rewrite.h"

/* From as many channels in and out on, a group fills half a vector of 16 columns and a product per group is
 * the faster way. */
#define LEAST_CHANNELS 8

static bool find_kind(const tp_node *node, tp_conv_kind *out_kind)
{
    static const char *const names[] = {"convolution", "convolution_input_grad",
                                        "convolution_filter_grad"};
    for (int i = 0; i < 3; i++)
        if (tp_node_is(node, names[i])) {
            *out_kind = (tp_conv_kind)i;
            return true;
        }
    return false;
}

/* A group's channels of an operand: a part of its last axis. */
static tp_node_id part_of(tp_graph *g, tp_node_id x, int64_t group, int64_t groups)
{
    if (x == TP_NO_NODE) return x;
    tp_shape limit = tp_graph_node(g, x)->shape;
    int64_t start[4] = {0};
    const int64_t count = limit.dims[3] / groups;
    start[3] = group * count;
    limit.dims[3] = start[3] + count;
    return tp_op_slice(g, x, start, limit.dims, NULL);
}

static tp_node_id convolve(tp_graph *g, tp_conv_kind kind, const tp_conv_geometry *conv,
                           tp_node_id first, tp_node_id second)
{
    const tp_window window = {
        .strides = {conv->stride_h, conv->stride_w},
        .padding = {conv->pad_top, conv->pad_bottom, conv->pad_left, conv->pad_right},
        .dilation = {conv->dilation_h, conv->dilation_w}};
    const char *precision = tp_precision_name(conv->precision);
    tp_shape result = conv->result;
    result.dims[3] /= conv->groups;
    switch (kind) {
    case TP_CONV_INPUT_GRAD:
        return tp_op_convolution_input_grad(g, first, second, result, &window, precision);
    case TP_CONV_FILTER_GRAD:
        return tp_op_convolution_filter_grad(g, first, second, result, &window, precision);
    case TP_CONV_FORWARD:
    default:
        return tp_op_convolution(g, first, second, &window, precision);
    }
}

static tp_node_id expand(tp_graph *g, tp_conv_kind kind, const tp_conv_geometry *conv,
                         tp_node_id first, tp_node_id second)
{
    tp_node_id *parts = TP_ARENA_NEW_ARRAY(g->arena, tp_node_id, (size_t)conv->groups);
    if (!parts) return tp_graph_keep_error(g);
    for (int64_t i = 0; i < conv->groups && !g->has_failed; i++)
        parts[i] = convolve(g, kind, conv, part_of(g, first, i, conv->groups),
                            part_of(g, second, i, conv->groups));
    return tp_op_concatenate(g, parts, (int32_t)conv->groups, 3);
}

tpucl_status tp_pass_groups(const tp_graph *graph, tp_graph **out_graph)
{
    tp_rewrite *rewrite = NULL;
    TP_TRY(tp_rewrite_begin(graph, &rewrite));
    tp_graph *to = tp_rewrite_graph(rewrite);
    for (tp_node_id id = 0; id < graph->node_count; id++) {
        const tp_node *node = tp_graph_node(graph, id);
        tp_conv_kind kind = TP_CONV_FORWARD;
        tp_conv_geometry conv = {.groups = 1};
        if (!tp_rewrite_is_live(rewrite, id)) continue;
        if (find_kind(node, &kind)) {
            const tpucl_status status =
                tp_conv_geometry_read(node, kind, &tp_graph_node(graph, node->inputs[0])->shape,
                                      &tp_graph_node(graph, node->inputs[1])->shape, &conv);
            if (status != TPUCL_OK) {
                tp_rewrite_cancel(rewrite);
                return status;
            }
        }
        if (conv.groups > 1 && conv.in_c / conv.groups >= LEAST_CHANNELS &&
            conv.out_c / conv.groups >= LEAST_CHANNELS)
            tp_rewrite_map(rewrite, id,
                           expand(to, kind, &conv, tp_rewrite_of(rewrite, node->inputs[0]),
                                  tp_rewrite_of(rewrite, node->inputs[1])));
        else
            tp_rewrite_copy(rewrite, id);
    }
    return tp_rewrite_finish(rewrite, out_graph);
}
