/* SPDX-License-Identifier: Apache-2.0
 * The list of graphs. */
#include "verify/graph_cases.h"

#include <math.h>
#include <string.h>
#include "core/json.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "model/loss_expression.h"
#include "model/model.h"
#include "ops/registry.h"

static tp_shape shape_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    tp_shape shape = {.rank = rank, .dims = {a, b, c, d}};
    return shape;
}

static tpucl_status finish(tp_graph *graph, tp_graph **out_graph)
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
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
    return finish(g, out_graph);
}

/* A training step of a model given as the configuration's "model" object. */
static tpucl_status build_training(const char *text, tp_model_policy policy, tp_graph **out_graph)
{
    tp_json_document *document = NULL;
    tp_model *model = NULL;
    tp_optim_config optimizer = tp_optim_defaults(TP_OPTIM_ADAM);
    const tp_cross_shard cross_shard = {.shards = 3};
    if (policy == TP_POLICY_BFLOAT16) {
        optimizer.rounds_stochastically = true;
        optimizer.first_moment = optimizer.gradients = TP_BF16;
    }
    const tp_model_input input = {
        .dtype = TP_U8, .shape = shape_of(3, 8, 8, 1, 0), .scale = 1.0 / 255.0};
    const tp_model_options options = {
        .policy = policy,
        .precision = policy == TP_POLICY_FLOAT32 ? TP_PRECISION_F32 : TP_PRECISION_DEFAULT};
    const tp_model_train train = {.batch = 6,
                                  .loss = TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY,
                                  .from_logits = true,
                                  .optimizer = &optimizer,
                                  .cross_shard = &cross_shard};
    TP_TRY(tp_json_parse(text, strlen(text), "verify", &document));
    tpucl_status status = tp_model_create(tp_json_root(document), &input, &options, &model);
    if (status == TPUCL_OK) status = tp_model_build_train(model, &train, out_graph);
    tp_model_destroy(model);
    tp_json_destroy(document);
    return status;
}

static const char dense_model[] =
    "{\"layers\":[{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":33,\"activation\":\"relu\"},"
    "{\"type\":\"Dropout\",\"rate\":0.3},{\"type\":\"Dense\",\"units\":10}]}";
static const char conv_model[] =
    "{\"layers\":[{\"type\":\"Conv2D\",\"filters\":7,\"kernel_size\":3,\"padding\":\"same\","
    "\"activation\":\"relu\"},{\"type\":\"MaxPooling2D\"},{\"type\":\"BatchNormalization\"},"
    "{\"type\":\"Conv2D\",\"filters\":5,\"kernel_size\":2,\"strides\":2},"
    "{\"type\":\"AveragePooling2D\"},{\"type\":\"Flatten\"},{\"type\":\"Dense\",\"units\":10,"
    "\"dtype\":\"float32\"}]}";
/* Branches, a layer called twice, channels convolved by themselves, a transposed convolution. */
static const char branch_model[] =
    "{\"layers\":[{\"type\":\"SeparableConv2D\",\"name\":\"a\",\"filters\":4,\"kernel_size\":3,"
    "\"padding\":\"same\"},{\"type\":\"PReLU\"},{\"type\":\"Conv2D\",\"name\":\"b\",\"filters\":4,"
    "\"kernel_size\":3,\"padding\":\"same\",\"groups\":2},{\"layer\":\"b\",\"name\":\"c\"},"
    "{\"type\":\"Add\",\"name\":\"d\",\"inputs\":[\"a\",\"c\"]},"
    "{\"type\":\"MaxPooling2D\"},{\"type\":\"Conv2DTranspose\",\"filters\":4,\"kernel_size\":3,"
    "\"strides\":2,\"padding\":\"same\"},{\"type\":\"Cropping2D\",\"name\":\"e\",\"cropping\":2},"
    "{\"type\":\"AveragePooling2D\",\"name\":\"f\",\"inputs\":\"d\"},"
    "{\"type\":\"Concatenate\",\"inputs\":[\"e\",\"f\"]},"
    "{\"type\":\"UpSampling2D\",\"interpolation\":\"bilinear\"},{\"type\":\"GlobalMaxPooling2D\"},"
    "{\"type\":\"Dense\",\"units\":10}]}";

static tpucl_status build_branch(tp_graph **out_graph)
{
    return build_training(branch_model, TP_POLICY_MIXED_BFLOAT16, out_graph);
}

static tpucl_status build_dense_bf16(tp_graph **out_graph)
{
    return build_training(dense_model, TP_POLICY_MIXED_BFLOAT16, out_graph);
}

static tpucl_status build_dense_f32(tp_graph **out_graph)
{
    return build_training(dense_model, TP_POLICY_FLOAT32, out_graph);
}

static tpucl_status build_conv_bf16(tp_graph **out_graph)
{
    return build_training(conv_model, TP_POLICY_MIXED_BFLOAT16, out_graph);
}

static tpucl_status build_conv_f32(tp_graph **out_graph)
{
    return build_training(conv_model, TP_POLICY_FLOAT32, out_graph);
}

static tpucl_status build_conv_pure(tp_graph **out_graph)
{
    return build_training(conv_model, TP_POLICY_BFLOAT16, out_graph);
}

/* Two steps' worth of every optimizer on a matrix and a vector of its own, clipped, decayed and averaged. */
static tpucl_status build_optimizers(tp_graph **out_graph)
{
#define KIND(id, symbol, name, keys) TP_OPTIM_##id,
    static const tp_optim_kind kinds[] = {TP_OPTIMIZER_LIST(KIND)};
#undef KIND
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    const tp_shape shapes[2] = {shape_of(2, 19, 23, 0, 0), shape_of(1, 37, 0, 0, 0)};
    tp_optim_gradient gradients[2] = {{0, tp_graph_add_input(g, "matrix", TP_F32, shapes[0])},
                                      {0, tp_graph_add_input(g, "vector", TP_F32, shapes[1])}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        tp_optim_config config = tp_optim_defaults(kinds[k]);
        config.weight_decay = 0.01;
        config.momentum = config.momentum > 0 ? config.momentum : 0.5;
        config.global_clipnorm = k % 2 ? 0.5 : 0;
        config.clip_at = k % 4 == 1 ? TP_CLIP_PER_REPLICA : TP_CLIP_AFTER_SUM;
        config.use_ema = k % 3 == 0;
        config.centered = config.amsgrad = true;
        config.first_moment = k % 3 == 1 ? TP_BF16 : TP_F32;
        config.second_moment = k % 3 == 2 ? TP_BF16 : TP_F32;
        config.gradients = k % 4 == 3 ? TP_BF16 : TP_F32;
        config.rounds_stochastically = k % 2 == 0; /* the bf16 ones */
        for (int i = 0; i < 2; i++) {
            const tp_variable variable = {.name = tp_arena_printf(g->arena, "w%zu_%d", k, i),
                                          .dtype = k % 5 ? TP_F32 : TP_BF16,
                                          .shape = shapes[i],
                                          .init = TP_INIT_NORMAL,
                                          .init_b = 0.3,
                                          .is_trainable = true,
                                          .is_model = true};
            if (!variable.name) break;
            gradients[i].variable = g->variable_count;
            tp_graph_add_variable(g, &variable);
        }
        tp_cross_shard_apply(g, &config, gradients, 2);
    }
    return finish(g, out_graph);
}

/* Every loss of results and labels in (0, 1), and the gradient of their sum. */
static tpucl_status build_losses(tp_graph **out_graph)
{
#define KIND(id, symbol, name, keys) TP_MODEL_LOSS_##id,
    static const tp_model_loss kinds[] = {TP_LOSS_LIST(KIND)};
#undef KIND
#define NAME(id, symbol, name, keys) name,
    static const char *const names[] = {TP_LOSS_LIST(NAME)};
#undef NAME
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(3, 5, 7, 6, 0));
    const tp_node_id y = tp_graph_add_input(g, "y", TP_F32, shape_of(3, 5, 7, 6, 0));
    const tp_node_id z = tp_graph_add_input(g, "z", TP_F32, shape_of(2, 5, 7, 0, 0));
    const tp_node_id label = tp_op_logistic(g, y);
    const tp_node_id classes = tp_op_convert(
        g, tp_op_floor(g, tp_op_multiply_scalar(g, tp_op_logistic(g, z), 5.9)), TP_S32);
    const tp_loss_options options = {
        .expression =
            "where(y_true > 0.4, abs(y_pred - y_true), 0) * expand_dims(mean(y_pred, axis=-1), -1)",
        .ignore_class = (double)NAN};
    const tp_node_id ones =
        tp_op_broadcast_to(g, tp_op_scalar(g, TP_F32, 1), shape_of(1, 5, 0, 0, 0));
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const bool is_expression = kinds[k] == TP_MODEL_LOSS_EXPRESSION;
        tp_loss_input input = {.kind = kinds[k],
                               .result = tp_op_logistic(g, x),
                               .logits = TP_NO_NODE,
                               .label = tp_loss_is_sparse(kinds[k]) ? classes : label,
                               .options = is_expression ? &options : NULL};
        if (is_expression) {
            tp_loss_name_all(g, &input, ones, TP_NO_NODE);
            const tpucl_status status = tp_loss_read_values(g, &input);
            if (status != TPUCL_OK) {
                tp_graph_destroy(g);
                return status;
            }
        }
        const tp_node_id loss = tp_loss_per_example(g, &input);
        tp_node_id gradient;
        tp_graph_add_output(g, names[k], loss);
        tp_graph_gradients(g, tp_op_reduce(g, loss, "add", NULL, 0), &x, 1, &gradient);
        const char *name = tp_arena_printf(g->arena, "d %s", names[k]);
        if (name) tp_graph_add_output(g, name, gradient);
    }
    return finish(g, out_graph);
}

/* The sums of every metric of results and labels in (0, 1), and of classes where a metric wants those. */
static tpucl_status build_metrics(tp_graph **out_graph)
{
#define KIND(id, symbol, name) TP_METRIC_##id,
    static const tp_metric_kind kinds[] = {TP_METRIC_LIST(KIND)};
#undef KIND
    tp_metric_options options = tp_metric_defaults();
    options.expression = "y_pred > 0.4 & y_true > 0.2";
    options.weight = "where(y_true > 0, y_pred, 0)";
    tp_graph *g = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &g));
    const tp_node_id x = tp_graph_add_input(g, "x", TP_F32, shape_of(3, 5, 7, 6, 0));
    const tp_node_id y = tp_graph_add_input(g, "y", TP_F32, shape_of(3, 5, 7, 6, 0));
    const tp_node_id w = tp_graph_add_input(g, "w", TP_F32, shape_of(1, 5, 0, 0, 0));
    tp_loss_input input = {.kind = TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY,
                           .result = tp_op_logistic(g, x),
                           .logits = TP_NO_NODE,
                           .label = tp_op_maximum(g, y, tp_op_scalar(g, TP_F32, 0))};
    const tp_loss_weights weights = {.weight = tp_op_logistic(g, w)};
    tp_loss_name_all(g, &input, weights.weight, TP_NO_NODE);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        tp_metric_parts parts;
        tpucl_status status = tp_metric_build(g, kinds[k], &options, &input, &weights, &parts);
        if (status != TPUCL_OK) {
            tp_graph_destroy(g);
            return status;
        }
        for (int32_t i = 0; i < parts.count; i++) {
            const char *name = tp_arena_printf(g->arena, "%s %d", tp_metric_name(kinds[k]), (int)i);
            if (name) tp_graph_add_output(g, name, tp_op_all_reduce(g, parts.nodes[i]));
        }
    }
    return finish(g, out_graph);
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
        {"optimizers", build_optimizers, 3, 2, 2, false, false},
        {"losses", build_losses, 2, 0, 1, false, false},
        {"metrics", build_metrics, 3, 0, 1, false, false},
        {"order", build_order, 2, 0, 1, true, false},
        {"attention", build_attention, 2, 0, 1, false, false},
        {"collectives", build_collectives, 3, 2, 1, true, false},
        {"sums over neighbours", build_neighbours, 6, 2, 1, false, false},
        {"loops", build_loop, 3, 2, 2, false, false},
        {"training a dense network, bf16", build_dense_bf16, 3, 2, 2, false, false},
        {"training a dense network, f32", build_dense_f32, 3, 0, 2, false, false},
        {"training a convolutional network, bf16", build_conv_bf16, 3, 0, 2, false, false},
        {"training a convolutional network, f32", build_conv_f32, 3, 2, 2, false, false},
        {"training a convolutional network, all bf16", build_conv_pure, 3, 2, 2, false, false},
        {"training a graph of layers", build_branch, 3, 2, 2, false, false},
    };
    *out_count = sizeof cases / sizeof *cases;
    return cases;
}
