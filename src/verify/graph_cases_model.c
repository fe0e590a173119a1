/* SPDX-License-Identifier: Apache-2.0
 * Graphs of what models are trained with: layers in training steps, optimizers, losses, metrics. */
#include <math.h>
#include <string.h>
#include "core/json.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "model/loss_expression.h"
#include "model/model.h"
#include "ops/registry.h"
#include "verify/graph_cases_internal.h"

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

tpucl_status tp_graph_case_branch(tp_graph **out_graph)
{
    return build_training(branch_model, TP_POLICY_MIXED_BFLOAT16, out_graph);
}

tpucl_status tp_graph_case_dense_bf16(tp_graph **out_graph)
{
    return build_training(dense_model, TP_POLICY_MIXED_BFLOAT16, out_graph);
}

tpucl_status tp_graph_case_dense_f32(tp_graph **out_graph)
{
    return build_training(dense_model, TP_POLICY_FLOAT32, out_graph);
}

tpucl_status tp_graph_case_conv_bf16(tp_graph **out_graph)
{
    return build_training(conv_model, TP_POLICY_MIXED_BFLOAT16, out_graph);
}

tpucl_status tp_graph_case_conv_f32(tp_graph **out_graph)
{
    return build_training(conv_model, TP_POLICY_FLOAT32, out_graph);
}

tpucl_status tp_graph_case_conv_pure(tp_graph **out_graph)
{
    return build_training(conv_model, TP_POLICY_BFLOAT16, out_graph);
}

/* Two steps' worth of every optimizer on a matrix and a vector of its own, clipped, decayed and averaged. */
tpucl_status tp_graph_case_optimizers(tp_graph **out_graph)
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
    return tp_graph_case_finish(g, out_graph);
}

/* Every loss of results and labels in (0, 1), and the gradient of their sum. */
tpucl_status tp_graph_case_losses(tp_graph **out_graph)
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
    return tp_graph_case_finish(g, out_graph);
}

/* The sums of every metric of results and labels in (0, 1), and of classes where a metric wants those. */
tpucl_status tp_graph_case_metrics(tp_graph **out_graph)
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
    return tp_graph_case_finish(g, out_graph);
}
