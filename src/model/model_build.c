/* SPDX-License-Identifier: Apache-2.0
 * Graphs from a model: forward pass, loss, gradients, updates. See model.h.
 */
#include "graph/builder.h"
#include "model/loss.h"
#include "model/model_internal.h"
#include "ops/registry.h"

/* What the forward pass leaves. */
typedef struct forward_result {
    tp_node_id result; /* f32 [batch, output...] */
    tp_node_id logits; /* see tp_layer_context */
    tp_node_id mask;   /* of the result, likewise */
    tp_layer_losses losses;
} forward_result;

static tp_shape with_batch(int64_t batch, const tp_shape *example)
{
    tp_shape shape = {.rank = example->rank + 1, .dims = {batch}};
    for (int i = 0; i < example->rank; i++)
        shape.dims[i + 1] = example->dims[i];
    return shape;
}

static tpucl_status check_batch(int64_t batch)
{
    if (batch >= 1 && batch <= INT32_MAX) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_CONFIG, "a batch of %lld examples per core, expected 1 to %d",
                   (long long)batch, INT32_MAX);
}

/* ---- forward ---- */

static tp_node_id add_image(tp_graph *graph, const tp_model *model, int64_t batch)
{
    const tp_model_input *input = &model->input;
    return tp_graph_add_input(graph, "image", input->dtype, with_batch(batch, &input->shape));
}

/* Zero in rows whose weight is 0. Their weight alone would keep them out of sums, but not a NaN or an
 * infinity in them: 0 * NaN. */
static tp_node_id clear_padding(tp_graph *graph, tp_node_id x, tp_node_id weight)
{
    static const int64_t batch_axis[] = {0};
    if (x == TP_NO_NODE) return x;
    const tp_shape shape = tp_graph_node(graph, x)->shape;
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id counts = tp_op_compare(graph, "GT", weight, zero);
    return tp_op_select(graph, tp_op_broadcast_in_dim(graph, counts, shape, batch_axis), x, zero);
}

/* Converted and scaled: f32 [batch, example...] */
static tp_node_id scale_image(tp_graph *graph, const tp_model *model, tp_node_id image)
{
    const tp_model_input *input = &model->input;
    tp_node_id x = tp_op_convert(graph, image, TP_F32);
    if (input->scale != 1.0) x = tp_op_multiply_scalar(graph, x, input->scale);
    if (input->offset != 0.0) x = tp_op_add_scalar(graph, x, input->offset);
    return x;
}

/* The layer's variables; regularizers of those that are trained. */
static const tp_node_id *add_variables(tp_layer_context *context, const tp_layer *layer)
{
    tp_graph *graph = context->graph;
    tp_node_id *nodes =
        TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)layer->weight_count + 1);
    if (!nodes) {
        tp_graph_keep_error(graph);
        return NULL;
    }
    for (int32_t i = 0; i < layer->weight_count; i++) {
        const tp_layer_weight *weight = &layer->weights[i];
        tp_variable variable = {.name = weight->name,
                                .dtype = TP_F32,
                                .shape = weight->shape,
                                .is_trainable = layer->trainable && weight->is_trainable,
                                .is_model = true};
        tp_initializer_resolve(weight->initializer, &weight->shape, &variable.init,
                               &variable.init_a, &variable.init_b);
        nodes[i] = tp_graph_add_variable(graph, &variable);
        if (weight->regularizer && variable.is_trainable)
            tp_layer_add_loss(context, tp_regularizer_apply(graph, weight->regularizer, nodes[i]));
    }
    return nodes;
}

/* Every layer takes its input in its own dtype (Keras' autocast); the last result is cast to f32. */
static forward_result add_layers(tp_graph *graph, const tp_model *model, int64_t batch,
                                 bool is_training, tp_node_id x, tp_node_id weight)
{
    tp_layer_losses losses = {0};
    tp_layer_context context = {.graph = graph,
                                .batch = batch,
                                .is_training = is_training,
                                .weight = weight,
                                .logits = TP_NO_NODE,
                                .losses = &losses};
    tp_node_id mask = TP_NO_NODE;
    for (int32_t i = 0; i < model->layer_count; i++) {
        const tp_layer *layer = &model->layers[i];
        const bool is_bfloat16 = tp_model_layer_is_bfloat16(model, layer);
        const bool is_own_float32 =
            model->options.policy == TP_POLICY_MIXED_BFLOAT16 && !is_bfloat16;
        int64_t stream = i;
        tp_node_id outputs[TP_LAYER_MAX_OUTPUTS];
        context.dtype = is_bfloat16 ? TP_BF16 : TP_F32;
        context.precision =
            tp_precision_name(is_own_float32 ? TP_PRECISION_F32 : model->options.precision);
        context.input_masks = &mask;
        context.next_stream = &stream;
        const char *outer = tp_graph_push_scope(graph, layer->name);
        context.variables = add_variables(&context, layer);
        tp_layer_call(&context, layer, &x, outputs);
        tp_graph_pop_scope(graph, outer);
        x = outputs[0];
        mask = context.output_masks[0];
    }
    return (forward_result){.result = tp_op_convert(graph, x, TP_F32),
                            .logits = context.logits,
                            .mask = mask,
                            .losses = losses};
}

/* ---- loss ---- */

tpucl_status tp_model_label(const tp_model *model, tp_model_loss loss, int64_t batch,
                            tp_dtype *out_dtype, tp_shape *out_shape)
{
    const tp_shape *output = tp_model_output(model);
    TP_TRY(check_batch(batch));
    if (loss != TP_MODEL_LOSS_MEAN_SQUARED_ERROR && (output->rank != 1 || output->dims[0] < 2)) {
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(output, text, sizeof text);
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the model's result is %s for each example; a cross-entropy needs [classes] "
                       "with 2 or more; is a Flatten or a last Dense missing?",
                       text);
    }
    const bool is_sparse = loss == TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY;
    *out_dtype = is_sparse ? TP_S32 : TP_F32;
    *out_shape = is_sparse ? (tp_shape){.rank = 1, .dims = {batch}} : with_batch(batch, output);
    return TPUCL_OK;
}

static void add_sum_output(tp_graph *graph, const char *name, tp_node_id per_core)
{
    tp_graph_add_output(graph, name, tp_op_all_reduce(graph, per_core));
}

/* What layers add to the core's sum of weighted losses: a loss that is equal on all cores as often as
 * examples weigh, so that the mean over all examples has it once, for any split. */
static tp_node_id add_layer_losses(tp_graph *graph, const tp_layer_losses *losses,
                                   tp_node_id weight, tp_node_id weight_sum, tp_node_id loss_sum)
{
    for (int32_t i = 0; i < losses->count; i++) {
        const tp_node_id loss = losses->items[i];
        const bool is_scalar = tp_graph_node(graph, loss)->shape.rank == 0;
        const tp_node_id sum = is_scalar ? tp_op_multiply(graph, loss, weight_sum)
                                         : tp_loss_weighted_sum(graph, weight, loss);
        loss_sum = tp_op_add(graph, loss_sum, sum);
    }
    return loss_sum;
}

/* Forward pass, outputs of a graph with labels. Returns the core's sum of weighted losses, f32 []. */
static tpucl_status add_forward_and_loss(tp_graph *graph, const tp_model *model, int64_t batch,
                                         tp_model_loss loss, bool from_logits, bool is_training,
                                         tp_node_id *out_loss_sum)
{
    tp_dtype label_dtype;
    tp_shape label_shape;
    TP_TRY(tp_model_label(model, loss, batch, &label_dtype, &label_shape));
    tp_node_id image = add_image(graph, model, batch);
    tp_node_id label = tp_graph_add_input(graph, "label", label_dtype, label_shape);
    const tp_shape rows = {.rank = 1, .dims = {batch}};
    const tp_node_id weight = tp_graph_add_input(graph, "weight", TP_F32, rows);
    if (model->input.dtype == TP_F32) image = clear_padding(graph, image, weight);
    if (label_dtype == TP_F32) label = clear_padding(graph, label, weight);
    const tp_node_id x = scale_image(graph, model, image);
    const forward_result forward = add_layers(graph, model, batch, is_training, x, weight);
    TP_TRY(tp_graph_check(graph));

    const char *outer = tp_graph_push_scope(graph, "loss");
    const tp_loss_input input = {.kind = loss,
                                 .result = forward.result,
                                 .logits = from_logits ? TP_NO_NODE : forward.logits,
                                 .label = label,
                                 .from_logits = from_logits};
    const tp_node_id loss_sum =
        tp_loss_weighted_sum(graph, weight, tp_loss_per_example(graph, &input));
    const tp_node_id weight_sum = tp_op_reduce(graph, weight, "add", NULL, 0);
    TP_TRY(tp_graph_check(graph));
    *out_loss_sum = add_layer_losses(graph, &forward.losses, weight, weight_sum, loss_sum);
    add_sum_output(graph, "loss_sum", *out_loss_sum);
    add_sum_output(graph, "weight_sum", weight_sum);
    const tp_node_id correct = tp_loss_is_correct(graph, &input);
    if (correct != TP_NO_NODE)
        add_sum_output(graph, "correct", tp_loss_weighted_sum(graph, weight, correct));
    tp_graph_pop_scope(graph, outer);
    return tp_graph_check(graph);
}

/* ---- training ---- */

static void constrain_update(tp_graph *graph, const char *layer, const tp_layer_weight *weight)
{
    const char *name = tp_arena_printf(graph->arena, "%s/%s", layer, weight->name);
    if (!name) {
        tp_graph_keep_error(graph);
        return;
    }
    const int32_t variable = tp_graph_find_variable(graph, name);
    const char *outer = tp_graph_push_scope(graph, "constraint");
    for (int32_t i = 0; i < graph->update_count; i++) {
        tp_update *update = &graph->updates[i];
        if (update->variable == variable)
            update->value = tp_constraint_apply(graph, weight->constraint, update->value);
    }
    tp_graph_pop_scope(graph, outer);
}

/* Constraints hold after the optimizer's step. */
static void constrain_updates(tp_graph *graph, const tp_model *model)
{
    for (int32_t i = 0; i < model->layer_count; i++) {
        const tp_layer *layer = &model->layers[i];
        for (int32_t j = 0; j < layer->weight_count; j++) {
            const tp_layer_weight *weight = &layer->weights[j];
            if (!weight->constraint || weight->constraint->kind == TP_CONSTRAINT_NONE) continue;
            constrain_update(graph, layer->name, weight);
        }
    }
}

static tpucl_status fill_train(tp_graph *graph, const tp_model *model, const tp_model_train *train)
{
    tp_node_id loss_sum;
    TP_TRY(add_forward_and_loss(graph, model, train->batch, train->loss, train->from_logits, true,
                                &loss_sum));
    TP_TRY(tp_cross_shard_minimize(graph, train->optimizer, train->cross_shard, loss_sum));
    constrain_updates(graph, model);
    return tp_graph_check(graph);
}

tpucl_status tp_model_build_train(const tp_model *model, const tp_model_train *train,
                                  tp_graph **out_graph)
{
    tpucl_status status;
    tp_graph *graph = NULL;
    TP_TRY(tp_optim_check(train->optimizer));
    TP_TRY(tp_cross_shard_check(train->cross_shard));
    TP_TRY(tp_graph_create(tp_ops_registry(), &graph));
    TP_TRY_GOTO(status, fill_train(graph, model, train), failed);
    *out_graph = graph;
    return TPUCL_OK;
failed:
    tp_graph_destroy(graph);
    return status;
}

/* ---- evaluation, prediction ---- */

tpucl_status tp_model_build_evaluate(const tp_model *model, int64_t batch, tp_model_loss loss,
                                     bool from_logits, tp_graph **out_graph)
{
    tpucl_status status;
    tp_graph *graph = NULL;
    tp_node_id loss_sum;
    TP_TRY(tp_graph_create(tp_ops_registry(), &graph));
    TP_TRY_GOTO(status,
                add_forward_and_loss(graph, model, batch, loss, from_logits, false, &loss_sum),
                failed);
    *out_graph = graph;
    return TPUCL_OK;
failed:
    tp_graph_destroy(graph);
    return status;
}

static tpucl_status fill_predict(tp_graph *graph, const tp_model *model, int64_t batch)
{
    TP_TRY(check_batch(batch));
    const tp_node_id x = scale_image(graph, model, add_image(graph, model, batch));
    const forward_result forward = add_layers(graph, model, batch, false, x, TP_NO_NODE);
    tp_graph_add_output(graph, "prediction", forward.result);
    return tp_graph_check(graph);
}

tpucl_status tp_model_build_predict(const tp_model *model, int64_t batch, tp_graph **out_graph)
{
    tpucl_status status;
    tp_graph *graph = NULL;
    TP_TRY(tp_graph_create(tp_ops_registry(), &graph));
    TP_TRY_GOTO(status, fill_predict(graph, model, batch), failed);
    *out_graph = graph;
    return TPUCL_OK;
failed:
    tp_graph_destroy(graph);
    return status;
}
