/* SPDX-License-Identifier: Apache-2.0
 * The list of graphs, and those that are made of ops. */
#include "verify/graph_cases.h"

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "ops/registry.h"
#include "verify/graph_cases_internal.h"

tpucl_status tp_graph_case_finish(tp_graph *graph, tp_graph **out_graph)
{
    tpucl_status status = tp_graph_check(graph);
    if (status != TPUCL_OK)
        tp_graph_destroy(graph);
    else
        *out_graph = graph;
    return status;
}

/* Per-core outputs of one element-wise function each. */
static tpucl_status build_unary(tp_graph **out_graph)
{
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(2, 61, 67, 0, 0));
#define ADD_OUTPUT(name) tp_graph_add_output(g, #name, tp_op_##name(g, x));
    ADD_OUTPUT(abs)
    ADD_OUTPUT(negate)
    ADD_OUTPUT(sign)
    ADD_OUTPUT(exponential)
    ADD_OUTPUT(exponential_minus_one)
    ADD_OUTPUT(log)
    ADD_OUTPUT(log_plus_one)
    ADD_OUTPUT(sqrt)
    ADD_OUTPUT(rsqrt)
    ADD_OUTPUT(tanh)
    ADD_OUTPUT(logistic)
    ADD_OUTPUT(erf)
    ADD_OUTPUT(floor)
    ADD_OUTPUT(ceil)
    ADD_OUTPUT(round_nearest_even)
    ADD_OUTPUT(is_finite)
#undef ADD_OUTPUT
    tp_graph_add_output(g, "bf16", tp_op_convert(g, x, TP_BF16));
    tp_graph_add_output(g, "s32", tp_op_convert(g, x, TP_S32));
    return tp_graph_case_finish(g, out_graph);
}

static tpucl_status build_binary(tp_graph **out_graph)
{
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(2, 53, 71, 0, 0));
    tp_node_id y = tp_graph_add_input(g, "y", TP_F32, shape_of(2, 53, 71, 0, 0));
    tp_node_id row = tp_graph_add_input(g, "row", TP_F32, shape_of(1, 71, 0, 0, 0));
    tp_graph_add_output(g, "add", tp_op_add(g, x, row));
    tp_graph_add_output(g, "subtract", tp_op_subtract(g, x, y));
    tp_graph_add_output(g, "multiply", tp_op_multiply(g, x, y));
    tp_graph_add_output(g, "divide", tp_op_divide(g, x, y));
    tp_graph_add_output(g, "maximum", tp_op_maximum(g, x, y));
    tp_graph_add_output(g, "minimum", tp_op_minimum(g, x, row));
    tp_graph_add_output(g, "power", tp_op_power(g, x, y));
    tp_graph_add_output(
        g, "select",
        tp_op_select(g, tp_op_compare(g, "LT", x, y), x, tp_op_multiply_scalar(g, y, 3)));
    /* a contraction or a reassociation shows here */
    tp_graph_add_output(
        g, "chain",
        tp_op_add(g, tp_op_multiply(g, x, y), tp_op_multiply(g, tp_op_add_scalar(g, x, 0.1), row)));
    return tp_graph_case_finish(g, out_graph);
}

static tpucl_status build_reduce(tp_graph **out_graph)
{
    static const int64_t rows[] = {1}, columns[] = {0};
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_node_id small = tp_graph_add_input(g, "small", TP_F32, shape_of(2, 131, 10, 0, 0));
    tp_node_id large = tp_graph_add_input(g, "large", TP_F32, shape_of(2, 8195, 5, 0, 0));
    tp_node_id wide = tp_graph_add_input(g, "wide", TP_F32, shape_of(2, 3, 16500, 0, 0));
    tp_graph_add_output(g, "small_rows", tp_op_reduce(g, small, "add", rows, 1));
    tp_graph_add_output(g, "small_rows_max", tp_op_reduce(g, small, "max", rows, 1));
    tp_graph_add_output(g, "small_columns", tp_op_reduce(g, small, "add", columns, 1));
    tp_graph_add_output(g, "large_columns", tp_op_reduce(g, large, "add", columns, 1));
    tp_graph_add_output(g, "large_all", tp_op_reduce(g, large, "add", NULL, 0));
    tp_graph_add_output(g, "wide_rows", tp_op_reduce(g, wide, "add", rows, 1));
    tp_graph_add_output(g, "wide_rows_min", tp_op_reduce(g, wide, "min", rows, 1));
    tp_graph_add_output(g, "argmax", tp_op_argmax(g, small, 1));
    tp_graph_add_output(
        g, "sum",
        tp_op_all_reduce(g, tp_op_reduce(g, tp_op_multiply(g, small, small), "add", NULL, 0)));
    return tp_graph_case_finish(g, out_graph);
}

static tpucl_status build_shapes(tp_graph **out_graph)
{
    static const int64_t swap[] = {0, 2, 1}, start[] = {1, 0, 3}, limit[] = {4, 9, 17},
                         strides[] = {1, 2, 3}, low[] = {0, 2, 1}, high[] = {1, 0, 2}, axis[] = {2};
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(3, 4, 9, 17, 0));
    tp_node_id parts[2] = {x, tp_op_multiply(g, x, x)};
    tp_graph_add_output(g, "transpose", tp_op_transpose(g, x, swap));
    tp_graph_add_output(g, "slice", tp_op_slice(g, x, start, limit, strides));
    tp_graph_add_output(g, "pad", tp_op_pad(g, x, tp_op_scalar(g, TP_F32, -1.5), low, high, NULL));
    tp_graph_add_output(g, "concatenate", tp_op_concatenate(g, parts, 2, 1));
    tp_graph_add_output(g, "reverse", tp_op_reverse(g, x, axis, 1));
    tp_graph_add_output(g, "reshape",
                        tp_op_add_scalar(g, tp_op_reshape(g, x, shape_of(2, 36, 17, 0, 0)), 1));
    return tp_graph_case_finish(g, out_graph);
}

static tpucl_status build_random(tp_graph **out_graph)
{
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_shape shape = shape_of(2, 37, 41, 0, 0);
    tp_graph_add_output(g, "uniform", tp_op_uniform(g, TP_F32, shape, 1));
    tp_graph_add_output(g, "normal", tp_op_normal(g, TP_F32, shape, 2));
    tp_graph_add_output(g, "bernoulli",
                        tp_op_convert(g, tp_op_bernoulli(g, shape, 0.3, 3), TP_F32));
    const tp_node_id x = tp_op_normal(g, TP_F32, shape, 4), bits = tp_op_random_bits(g, shape, 5);
    tp_graph_add_output(g, "bits", bits);
    tp_graph_add_output(g, "rounded", tp_op_stochastic_round(g, x, bits));
    return tp_graph_case_finish(g, out_graph);
}

static tpucl_status build_windows(tp_graph **out_graph)
{
    const tp_window overlapping = {.size = {3, 2}, .strides = {2, 1}, .padding = {1, 1, 0, 1}};
    const tp_window tiles = {.size = {2, 2}, .strides = {2, 2}};
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_shape image = shape_of(4, 3, 10, 8, 5);
    tp_node_id x = tp_graph_add_input(g, "x", TP_F32, image);
    tp_node_id d = tp_graph_add_input(g, "d", TP_F32, shape_of(4, 3, 5, 4, 5));
    tp_graph_add_output(g, "max", tp_op_reduce_window(g, x, "max", &overlapping));
    tp_graph_add_output(g, "sum", tp_op_reduce_window(g, x, "add", &overlapping));
    tp_graph_add_output(g, "max_tiles", tp_op_reduce_window(g, x, "max", &tiles));
    tp_graph_add_output(g, "scatter", tp_op_select_and_scatter(g, x, d, &tiles));
    tp_graph_add_output(g, "spread", tp_op_reduce_window_grad(g, d, image, &tiles));
    return tp_graph_case_finish(g, out_graph);
}

/* Convolutions of groups and their gradients, for every way in which they are computed: a channel each, several
 * filters for a channel, few and many channels. */
static tpucl_status build_groups(tp_graph **out_graph)
{
    static const struct {
        const char *name, *precision;
        int64_t channels, filters, groups;
    } rows[] = {{"depthwise", "default", 19, 19, 19},
                {"multiplier", "f32", 6, 12, 6},
                {"few channels", "high", 6, 4, 2},
                {"many channels", "default", 16, 24, 2}};
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tp_window window = {
            .strides = {2, 1}, .padding = {1, 1, 0, 2}, .groups = rows[i].groups};
        const tp_shape x_shape = shape_of(4, 2, 7, 6, rows[i].channels);
        const tp_shape w_shape =
            shape_of(4, 3, 3, rows[i].channels / rows[i].groups, rows[i].filters);
        const tp_node_id x =
            tp_graph_add_input(g, tp_arena_printf(g->arena, "x%zu", i), TP_F32, x_shape);
        const tp_node_id w =
            tp_graph_add_input(g, tp_arena_printf(g->arena, "w%zu", i), TP_F32, w_shape);
        const tp_node_id y = tp_op_convolution(g, x, w, &window, rows[i].precision);
        const tp_node_id d = tp_op_add_scalar(g, y, 0.5);
        tp_graph_add_output(g, rows[i].name, tp_op_maximum(g, d, tp_op_scalar(g, TP_F32, 0)));
        tp_graph_add_output(
            g, tp_arena_printf(g->arena, "%s dx", rows[i].name),
            tp_op_convolution_input_grad(g, d, w, x_shape, &window, rows[i].precision));
        tp_graph_add_output(
            g, tp_arena_printf(g->arena, "%s dw", rows[i].name),
            tp_op_convolution_filter_grad(g, x, d, w_shape, &window, rows[i].precision));
    }
    return tp_graph_case_finish(g, out_graph);
}

/* Indices are 0 to 9, so that some lie outside. */
static tpucl_status build_memory(tp_graph **out_graph)
{
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    const tp_index_dims boxes = {
        .window = {0, 2}, .window_count = 2, .map = {1, 0}, .map_count = 2, .vector_dim = 1};
    const int64_t slices[] = {2, 3};
    tp_node_id table = tp_graph_add_input(g, "table", TP_F32, shape_of(2, 8, 37, 0, 0));
    tp_node_id rows = tp_graph_add_input(g, "rows", TP_S32, shape_of(1, 70, 0, 0, 0));
    tp_node_id pairs = tp_graph_add_input(g, "pairs", TP_S32, shape_of(2, 9, 2, 0, 0));
    tp_node_id columns = tp_graph_add_input(g, "columns", TP_S32, shape_of(2, 8, 5, 0, 0));
    tp_node_id taken = tp_op_take(g, table, rows, 0);
    tp_node_id box = tp_op_gather(g, table, pairs, &boxes, slices, "zero");
    tp_node_id along = tp_op_take_along_axis(g, table, columns, 1);
    tp_graph_add_output(g, "take", taken);
    tp_graph_add_output(g, "gather", box);
    tp_graph_add_output(g, "take_along_axis", along);
    /* the gradient of an embedding */
    const tp_index_dims embedding = {.window = {1},
                                     .window_count = 1,
                                     .collapsed = {0},
                                     .collapsed_count = 1,
                                     .map = {0},
                                     .map_count = 1,
                                     .vector_dim = 1};
    tp_node_id zeros = tp_op_fill(g, TP_F32, shape_of(2, 8, 37, 0, 0), 0);
    tp_graph_add_output(g, "embedding",
                        tp_op_scatter(g, zeros, rows, taken, &embedding, "add", "clamp"));
    tp_graph_add_output(g, "scatter", tp_op_scatter(g, table, pairs, box, &boxes, "add", "skip"));
    tp_graph_add_output(g, "replace", tp_op_put_along_axis(g, table, columns, along, 1, "replace"));
    tp_graph_add_output(g, "scatter_max",
                        tp_op_scatter(g, table, pairs, box, &boxes, "max", "clamp"));
    return tp_graph_case_finish(g, out_graph);
}

/* Attention over more than a block of keys and its gradient, in both precisions. */
static tpucl_status build_attention(tp_graph **out_graph)
{
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    const tp_node_id in[] = {tp_graph_add_input(g, "q", TP_F32, shape_of(4, 2, 75, 4, 20)),
                             tp_graph_add_input(g, "k", TP_F32, shape_of(4, 2, 135, 2, 20)),
                             tp_graph_add_input(g, "v", TP_F32, shape_of(4, 2, 135, 2, 9))};
    const tp_node_id m = tp_graph_add_input(g, "m", TP_F32, shape_of(4, 2, 1, 75, 135));
    const tp_node_id mask = tp_op_compare(g, "GT", m, tp_op_scalar(g, TP_F32, -0.5));
    for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
        const tp_attention_options options = {
            .scale = 0.2, .is_causal = is_bf16, .dropout = is_bf16 ? 0.25 : 0, .stream = 1};
        tp_node_id x[3], gradients[3];
        for (int i = 0; i < 3; i++)
            x[i] = tp_op_convert(g, in[i], is_bf16 ? TP_BF16 : TP_F32);
        const tp_node_id seen =
            tp_op_attention(g, x[0], x[1], x[2], mask, &options, is_bf16 ? "default" : "f32");
        tp_graph_gradients(g, tp_op_reduce(g, tp_op_multiply(g, seen, seen), "add", NULL, 0), in, 3,
                           gradients);
        const char *tag = is_bf16 ? "bf16" : "f32";
        const tp_node_id outputs[] = {seen, gradients[0], gradients[1], gradients[2]};
        for (int i = 0; i < 4; i++) {
            const char *name = tp_arena_printf(g->arena, "%s %d", tag, i);
            if (name) tp_graph_add_output(g, name, outputs[i]);
        }
    }
    return tp_graph_case_finish(g, out_graph);
}

static tpucl_status build_order(tp_graph **out_graph)
{
    static const int64_t box[] = {3, 9};
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(2, 6, 139, 0, 0));
    tp_node_id start = tp_graph_add_input(g, "start", TP_S32, shape_of(1, 2, 0, 0, 0));
    tp_node_id where, top = tp_op_top_k(g, x, 5, &where);
    tp_graph_add_output(g, "top_k", top);
    tp_graph_add_output(g, "top_k_indices", where);
    tp_graph_add_output(g, "sort", tp_op_sort(g, x, 1, false));
    tp_graph_add_output(g, "sort_falling", tp_op_sort(g, x, 0, true));
    tp_graph_add_output(g, "argsort", tp_op_argsort(g, x, 1, true));
    tp_graph_add_output(g, "cumulative", tp_op_cumulative(g, x, "add", 0, false, false));
    tp_graph_add_output(g, "cumulative_max", tp_op_cumulative(g, x, "max", 1, true, true));
    tp_node_id slice = tp_op_dynamic_slice(g, x, start, box);
    tp_graph_add_output(g, "dynamic_slice", slice);
    tp_graph_add_output(g, "dynamic_update_slice", tp_op_dynamic_update_slice(g, x, slice, start));
    return tp_graph_case_finish(g, out_graph);
}

/* For the case's three cores. */
static tpucl_status build_collectives(tp_graph **out_graph)
{
    static const int64_t pairs[] = {2, 0, 0, 1};
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(2, 5, 6, 0, 0));
    tp_graph_add_output(g, "all_gather", tp_op_all_gather(g, x, 0, 3));
    tp_graph_add_output(g, "reduce_scatter", tp_op_reduce_scatter(g, x, 1, 3));
    tp_graph_add_output(g, "collective_permute", tp_op_collective_permute(g, x, pairs, 2, 3));
    tp_graph_add_output(g, "cross_replica_sum", tp_op_cross_replica_sum(g, x, 3, 3));
    return tp_graph_case_finish(g, out_graph);
}

/* Sums over some of the cores, and what their gradient makes of a loss that each core has its own share of. */
static tpucl_status build_neighbours(tp_graph **out_graph)
{
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(2, 5, 6, 0, 0));
    const tp_node_id pairs = tp_op_cross_replica_sum(g, x, 2, 6);
    const tp_node_id loss = tp_op_reduce(g, tp_op_multiply(g, pairs, x), "add", NULL, 0);
    tp_node_id gradient;
    tp_graph_gradients(g, loss, &x, 1, &gradient);
    tp_graph_add_output(g, "pairs", pairs);
    tp_graph_add_output(g, "threes", tp_op_cross_replica_sum(g, pairs, 3, 6));
    tp_graph_add_output(g, "gradient", gradient);
    return tp_graph_case_finish(g, out_graph);
}

/* h' = tanh(x + h u): a simple recurrent layer. */
static void recurrent_turn(void *user, tp_graph *g, const tp_node_id *carries,
                           const tp_node_id *slices, tp_node_id *out_next, tp_node_id *out_stacked)
{
    const tp_node_id *u = user;
    out_next[0] =
        tp_op_tanh(g, tp_op_add(g, slices[0], tp_op_matmul(g, carries[0], *u, "default")));
    out_stacked[0] = out_next[0];
}

/* A loop and its gradient: slices, carries, stacks, products in a turn and behind the loop. */
static tpucl_status build_loop(tp_graph **out_graph)
{
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(3, 7, 5, 19, 0));
    tp_node_id h = tp_graph_add_input(g, "h", TP_F32, shape_of(2, 5, 19, 0, 0));
    tp_node_id u = tp_graph_add_input(g, "u", TP_F32, shape_of(2, 19, 19, 0, 0));
    tp_node_id last, stack, wrt[] = {x, h, u}, d[3];
    const tp_scan scan = {.length = 7,
                          .reverse = true,
                          .init = &h,
                          .xs = &x,
                          .carry_count = 1,
                          .xs_count = 1,
                          .stack_count = 1,
                          .body = recurrent_turn,
                          .user = &u};
    tp_op_scan(g, &scan, &last, &stack);
    tp_node_id loss = tp_op_add(g, tp_op_reduce(g, tp_op_multiply(g, stack, x), "add", NULL, 0),
                                tp_op_reduce(g, last, "add", NULL, 0));
    tp_graph_gradients(g, loss, wrt, 3, d);
    tp_graph_add_output(g, "loss", loss);
    tp_graph_add_output(g, "stack", stack);
    tp_graph_add_output(g, "dx", d[0]);
    tp_graph_add_output(g, "dh", d[1]);
    tp_graph_add_output(g, "du", d[2]);
    return tp_graph_case_finish(g, out_graph);
}

const tp_graph_case *tp_graph_cases(size_t *out_count)
{
    static const tp_graph_case cases[] = {
        {"element-wise functions", build_unary, 1, 0, 2, true, true},
        {"element-wise arithmetic", build_binary, 2, 1, 2, true, true},
        {"reductions", build_reduce, 3, 2, 1, false, true},
        {"shapes", build_shapes, 2, 0, 1, false, true},
        {"random numbers", build_random, 3, 2, 2, false, true},
        {"windows", build_windows, 2, 0, 1, false, true},
        {"convolutions of groups", build_groups, 2, 0, 1, false, false},
        {"gather and scatter", build_memory, 2, 0, 1, true, false},
        {"optimizers", tp_graph_case_optimizers, 3, 2, 2, false, false},
        {"losses", tp_graph_case_losses, 2, 0, 1, false, false},
        {"metrics", tp_graph_case_metrics, 3, 0, 1, false, false},
        {"order", build_order, 2, 0, 1, true, false},
        {"attention", build_attention, 2, 0, 1, false, false},
        {"collectives", build_collectives, 3, 2, 1, true, false},
        {"sums over neighbours", build_neighbours, 6, 2, 1, false, false},
        {"loops", build_loop, 3, 2, 2, false, false},
        {"training a dense network, bf16", tp_graph_case_dense_bf16, 3, 2, 2, false, false},
        {"training a dense network, f32", tp_graph_case_dense_f32, 3, 0, 2, false, false},
        {"training a convolutional network, bf16", tp_graph_case_conv_bf16, 3, 0, 2, false, false},
        {"training a convolutional network, f32", tp_graph_case_conv_f32, 3, 2, 2, false, false},
        {"training a convolutional network, all bf16", tp_graph_case_conv_pure, 3, 2, 2, false,
         false},
        {"training a graph of layers", tp_graph_case_branch, 3, 2, 2, false, false},
    };
    *out_count = sizeof cases / sizeof *cases;
    return cases;
}
