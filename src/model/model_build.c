/* SPDX-License-Identifier: Apache-2.0
 * Graphs from a model: forward pass, loss, gradients, updates. See model.h.
 */
#include "graph/builder.h"
#include "model/loss.h"
#include "model/model_forward.h"
#include "ops/registry.h"

static tpucl_status check_batch(int64_t batch)
{
    if (batch >= 1 && batch <= INT32_MAX) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_CONFIG, "a batch of %lld examples per core, expected 1 to %d",
                   (long long)batch, INT32_MAX);
}

/* ---- loss ---- */

tpucl_status tp_model_label(const tp_model *model, tp_model_loss loss, int64_t batch,
                            tp_dtype *out_dtype, tp_shape *out_shape)
{
    const tp_shape *output = tp_model_output(model);
    TP_TRY(check_batch(batch));
    const int64_t classes = output->rank > 0 ? output->dims[output->rank - 1] : 1;
    if (classes < tp_loss_least_classes(loss)) {
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(output, text, sizeof text);
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the model's result is %s for each example; a cross-entropy needs [classes] "
                       "or [..., classes] with 2 or more; is a Flatten or a last Dense missing?",
                       text);
    }
    *out_dtype = tp_loss_is_sparse(loss) ? TP_S32 : TP_F32;
    *out_shape = tp_model_batched(batch, output);
    if (tp_loss_is_sparse(loss)) out_shape->dims[--out_shape->rank] = 0;
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

/* What is minimised. */
typedef struct loss_result {
    tp_node_id loss_sum, weight_sum; /* of the core, f32 [] */
    bool is_masked;                  /* weight_sum is known on the cores only */
    double most;                     /* what weight_sum is at most, when all weights are 1 */
} loss_result;

/* Forward pass, outputs of a graph with labels. */
static tpucl_status add_forward_and_loss(tp_graph *graph, const tp_model *model, int64_t batch,
                                         tp_model_loss loss, bool from_logits,
                                         const tp_model_score *score, bool is_training,
                                         loss_result *out)
{
    tp_dtype label_dtype;
    tp_shape label_shape;
    TP_TRY(tp_model_label(model, loss, batch, &label_dtype, &label_shape));
    tp_node_id inputs[TP_MODEL_MAX_INPUTS];
    tp_model_add_inputs(graph, model, batch, inputs);
    tp_node_id label = tp_graph_add_input(graph, "label", label_dtype, label_shape);
    const tp_shape rows = {.rank = 1, .dims = {batch}};
    const tp_node_id weight = tp_graph_add_input(graph, "weight", TP_F32, rows);
    for (int32_t i = 0; i < model->input_count; i++)
        inputs[i] = tp_model_clear_padding(graph, inputs[i], weight);
    label = tp_model_clear_padding(graph, label, weight);
    tp_model_forward forward;
    TP_TRY(tp_model_add_forward(graph, model, batch, is_training, inputs, weight, &forward));

    const char *outer = tp_graph_push_scope(graph, "loss");
    const tp_loss_input input = {.kind = loss,
                                 .result = forward.results[0],
                                 .logits = from_logits ? TP_NO_NODE : forward.logits[0],
                                 .label = label,
                                 .from_logits = from_logits,
                                 .options = score ? score->loss : NULL};
    const tp_loss_weights weights = tp_loss_weights_of(graph, &input, weight, forward.masks[0]);
    const tp_node_id loss_sum = tp_loss_sum(graph, &input, &weights);
    const tp_node_id weight_sum = tp_op_reduce(graph, weights.weight, "add", NULL, 0);
    TP_TRY(tp_graph_check(graph));
    const tp_shape counted = tp_graph_node(graph, weights.weight)->shape;
    *out = (loss_result){.loss_sum =
                             add_layer_losses(graph, &forward.losses, weight, weight_sum, loss_sum),
                         .weight_sum = weight_sum,
                         .is_masked = weights.is_masked,
                         .most = (double)tp_shape_elems(&counted)};
    add_sum_output(graph, "loss_sum", out->loss_sum);
    add_sum_output(graph, "weight_sum", weight_sum);
    const tp_node_id correct = tp_loss_correct_sum(graph, &input, &weights);
    if (correct != TP_NO_NODE) add_sum_output(graph, "correct", correct);
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
    for (int32_t i = 0; i < model->call_count; i++) {
        const tp_model_call *call = &model->calls[i];
        const tp_layer *layer = &call->layer;
        for (int32_t j = 0; call->owner == i && j < layer->weight_count; j++) {
            const tp_layer_weight *weight = &layer->weights[j];
            if (!weight->constraint || weight->constraint->kind == TP_CONSTRAINT_NONE) continue;
            constrain_update(graph, call->weights_of, weight);
        }
    }
}

static tpucl_status fill_train(tp_graph *graph, const tp_model *model, const tp_model_train *train,
                               const tp_model_score *score)
{
    loss_result loss;
    TP_TRY(add_forward_and_loss(graph, model, train->batch, train->loss, train->from_logits, score,
                                true, &loss));
    TP_TRY(
        loss.is_masked
            ? tp_cross_shard_minimize_counted(graph, train->optimizer, train->cross_shard,
                                              loss.loss_sum, loss.weight_sum, loss.most)
            : tp_cross_shard_minimize(graph, train->optimizer, train->cross_shard, loss.loss_sum));
    constrain_updates(graph, model);
    return tp_graph_check(graph);
}

tpucl_status tp_model_build_train(const tp_model *model, const tp_model_train *train,
                                  tp_graph **out_graph)
{
    return tp_model_build_scored_train(model, train, NULL, out_graph);
}

tpucl_status tp_model_build_scored_train(const tp_model *model, const tp_model_train *train,
                                         const tp_model_score *score, tp_graph **out_graph)
{
    tpucl_status status;
    tp_graph *graph = NULL;
    TP_TRY(tp_optim_check(train->optimizer));
    TP_TRY(tp_cross_shard_check(train->cross_shard));
    TP_TRY(tp_graph_create(tp_ops_registry(), &graph));
    TP_TRY_GOTO(status, fill_train(graph, model, train, score), failed);
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
    return tp_model_build_scored_evaluate(model, batch, loss, from_logits, NULL, out_graph);
}

tpucl_status tp_model_build_scored_evaluate(const tp_model *model, int64_t batch,
                                            tp_model_loss loss, bool from_logits,
                                            const tp_model_score *score, tp_graph **out_graph)
{
    tpucl_status status;
    tp_graph *graph = NULL;
    loss_result unused;
    TP_TRY(tp_graph_create(tp_ops_registry(), &graph));
    TP_TRY_GOTO(status,
                add_forward_and_loss(graph, model, batch, loss, from_logits, score, false, &unused),
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
    tp_node_id inputs[TP_MODEL_MAX_INPUTS];
    tp_model_forward forward;
    tp_model_add_inputs(graph, model, batch, inputs);
    TP_TRY(tp_model_add_forward(graph, model, batch, false, inputs, TP_NO_NODE, &forward));
    tp_graph_add_output(graph, "prediction", forward.results[0]);
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
