/* SPDX-License-Identifier: Apache-2.0
 * Gradients of the ops that move elements. */
#include <criterion/criterion.h>

#include "harness/gradcheck.h"

/* Squares, so that the gradient depends on where an element went. */
static tp_node_id square(tp_graph *g, tp_node_id a)
{
    return tp_op_multiply(g, a, a);
}

static tp_node_id build_broadcast(tp_graph *g, const tp_node_id *in)
{
    const int64_t axes[] = {0, 2};
    return square(g, tp_op_broadcast_in_dim(g, in[0], (tp_shape){3, {2, 3, 4}}, axes));
}
Test(op_shape_gradient, broadcast_in_dim)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_broadcast, .shapes = {"[2,1]"}});
}

static tp_node_id build_reshape(tp_graph *g, const tp_node_id *in)
{
    return square(g, tp_op_reshape(g, in[0], (tp_shape){3, {3, 1, 4}}));
}
Test(op_shape_gradient, reshape)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_reshape, .shapes = {"[2,6]"}});
}

static tp_node_id build_transpose(tp_graph *g, const tp_node_id *in)
{
    const int64_t axes[] = {2, 0, 1};
    return square(g, tp_op_transpose(g, in[0], axes));
}
Test(op_shape_gradient, transpose)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_transpose, .shapes = {"[2,3,4]"}});
}

static tp_node_id build_reverse(tp_graph *g, const tp_node_id *in)
{
    const int64_t axes[] = {1};
    return tp_op_multiply(g, in[0], tp_op_reverse(g, in[0], axes, 1));
}
Test(op_shape_gradient, reverse)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_reverse, .shapes = {"[2,5]"}});
}

static tp_node_id build_slice(tp_graph *g, const tp_node_id *in)
{
    const int64_t start[] = {1, 0}, limit[] = {3, 6}, strides[] = {1, 4};
    return square(g, tp_op_slice(g, in[0], start, limit, strides));
}
Test(op_shape_gradient, slice)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_slice, .shapes = {"[4,7]"}});
}

static tp_node_id build_pad(tp_graph *g, const tp_node_id *in)
{
    const int64_t low[] = {1, -2}, high[] = {-1, 3}, interior[] = {2, 1};
    return square(g, tp_op_pad(g, in[0], in[1], low, high, interior));
}
Test(op_shape_gradient, pad)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_pad, .shapes = {"[3,4]", "[]"}});
}

static tp_node_id build_concatenate(tp_graph *g, const tp_node_id *in)
{
    return square(g, tp_op_concatenate(g, in, 3, 1));
}
Test(op_shape_gradient, concatenate)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_concatenate,
                                     .shapes = {"[2,1,2]", "[2,3,2]", "[2,2,2]"}});
}

/* More parts than a node takes: chained. */
static tp_node_id build_concatenate_many(tp_graph *g, const tp_node_id *in)
{
    tp_node_id parts[19];
    for (int i = 0; i < 19; ++i)
        parts[i] = i % 3 ? in[0] : in[1];
    return square(g, tp_op_concatenate(g, parts, 19, 0));
}
Test(op_shape_gradient, concatenate_many)
{
    tp_gradcheck((tp_gradcheck_case){.build = build_concatenate_many, .shapes = {"[2]", "[3]"}});
}
