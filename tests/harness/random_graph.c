/* SPDX-License-Identifier: Apache-2.0
 * See random_graph.h.
 */
#include "harness/random_graph.h"

#include "graph/autodiff.h"
#include "graph/verify.h"
#include "harness/random_graph_internal.h"
#include "ops/registry.h"

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
    random_graph_add_ops(m, ops);
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
    random_graph_add_ops(&m, options->ops);
    for (int i = 0; i < 2 && options->has_loops; i++) {
        add_loop(&m, options->ops / 2);
        random_graph_add_ops(&m, options->ops / 4);
    }
    if (options->has_sums) {
        add_sums(&m);
        random_graph_add_ops(&m, options->ops / 2);
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
