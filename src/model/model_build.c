/* SPDX-License-Identifier: Apache-2.0
 * Graphs from a model: forward pass, loss, gradients, updates. See model.h.
 */
#include <stdio.h>
#include "core/problems.h"
#include "graph/builder.h"
#include "model/loss_expression.h"
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
    return tp_model_label_at(model, 0, loss, batch, out_dtype, out_shape);
}

tpucl_status tp_model_label_at(const tp_model *model, int32_t output, tp_model_loss loss,
                               int64_t batch, tp_dtype *out_dtype, tp_shape *out_shape)
{
    const tp_shape *shape = tp_model_output_shape(model, output);
    TP_TRY(check_batch(batch));
    const int64_t classes = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
    if (classes < tp_loss_least_classes(loss)) {
        const char *name = model->output_count > 1 ? tp_model_output_name(model, output) : "";
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(shape, text, sizeof text);
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the model's result%s%s is %s for each example; a cross-entropy needs "
                       "[classes] or [..., classes] with 2 or more; is a Flatten or a last Dense "
                       "missing?",
                       *name ? " " : "", name, text);
    }
    *out_dtype = tp_loss_is_sparse(loss) ? TP_S32 : TP_F32;
    *out_shape = tp_model_batched(batch, shape);
    if (tp_loss_is_sparse(loss)) out_shape->dims[--out_shape->rank] = 0;
    return TPUCL_OK;
}

tpucl_status tp_model_target_label(const tp_model *model, int32_t output,
                                   const tp_model_target *target, int64_t batch,
                                   tp_dtype *out_dtype, tp_shape *out_shape)
{
    if (target->loss != TP_MODEL_LOSS_EXPRESSION)
        return tp_model_label_at(model, output, target->loss, batch, out_dtype, out_shape);
    TP_TRY(check_batch(batch));
    *out_dtype = target->label_dtype;
    *out_shape = tp_model_batched(batch, &target->label_shape);
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

/* One output's loss, of the core. */
typedef struct output_loss {
    tp_node_id loss_sum, weight_sum, correct;
    bool is_masked;
    double most;
} output_loss;

/* What judges the outputs. */
typedef struct judge {
    tp_graph *graph;
    const tp_model *model;
    const tp_model_forward *forward;
    const tp_model_score *score;    /* NULL: no metrics */
    const tp_model_target *targets; /* [count] */
    int32_t count;
    const tp_node_id *labels; /* [count] */
    tp_node_id weight;        /* f32 [batch] */
    bool is_weighted;         /* weights are the data's: their sum is known on the cores only */
    tp_problems problems;     /* of expressions and metrics, all of them */
} judge;

/* What was wrong with a metric; messages of expressions say themselves where they are. */
static void add_problem(judge *j, int32_t output, const char *path, tpucl_status status)
{
    char message[600];
    snprintf(message, sizeof message, "%.*s", (int)sizeof message - 1, tpucl_last_error()->message);
    if (!path || status == TPUCL_OUT_OF_MEMORY)
        tp_problems_add_failed(&j->problems, status);
    else
        tp_problems_add(&j->problems, "%s of '%s': %s", path,
                        tp_model_output_name(j->model, output), message);
}

/* Sums of an output's metrics: outputs "metric/NAME/0" and so on. */
static tpucl_status add_metrics(judge *j, int32_t output, const tp_loss_input *input,
                                const tp_loss_weights *weights)
{
    const tp_metric_options defaults = tp_metric_defaults();
    for (int32_t i = 0; j->score && i < j->score->metric_count; i++) {
        const tp_model_metric *metric = &j->score->metrics[i];
        tp_metric_parts parts;
        if (metric->output != output) continue;
        const tp_metric_options *options = metric->options ? metric->options : &defaults;
        const tpucl_status status = tp_metric_build(j->graph, (tp_metric_kind)metric->kind, options,
                                                    input, weights, &parts);
        if (status != TPUCL_OK) {
            add_problem(j, output, metric->kind == TP_METRIC_EXPRESSION ? NULL : options->path,
                        status);
            continue;
        }
        for (int32_t part = 0; part < parts.count; part++) {
            const char *name =
                tp_arena_printf(j->graph->arena, "metric/%s/%d", metric->name, (int)part);
            if (!name) return TPUCL_OUT_OF_MEMORY;
            add_sum_output(j->graph, name, parts.nodes[part]);
        }
    }
    return tp_graph_check(j->graph);
}

/* Expressions of the loss, where there are any, or of its metrics. False: they were problems. */
static bool read_expressions(judge *j, int32_t index, tp_loss_input *input, tp_node_id *inout_mask)
{
    const tp_loss_options *options = input->options;
    const bool is_expression = input->kind == TP_MODEL_LOSS_EXPRESSION;
    bool has_any = is_expression || (options && options->mask), is_read = true;
    for (int32_t i = 0; j->score && i < j->score->metric_count; i++)
        has_any = has_any || (j->score->metrics[i].output == index &&
                              j->score->metrics[i].kind == TP_METRIC_EXPRESSION);
    if (!has_any) return true;
    tp_loss_name_all(j->graph, input, j->weight, *inout_mask);
    if (is_expression)
        is_read = tp_problems_add_failed(&j->problems, tp_loss_read_values(j->graph, input));
    if (!is_read) {
        input->values = j->weight; /* mistakes of metrics are still worth knowing */
        return false;
    }
    return tp_problems_add_failed(&j->problems,
                                  tp_loss_read_mask(j->graph, input, *inout_mask, inout_mask));
}

static tpucl_status add_output_loss(judge *j, int32_t index, output_loss *out)
{
    tp_graph *graph = j->graph;
    const tp_model_target *target = &j->targets[index];
    tp_node_id mask = j->forward->masks[index];
    tp_loss_input input = {.kind = target->loss,
                           .result = j->forward->results[index],
                           .logits = target->from_logits ? TP_NO_NODE : j->forward->logits[index],
                           .label = j->labels[index],
                           .from_logits = target->from_logits,
                           .options = target->options};
    if (!read_expressions(j, index, &input, &mask)) mask = TP_NO_NODE;
    const tp_loss_weights weights = tp_loss_weights_of(graph, &input, j->weight, mask);
    out->loss_sum = tp_loss_sum(graph, &input, &weights);
    out->weight_sum = tp_op_reduce(graph, weights.weight, "add", NULL, 0);
    TP_TRY(tp_graph_check(graph));
    const tp_shape counted = tp_graph_node(graph, weights.weight)->shape;
    out->is_masked = weights.is_masked || j->is_weighted;
    out->most = (double)tp_shape_elems(&counted);
    out->correct = TP_NO_NODE;
    if (tp_loss_has_accuracy(target->loss))
        out->correct = tp_loss_correct_sum(graph, &input, &weights);
    TP_TRY(add_metrics(j, index, &input, &weights));
    return tp_graph_check(graph);
}

static void add_named_sum(tp_graph *graph, const char *output, const char *what, tp_node_id sum)
{
    const char *name = tp_arena_printf(graph->arena, "%s/%s", output, what);
    if (!name)
        tp_graph_keep_error(graph);
    else
        add_sum_output(graph, name, sum);
}

/* The output's share of the sum that is minimised. Where elements were masked, it is scaled as if every
 * example counted once, by sums over all cores. */
static tp_node_id share_of(tp_graph *graph, const output_loss *loss, double target_weight,
                           tp_node_id weight_sum)
{
    tp_node_id sum = loss->loss_sum;
    if (target_weight != 1) sum = tp_op_multiply_scalar(graph, sum, target_weight);
    if (!loss->is_masked) return sum;
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0), one = tp_op_scalar(graph, TP_F32, 1);
    const tp_node_id counted = tp_op_all_reduce(graph, loss->weight_sum);
    const tp_node_id counts = tp_op_compare(graph, "GT", counted, zero);
    const tp_node_id factor = tp_op_divide(graph, tp_op_all_reduce(graph, weight_sum),
                                           tp_op_select(graph, counts, counted, one));
    return tp_op_multiply(graph, sum, tp_op_stop_gradient(graph, factor));
}

/* Of a model with several outputs. */
static tpucl_status add_losses(judge *j, loss_result *out)
{
    tp_graph *graph = j->graph;
    const tp_node_id weight_sum = tp_op_reduce(graph, j->weight, "add", NULL, 0);
    tp_node_id total = TP_NO_NODE;
    for (int32_t i = 0; i < j->count; i++) {
        output_loss loss;
        TP_TRY(add_output_loss(j, i, &loss));
        const char *name = tp_model_output_name(j->model, i);
        add_named_sum(graph, name, "loss_sum", loss.loss_sum);
        add_named_sum(graph, name, "weight_sum", loss.weight_sum);
        if (loss.correct != TP_NO_NODE) add_named_sum(graph, name, "correct", loss.correct);
        const tp_node_id share = share_of(graph, &loss, j->targets[i].weight, weight_sum);
        total = i == 0 ? share : tp_op_add(graph, total, share);
    }
    total = add_layer_losses(graph, &j->forward->losses, j->weight, weight_sum, total);
    *out = (loss_result){.loss_sum = total,
                         .weight_sum = weight_sum,
                         .is_masked = j->is_weighted,
                         .most = (double)tp_graph_node(graph, j->weight)->shape.dims[0]};
    add_sum_output(graph, "loss_sum", total);
    add_sum_output(graph, "weight_sum", weight_sum);
    return tp_graph_check(graph);
}

static tpucl_status add_loss(judge *j, loss_result *out)
{
    output_loss loss;
    TP_TRY(add_output_loss(j, 0, &loss));
    if (j->targets->weight != 1)
        loss.loss_sum = tp_op_multiply_scalar(j->graph, loss.loss_sum, j->targets->weight);
    *out = (loss_result){.loss_sum = add_layer_losses(j->graph, &j->forward->losses, j->weight,
                                                      loss.weight_sum, loss.loss_sum),
                         .weight_sum = loss.weight_sum,
                         .is_masked = loss.is_masked,
                         .most = loss.most};
    add_sum_output(j->graph, "loss_sum", out->loss_sum);
    add_sum_output(j->graph, "weight_sum", loss.weight_sum);
    if (loss.correct != TP_NO_NODE) add_sum_output(j->graph, "correct", loss.correct);
    return tp_graph_check(j->graph);
}

/* Forward pass, outputs of a graph with labels. cores: of the replica group when training, 0 otherwise. */
static tpucl_status add_forward_and_loss(tp_graph *graph, const tp_model *model, int64_t batch,
                                         tp_model_loss loss, bool from_logits,
                                         const tp_model_score *score, int64_t cores,
                                         loss_result *out)
{
    const tp_model_target only = {.label = "label",
                                  .loss = loss,
                                  .from_logits = from_logits,
                                  .options = score ? score->loss : NULL,
                                  .weight = 1};
    const bool is_told = score && score->targets;
    const tp_model_target *targets = is_told ? score->targets : &only;
    const int32_t count = is_told ? model->output_count : 1;
    tp_node_id inputs[TP_MODEL_MAX_INPUTS];
    tp_node_id *labels = TP_ARENA_NEW_ARRAY(graph->arena, tp_node_id, (size_t)count);
    if (!labels) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(check_batch(batch));
    tp_model_add_inputs(graph, model, batch, inputs);
    for (int32_t i = 0; i < count; i++) {
        tp_dtype dtype;
        tp_shape shape;
        TP_TRY(tp_model_target_label(model, i, &targets[i], batch, &dtype, &shape));
        labels[i] = tp_graph_add_input(graph, targets[i].label, dtype, shape);
    }
    const tp_shape rows = {.rank = 1, .dims = {batch}};
    const tp_node_id weight = tp_graph_add_input(graph, "weight", TP_F32, rows);
    const bool is_weighted = score && score->has_sample_weight;
    tp_node_id judged = weight; /* what examples weigh in losses and metrics */
    if (is_weighted)
        judged = tp_op_multiply(
            graph, weight,
            tp_model_clear_padding(graph, tp_graph_add_input(graph, "sample_weight", TP_F32, rows),
                                   weight));
    for (int32_t i = 0; i < model->input_count; i++)
        inputs[i] = tp_model_clear_padding(graph, inputs[i], weight);
    for (int32_t i = 0; i < count; i++)
        labels[i] = tp_model_clear_padding(graph, labels[i], weight);
    tp_model_forward forward;
    TP_TRY(tp_model_add_forward(graph, model, batch, cores, inputs, weight, &forward));
    const char *outer = tp_graph_push_scope(graph, "loss");
    judge j = {.graph = graph,
               .model = model,
               .forward = &forward,
               .score = score,
               .targets = targets,
               .count = count,
               .labels = labels,
               .weight = judged,
               .is_weighted = is_weighted};
    TP_TRY(count > 1 ? add_losses(&j, out) : add_loss(&j, out));
    tp_graph_pop_scope(graph, outer);
    TP_TRY(tp_problems_result(&j.problems, TPUCL_INVALID_CONFIG, "losses and metrics"));
    return tp_graph_check(graph);
}

/* ---- training ---- */

/* A bf16 weight is constrained before it is rounded, so that it is rounded once. */
static tp_node_id constrained(tp_graph *graph, const tp_constraint *constraint, tp_node_id value)
{
    if (value == TP_NO_NODE || tp_graph_node(graph, value)->dtype == TP_F32)
        return tp_constraint_apply(graph, constraint, value);
    const tp_node rounding = *tp_graph_node(graph, value); /* convert or stochastic_round */
    const tp_node_id wide = tp_constraint_apply(graph, constraint, rounding.inputs[0]);
    return tp_node_is(&rounding, "convert")
               ? tp_op_convert(graph, wide, TP_BF16)
               : tp_op_stochastic_round(graph, wide, rounding.inputs[1]);
}

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
            update->value = constrained(graph, weight->constraint, update->value);
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
                                tp_cross_shard_group_size(train->cross_shard), &loss));
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
                add_forward_and_loss(graph, model, batch, loss, from_logits, score, 0, &unused),
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
    TP_TRY(tp_model_add_forward(graph, model, batch, 0, inputs, TP_NO_NODE, &forward));
    for (int32_t i = 0; i < model->output_count; i++)
        tp_graph_add_output(graph,
                            model->output_count > 1 ? tp_model_output_name(model, i) : "prediction",
                            forward.results[i]);
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
