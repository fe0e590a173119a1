/* SPDX-License-Identifier: Apache-2.0
 * Loops in the interpreter: an LSTM against PyTorch (tests/golden/gen_loop.py), order of execution,
 * text form, mistakes.
 */
#include "harness/alloc_loop.h"
#include "harness/graph_run.h"
#include "harness/gradcheck.h"
#include "harness/lstm_graph.h"

#include "golden/loop.h"
#include "graph/loop.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "graph/rewrite.h"

enum { T = 5, B = 2, F = 3, H = 4 };

static void lstm_begin(graph_run *run, lstm_graph *lstm, bool reverse)
{
    graph_run_begin(run);
    *lstm = (lstm_graph){
        .turns = T, .batch = B, .features = F, .units = H, .precision = "f32", .reverse = reverse};
    lstm->x = graph_run_input(run, TP_F32, 1, 3, (int64_t[]){T, B, F});
    lstm->h = graph_run_input(run, TP_F32, 2, 2, (int64_t[]){B, H});
    lstm->c = graph_run_input(run, TP_F32, 3, 2, (int64_t[]){B, H});
    lstm->w = graph_run_input(run, TP_F32, 4, 2, (int64_t[]){F, 4 * H});
    lstm->u = graph_run_input(run, TP_F32, 5, 2, (int64_t[]){H, 4 * H});
    lstm->b = graph_run_input(run, TP_F32, 6, 1, (int64_t[]){4 * H});
}

/* Within 1e-5 of the f64 result, relative to the largest element. */
static void expect_near(graph_run *run, tp_node_id node, const double *golden, int64_t count)
{
    const tp_host_tensor *out = graph_run_eval(run, node);
    cr_assert(tp_shape_elems(&out->shape) == count);
    double largest = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(golden[i]));
    for (int64_t i = 0; i < count; i++)
        cr_assert_float_eq(((const float *)out->data)[i], golden[i], 1e-5 * largest,
                           "element %lld is %.9g, expected %.9g", (long long)i,
                           (double)((const float *)out->data)[i], golden[i]);
    coverage_note_graph("reference", run->graph);
    for (int part = 0; part < 4; part++) { /* the golden layer is made of all four */
        static const char *const ops[] = {"loop_slice", "loop_carry", "loop_last", "loop_stack"};
        coverage_note("shape", ops[part]);
        coverage_note("golden", ops[part]);
    }
}

Test(op_loop, lstm_forward)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        graph_run run;
        lstm_graph lstm;
        tp_node_id last[2], stack;
        lstm_begin(&run, &lstm, reverse);
        lstm_scan(run.graph, &lstm, last, &stack);
        expect_near(&run, stack, reverse ? golden_lstm_reverse : golden_lstm, T * B * H);
        expect_near(&run, last[1], reverse ? golden_lstm_reverse_c : golden_lstm_c, B * H);
        graph_run_end(&run);
    }
}

/* ---- gradients ---- */

/* loss = sum of hs * (stream 7) + sum of the last c * (stream 8) */
static tp_node_id lstm_loss(graph_run *run, const lstm_graph *lstm, tp_node_id c, tp_node_id stack)
{
    tp_graph *g = run->graph;
    (void)lstm;
    const tp_node_id a = graph_run_input(run, TP_F32, 7, 3, (int64_t[]){T, B, H});
    const tp_node_id b = graph_run_input(run, TP_F32, 8, 2, (int64_t[]){B, H});
    return tp_op_add(g, tp_op_reduce(g, tp_op_multiply(g, stack, a), "add", NULL, 0),
                     tp_op_reduce(g, tp_op_multiply(g, c, b), "add", NULL, 0));
}

Test(op_loop, lstm_gradient)
{
    for (int reverse = 0; reverse < 2; reverse++) {
        graph_run run;
        lstm_graph lstm;
        tp_node_id last[2], stack, d[6];
        lstm_begin(&run, &lstm, reverse);
        lstm_scan(run.graph, &lstm, last, &stack);
        const tp_node_id wrt[] = {lstm.x, lstm.h, lstm.c, lstm.w, lstm.u, lstm.b};
        tp_graph_gradients(run.graph, lstm_loss(&run, &lstm, last[1], stack), wrt, 6, d);
        EXPECT_OK(tp_graph_check(run.graph));
#define EXPECT_GRADIENT(i, what)                                                                   \
    expect_near(&run, d[i], reverse ? golden_lstm_reverse_d##what : golden_lstm_d##what,           \
                sizeof golden_lstm_d##what / sizeof *golden_lstm_d##what)
        EXPECT_GRADIENT(0, x);
        EXPECT_GRADIENT(1, h);
        EXPECT_GRADIENT(2, c);
        EXPECT_GRADIENT(3, w);
        EXPECT_GRADIENT(4, u);
        EXPECT_GRADIENT(5, b);
#undef EXPECT_GRADIENT
        graph_run_end(&run);
    }
}

/* A weight's gradient through a product is one product over all turns. */
Test(op_loop, lstm_gradient_joins_products)
{
    graph_run run;
    lstm_graph lstm;
    tp_node_id last[2], stack, d[2];
    tp_graph *compact = NULL;
    lstm_begin(&run, &lstm, false);
    lstm_scan(run.graph, &lstm, last, &stack);
    const tp_node_id wrt[] = {lstm.w, lstm.u};
    tp_graph_gradients(run.graph, lstm_loss(&run, &lstm, last[1], stack), wrt, 2, d);
    tp_graph_add_output(run.graph, "dw", d[0]);
    tp_graph_add_output(run.graph, "du", d[1]);
    EXPECT_OK(tp_graph_compact(run.graph, &compact));
    int inside = 0, outside = 0, stacks = 0;
    for (tp_node_id id = 0; id < compact->node_count; id++) {
        const tp_node *node = &compact->nodes[id];
        inside += node->def->op_class == TP_OP_MXU && node->loop;
        outside += node->def->op_class == TP_OP_MXU && !node->loop;
        stacks += node->def->loop_part == TP_LOOP_STACK;
    }
    cr_expect_eq(inside, 3, "%d", inside); /* x w, h u; d u^T */
    cr_expect_eq(outside, 2, "%d", outside);
    /* the result h; h, c, the four gates and tanh c, which are not computed twice; the gates' gradient */
    cr_expect_eq(stacks, 9, "%d", stacks);
    tp_graph_destroy(compact);
    graph_run_end(&run);
}

/* Scans of a body over [4, 2, 3] with a carry [2, 3] and a tensor [2, 3] from outside. */
static tp_node_id scan_body(tp_graph *g, const tp_node_id *in, tp_scan_body body, bool reverse,
                            tp_node_id outside)
{
    tp_node_id last, stack;
    const tp_scan scan = {.length = 4,
                          .reverse = reverse,
                          .init = &in[1],
                          .xs = &in[0],
                          .carry_count = 1,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = body,
                          .user = &outside};
    tp_op_scan(g, &scan, &last, &stack);
    return tp_op_add(g, stack, last);
}

static void body_with_outside(void *user, tp_graph *g, const tp_node_id *carries,
                              const tp_node_id *slices, tp_node_id *next, tp_node_id *stacked)
{
    const tp_node_id w = *(tp_node_id *)user;
    const tp_node_id mean = tp_op_multiply_scalar(
        g, tp_op_reduce(g, tp_op_multiply(g, carries[0], w), "add", (int64_t[]){1}, 1), 0.25);
    const tp_node_id spread =
        tp_op_broadcast_in_dim(g, mean, (tp_shape){2, {2, 3}}, (int64_t[]){0});
    next[0] = tp_op_tanh(g, tp_op_add(g, tp_op_multiply(g, slices[0], w), spread));
    stacked[0] = tp_op_multiply(g, carries[0], tp_op_logistic(g, slices[0]));
}

static tp_node_id build_outside(tp_graph *g, const tp_node_id *in)
{
    return scan_body(g, in, body_with_outside, false, in[2]);
}

static tp_node_id build_outside_reverse(tp_graph *g, const tp_node_id *in)
{
    return scan_body(g, in, body_with_outside, true, tp_op_tanh(g, in[2]));
}

static void body_without_memory(void *user, tp_graph *g, const tp_node_id *carries,
                                const tp_node_id *slices, tp_node_id *next, tp_node_id *stacked)
{
    (void)user;
    (void)carries;
    next[0] = tp_op_sine(g, slices[0]);
    stacked[0] = carries[0];
}

static tp_node_id build_without_memory(tp_graph *g, const tp_node_id *in)
{
    return scan_body(g, in, body_without_memory, false, in[0]);
}

static void body_with_products(void *user, tp_graph *g, const tp_node_id *carries,
                               const tp_node_id *slices, tp_node_id *next, tp_node_id *stacked)
{
    const tp_node_id w = *(tp_node_id *)user;
    const tp_dot_dims left = {.lhs_contract = {1}, .rhs_contract = {0}, .contract_count = 1};
    const tp_node_id own = tp_op_dot_general(g, carries[0], slices[0],
                                             &(tp_dot_dims){.lhs_batch = {0},
                                                            .rhs_batch = {0},
                                                            .lhs_contract = {1},
                                                            .rhs_contract = {1},
                                                            .batch_count = 1,
                                                            .contract_count = 1},
                                             "f32");
    const tp_node_id mixed = tp_op_dot_general(g, w, tp_op_transpose(g, w, (int64_t[]){1, 0}),
                                               &left, "f32"); /* [2, 2], outside */
    next[0] = tp_op_multiply_scalar(
        g, tp_op_add(g, tp_op_dot_general(g, mixed, slices[0], &left, "f32"), carries[0]), 0.5);
    stacked[0] = tp_op_multiply(
        g, next[0], tp_op_broadcast_in_dim(g, own, (tp_shape){2, {2, 3}}, (int64_t[]){0}));
}

static tp_node_id build_products(tp_graph *g, const tp_node_id *in)
{
    return scan_body(g, in, body_with_products, true, in[2]);
}

static void body_exchange(void *user, tp_graph *g, const tp_node_id *carries,
                          const tp_node_id *slices, tp_node_id *next, tp_node_id *stacked)
{
    next[0] = carries[1];
    next[1] = tp_op_multiply(g, carries[0], slices[0]);
    next[2] = *(tp_node_id *)user;
    stacked[0] = tp_op_add(g, carries[0], tp_op_multiply(g, carries[2], carries[1]));
}

/* The last of the first carry is not looked at; the third is w in all turns but the first. */
static tp_node_id build_exchange(tp_graph *g, const tp_node_id *in)
{
    tp_node_id last[3], stack, w = in[2];
    const tp_node_id init[] = {in[1], in[2], tp_op_tanh(g, in[1])};
    const tp_scan scan = {.length = 4,
                          .init = init,
                          .xs = &in[0],
                          .carry_count = 3,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = body_exchange,
                          .user = &w};
    tp_op_scan(g, &scan, last, &stack);
    return tp_op_add(g, stack, last[1]);
}

Test(op_loop, gradients_against_differences)
{
    static const struct {
        tp_node_id (*build)(tp_graph *graph, const tp_node_id *inputs);
        int inputs;
    } bodies[] = {{build_outside, 3},
                  {build_outside_reverse, 3},
                  {build_without_memory, 2},
                  {build_products, 3},
                  {build_exchange, 3}};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        tp_gradcheck((tp_gradcheck_case){
            .build = bodies[i].build,
            .shapes = {"[4,2,3]", "[2,3]", bodies[i].inputs > 2 ? "[2,3]" : NULL}});
}

Test(op_loop, no_gradient_of_a_value_per_turn)
{
    graph_run run;
    graph_run_begin(&run);
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){3});
    const tp_node_id slice = tp_op_loop_slice(run.graph, 1, x, false);
    tp_node_id d;
    tp_graph_gradients(run.graph, slice, &x, 1, &d);
    EXPECT_FAILURE(tp_graph_check(run.graph), TPUCL_INVALID_ARGUMENT,
                   "has a value per turn of a loop");
    graph_run_end(&run);
}

/* ---- order, liveness, text ---- */

Test(op_loop, runs_after_all_it_reads)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){3, 2});
    const tp_node_id slice = tp_op_loop_slice(g, 1, x, false);
    const tp_node_id negated = tp_op_negate(g, slice);
    const tp_node_id first = tp_op_loop_stack(g, 1, negated, false);
    const tp_node_id late = tp_op_reshape(
        g, tp_op_slice(g, x, (int64_t[]){1, 0}, (int64_t[]){2, 2}, NULL), (tp_shape){1, {2}});
    const tp_node_id sum =
        tp_op_add(g, negated, late); /* in the loop, reads what comes behind it */
    const tp_node_id second = tp_op_loop_stack(g, 1, sum, true);
    tp_node_id order[16];
    EXPECT_OK(tp_graph_check(g));
    EXPECT_OK(tp_loop_order(g, order));
    int32_t place[16];
    for (int32_t i = 0; i < g->node_count; i++)
        place[order[i]] = i;
    cr_assert_lt(place[late], place[slice]);
    cr_assert_eq(place[second] - place[slice], 4);
    const tp_node_id total = tp_op_add(g, first, second);
    const float *in = run.data[0];
    const float *out = graph_run_eval(&run, total)->data;
    for (int t = 0; t < 3; t++)
        for (int i = 0; i < 2; i++)
            cr_assert_eq(out[t * 2 + i], -in[t * 2 + i] + (in[2 + i] - in[(2 - t) * 2 + i]));
    graph_run_end(&run);
}

Test(op_loop, a_circle_through_a_loop_is_refused)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){3, 2});
    const tp_node_id slice = tp_op_loop_slice(g, 1, x, false);
    const tp_node_id first = tp_op_loop_stack(g, 1, slice, false);
    const tp_node_id again = tp_op_loop_slice(g, 1, first, false);
    tp_op_loop_stack(g, 1, again, false);
    EXPECT_OK(tp_graph_check(g));
    EXPECT_FAILURE(tp_graph_verify(g), TPUCL_INVALID_ARGUMENT,
                   "depends on a result of the same loop");
    graph_run_end(&run);
}

Test(op_loop, only_live_carries_are_kept)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph, *compact = NULL;
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){3, 2});
    const tp_node_id init = tp_op_fill(g, TP_F32, (tp_shape){1, {2}}, 0);
    const tp_node_id used = tp_op_loop_carry(g, 1, 3, init),
                     unused = tp_op_loop_carry(g, 1, 3, init);
    const tp_node_id slice = tp_op_loop_slice(g, 1, x, false);
    const tp_node_id sum = tp_op_add(g, used, slice);
    tp_op_loop_last(g, unused, tp_op_multiply(g, unused, slice));
    tp_op_loop_last(g, used, tp_op_tanh(g, sum));
    tp_graph_add_output(g, "sums", tp_op_loop_stack(g, 1, sum, false));
    EXPECT_OK(tp_graph_verify(g));
    EXPECT_OK(tp_graph_compact(g, &compact));
    int32_t carries = 0, lasts = 0;
    for (tp_node_id id = 0; id < compact->node_count; id++) {
        carries += compact->nodes[id].def->loop_part == TP_LOOP_CARRY;
        lasts += compact->nodes[id].def->loop_part == TP_LOOP_LAST;
    }
    cr_assert_eq(carries, 1);
    cr_assert_eq(lasts, 1);
    tp_graph_destroy(compact);
    graph_run_end(&run);
}

Test(op_loop, text_and_back)
{
    graph_run run;
    lstm_graph lstm;
    tp_node_id last[2], stack;
    tp_graph *parsed = NULL;
    tp_str_builder once = {0}, again = {0};
    lstm_begin(&run, &lstm, true);
    lstm_scan(run.graph, &lstm, last, &stack);
    tp_graph_add_output(run.graph, "hs", stack);
    tp_graph_print(run.graph, &once);
    EXPECT_OK(once.status);
    EXPECT_OK(tp_graph_parse(tp_ops_registry(), tp_view_of(once.data), &parsed));
    tp_graph_print(parsed, &again);
    cr_assert_str_eq(once.data, again.data);
    cr_assert_eq(parsed->loop_count, 1);
    for (tp_node_id id = 0; id < parsed->node_count; id++)
        cr_assert_eq(parsed->nodes[id].loop, run.graph->nodes[id].loop);
    tp_str_builder_deinit(&once);
    tp_str_builder_deinit(&again);
    tp_graph_destroy(parsed);
    graph_run_end(&run);
}

/* ---- mistakes ---- */

typedef struct mistake {
    const char *part; /* of the message */
    void (*make)(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry);
} mistake;

static void nest(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry)
{
    (void)x, (void)carry;
    tp_op_loop_slice(g, 2, slice, false);
}

static void mix(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry)
{
    (void)carry;
    tp_op_add(g, slice, tp_op_loop_slice(g, 2, x, false));
}

static void sum_over_cores(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry)
{
    (void)x, (void)carry;
    tp_op_all_reduce(g, slice);
}

static void leave_as_output(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry)
{
    (void)x, (void)carry;
    tp_graph_add_output(g, "y", slice);
}

static void next_of_another_type(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry)
{
    (void)x;
    tp_op_loop_last(g, carry, tp_op_convert(g, slice, TP_BF16));
}

static void last_of_a_slice(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry)
{
    (void)x, (void)carry;
    tp_op_loop_last(g, slice, slice);
}

static void wrong_number(tp_graph *g, tp_node_id x, tp_node_id slice, tp_node_id carry)
{
    (void)slice, (void)carry;
    tp_op_loop_slice(g, 0, x, false);
}

Test(op_loop, mistakes)
{
    static const mistake mistakes[] = {
        {"loops do not nest", nest},
        {"mixes values of loops 1 and 2", mix},
        {"in a loop; take it of the loop's result instead", sum_over_cores},
        {"has a value per turn of a loop", leave_as_output},
        {"loop_last", next_of_another_type},
        {"expected a loop_carry", last_of_a_slice},
        {"loop is 0, expected 1 to", wrong_number},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        graph_run run;
        graph_run_begin(&run);
        const tp_node_id x = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){3, 2});
        const tp_node_id slice = tp_op_loop_slice(run.graph, 1, x, false);
        const tp_node_id carry =
            tp_op_loop_carry(run.graph, 1, 3, tp_op_fill(run.graph, TP_F32, (tp_shape){1, {2}}, 0));
        EXPECT_OK(tp_graph_check(run.graph));
        mistakes[i].make(run.graph, x, slice, carry);
        const tpucl_status status = tp_graph_check(run.graph);
        cr_assert_neq(status, TPUCL_OK, "mistake %zu was not found", i);
        cr_assert(strstr(tpucl_last_error()->message, mistakes[i].part), "%s",
                  tpucl_last_error()->message);
        graph_run_end(&run);
    }
}

Test(op_loop, what_verification_finds)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    const tp_node_id x = graph_run_input(&run, TP_F32, 1, 2, (int64_t[]){3, 2});
    const tp_node_id carry =
        tp_op_loop_carry(g, 1, 3, tp_op_fill(g, TP_F32, (tp_shape){1, {2}}, 0));
    EXPECT_FAILURE(tp_graph_verify(g), TPUCL_INTERNAL, "has 0 loop_last, expected one");
    tp_op_loop_last(g, carry, tp_op_negate(g, carry));
    EXPECT_OK(tp_graph_verify(g));
    const tp_node_id rows = tp_op_slice(g, x, (int64_t[]){0, 0}, (int64_t[]){2, 2}, NULL);
    tp_op_loop_slice(g, 1, rows, false);
    EXPECT_OK(tp_graph_check(g));
    EXPECT_FAILURE(tp_graph_verify(g), TPUCL_INTERNAL, "has 2 turns, others 3");
    graph_run_end(&run);
}

/* ---- conditional ---- */

static void halve(void *user, tp_graph *g, tp_node_id *out)
{
    out[0] = tp_op_multiply_scalar(g, *(tp_node_id *)user, 0.5);
}

static void logarithm(void *user, tp_graph *g, tp_node_id *out)
{
    out[0] = tp_op_log(g, *(tp_node_id *)user);
}

Test(op_loop, conditional)
{
    graph_run run;
    graph_run_begin(&run);
    tp_graph *g = run.graph;
    tp_node_id x = graph_run_input(&run, TP_F32, 1, 1, (int64_t[]){6});
    const tp_node_id yes = tp_op_compare(g, "EQ", tp_op_step(g), tp_op_scalar(g, TP_S32, 0));
    tp_node_id result;
    tp_op_conditional(g, yes, halve, logarithm, &x, 1, &result);
    const float *in = run.data[0], *out = graph_run_eval(&run, result)->data;
    for (int i = 0; i < 6; i++)
        cr_assert_eq(out[i], in[i] * 0.5f);
    tp_op_conditional(g, x, halve, logarithm, &x, 1, &result);
    EXPECT_FAILURE(tp_graph_check(g), TPUCL_INVALID_ARGUMENT, "by a pred scalar");
    graph_run_end(&run);
}

/* ---- lack of memory ---- */

static tpucl_status whole_life_of_a_loop(void *user)
{
    (void)user;
    lstm_graph lstm = {.turns = 2, .batch = 1, .features = 2, .units = 1, .precision = "default"};
    tp_graph *g = NULL, *compact = NULL;
    tp_reference *reference = NULL;
    const tp_reference_options options = {.cores = 1};
    const float zeros[4] = {0};
    const void *inputs[] = {zeros, zeros, zeros};
    tp_node_id last[2] = {TP_NO_NODE}, stack = TP_NO_NODE, d = TP_NO_NODE;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    lstm_ports(g, &lstm);
    lstm_scan(g, &lstm, last, &stack);
    tp_graph_gradients(g, tp_op_reduce(g, stack, "add", NULL, 0), &lstm.u, 1, &d);
    if (!g->has_failed) tp_graph_add_output(g, "du", d);
    tpucl_status status = tp_graph_check(g);
    if (status == TPUCL_OK) status = tp_graph_compact(g, &compact);
    if (status == TPUCL_OK) status = tp_reference_create(compact, &options, &reference);
    if (status == TPUCL_OK) status = tp_reference_step(reference, inputs, 0);
    tp_reference_destroy(reference);
    tp_graph_destroy(compact);
    tp_graph_destroy(g);
    return status;
}

Test(op_loop, every_allocation_may_fail)
{
    alloc_loop_run(whole_life_of_a_loop, NULL);
}
