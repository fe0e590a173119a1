/* SPDX-License-Identifier: Apache-2.0
 * Losses and the accuracy: see loss.h.
 */
#include "model/loss.h"

#include "graph/builder.h"
#include "model/activation.h"

#define KERAS_EPSILON 1e-7 /* keras.backend.epsilon() */

/* That of a scalar for what a failed graph gives. */
static tp_shape shape_of(const tp_graph *graph, tp_node_id id)
{
    return id == TP_NO_NODE ? (tp_shape){.rank = 0} : tp_graph_node(graph, id)->shape;
}

/* [batch, 1] as [batch] */
static tp_node_id drop_last(tp_graph *graph, tp_node_id id)
{
    if (id == TP_NO_NODE) return id;
    tp_shape shape = shape_of(graph, id);
    shape.dims[--shape.rank] = 0;
    return tp_op_reshape(graph, id, shape);
}

/* [batch] as [batch, 1] */
static tp_node_id add_last(tp_graph *graph, tp_node_id id)
{
    tp_shape shape = shape_of(graph, id);
    shape.dims[shape.rank++] = 1;
    return tp_op_reshape(graph, id, shape);
}

/* pred [batch, classes]: set at the label */
static tp_node_id one_hot(tp_graph *graph, tp_node_id label, tp_shape shape)
{
    const tp_node_id classes = tp_op_iota(graph, TP_S32, shape, 1);
    return tp_op_compare(graph, "EQ", classes, add_last(graph, label));
}

/* log of probabilities, clipped */
static tp_node_id clipped_log(tp_graph *graph, tp_node_id probability)
{
    const tp_node_id low = tp_op_scalar(graph, TP_F32, KERAS_EPSILON);
    const tp_node_id high = tp_op_scalar(graph, TP_F32, 1 - KERAS_EPSILON);
    return tp_op_log(graph, tp_op_clamp(graph, low, probability, high));
}

/* log sum exp along the last axis, [batch, 1], of logits whose largest is 0 */
static tp_node_id log_sum_exp(tp_graph *graph, tp_node_id shifted)
{
    return tp_op_log(graph, tp_activation_sum_last(graph, tp_op_exponential(graph, shifted)));
}

static tp_node_id sparse(tp_graph *graph, const tp_loss_input *input)
{
    const bool has_logits = input->from_logits || input->logits != TP_NO_NODE;
    const tp_node_id given = input->logits != TP_NO_NODE ? input->logits : input->result;
    const tp_node_id logits = has_logits ? given : clipped_log(graph, input->result);
    if (logits == TP_NO_NODE) return logits;
    const tp_node_id shifted = tp_activation_shift(graph, logits);
    const tp_node_id is_label = one_hot(graph, input->label, shape_of(graph, logits));
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id picked =
        tp_activation_sum_last(graph, tp_op_select(graph, is_label, shifted, zero));
    return drop_last(graph, tp_op_subtract(graph, log_sum_exp(graph, shifted), picked));
}

static tp_node_id dense(tp_graph *graph, const tp_loss_input *input)
{
    tp_node_id log_probability;
    if (input->from_logits || input->logits != TP_NO_NODE) {
        const tp_node_id logits = input->logits != TP_NO_NODE ? input->logits : input->result;
        const tp_node_id shifted = tp_activation_shift(graph, logits);
        log_probability = tp_op_subtract(graph, shifted, log_sum_exp(graph, shifted));
    } else {
        const tp_node_id sum = tp_activation_sum_last(graph, input->result);
        log_probability = clipped_log(graph, tp_op_divide(graph, input->result, sum));
    }
    const tp_node_id products = tp_op_multiply(graph, input->label, log_probability);
    return drop_last(graph, tp_op_negate(graph, tp_activation_sum_last(graph, products)));
}

/* Mean over all dimensions but the batch. */
static tp_node_id squared_error(tp_graph *graph, const tp_loss_input *input)
{
    static const int64_t axes[] = {1, 2, 3, 4, 5, 6, 7};
    if (input->result == TP_NO_NODE) return TP_NO_NODE;
    const tp_shape shape = shape_of(graph, input->result);
    const double elems = (double)tp_shape_elems(&shape) / (double)shape.dims[0];
    const tp_node_id error = tp_op_subtract(graph, input->result, input->label);
    const tp_node_id square = tp_op_multiply(graph, error, error);
    if (shape.rank == 1) return square;
    const tp_node_id sum = tp_op_reduce(graph, square, "add", axes, shape.rank - 1);
    return tp_op_divide(graph, sum, tp_op_scalar(graph, TP_F32, elems));
}

tp_node_id tp_loss_per_example(tp_graph *graph, const tp_loss_input *input)
{
    switch (input->kind) {
    case TP_MODEL_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY:
        return sparse(graph, input);
    case TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY:
        return dense(graph, input);
    case TP_MODEL_LOSS_MEAN_SQUARED_ERROR:
    default:
        return squared_error(graph, input);
    }
}

/* s32 [batch]: index of the first largest element along the last axis; the number of classes when that is
 * NaN. Plain reductions and selects, so that it fuses with the loss. */
static tp_node_id first_largest(tp_graph *graph, tp_node_id values)
{
    if (values == TP_NO_NODE) return values;
    const tp_shape shape = shape_of(graph, values);
    static const int64_t axis = 1;
    const tp_node_id largest = add_last(graph, tp_op_reduce(graph, values, "max", &axis, 1));
    const tp_node_id is_largest = tp_op_compare(graph, "EQ", values, largest);
    const tp_node_id none = tp_op_scalar(graph, TP_S32, (double)shape.dims[1]);
    const tp_node_id classes = tp_op_iota(graph, TP_S32, shape, 1);
    return tp_op_reduce(graph, tp_op_select(graph, is_largest, classes, none), "min", &axis, 1);
}

tp_node_id tp_loss_is_correct(tp_graph *graph, const tp_loss_input *input)
{
    if (input->kind == TP_MODEL_LOSS_MEAN_SQUARED_ERROR) return TP_NO_NODE;
    const tp_node_id values = input->logits != TP_NO_NODE ? input->logits : input->result;
    const tp_node_id label = input->kind == TP_MODEL_LOSS_CATEGORICAL_CROSSENTROPY
                                 ? first_largest(graph, input->label)
                                 : input->label;
    const tp_node_id is_same = tp_op_compare(graph, "EQ", first_largest(graph, values), label);
    return tp_op_convert(graph, is_same, TP_F32);
}

tp_node_id tp_loss_weighted_sum(tp_graph *graph, tp_node_id weight, tp_node_id values)
{
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    const tp_node_id counts = tp_op_compare(graph, "GT", weight, zero);
    const tp_node_id weighted = tp_op_multiply(graph, weight, values);
    return tp_op_reduce(graph, tp_op_select(graph, counts, weighted, zero), "add", NULL, 0);
}
