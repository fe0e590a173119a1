/* SPDX-License-Identifier: Apache-2.0
 * From the losses of elements to sums over examples; masks and weights; the accuracy. See loss.h.
 */
#include "model/loss.h"

#include <math.h>
#include "graph/builder.h"
#include "model/loss_elements.h"

static const char *const default_keys[] = {
#define KEYS(id, symbol, name, keys) keys,
    TP_LOSS_LIST(KEYS)
#undef KEYS
};

tp_loss_options tp_loss_defaults(tp_model_loss kind)
{
    tp_loss_options options = {.ignore_class = (double)NAN};
    double value;
#define NUMBER(field, low, high, open, meaning)                                                    \
    if (tp_choice_number(default_keys[kind], #field, &value)) options.field = value;
#define FLAG(field, meaning)                                                                       \
    if (tp_choice_number(default_keys[kind], #field, &value)) options.field = value != 0;
    TP_LOSS_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
    return options;
}

bool tp_loss_has_accuracy(tp_model_loss kind)
{
    return tp_loss_def_of(kind)->has_accuracy;
}

bool tp_loss_is_sparse(tp_model_loss kind)
{
    return tp_loss_def_of(kind)->is_sparse;
}

bool tp_loss_has_classes(const tp_graph *graph, const tp_loss_input *input)
{
    if (input->kind != TP_MODEL_LOSS_EXPRESSION) return tp_loss_is_sparse(input->kind);
    return tp_graph_node(graph, input->label)->dtype == TP_S32 &&
           tp_loss_shape_of(graph, input->label).rank + 1 ==
               tp_loss_shape_of(graph, input->result).rank;
}

int64_t tp_loss_least_classes(tp_model_loss kind)
{
    return tp_loss_def_of(kind)->classes;
}

static tp_loss_options options_of(const tp_loss_input *input)
{
    return input->options ? *input->options : tp_loss_defaults(input->kind);
}

/* ---- elements ---- */

/* Mean over the axes from `first` on, which are dropped. */
static tp_node_id mean_from(tp_graph *graph, tp_node_id values, int first)
{
    int64_t axes[TP_MAX_RANK];
    double elems = 1;
    const tp_shape shape = tp_loss_shape_of(graph, values);
    if (shape.rank <= first) return values;
    for (int i = first; i < shape.rank; i++) {
        axes[i - first] = i;
        elems *= (double)shape.dims[i];
    }
    const tp_node_id sum = tp_op_reduce(graph, values, "add", axes, shape.rank - first);
    return tp_op_divide(graph, sum, tp_op_scalar(graph, TP_F32, elems));
}

/* s32 without the last axis: the class of each label. A last axis of 1 holds the class itself, rounded. */
static tp_node_id class_of(tp_graph *graph, const tp_loss_input *input)
{
    if (tp_loss_is_sparse(input->kind)) return input->label;
    const tp_shape shape = tp_loss_shape_of(graph, input->label);
    if (shape.rank > 1 && shape.dims[shape.rank - 1] > 1)
        return tp_loss_first_largest(graph, input->label);
    const tp_node_id whole = tp_op_round_nearest_even(graph, input->label);
    const tp_node_id classes = tp_op_convert(graph, whole, TP_S32);
    return shape.rank > 1 ? tp_loss_drop_last(graph, classes) : classes;
}

/* f32 [batch, inner...]: class_weight of each label; TP_NO_NODE when there are none. */
static tp_node_id class_weights(tp_graph *graph, const tp_loss_input *input,
                                const tp_loss_options *options)
{
    if (options->class_count < 1 || input->label == TP_NO_NODE) return TP_NO_NODE;
    float *weights = TP_ARENA_NEW_ARRAY(graph->arena, float, (size_t)options->class_count);
    if (!weights) return tp_graph_keep_error(graph);
    for (int64_t i = 0; i < options->class_count; i++)
        weights[i] = (float)options->class_weight[i];
    const tp_node_id label = class_of(graph, input);
    tp_shape shape = tp_loss_shape_of(graph, label);
    const int64_t axis = shape.rank;
    shape.dims[shape.rank++] = options->class_count;
    const tp_node_id table = tp_op_constant(
        graph, TP_F32, (tp_shape){.rank = 1, .dims = {options->class_count}}, weights);
    const tp_node_id is_label = tp_loss_one_hot(graph, label, shape);
    const tp_node_id one = tp_op_scalar(graph, TP_F32, 1), zero = tp_op_scalar(graph, TP_F32, 0);
    /* a class beyond the table weighs 1: the sum of weights that are off by one, plus one */
    const tp_node_id excess = tp_op_subtract(graph, table, one);
    const tp_node_id picked =
        tp_op_reduce(graph, tp_op_select(graph, is_label, excess, zero), "add", &axis, 1);
    return tp_op_add(graph, picked, one);
}

/* f32 [batch, inner...]; [batch] for losses of whole examples. */
static tp_node_id elements(tp_graph *graph, const tp_loss_input *input, tp_node_id counts)
{
    const tp_loss_options options = options_of(input);
    const tp_loss_def *def = tp_loss_def_of(input->kind);
    tp_node_id loss = def->build(graph, input, &options, counts);
    const int rank = tp_loss_shape_of(graph, loss).rank;
    if (def->shape == TP_LOSS_MEAN_LAST && rank > 1) loss = mean_from(graph, loss, rank - 1);
    const tp_node_id weights = class_weights(graph, input, &options);
    return weights == TP_NO_NODE ? loss : tp_op_multiply(graph, weights, loss);
}

/* pred [batch, inner...]: not the ignored class; TP_NO_NODE when none is. */
static tp_node_id not_ignored(tp_graph *graph, const tp_loss_input *input)
{
    const tp_loss_options options = options_of(input);
    if (!tp_loss_is_sparse(input->kind) || isnan(options.ignore_class)) return TP_NO_NODE;
    return tp_op_compare(graph, "NE", input->label,
                         tp_op_scalar(graph, TP_S32, options.ignore_class));
}

tp_node_id tp_loss_per_example(tp_graph *graph, const tp_loss_input *input)
{
    const tp_loss_options options = options_of(input);
    const tp_loss_def *def = tp_loss_def_of(input->kind);
    const tp_node_id counts = not_ignored(graph, input);
    if (def->shape == TP_LOSS_MEAN_LAST && options.class_count < 1)
        return mean_from(graph, def->build(graph, input, &options, counts), 1);
    tp_node_id loss = elements(graph, input, counts);
    if (counts != TP_NO_NODE)
        loss = tp_op_select(graph, counts, loss, tp_op_scalar(graph, TP_F32, 0));
    return mean_from(graph, loss, 1);
}

/* ---- what counts ---- */

/* [batch] broadcast to [batch, inner...] */
static tp_node_id broadcast_front(tp_graph *graph, tp_node_id value, tp_shape shape)
{
    static const int64_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    return tp_op_broadcast_in_dim(graph, value, shape, axes);
}

tp_shape tp_loss_element_shape(const tp_graph *graph, const tp_loss_input *input)
{
    if (input->kind == TP_MODEL_LOSS_EXPRESSION) return tp_loss_shape_of(graph, input->values);
    tp_shape shape = tp_loss_shape_of(graph, input->result);
    if (shape.rank > 1) shape.dims[--shape.rank] = 0;
    return shape;
}

tp_loss_weights tp_loss_weights_of(tp_graph *graph, const tp_loss_input *input, tp_node_id weight,
                                   tp_node_id mask)
{
    const tp_shape shape = tp_loss_element_shape(graph, input);
    tp_node_id counts = not_ignored(graph, input);
    const int mask_rank = mask == TP_NO_NODE ? 0 : tp_loss_shape_of(graph, mask).rank;
    if (mask_rank > 0 && mask_rank <= shape.rank) {
        mask = broadcast_front(graph, mask, shape);
        counts = counts == TP_NO_NODE ? mask : tp_op_and(graph, counts, mask);
    }
    if (counts == TP_NO_NODE) return (tp_loss_weights){weight, false};
    const tp_node_id wide = broadcast_front(graph, weight, shape);
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    return (tp_loss_weights){tp_op_select(graph, counts, wide, zero), true};
}

tp_node_id tp_loss_sum(tp_graph *graph, const tp_loss_input *input, const tp_loss_weights *weights)
{
    if (!weights->is_masked)
        return tp_loss_weighted_sum(graph, weights->weight, tp_loss_per_example(graph, input));
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id counts = tp_op_compare(graph, "GT", weights->weight, zero);
    const tp_node_id loss = elements(graph, input, counts);
    if (tp_loss_def_of(input->kind)->shape != TP_LOSS_EXAMPLE)
        return tp_loss_weighted_sum(graph, weights->weight, loss);
    /* an example's loss stands for each of its elements that count */
    const tp_shape shape = tp_loss_element_shape(graph, input);
    return tp_loss_weighted_sum(graph, weights->weight, broadcast_front(graph, loss, shape));
}

/* ---- accuracy ---- */

tp_node_id tp_loss_first_largest(tp_graph *graph, tp_node_id values)
{
    if (values == TP_NO_NODE) return values;
    const tp_shape shape = tp_loss_shape_of(graph, values);
    const int64_t axis = shape.rank - 1;
    const tp_node_id largest =
        tp_loss_add_last(graph, tp_op_reduce(graph, values, "max", &axis, 1));
    const tp_node_id is_largest = tp_op_compare(graph, "EQ", values, largest);
    const tp_node_id none = tp_op_scalar(graph, TP_S32, (double)shape.dims[axis]);
    const tp_node_id classes = tp_op_iota(graph, TP_S32, shape, axis);
    return tp_op_reduce(graph, tp_op_select(graph, is_largest, classes, none), "min", &axis, 1);
}

/* Binary: the share of the last axis where result and label are on the same side of 1/2. */
static tp_node_id is_same_side(tp_graph *graph, const tp_loss_input *input)
{
    const tp_node_id half = tp_op_scalar(graph, TP_F32, 0.5);
    const tp_node_id limit = input->from_logits ? tp_op_scalar(graph, TP_F32, 0) : half;
    const tp_node_id predicted =
        tp_op_convert(graph, tp_op_compare(graph, "GT", input->result, limit), TP_F32);
    const tp_node_id is_same = tp_op_compare(graph, "EQ", predicted, input->label);
    const tp_node_id value = tp_op_convert(graph, is_same, TP_F32);
    const int rank = tp_loss_shape_of(graph, value).rank;
    return rank > 1 ? mean_from(graph, value, rank - 1) : value;
}

/* f32 [batch, inner...] */
static tp_node_id correct_elements(tp_graph *graph, const tp_loss_input *input)
{
    const tp_loss_def *def = tp_loss_def_of(input->kind);
    if (!def->has_accuracy) return TP_NO_NODE;
    if (def->classes < 2) return is_same_side(graph, input);
    const tp_node_id values = input->logits != TP_NO_NODE ? input->logits : input->result;
    const tp_node_id label =
        def->is_sparse ? input->label : tp_loss_first_largest(graph, input->label);
    const tp_node_id is_same =
        tp_op_compare(graph, "EQ", tp_loss_first_largest(graph, values), label);
    return tp_op_convert(graph, is_same, TP_F32);
}

tp_node_id tp_loss_is_correct(tp_graph *graph, const tp_loss_input *input)
{
    const tp_node_id correct = correct_elements(graph, input);
    return correct == TP_NO_NODE ? correct : mean_from(graph, correct, 1);
}

tp_node_id tp_loss_correct_sum(tp_graph *graph, const tp_loss_input *input,
                               const tp_loss_weights *weights)
{
    const tp_node_id correct = correct_elements(graph, input);
    if (correct == TP_NO_NODE) return correct;
    const tp_node_id values = weights->is_masked ? correct : mean_from(graph, correct, 1);
    return tp_loss_weighted_sum(graph, weights->weight, values);
}

tp_node_id tp_loss_weighted_sum(tp_graph *graph, tp_node_id weight, tp_node_id values)
{
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id counts = tp_op_compare(graph, "GT", weight, zero);
    const tp_node_id weighted = tp_op_multiply(graph, weight, values);
    return tp_op_reduce(graph, tp_op_select(graph, counts, weighted, zero), "add", NULL, 0);
}
