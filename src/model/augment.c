/* SPDX-License-Identifier: Apache-2.0
 * Augmentation on the device: one gather for window and flips, then element-wise work that joins whatever
 * reads it. */
#include "model/augment.h"

typedef struct builder {
    tp_graph *graph;
    const tp_augment *augment;
    tp_shape in, out; /* with the batch in front */
} builder;

static tp_shape each(const builder *b)
{
    return (tp_shape){.rank = 1, .dims = {b->in.dims[0]}};
}

/* f32 [batch, 1, 1, 1] of f32 [batch] */
static tp_node_id thin(const builder *b, tp_node_id x)
{
    return tp_op_reshape(b->graph, x, (tp_shape){.rank = 4, .dims = {b->in.dims[0], 1, 1, 1}});
}

/* u * factor + offset */
static tp_node_id draw(const builder *b, int which, double factor, double offset)
{
    const tp_node_id u = tp_op_uniform(b->graph, TP_F32, each(b), TP_AUGMENT_STREAM + which);
    return tp_op_add_scalar(b->graph, tp_op_multiply_scalar(b->graph, u, factor), offset);
}

/* ---- places ---- */

/* s32 [batch]: where the window begins along an axis. */
static tp_node_id draw_start(const builder *b, int which, int axis)
{
    const int64_t pad = b->augment->pad,
                  places = b->in.dims[axis] + 2 * pad - b->out.dims[axis] + 1;
    const tp_node_id u = tp_op_uniform(b->graph, TP_F32, each(b), TP_AUGMENT_STREAM + which);
    const tp_node_id at = tp_op_floor(b->graph, tp_op_multiply_scalar(b->graph, u, (double)places));
    const tp_node_id last = tp_op_scalar(b->graph, TP_F32, (double)(places - 1));
    const tp_node_id start = tp_op_convert(b->graph, tp_op_minimum(b->graph, at, last), TP_S32);
    return tp_op_add_scalar(b->graph, start, (double)-pad);
}

/* s32 [batch, height, width, 1]: the row or column of the image that each pixel is. */
static tp_node_id coordinates(const builder *b, int start, int flip, bool flips, int axis)
{
    const tp_shape plane = {.rank = 4, .dims = {b->in.dims[0], b->out.dims[1], b->out.dims[2], 1}};
    tp_graph *graph = b->graph;
    const tp_shape whole = {.rank = 4, .dims = {b->in.dims[0], 1, 1, 1}};
    tp_node_id index = tp_op_iota(graph, TP_S32, plane, axis);
    if (flips) {
        const tp_node_id turned = tp_op_subtract(
            graph, tp_op_scalar(graph, TP_S32, (double)(b->out.dims[axis] - 1)), index);
        const tp_node_id is_turned = tp_op_bernoulli(graph, each(b), 0.5, TP_AUGMENT_STREAM + flip);
        const tp_node_id wide =
            tp_op_broadcast_to(graph, tp_op_reshape(graph, is_turned, whole), plane);
        index = tp_op_select(graph, wide, turned, index);
    }
    return tp_op_add(graph, index, tp_op_reshape(graph, draw_start(b, start, axis), whole));
}

/* One gather for all: an axis that runs backwards would keep what follows from running along rows. Places
 * outside of the image read as zero. */
static tp_node_id place(const builder *b, tp_node_id images)
{
    const tp_augment *a = b->augment;
    const tp_index_dims dims = {.window = {3},
                                .window_count = 1,
                                .collapsed = {1, 2},
                                .collapsed_count = 2,
                                .batch = {0},
                                .index_batch = {0},
                                .batch_count = 1,
                                .map = {1, 2},
                                .map_count = 2,
                                .vector_dim = 3};
    const int64_t slices[] = {1, 1, 1, b->out.dims[3]};
    if (!a->pad && !a->flips_x && !a->flips_y && tp_shape_equal(&b->in, &b->out))
        return images; /* there is but one place */
    const tp_node_id at[] = {coordinates(b, TP_AUGMENT_TOP, TP_AUGMENT_FLIP_Y, a->flips_y, 1),
                             coordinates(b, TP_AUGMENT_LEFT, TP_AUGMENT_FLIP_X, a->flips_x, 2)};
    return tp_op_gather(b->graph, images, tp_op_concatenate(b->graph, at, 2, 3), &dims, slices,
                        "zero");
}

static tp_node_id middle(const builder *b, tp_node_id images)
{
    int64_t start[4] = {0, 0, 0, 0}, limit[4];
    for (int i = 1; i < 3; i++)
        start[i] = (b->in.dims[i] - b->out.dims[i]) / 2;
    for (int i = 0; i < 4; i++)
        limit[i] = start[i] + b->out.dims[i];
    if (tp_shape_equal(&b->in, &b->out)) return images;
    return tp_op_slice(b->graph, images, start, limit, NULL);
}

/* ---- values ---- */

static tp_node_id contrast(const builder *b, tp_node_id bytes, tp_node_id x)
{
    static const int64_t all[] = {1, 2, 3};
    const double range = b->augment->contrast;
    const double values = (double)(b->out.dims[1] * b->out.dims[2] * b->out.dims[3]);
    tp_graph *graph = b->graph;
    const tp_node_id sum = tp_op_reduce(graph, tp_op_convert(graph, bytes, TP_S32), "add", all, 3);
    const tp_node_id mean =
        thin(b, tp_op_multiply_scalar(graph, tp_op_convert(graph, sum, TP_F32), 1.0 / values));
    const tp_node_id factor = thin(b, draw(b, TP_AUGMENT_CONTRAST, 2 * range, 1 - range));
    const tp_node_id scaled = tp_op_multiply(graph, tp_op_subtract(graph, x, mean), factor);
    return tp_op_add(graph, scaled, mean);
}

static tp_node_id channel(const builder *b, tp_node_id x, int64_t which, double factor)
{
    const int64_t start[] = {0, 0, 0, which};
    const int64_t limit[] = {b->out.dims[0], b->out.dims[1], b->out.dims[2], which + 1};
    return tp_op_multiply_scalar(b->graph, tp_op_slice(b->graph, x, start, limit, NULL), factor);
}

static tp_node_id saturation(const builder *b, tp_node_id x)
{
    const double range = b->augment->saturation;
    tp_graph *graph = b->graph;
    const tp_node_id warm = tp_op_add(graph, channel(b, x, 0, 0.299), channel(b, x, 1, 0.587));
    const tp_node_id grey = tp_op_add(graph, warm, channel(b, x, 2, 0.114));
    const tp_node_id factor = thin(b, draw(b, TP_AUGMENT_SATURATION, 2 * range, 1 - range));
    return tp_op_add(graph, grey, tp_op_multiply(graph, tp_op_subtract(graph, x, grey), factor));
}

static tp_node_id colours(const builder *b, tp_node_id bytes)
{
    const tp_augment *a = b->augment;
    tp_graph *graph = b->graph;
    tp_node_id x = tp_op_convert(graph, bytes, TP_F32);
    if (a->contrast > 0) x = contrast(b, bytes, x);
    if (a->brightness > 0)
        x = tp_op_add(
            graph, x,
            thin(b, draw(b, TP_AUGMENT_BRIGHTNESS, 510 * a->brightness, -255 * a->brightness)));
    if (a->noise > 0) {
        const tp_node_id normal =
            tp_op_normal(graph, TP_F32, b->out, TP_AUGMENT_STREAM + TP_AUGMENT_NOISE);
        x = tp_op_add(graph, x, tp_op_multiply_scalar(graph, normal, 255 * a->noise));
    }
    if (a->saturation > 0 && b->out.dims[3] == 3) x = saturation(b, x);
    x = tp_op_maximum(graph, x, tp_op_scalar(graph, TP_F32, 0));
    x = tp_op_minimum(graph, x, tp_op_scalar(graph, TP_F32, 255));
    return tp_op_floor(graph, tp_op_add_scalar(graph, x, 0.5));
}

tp_node_id tp_augment_build(tp_graph *graph, const tp_augment *augment, tp_node_id images,
                            bool is_training)
{
    builder b = {.graph = graph, .augment = augment, .in = tp_graph_node(graph, images)->shape};
    b.out = b.in;
    b.out.dims[1] = augment->height;
    b.out.dims[2] = augment->width;
    if (!is_training) return middle(&b, images);
    const tp_node_id x = place(&b, images);
    return tp_augment_colours(augment) ? colours(&b, x) : x;
}
