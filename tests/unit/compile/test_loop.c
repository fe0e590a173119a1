/* SPDX-License-Identifier: Apache-2.0
 * Loops, compiled and run on the default device, against the reference interpreter: bits. And what the
 * program of a loop looks like.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "graph/autodiff.h"
#include "harness/lstm_graph.h"
#include "harness/program_run.h"
#include "ops/registry.h"

TestSuite(loop, .timeout = 300);

static tp_graph *begin(void)
{
    tp_graph *g = NULL;
    cr_assert_eq(tp_graph_create(tp_ops_registry(), &g), TPUCL_OK);
    return g;
}

static tp_graph *forward_graph(lstm_graph lstm)
{
    tp_graph *g = begin();
    tp_node_id last[2], stack;
    lstm_ports(g, &lstm);
    lstm_scan(g, &lstm, last, &stack);
    tp_graph_add_output(g, "h", last[0]);
    tp_graph_add_output(g, "c", last[1]);
    tp_graph_add_output(g, "hs", stack);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    return g;
}

static void expect_equal(tp_graph *g, int32_t cores, int32_t wave_cores)
{
    program_run_expect_equal(
        g, &(program_run_options){.cores = cores, .wave_cores = wave_cores, .steps = 2, .seed = 5});
    tp_graph_destroy(g);
}

static const lstm_graph small = {
    .turns = 17, .batch = 3, .features = 5, .units = 7, .precision = "default"};

Test(loop, forward_for_any_number_of_turns)
{
    static const int64_t turns[] = {1, 2, 17};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        lstm_graph lstm = small;
        lstm.turns = turns[i];
        expect_equal(forward_graph(lstm), 1, 0);
    }
}

Test(loop, forward_in_waves)
{
    lstm_graph lstm = small;
    lstm.precision = "f32";
    lstm.reverse = true;
    for (int32_t wave = 1; wave <= 8; wave = wave == 1 ? 2 : wave * 4)
        expect_equal(forward_graph(lstm), 8, wave);
}

/* ---- what bodies may do ---- */

static tp_shape shape2(int64_t a, int64_t b)
{
    return (tp_shape){2, {a, b}};
}

/* Carries that change places, one that stands still, one that becomes the slice, one whose start is read
 * elsewhere, too. */
static void juggle(void *user, tp_graph *g, const tp_node_id *carries, const tp_node_id *slices,
                   tp_node_id *out_next, tp_node_id *out_stacked)
{
    const tp_node_id outside = *(const tp_node_id *)user;
    out_next[0] = carries[1];
    out_next[1] = carries[0];
    out_next[2] = carries[2];
    out_next[3] = slices[0];
    out_next[4] = outside;
    out_stacked[0] = carries[0];
    out_stacked[1] = slices[0];
    out_stacked[2] = outside;
    out_stacked[3] = tp_op_add(g, carries[3], tp_op_add(g, slices[0], carries[4]));
    out_stacked[4] = out_stacked[3];
}

static tp_graph *juggling_graph(int64_t turns, bool reverse)
{
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){3, {turns, 3, 5}});
    const tp_node_id a = tp_graph_add_input(g, "a", TP_F32, shape2(3, 5));
    tp_node_id outside = tp_op_exponential(g, a);
    const tp_node_id b = tp_op_add_scalar(g, a, 1);
    const tp_node_id zeros = tp_op_fill(g, TP_F32, shape2(3, 5), 0);
    const tp_node_id init[] = {a, b, b, zeros, zeros};
    tp_node_id last[5], stacks[5];
    const tp_scan scan = {.length = turns,
                          .reverse = reverse,
                          .init = init,
                          .xs = &x,
                          .carry_count = 5,
                          .xs_count = 1,
                          .stack_count = 5,
                          .body = juggle,
                          .user = &outside};
    tp_op_scan(g, &scan, last, stacks);
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "last %d", i);
        tp_graph_add_output(g, name, last[i]);
        snprintf(name, sizeof name, "stack %d", i);
        tp_graph_add_output(g, name, stacks[i]);
    }
    tp_graph_add_output(g, "start", b);
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    return g;
}

Test(loop, carries_change_places)
{
    for (int64_t turns = 1; turns <= 4; turns++)
        expect_equal(juggling_graph(turns, turns % 2 == 0), 2, 1);
}

/* Attention over the whole input in each turn: a reduction, a product with a tensor from outside, bf16. */
static void attend(void *user, tp_graph *g, const tp_node_id *carries, const tp_node_id *slices,
                   tp_node_id *out_next, tp_node_id *out_stacked)
{
    static const int64_t last[] = {1};
    const tp_node_id *keys = user;
    const tp_node_id query = tp_op_convert(g, tp_op_add(g, carries[0], slices[0]), TP_BF16);
    const tp_node_id scores = tp_op_matmul(g, query, keys[0], "default");
    const tp_node_id most = tp_op_reduce(g, scores, "max", last, 1);
    const tp_node_id e =
        tp_op_exponential(g, tp_op_subtract(g, scores, tp_op_reshape(g, most, shape2(4, 1))));
    const tp_node_id sum = tp_op_reduce(g, e, "add", last, 1);
    const tp_node_id weights = tp_op_divide(g, e, tp_op_reshape(g, sum, shape2(4, 1)));
    out_next[0] = tp_op_tanh(g, tp_op_matmul(g, weights, keys[1], "default"));
    out_stacked[0] = tp_op_convert(g, out_next[0], TP_BF16);
    out_stacked[1] = most;
}

Test(loop, reductions_and_products_in_a_turn)
{
    tp_graph *g = begin();
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){3, {6, 4, 9}});
    const tp_node_id memory = tp_graph_add_input(g, "memory", TP_F32, shape2(13, 9));
    const tp_node_id h = tp_graph_add_input(g, "h", TP_F32, shape2(4, 9));
    const tp_node_id scaled = tp_op_tanh(g, tp_op_multiply_scalar(g, memory, 0.5));
    tp_node_id keys[] = {tp_op_convert(g, tp_op_transpose(g, scaled, (int64_t[]){1, 0}), TP_BF16),
                         scaled};
    tp_node_id last, stacks[2];
    const tp_scan scan = {.length = 6,
                          .init = &h,
                          .xs = &x,
                          .carry_count = 1,
                          .xs_count = 1,
                          .stack_count = 2,
                          .body = attend,
                          .user = keys};
    tp_op_scan(g, &scan, &last, stacks);
    tp_graph_add_output(g, "last", last);
    tp_graph_add_output(g, "states", stacks[0]);
    tp_graph_add_output(g, "scores", tp_op_exponential(g, stacks[1]));
    expect_equal(g, 3, 2);
}

/* Two loops, the second over what the first stacked and with what it carried out; and a loop over
 * variables alone, which runs once per device and whose result updates one of them. */
static void add_up(void *user, tp_graph *g, const tp_node_id *carries, const tp_node_id *slices,
                   tp_node_id *out_next, tp_node_id *out_stacked)
{
    (void)user;
    out_next[0] = tp_op_tanh(g, tp_op_add(g, carries[0], slices[0]));
    out_stacked[0] = tp_op_multiply(g, out_next[0], slices[0]);
}

static void add_scan(tp_graph *g, int64_t turns, tp_node_id init, tp_node_id xs, bool reverse,
                     tp_node_id *out_last, tp_node_id *out_stack)
{
    const tp_scan scan = {.length = turns,
                          .reverse = reverse,
                          .init = &init,
                          .xs = &xs,
                          .carry_count = 1,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = add_up};
    tp_op_scan(g, &scan, out_last, out_stack);
}

Test(loop, one_after_the_other_and_once_per_device)
{
    tp_graph *g = begin();
    tp_node_id last, stack;
    tp_variable v = {.name = "rows",
                     .dtype = TP_F32,
                     .shape = shape2(3, 3),
                     .init = TP_INIT_UNIFORM,
                     .init_a = -1,
                     .init_b = 1};
    const tp_node_id rows = tp_graph_add_variable(g, &v);
    v.name = "state", v.shape = (tp_shape){1, {3}};
    const tp_node_id state = tp_graph_add_variable(g, &v);
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape2(4, 3));
    add_scan(g, 3, state, rows, false, &last, &stack);
    tp_graph_add_update(g, state, last);
    tp_graph_add_update(g, rows, stack);
    add_scan(g, 4, last, x, true, &last, &stack);
    add_scan(g, 4, last, stack, false, &last, &stack);
    const tp_node_id first_row = tp_op_slice(g, stack, (int64_t[]){0, 0}, (int64_t[]){3, 3}, NULL);
    add_scan(g, 3, last, tp_op_add(g, first_row, rows), true, &last, &stack);
    tp_graph_add_output(g, "last", last);
    tp_graph_add_output(g, "sum", tp_op_all_reduce(g, stack));
    add_scan(g, 3, last, rows, false, &last, &stack);
    tp_graph_add_output(g, "more", stack);
    expect_equal(g, 4, 2);
}

/* Every turn reads what was computed before the loop, so no turn may put a result in its place. */
static void keep_outside(void *user, tp_graph *g, const tp_node_id *carries,
                         const tp_node_id *slices, tp_node_id *out_next, tp_node_id *out_stacked)
{
    const tp_node_id *outside = user;
    const tp_node_id t = tp_op_tanh(g, tp_op_add(g, outside[0], carries[0]));
    out_next[0] = tp_op_add(g, tp_op_matmul(g, t, outside[1], "default"), slices[0]);
    out_stacked[0] = out_next[0];
}

Test(loop, what_is_outside_outlives_the_turns)
{
    tp_graph *g = begin();
    tp_node_id last, stack;
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, (tp_shape){3, {5, 4, 6}});
    const tp_node_id h = tp_graph_add_input(g, "h", TP_F32, shape2(4, 6));
    const tp_node_id w = tp_graph_add_input(g, "w", TP_F32, shape2(6, 6));
    tp_node_id outside[] = {tp_op_matmul(g, h, w, "default"), w};
    const tp_scan scan = {.length = 5,
                          .init = &h,
                          .xs = &x,
                          .carry_count = 1,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = keep_outside,
                          .user = outside};
    tp_op_scan(g, &scan, &last, &stack);
    tp_graph_add_output(g, "stack", stack);
    expect_equal(g, 2, 0);
}

/* One kernel for what comes before the loop and what comes behind it would be neither. */
static void side_by_side(void *user, tp_graph *g, const tp_node_id *carries,
                         const tp_node_id *slices, tp_node_id *out_next, tp_node_id *out_stacked)
{
    (void)user;
    out_next[0] = tp_op_add(g, carries[0], slices[0]);
    out_stacked[0] = tp_op_negate(g, slices[1]);
}

Test(loop, nothing_joins_across_the_loop)
{
    tp_graph *g = begin();
    tp_node_id last, stack;
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape2(5, 6));
    const tp_node_id xs[] = {tp_op_exponential(g, x), x};
    const tp_node_id zeros = tp_op_fill(g, TP_F32, (tp_shape){1, {6}}, 0);
    const tp_scan scan = {.length = 5,
                          .init = &zeros,
                          .xs = xs,
                          .carry_count = 1,
                          .xs_count = 2,
                          .stack_count = 1,
                          .body = side_by_side};
    tp_op_scan(g, &scan, &last, &stack);
    tp_graph_add_output(g, "last", last);
    tp_graph_add_output(g, "stack", tp_op_multiply(g, stack, x));
    expect_equal(g, 2, 0);
}

/* ---- gradients ---- */

/* Two layers and a step of gradient descent; `is_mixed`: operands of products in bf16. */
static tp_graph *training_graph(lstm_graph lstm, int32_t cores, bool is_mixed)
{
    tp_graph *g = begin();
    tp_node_id last[2], stack, d[4];
    lstm_ports(g, &lstm);
    const tp_node_id wrt[] = {lstm.w, lstm.u, lstm.b, lstm.x};
    if (is_mixed) {
        lstm.w = tp_op_convert(g, lstm.w, TP_BF16);
        lstm.u = tp_op_convert(g, lstm.u, TP_BF16);
        lstm.x = tp_op_convert(g, lstm.x, TP_BF16);
    }
    lstm_scan(g, &lstm, last, &stack);
    lstm_graph second = lstm;
    second.reverse = !lstm.reverse;
    second.x = stack;
    second.features = lstm.units;
    second.w = lstm.u;
    lstm_scan(g, &second, last, &stack);
    const tp_node_id loss = tp_op_reduce(
        g, tp_op_add(g, tp_op_multiply(g, stack, stack), tp_op_tanh(g, last[1])), "add", NULL, 0);
    tp_graph_gradients(g, loss, wrt, 4, d);
    for (int i = 0; i < 3 && !g->has_failed; i++) {
        const tp_node_id sum =
            tp_op_multiply_scalar(g, tp_op_all_reduce(g, d[i]), 0.0625 / (double)cores);
        tp_graph_add_update(g, wrt[i], tp_op_subtract(g, wrt[i], sum));
    }
    tp_graph_add_output(g, "dx", d[3]);
    tp_graph_add_output(g, "loss", tp_op_all_reduce(g, loss));
    cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
    return g;
}

Test(loop, training_for_any_number_of_turns)
{
    static const int64_t turns[] = {1, 2, 17};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        lstm_graph lstm = small;
        lstm.turns = turns[i];
        expect_equal(training_graph(lstm, 1, false), 1, 0);
    }
}

Test(loop, training_in_waves)
{
    lstm_graph lstm = small;
    lstm.turns = 5;
    for (int32_t wave = 1; wave <= 8; wave = wave == 1 ? 2 : wave * 4)
        expect_equal(training_graph(lstm, 8, wave == 2), 8, wave);
}

Test(loop, training_with_every_kind_of_product)
{
    static const char *const precisions[] = {"high", "highest", "f32"};
    lstm_graph lstm = small;
    lstm.turns = 3;
    for (size_t i = 0; i < sizeof precisions / sizeof *precisions; i++) {
        lstm.precision = precisions[i];
        expect_equal(training_graph(lstm, 2, i == 0), 2, 0);
    }
    for (int i = 0; i < 2; i++) {
        lstm_graph wide = {
            .turns = 3, .batch = 40, .features = 150, .units = 33, .precision = "default"};
        wide.features = wide.units; /* the second layer has the first one's shapes */
        tp_graph *g = training_graph(wide, 2, i == 1);
        program_run_expect_equal(
            g, &(program_run_options){
                   .cores = 2, .steps = 2, .seed = 6, .forced_variant = i ? "mxu_register" : NULL});
        tp_graph_destroy(g);
    }
}

Test(loop, gradient_is_compiled_once)
{
    tp_graph *g = training_graph(small, 1, false);
    tp_program *program = program_run_compile(g, &(program_run_options){.cores = 1});
    cr_assert_eq(program->loop_count, 4);
    cr_assert_leq(program->launch_count, 45, "%d launches", program->launch_count);
    tp_program_destroy(program);
    tp_graph_destroy(g);
}

/* ---- the program ---- */

Test(loop, a_turn_is_compiled_once)
{
    lstm_graph lstm = small;
    tp_graph *g = forward_graph(lstm);
    tp_program *program = program_run_compile(g, &(program_run_options){.cores = 1});
    cr_assert_eq(program->loop_count, 1);
    cr_assert_eq(program->loops[0].turns, 17);
    cr_assert_leq(program->loops[0].launch_count, 4);
    cr_assert_leq(program->launch_count, 8);
    tp_program_destroy(program);
    tp_graph_destroy(g);
}

Test(loop, what_outlives_a_turn_is_planned_for_the_loop)
{
    tp_graph *g = forward_graph(small);
    tp_program *program = program_run_compile(g, &(program_run_options){.cores = 1});
    const tp_program_loop *loop = &program->loops[0];
    bool has_found = false;
    for (int32_t i = 0; i < program->buffer_count && !has_found; i++) {
        tp_program_buffer *buffer = &program->buffers[i];
        if (!buffer->view.is_view || buffer->view.period != 2) continue;
        program->buffers[buffer->view.of].last_use = loop->first_launch + 1;
        has_found = true;
    }
    cr_assert(has_found);
    cr_assert_eq(tp_program_verify(program), TPUCL_INTERNAL);
    tp_program_destroy(program);
    tp_graph_destroy(g);
}

Test(loop, a_view_stays_inside_its_buffer)
{
    tp_graph *g = forward_graph(small);
    tp_program *program = program_run_compile(g, &(program_run_options){.cores = 1});
    for (int32_t i = 0; i < program->buffer_count; i++) {
        tp_program_view *view = &program->buffers[i].view;
        if (!view->is_view || !view->stride_bytes) continue;
        const int64_t before = view->stride_bytes;
        view->stride_bytes = before * 2;
        cr_assert_eq(tp_program_verify(program), TPUCL_INTERNAL);
        cr_assert(strstr(tpucl_last_error()->message, "covers bytes"), "%s",
                  tpucl_last_error()->message);
        view->stride_bytes = before;
    }
    cr_assert_eq(tp_program_verify(program), TPUCL_OK);
    tp_program_destroy(program);
    tp_graph_destroy(g);
}

/* Looks up, scatters, sorts and runs along lines in each turn; what it scatters into lies outside. */
static void shuffle(void *user, tp_graph *g, const tp_node_id *carries, const tp_node_id *slices,
                    tp_node_id *out_next, tp_node_id *out_stacked)
{
    const tp_node_id table = *(const tp_node_id *)user;
    const tp_node_id rows = tp_op_take(g, table, slices[0], 0);
    const tp_node_id order = tp_op_argsort(g, carries[0], 1, false);
    const tp_node_id sorted = tp_op_take_along_axis(g, rows, order, 1);
    const tp_node_id zeros = tp_op_fill(g, TP_F32, shape2(3, 5), 0);
    out_next[0] = tp_op_add(g, carries[0], tp_op_put_along_axis(g, zeros, order, rows, 1, "add"));
    out_stacked[0] = tp_op_cumulative(g, sorted, "add", 1, false, false);
    out_stacked[1] = tp_op_put_along_axis(g, carries[0], order, sorted, 1, "max");
}

Test(loop, memory_ops_in_turns)
{
    for (int64_t turns = 1; turns <= 3; turns++) {
        tp_graph *g = begin();
        const tp_node_id at = tp_graph_add_input(g, "at", TP_S32, shape2(turns, 3));
        tp_node_id table = tp_graph_add_input(g, "table", TP_F32, shape2(4, 5));
        const tp_node_id start = tp_graph_add_input(g, "start", TP_F32, shape2(3, 5));
        tp_node_id last, stacks[2];
        const tp_scan scan = {.length = turns,
                              .init = &start,
                              .xs = &at,
                              .carry_count = 1,
                              .xs_count = 1,
                              .stack_count = 2,
                              .body = shuffle,
                              .user = &table};
        tp_op_scan(g, &scan, &last, stacks);
        const tp_node_id sum =
            tp_op_reduce(g, tp_op_multiply(g, stacks[0], stacks[0]), "add", NULL, 0);
        const tp_node_id loss =
            tp_op_add(g, sum, tp_op_reduce(g, tp_op_multiply(g, last, last), "add", NULL, 0));
        const tp_node_id wrt[] = {table, start};
        tp_node_id gradients[2];
        tp_graph_gradients(g, loss, wrt, 2, gradients);
        tp_graph_add_output(g, "last", last);
        tp_graph_add_output(g, "stack 0", stacks[0]);
        tp_graph_add_output(g, "stack 1", stacks[1]);
        tp_graph_add_output(g, "d table", gradients[0]);
        tp_graph_add_output(g, "d start", gradients[1]);
        cr_assert_eq(tp_graph_check(g), TPUCL_OK, "%s", tpucl_last_error()->message);
        expect_equal(g, 2, 1);
    }
}
