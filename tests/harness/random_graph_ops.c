/* SPDX-License-Identifier: Apache-2.0
 * Single random ops.
 */
#include "harness/random_graph_internal.h"

/* ---- ops ---- */

static void add_unary(maker *m)
{
    tp_graph *g = m->g;
    const tp_node_id a = draw_of(m, is_float);
    if (a == TP_NO_NODE) return;
    switch (draw(m, 16)) {
    case 0:
        tp_op_exponential(g, a);
        break;
    case 1:
        tp_op_log(g, a);
        break;
    case 2:
        tp_op_tanh(g, a);
        break;
    case 3:
        tp_op_sqrt(g, a);
        break;
    case 4:
        tp_op_rsqrt(g, a);
        break;
    case 5:
        tp_op_logistic(g, a);
        break;
    case 6:
        tp_op_erf(g, a);
        break;
    case 7:
        tp_op_negate(g, a);
        break;
    case 8:
        tp_op_abs(g, a);
        break;
    case 9:
        tp_op_sign(g, a);
        break;
    case 10:
        tp_op_floor(g, tp_op_multiply_scalar(g, a, 7.3));
        break;
    case 11:
        tp_op_multiply_scalar(g, a, 1.7);
        break;
    case 12:
        tp_op_add_scalar(g, a, -0.3);
        break;
    case 13:
        tp_op_is_finite(g, a);
        break;
    case 14:
        tp_op_multiply_scalar(g, a, 0x1p-126); /* subnormal, so zero */
        break;
    default:
        tp_op_maximum(g, a, tp_op_scalar(g, node_of(m, a)->dtype, 0));
    }
}

static void add_binary(maker *m)
{
    tp_graph *g = m->g;
    const tp_node_id a = draw_of(m, is_number);
    if (a == TP_NO_NODE) return;
    const tp_node_id b = draw_partner(m, a);
    switch (draw(m, is_float(m, a) ? 9 : 6)) {
    case 0:
        tp_op_add(g, a, b);
        break;
    case 1:
        tp_op_subtract(g, a, b);
        break;
    case 2:
        tp_op_multiply(g, a, b);
        break;
    case 3:
        tp_op_maximum(g, a, b);
        break;
    case 4:
        tp_op_minimum(g, a, b);
        break;
    case 5:
        tp_op_divide(g, a, b);
        break;
    case 6:
        tp_op_add(g, a, tp_op_multiply(g, b, b));
        break;
    case 7:
        tp_op_subtract(g, b, a);
        break;
    default:
        tp_op_power(g, tp_op_abs(g, a), b);
    }
}

static void add_choice(maker *m)
{
    tp_graph *g = m->g;
    static const char *const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    const tp_node_id a = draw_of(m, is_number);
    if (a == TP_NO_NODE) return;
    const tp_node_id b = draw_partner(m, a);
    const tp_node_id mask = tp_op_compare(g, directions[draw(m, 6)], a, b);
    if (draw(m, 3) == 0)
        tp_op_not(g, mask);
    else
        tp_op_select(g, mask, a, b);
}

static void add_convert(maker *m)
{
    const tp_node_id a = draw_of(m, is_any);
    static const tp_dtype dtypes[] = {TP_F32, TP_BF16, TP_F32, TP_BF16,
                                      TP_S32, TP_U32,  TP_U8,  TP_PRED};
    tp_op_convert(m->g, a, dtypes[draw(m, 8)]);
}

static void add_move(maker *m)
{
    tp_graph *g = m->g;
    const tp_node_id a = draw_of(m, is_any);
    const tp_shape shape = shape_of(m, a);
    int64_t axes[TP_MAX_RANK], low[TP_MAX_RANK], high[TP_MAX_RANK], interior[TP_MAX_RANK];
    if (shape.rank == 0) return;
    switch (draw(m, 6)) {
    case 0: { /* flatten, or split the last axis */
        const int64_t elems = tp_shape_elems(&shape);
        tp_shape to = {1, {elems}};
        if (draw(m, 2) && elems % 2 == 0) to = (tp_shape){2, {elems / 2, 2}};
        if (draw(m, 3) == 0 && shape.rank == 3)
            to = (tp_shape){2, {shape.dims[0] * shape.dims[1], shape.dims[2]}};
        tp_op_reshape(g, a, to);
        break;
    }
    case 1: /* a random permutation */
        for (int i = 0; i < shape.rank; i++)
            axes[i] = i;
        for (int i = shape.rank - 1; i > 0; i--) {
            const uint32_t k = draw(m, (uint32_t)i + 1);
            const int64_t t = axes[i];
            axes[i] = axes[k];
            axes[k] = t;
        }
        tp_op_transpose(g, a, axes);
        break;
    case 2: /* slice */
        for (int i = 0; i < shape.rank; i++) {
            low[i] = draw(m, (uint32_t)shape.dims[i]);
            high[i] = low[i] + 1 + draw(m, (uint32_t)(shape.dims[i] - low[i]));
            interior[i] = 1 + draw(m, 3);
        }
        tp_op_slice(g, a, low, high, interior);
        break;
    case 3: /* pad, or cut */
        for (int i = 0; i < shape.rank; i++) {
            low[i] = draw(m, 3);
            high[i] = (int64_t)draw(m, 4) - (shape.dims[i] > 2 ? 1 : 0);
            interior[i] = draw(m, 4) == 0;
        }
        if (tp_shape_elems(&shape) < MAX_ELEMS / 8)
            tp_op_pad(g, a, tp_op_scalar(g, node_of(m, a)->dtype, 1), low, high, interior);
        break;
    case 4:
        axes[0] = draw(m, (uint32_t)shape.rank);
        tp_op_reverse(g, a, axes, 1);
        break;
    default: {
        const tp_node_id parts[] = {a, tp_op_reverse(g, a, (int64_t[]){0}, 1), a};
        if (tp_shape_elems(&shape) < MAX_ELEMS / 3)
            tp_op_concatenate(g, parts, 2 + (int32_t)draw(m, 2), draw(m, (uint32_t)shape.rank));
    }
    }
}

static void add_reduce(maker *m)
{
    tp_graph *g = m->g;
    const tp_node_id a = draw_of(m, is_any);
    const tp_node *node = node_of(m, a);
    static const char *const kinds[] = {"add", "max", "min", "multiply", "add"};
    int64_t axes[TP_MAX_RANK];
    int32_t count = 0;
    for (int i = 0; i < node->shape.rank; i++)
        if (draw(m, 2)) axes[count++] = i;
    if (node->dtype == TP_U8 || count == 0) return;
    if (draw(m, 6) == 0 && (tp_dtype_is_float(node->dtype) || node->dtype == TP_S32)) {
        const int64_t axis = axes[0], size = node->shape.dims[axis];
        if (size < 1) return;
        /* argmax has no builder call of its own */
        const tp_attr attr = {.name = "axis", .kind = TP_ATTR_INT, .int_value = axis};
        tp_graph_add(g, draw(m, 2) ? "argmax" : "argmin", &a, 1, &attr, 1);
        return;
    }
    if (node->dtype == TP_PRED)
        tp_op_reduce(g, a, draw(m, 2) ? "and" : "or", axes, count);
    else
        tp_op_reduce(g, a, kinds[draw(m, 5)], axes, count);
}

/* The sum over everything but what two float tensors have in common in one axis. */
static void add_product(maker *m)
{
    tp_graph *g = m->g;
    static const char *const precisions[] = {"default", "default", "high", "highest", "f32"};
    for (int i = 0; i < 60; i++) {
        const tp_node_id a = draw_of(m, is_float), b = draw_of(m, is_float);
        if (a == TP_NO_NODE || b == TP_NO_NODE) return;
        const tp_shape x = shape_of(m, a), y = shape_of(m, b);
        if (x.rank == 0 || y.rank == 0 || x.rank + y.rank > 5) continue;
        const uint32_t p = draw(m, (uint32_t)x.rank), q = draw(m, (uint32_t)y.rank);
        const int64_t k = x.dims[p];
        if (k != y.dims[q] || k < 2) continue;
        if (tp_shape_elems(&x) / k * (tp_shape_elems(&y) / k) > MAX_ELEMS) continue;
        const tp_dot_dims dims = {.lhs_contract = {p}, .rhs_contract = {q}, .contract_count = 1};
        tp_op_dot_general(g, a, b, &dims, precisions[draw(m, 5)]);
        return;
    }
}

/* ---- images ---- */

static bool is_image(const maker *m, tp_node_id id)
{
    return is_float(m, id) && shape_of(m, id).rank == 4 &&
           tp_shape_elems(&node_of(m, id)->shape) > 0;
}

/* Window, stride and padding that leave at least one window in a [n, h, w, c] image. */
static bool draw_window(maker *m, const tp_shape *image, int64_t size_h, int64_t size_w,
                        tp_window *out)
{
    *out = (tp_window){.size = {size_h, size_w},
                       .strides = {1 + draw(m, 3), 1 + draw(m, 3)},
                       .padding = {draw(m, 2), draw(m, 2), draw(m, 2), draw(m, 2)},
                       .dilation = {1, 1}};
    for (int i = 0; i < 2; i++)
        if (out->padding[2 * i] >= out->size[i] || out->padding[2 * i + 1] >= out->size[i])
            out->padding[2 * i] = out->padding[2 * i + 1] = 0;
    return image->dims[1] >= size_h && image->dims[2] >= size_w;
}

static void add_window(maker *m)
{
    tp_graph *g = m->g;
    tp_window window;
    const tp_node_id x = draw_of(m, is_image);
    if (x == TP_NO_NODE) return;
    const tp_shape shape = shape_of(m, x);
    if (!draw_window(m, &shape, 1 + draw(m, 3), 1 + draw(m, 3), &window)) return;
    const bool is_max = draw(m, 2);
    const tp_node_id y = tp_op_reduce_window(g, x, is_max ? "max" : "add", &window);
    if (draw(m, 2)) return;
    const tp_node_id d = tp_op_multiply_scalar(g, y, 0.5);
    if (is_max)
        tp_op_select_and_scatter(g, x, d, &window);
    else
        tp_op_reduce_window_grad(g, d, shape, &window);
}

/* With the filter input, and its two gradients. */
static void add_convolution(maker *m)
{
    tp_graph *g = m->g;
    tp_window window;
    static const char *const precisions[] = {"default", "default", "high", "f32"};
    const char *precision = precisions[draw(m, 4)];
    const tp_node_id filter = m->filter, x = draw_of(m, is_image);
    if (x == TP_NO_NODE) return;
    const tp_shape image = shape_of(m, x), f = shape_of(m, filter);
    if (image.dims[3] != f.dims[2] || !draw_window(m, &image, f.dims[0], f.dims[1], &window))
        return;
    const tp_node_id y = tp_op_convolution(g, x, filter, &window, precision);
    const uint32_t kind = draw(m, 3);
    if (kind == 1) tp_op_convolution_input_grad(g, y, filter, image, &window, precision);
    if (kind == 2) tp_op_convolution_filter_grad(g, x, y, f, &window, precision);
}

/* ---- memory and order ---- */

/* s32, from two below to two above what is inside. */
static tp_node_id draw_indices(maker *m, tp_shape shape, int64_t limit)
{
    static int32_t values[MAX_ELEMS];
    for (int64_t i = 0; i < tp_shape_elems(&shape); i++)
        values[i] = (int32_t)draw(m, (uint32_t)limit + 4) - 2;
    return tp_op_constant(m->g, TP_S32, shape, values);
}

static void add_memory(maker *m)
{
    tp_graph *g = m->g;
    static const char *const kinds[] = {"add", "max", "min", "replace", "multiply"};
    const tp_node_id a = draw_of(m, is_any);
    tp_shape shape = shape_of(m, a), box = shape;
    if (shape.rank == 0 || tp_shape_elems(&shape) == 0) return;
    const bool is_combined = node_of(m, a)->dtype != TP_U8 && node_of(m, a)->dtype != TP_PRED;
    const int64_t axis = draw(m, (uint32_t)shape.rank), n = shape.dims[axis];
    const uint32_t what = draw(m, 8);
    if (what < 3) { /* along the axis: looked up, and put back somewhere else */
        shape.dims[axis] = 1 + draw(m, (uint32_t)n);
        const tp_node_id at = draw_indices(m, shape, n);
        const tp_node_id taken = tp_op_take_along_axis(g, a, at, axis);
        if (what > 0)
            tp_op_put_along_axis(g, a, draw_indices(m, shape, n), taken, axis,
                                 kinds[is_combined ? draw(m, 4) : 3]);
    } else if (what == 3) {
        const tp_node_id at = draw_indices(m, (tp_shape){1, {1 + draw(m, 40)}}, n);
        if (tp_shape_elems(&shape) / n * 40 <= MAX_ELEMS) tp_op_take(g, a, at, axis);
    } else if (what == 4) {
        for (int i = 0; i < box.rank; i++)
            box.dims[i] = 1 + draw(m, (uint32_t)box.dims[i]);
        const tp_node_id start = draw_indices(m, (tp_shape){1, {box.rank}}, n);
        const tp_node_id cut = tp_op_dynamic_slice(g, a, start, box.dims);
        if (draw(m, 2))
            tp_op_dynamic_update_slice(g, a, cut, draw_indices(m, (tp_shape){1, {box.rank}}, n));
    } else if (what == 5) {
        const char *kind = kinds[draw(m, 5)];
        if (is_combined && strcmp(kind, "replace") != 0)
            tp_op_cumulative(g, a, kind, axis, draw(m, 2), draw(m, 2));
    } else if (what == 6) {
        draw(m, 2) ? tp_op_sort(g, a, axis, draw(m, 2)) : tp_op_argsort(g, a, axis, draw(m, 2));
    } else {
        tp_op_top_k(g, a, 1 + draw(m, (uint32_t)shape.dims[shape.rank - 1]), NULL);
    }
}

static void add_source(maker *m)
{
    tp_graph *g = m->g;
    const tp_shape shape = draw_shape(m);
    const uint32_t kind = draw(m, m->has_random ? 6 : 3);
    if (kind == 0 && draw(m, 2)) {
        static float values[MAX_ELEMS];
        const int64_t elems = tp_shape_elems(&shape);
        for (int64_t i = 0; i < elems; i++)
            values[i] = (float)((int64_t)draw(m, 1000) - 500) / 64;
        tp_op_constant(g, TP_F32, shape, values);
        return;
    }
    if (kind == 0 && shape.rank > 0)
        tp_op_iota(g, draw(m, 2) ? TP_S32 : TP_F32, shape, draw(m, (uint32_t)shape.rank));
    else if (kind <= 1)
        tp_op_fill(g, TP_F32, shape, 0.75);
    else if (kind == 2)
        tp_op_convert(g, tp_op_step(g), TP_F32);
    else if (kind == 3)
        tp_op_uniform(g, TP_F32, shape, m->stream++);
    else if (kind == 4 && m->stream % 2 == 0)
        tp_op_normal(g, TP_F32, shape, m->stream++);
    else if (kind == 4) {
        const tp_node_id x = tp_op_normal(g, TP_F32, shape, m->stream++);
        tp_op_stochastic_round(g, x, tp_op_random_bits(g, shape, m->stream++));
    } else
        tp_op_bernoulli(g, shape, 0.3, m->stream++);
}

void random_graph_add_ops(maker *m, int32_t ops)
{
    for (int32_t i = 0; i < ops; i++) {
        const uint32_t kind = draw(m, m->filter == TP_NO_NODE ? 22 : 28);
        if (kind >= 25)
            add_convolution(m);
        else if (kind >= 22)
            add_window(m);
        else if (kind >= 20)
            add_memory(m);
        else if (kind < 5)
            add_unary(m);
        else if (kind < 10)
            add_binary(m);
        else if (kind < 12)
            add_choice(m);
        else if (kind < 14)
            add_convert(m);
        else if (kind < 16)
            add_move(m);
        else if (kind < 18)
            add_reduce(m);
        else if (kind < 19)
            add_product(m);
        else
            add_source(m);
    }
}
