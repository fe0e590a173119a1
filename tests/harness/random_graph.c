/* SPDX-License-Identifier: Apache-2.0
 * See random_graph.h.
 */
#include "harness/random_graph.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/loop.h"
#include "graph/verify.h"
#include "ops/registry.h"

#define MAX_ELEMS 40000
#define MAX_TURNS 20

typedef struct maker {
    tp_graph *g;
    uint32_t state;
    int64_t dims[3]; /* most shapes are made of these */
    int64_t stream;
    bool has_random;
    int32_t loop;      /* that ops are added to, 0: none */
    tp_node_id filter; /* [kh, kw, ci, co], TP_NO_NODE: no images in this graph */
} maker;

static uint32_t draw(maker *m, uint32_t below)
{
    m->state = m->state * 1664525u + 1013904223u; /* Numerical Recipes */
    return (m->state >> 8) % below;
}

static const tp_node *node_of(const maker *m, tp_node_id id)
{
    return tp_graph_node(m->g, id);
}

static tp_shape shape_of(const maker *m, tp_node_id id)
{
    return node_of(m, id)->shape;
}

static bool is_float(const maker *m, tp_node_id id)
{
    return tp_dtype_is_float(node_of(m, id)->dtype);
}

/* One of the shapes that broadcast with each other. */
static tp_shape draw_shape(maker *m)
{
    const int64_t a = m->dims[0], b = m->dims[1], c = m->dims[2];
    const tp_shape shapes[] = {{3, {a, b, c}}, {2, {b, c}},    {1, {c}},       {0, {0}},
                               {3, {a, 1, c}}, {3, {a, b, 1}}, {2, {b, 1}},    {3, {a, b, c}},
                               {2, {1, c}},    {3, {1, b, c}}, {3, {a, b, c}}, {2, {b, c}}};
    return shapes[draw(m, sizeof shapes / sizeof shapes[0])];
}

/* Values of a loop are for this loop only. */
static bool is_in_reach(const maker *m, tp_node_id id)
{
    return node_of(m, id)->loop == 0 || node_of(m, id)->loop == m->loop;
}

static tp_node_id draw_node(maker *m)
{
    for (;;) {
        /* Late ones more often, so that chains get long. */
        const uint32_t count = (uint32_t)m->g->node_count;
        const uint32_t recent = count < 8 ? count : 8;
        const tp_node_id id = draw(m, 3) != 0 ? (tp_node_id)(count - 1 - draw(m, recent))
                                              : (tp_node_id)draw(m, count);
        if (is_in_reach(m, id)) return id;
    }
}

static tp_node_id draw_of(maker *m, bool (*fits)(const maker *m, tp_node_id id))
{
    for (int i = 0; i < 40; i++) {
        const tp_node_id id = draw_node(m);
        if (fits(m, id)) return id;
    }
    return TP_NO_NODE;
}

static bool is_f32(const maker *m, tp_node_id id)
{
    return node_of(m, id)->dtype == TP_F32;
}

static bool is_number(const maker *m, tp_node_id id)
{
    const tp_dtype dtype = node_of(m, id)->dtype;
    return dtype != TP_PRED && dtype != TP_U8;
}

static bool is_any(const maker *m, tp_node_id id)
{
    (void)m;
    (void)id;
    return true;
}

/* Another node of the same dtype whose shape broadcasts with a's to something of moderate size. */
static tp_node_id draw_partner(maker *m, tp_node_id a)
{
    for (int i = 0; i < 60; i++) {
        const tp_node_id b = draw_node(m);
        const tp_shape left = shape_of(m, a), right = shape_of(m, b);
        tp_shape both;
        if (node_of(m, b)->dtype != node_of(m, a)->dtype) continue;
        if (tp_shape_broadcast(&left, &right, &both) != TPUCL_OK) continue;
        if (tp_shape_elems(&both) <= MAX_ELEMS) return b;
    }
    return a;
}

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
    else if (kind == 4)
        tp_op_normal(g, TP_F32, shape, m->stream++);
    else
        tp_op_bernoulli(g, shape, 0.3, m->stream++);
}

static void add_some(maker *m, int32_t ops)
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

/* ---- loops ---- */

static bool is_in_loop(const maker *m, tp_node_id id)
{
    return node_of(m, id)->loop == m->loop && m->loop > 0;
}

static bool has_turns(const maker *m, tp_node_id id)
{
    const tp_shape shape = shape_of(m, id);
    return shape.rank > 0 && shape.dims[0] > 0 && shape.dims[0] <= MAX_TURNS;
}

/* A value of the loop that a carry may become; the carry itself when none is found. */
static tp_node_id draw_next(maker *m, tp_node_id carry)
{
    const tp_shape to = shape_of(m, carry);
    for (int i = 0; i < 100; i++) {
        const tp_node_id id = draw_node(m);
        const tp_shape from = shape_of(m, id);
        const bool is_result = !node_of(m, id)->loop && tp_loop_unit(node_of(m, id)) == m->loop;
        if (node_of(m, id)->dtype == node_of(m, carry)->dtype && tp_shape_equal(&from, &to) &&
            !is_result)
            return id;
    }
    return is_float(m, carry) ? tp_op_tanh(m->g, carry) : carry;
}

static void add_loop(maker *m, int32_t ops)
{
    tp_graph *g = m->g;
    tp_node_id carries[3];
    const tp_node_id xs = draw_of(m, has_turns);
    if (xs == TP_NO_NODE) return;
    const int64_t turns = shape_of(m, xs).dims[0];
    const int32_t carry_count = (int32_t)draw(m, 4), number = tp_op_loop_new(g);
    tp_node_id init[3], more = draw_of(m, has_turns);
    for (int32_t i = 0; i < carry_count; i++)
        init[i] = draw_node(m);
    tp_op_loop_slice(g, number, xs, draw(m, 2));
    if (more != TP_NO_NODE && shape_of(m, more).dims[0] == turns)
        tp_op_loop_slice(g, number, more, draw(m, 2));
    for (int32_t i = 0; i < carry_count; i++)
        carries[i] = tp_op_loop_carry(g, number, turns, init[i]);
    m->loop = number;
    add_some(m, ops);
    for (int32_t i = 0; i < carry_count; i++)
        tp_op_loop_last(g, carries[i], draw_next(m, carries[i]));
    for (int32_t i = 0; i < 3; i++) {
        const tp_node_id value = draw_of(m, is_in_loop);
        if (value == TP_NO_NODE) continue;
        const tp_shape shape = shape_of(m, value);
        if (shape.rank < TP_MAX_RANK && tp_shape_elems(&shape) * turns <= MAX_ELEMS)
            tp_op_loop_stack(g, number, value, draw(m, 2));
    }
    m->loop = 0;
}

/* ---- the whole ---- */

static void add_inputs(maker *m)
{
    static const tp_dtype dtypes[] = {TP_F32, TP_F32, TP_BF16, TP_S32, TP_U8, TP_PRED};
    for (int i = 0; i < 6; i++) {
        char name[8];
        snprintf(name, sizeof name, "in%d", i);
        tp_graph_add_input(m->g, name, dtypes[i], draw_shape(m));
    }
    if (draw(m, 3) == 0) {
        const int64_t channels = 1 + draw(m, 20);
        const tp_shape image = {4, {1 + draw(m, 3), 3 + draw(m, 8), 3 + draw(m, 8), channels}};
        const tp_shape filter = {4, {1 + draw(m, 3), 1 + draw(m, 3), channels, 1 + draw(m, 20)}};
        m->filter = tp_graph_add_input(m->g, "filter", draw(m, 2) ? TP_F32 : TP_BF16, filter);
        tp_graph_add_input(m->g, "image", draw(m, 2) ? TP_F32 : TP_BF16, image);
    }
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "w%d", i);
        const tp_variable variable = {.name = name,
                                      .dtype = i == 2 ? TP_BF16 : TP_F32,
                                      .shape = draw_shape(m),
                                      .init = TP_INIT_NORMAL,
                                      .init_b = 1,
                                      .is_model = true};
        tp_graph_add_variable(m->g, &variable);
    }
}

/* Sums of some values over the cores; they are replicated then and may be used by everything after. */
static void add_sums(maker *m)
{
    for (int i = 0; i < 3; i++) {
        const tp_node_id a = draw_of(m, is_f32);
        if (a != TP_NO_NODE) tp_op_all_reduce(m->g, a);
    }
}

/* Each variable gets something made of itself and a replicated value of its shape. */
static void add_updates(maker *m)
{
    tp_graph *g = m->g;
    bool is_replicated[4096];
    for (int32_t v = 0; v < g->variable_count; v++) {
        const tp_node_id old = g->variables[v].node;
        tp_node_id value = TP_NO_NODE;
        tp_graph_mark_replicated(g, is_replicated);
        for (int i = 0; i < 200 && value == TP_NO_NODE; i++) {
            const tp_node_id id = (tp_node_id)draw(m, (uint32_t)g->node_count);
            const tp_shape from = shape_of(m, id), to = g->variables[v].shape;
            if (is_replicated[id] && is_in_reach(m, id) &&
                node_of(m, id)->dtype == g->variables[v].dtype && tp_shape_equal(&from, &to))
                value = id;
        }
        if (value == TP_NO_NODE) value = old;
        switch (draw(m, 4)) {
        case 0:
            break;
        case 1:
            value = tp_op_subtract(g, old, tp_op_multiply_scalar(g, value, 0.1));
            break;
        case 2:
            value = tp_op_add(g, tp_op_multiply_scalar(g, old, 0.9), value);
            break;
        default:
            value = tp_op_maximum(g, value, old);
        }
        tp_graph_add_update(g, old, value);
    }
}

static void add_outputs(maker *m)
{
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "out%d", i);
        const tp_node_id late = m->g->node_count - 1 - i;
        const tp_node_id id = i < 2 && is_in_reach(m, late) ? late : draw_node(m);
        tp_graph_add_output(m->g, name, id);
    }
}

/* Of the sum of the newest f32 values; they are outputs. */
static void add_gradients(maker *m)
{
    tp_graph *g = m->g;
    tp_node_id wrt[16], d[16], loss = tp_op_scalar(g, TP_F32, 0);
    int32_t count = 0, terms = 0;
    for (int32_t i = 0; i < g->input_count + g->variable_count && count < 16; i++) {
        const tp_node_id id =
            i < g->input_count ? g->inputs[i].node : g->variables[i - g->input_count].node;
        if (is_float(m, id)) wrt[count++] = id;
    }
    for (tp_node_id id = loss - 1; id >= 0 && terms < 4; id--) {
        if (!is_f32(m, id) || !is_in_reach(m, id)) continue;
        loss = tp_op_add(g, loss, tp_op_reduce(g, tp_op_tanh(g, id), "add", NULL, 0));
        terms++;
    }
    tp_graph_gradients(g, loss, wrt, count, d);
    for (int32_t i = 0; i < count && !g->has_failed; i++) {
        char name[8];
        snprintf(name, sizeof name, "d%d", i);
        if (d[i] != TP_NO_NODE) tp_graph_add_output(g, name, d[i]);
    }
}

tp_graph *random_graph_create(const random_graph_options *options)
{
    maker m = {.state = options->seed * 2654435761u + 17u,
               .has_random = options->has_random,
               .filter = TP_NO_NODE};
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &m.g), TPUCL_OK);
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 130};
    do {
        for (int i = 0; i < 3; i++)
            m.dims[i] = sizes[draw(&m, sizeof sizes / sizeof sizes[0])];
        if (draw(&m, 12) == 0) m.dims[draw(&m, 3)] = 8192 + 300; /* more than one block */
    } while (m.dims[0] * m.dims[1] * m.dims[2] > MAX_ELEMS);
    add_inputs(&m);
    add_some(&m, options->ops);
    for (int i = 0; i < 2 && options->has_loops; i++) {
        add_loop(&m, options->ops / 2);
        add_some(&m, options->ops / 4);
    }
    if (options->has_sums) {
        add_sums(&m);
        add_some(&m, options->ops / 2);
        add_updates(&m);
    }
    add_outputs(&m);
    if (options->has_gradients) add_gradients(&m);
    cr_assert_eq(tp_graph_check(m.g), TPUCL_OK, "seed %u: %s", options->seed,
                 tpucl_last_error()->message);
    cr_assert_eq(tp_graph_verify(m.g), TPUCL_OK, "seed %u: %s", options->seed,
                 tpucl_last_error()->message);
    return m.g;
}
