/* SPDX-License-Identifier: Apache-2.0
 * The formulas of losses: see loss_elements.h.
 */
#include "model/loss_elements.h"

#include "graph/builder.h"
#include "model/activation.h"

#define KERAS_EPSILON 1e-7 /* keras.backend.epsilon() */
#define LOG_2 0.69314718055994531

#define BUILD(symbol)                                                                              \
    static tp_node_id symbol(tp_graph *graph, const tp_loss_input *input,                          \
                             const tp_loss_options *options, tp_node_id counts)

tp_shape tp_loss_shape_of(const tp_graph *graph, tp_node_id id)
{
    return id == TP_NO_NODE ? (tp_shape){.rank = 0} : tp_graph_node(graph, id)->shape;
}

tp_node_id tp_loss_drop_last(tp_graph *graph, tp_node_id id)
{
    if (id == TP_NO_NODE) return id;
    tp_shape shape = tp_loss_shape_of(graph, id);
    shape.dims[--shape.rank] = 0;
    return tp_op_reshape(graph, id, shape);
}

tp_node_id tp_loss_add_last(tp_graph *graph, tp_node_id id)
{
    tp_shape shape = tp_loss_shape_of(graph, id);
    shape.dims[shape.rank++] = 1;
    return tp_op_reshape(graph, id, shape);
}

tp_node_id tp_loss_one_hot(tp_graph *graph, tp_node_id label, tp_shape shape)
{
    const tp_node_id classes = tp_op_iota(graph, TP_S32, shape, shape.rank - 1);
    return tp_op_compare(graph, "EQ", classes, tp_loss_add_last(graph, label));
}

static tp_node_id scalar(tp_graph *graph, double value)
{
    return tp_op_scalar(graph, TP_F32, value);
}

static tp_node_id square(tp_graph *graph, tp_node_id x)
{
    return tp_op_multiply(graph, x, x);
}

/* 1 - x */
static tp_node_id rest(tp_graph *graph, tp_node_id x)
{
    return tp_op_subtract(graph, scalar(graph, 1), x);
}

/* Probabilities away from 0 and 1. */
static tp_node_id clip(tp_graph *graph, tp_node_id probability)
{
    const tp_node_id low = scalar(graph, KERAS_EPSILON), high = scalar(graph, 1 - KERAS_EPSILON);
    return tp_op_clamp(graph, low, probability, high);
}

static tp_node_id clipped_log(tp_graph *graph, tp_node_id probability)
{
    return tp_op_log(graph, clip(graph, probability));
}

/* log sum exp along the last axis, which stays with size 1, of logits whose largest is 0 */
static tp_node_id log_sum_exp(tp_graph *graph, tp_node_id shifted)
{
    return tp_op_log(graph, tp_activation_sum_last(graph, tp_op_exponential(graph, shifted)));
}

/* Sum along the last axis, which is dropped. */
static tp_node_id sum_last(tp_graph *graph, tp_node_id x)
{
    return tp_loss_drop_last(graph, tp_activation_sum_last(graph, x));
}

/* ---- classes ---- */

BUILD(sparse_categorical_crossentropy)
{
    (void)counts;
    (void)options;
    const bool has_logits = input->from_logits || input->logits != TP_NO_NODE;
    const tp_node_id given = input->logits != TP_NO_NODE ? input->logits : input->result;
    const tp_node_id logits = has_logits ? given : clipped_log(graph, input->result);
    if (logits == TP_NO_NODE) return logits;
    const tp_node_id shifted = tp_activation_shift(graph, logits);
    const tp_node_id is_label =
        tp_loss_one_hot(graph, input->label, tp_loss_shape_of(graph, logits));
    const tp_node_id zero = scalar(graph, 0);
    const tp_node_id picked =
        tp_activation_sum_last(graph, tp_op_select(graph, is_label, shifted, zero));
    return tp_loss_drop_last(graph, tp_op_subtract(graph, log_sum_exp(graph, shifted), picked));
}

/* y * (1 - s) + s * share */
static tp_node_id smooth(tp_graph *graph, tp_node_id label, double smoothing, double share)
{
    if (smoothing == 0) return label;
    const tp_node_id kept = tp_op_multiply_scalar(graph, label, 1 - smoothing);
    return tp_op_add_scalar(graph, kept, smoothing * share);
}

static tp_node_id smooth_classes(tp_graph *graph, const tp_loss_input *input,
                                 const tp_loss_options *options)
{
    const tp_shape shape = tp_loss_shape_of(graph, input->label);
    const double classes = shape.rank > 0 ? (double)shape.dims[shape.rank - 1] : 1;
    return smooth(graph, input->label, options->label_smoothing, 1 / classes);
}

/* p / sum p */
static tp_node_id normalised(tp_graph *graph, tp_node_id probability)
{
    const tp_node_id sum = tp_activation_sum_last(graph, probability);
    return tp_op_divide(graph, probability, sum);
}

BUILD(categorical_crossentropy)
{
    (void)counts;
    tp_node_id log_probability;
    if (input->from_logits || input->logits != TP_NO_NODE) {
        const tp_node_id logits = input->logits != TP_NO_NODE ? input->logits : input->result;
        const tp_node_id shifted = tp_activation_shift(graph, logits);
        log_probability = tp_op_subtract(graph, shifted, log_sum_exp(graph, shifted));
    } else {
        log_probability = clipped_log(graph, normalised(graph, input->result));
    }
    const tp_node_id label = smooth_classes(graph, input, options);
    const tp_node_id products = tp_op_multiply(graph, label, log_probability);
    return tp_loss_drop_last(graph, tp_op_negate(graph, tp_activation_sum_last(graph, products)));
}

/* x^gamma; gamma 0 gives TP_NO_NODE, a factor of 1: its gradient at 0 would be 0 / 0 */
static tp_node_id focus(tp_graph *graph, tp_node_id x, double gamma)
{
    return gamma == 0 ? TP_NO_NODE : tp_op_power(graph, x, scalar(graph, gamma));
}

BUILD(categorical_focal_crossentropy)
{
    (void)counts;
    const tp_node_id given = input->from_logits ? tp_activation_apply(graph, TP_ACTIVATION_SOFTMAX,
                                                                      input->result, TP_F32)
                                                : input->result;
    const tp_node_id q = clip(graph, normalised(graph, given));
    const tp_node_id label = smooth_classes(graph, input, options);
    tp_node_id loss = tp_op_multiply(graph, tp_op_negate(graph, label), tp_op_log(graph, q));
    const tp_node_id factor = focus(graph, rest(graph, q), options->gamma);
    if (factor != TP_NO_NODE) loss = tp_op_multiply(graph, factor, loss);
    return sum_last(graph, tp_op_multiply_scalar(graph, loss, options->alpha));
}

/* of probabilities */
static tp_node_id binary(tp_graph *graph, tp_node_id label, tp_node_id probability)
{
    const tp_node_id p = clip(graph, probability);
    const tp_node_id of_one = tp_op_multiply(graph, label, tp_op_log(graph, p));
    const tp_node_id of_zero =
        tp_op_multiply(graph, rest(graph, label), tp_op_log(graph, rest(graph, p)));
    return tp_op_negate(graph, tp_op_add(graph, of_one, of_zero));
}

BUILD(binary_crossentropy)
{
    (void)counts;
    const tp_node_id label = smooth(graph, input->label, options->label_smoothing, 0.5);
    if (!input->from_logits) return binary(graph, label, input->result);
    const tp_node_id z = input->result;
    const tp_node_id tail = tp_op_log_plus_one(
        graph, tp_op_exponential(graph, tp_op_negate(graph, tp_op_abs(graph, z))));
    const tp_node_id line = tp_op_subtract(graph, tp_op_maximum(graph, z, scalar(graph, 0)),
                                           tp_op_multiply(graph, z, label));
    return tp_op_add(graph, line, tail);
}

BUILD(binary_focal_crossentropy)
{
    (void)counts;
    const tp_node_id y = smooth(graph, input->label, options->label_smoothing, 0.5);
    const tp_node_id p = input->from_logits ? tp_op_logistic(graph, input->result) : input->result;
    const tp_node_id other = rest(graph, y);
    const tp_node_id right =
        tp_op_add(graph, tp_op_multiply(graph, y, p), tp_op_multiply(graph, other, rest(graph, p)));
    tp_node_id loss = binary(graph, y, p);
    const tp_node_id factor = focus(graph, rest(graph, right), options->gamma);
    if (factor != TP_NO_NODE) loss = tp_op_multiply(graph, factor, loss);
    if (!options->apply_class_balancing) return loss;
    const tp_node_id weight = tp_op_add(graph, tp_op_multiply_scalar(graph, y, options->alpha),
                                        tp_op_multiply_scalar(graph, other, 1 - options->alpha));
    return tp_op_multiply(graph, weight, loss);
}

/* -1 for 0: exact for any part of a batch, where Keras asks whether the whole batch is of 0 and 1. */
static tp_node_id hinge_label(tp_graph *graph, tp_node_id label)
{
    const tp_node_id is_zero = tp_op_compare(graph, "EQ", label, scalar(graph, 0));
    return tp_op_select(graph, is_zero, scalar(graph, -1), label);
}

BUILD(hinge)
{
    (void)options;
    (void)counts;
    const tp_node_id product =
        tp_op_multiply(graph, hinge_label(graph, input->label), input->result);
    return tp_op_maximum(graph, rest(graph, product), scalar(graph, 0));
}

BUILD(squared_hinge)
{
    return square(graph, hinge(graph, input, options, counts));
}

BUILD(categorical_hinge)
{
    (void)options;
    (void)counts;
    if (input->result == TP_NO_NODE) return TP_NO_NODE;
    const int64_t last = tp_loss_shape_of(graph, input->result).rank - 1;
    const tp_node_id right = sum_last(graph, tp_op_multiply(graph, input->label, input->result));
    const tp_node_id others = tp_op_multiply(graph, rest(graph, input->label), input->result);
    const tp_node_id wrong = tp_op_reduce(graph, others, "max", &last, 1);
    const tp_node_id margin = tp_op_add_scalar(graph, tp_op_subtract(graph, wrong, right), 1);
    return tp_op_maximum(graph, margin, scalar(graph, 0));
}

/* ---- numbers ---- */

BUILD(mean_squared_error)
{
    (void)options;
    (void)counts;
    return square(graph, tp_op_subtract(graph, input->result, input->label));
}

BUILD(mean_absolute_error)
{
    (void)options;
    (void)counts;
    return tp_op_abs(graph, tp_op_subtract(graph, input->result, input->label));
}

BUILD(mean_absolute_percentage_error)
{
    (void)options;
    (void)counts;
    const tp_node_id size =
        tp_op_maximum(graph, tp_op_abs(graph, input->label), scalar(graph, KERAS_EPSILON));
    const tp_node_id share =
        tp_op_divide(graph, tp_op_subtract(graph, input->label, input->result), size);
    return tp_op_multiply_scalar(graph, tp_op_abs(graph, share), 100);
}

BUILD(mean_squared_logarithmic_error)
{
    (void)options;
    (void)counts;
    const tp_node_id low = scalar(graph, KERAS_EPSILON);
    const tp_node_id p = tp_op_add_scalar(graph, tp_op_maximum(graph, input->result, low), 1);
    const tp_node_id y = tp_op_add_scalar(graph, tp_op_maximum(graph, input->label, low), 1);
    return square(graph, tp_op_subtract(graph, tp_op_log(graph, p), tp_op_log(graph, y)));
}

BUILD(huber)
{
    (void)counts;
    const double delta = options->delta;
    const tp_node_id error = tp_op_subtract(graph, input->result, input->label);
    const tp_node_id size = tp_op_abs(graph, error);
    const tp_node_id bowl = tp_op_multiply_scalar(graph, square(graph, error), 0.5);
    const tp_node_id line =
        tp_op_add_scalar(graph, tp_op_multiply_scalar(graph, size, delta), -0.5 * delta * delta);
    return tp_op_select(graph, tp_op_compare(graph, "LE", size, scalar(graph, delta)), bowl, line);
}

BUILD(log_cosh)
{
    (void)options;
    (void)counts;
    const tp_node_id error = tp_op_subtract(graph, input->result, input->label);
    const tp_node_id folded = tp_activation_apply(graph, TP_ACTIVATION_SOFTPLUS,
                                                  tp_op_multiply_scalar(graph, error, -2), TP_F32);
    return tp_op_add_scalar(graph, tp_op_add(graph, error, folded), -LOG_2);
}

BUILD(poisson)
{
    (void)options;
    (void)counts;
    const tp_node_id rate = tp_op_log(graph, tp_op_add_scalar(graph, input->result, KERAS_EPSILON));
    return tp_op_subtract(graph, input->result, tp_op_multiply(graph, input->label, rate));
}

BUILD(kl_divergence)
{
    (void)options;
    (void)counts;
    const tp_node_id low = scalar(graph, KERAS_EPSILON), high = scalar(graph, 1);
    const tp_node_id y = tp_op_clamp(graph, low, input->label, high);
    const tp_node_id p = tp_op_clamp(graph, low, input->result, high);
    const tp_node_id logs = tp_op_log(graph, tp_op_divide(graph, y, p));
    return sum_last(graph, tp_op_multiply(graph, y, logs));
}

/* x / max(|x|, e) along the last axis; the maximum is of squares, so that the gradient at 0 is finite. */
static tp_node_id unit(tp_graph *graph, tp_node_id x)
{
    const tp_node_id sum = tp_activation_sum_last(graph, square(graph, x));
    const tp_node_id low = scalar(graph, KERAS_EPSILON * KERAS_EPSILON);
    return tp_op_multiply(graph, x, tp_op_rsqrt(graph, tp_op_maximum(graph, sum, low)));
}

BUILD(cosine_similarity)
{
    (void)options;
    (void)counts;
    const tp_node_id product =
        tp_op_multiply(graph, unit(graph, input->label), unit(graph, input->result));
    return tp_op_negate(graph, sum_last(graph, product));
}

/* ---- overlaps ---- */

typedef struct overlap {
    tp_node_id label, result; /* 0 where masked */
} overlap;

static overlap overlap_of(tp_graph *graph, const tp_loss_input *input, tp_node_id counts)
{
    if (counts == TP_NO_NODE) return (overlap){input->label, input->result};
    const tp_node_id zero = scalar(graph, 0), wide = tp_loss_add_last(graph, counts);
    return (overlap){tp_op_select(graph, wide, input->label, zero),
                     tp_op_select(graph, wide, input->result, zero)};
}

/* [batch] */
static tp_node_id sum_example(tp_graph *graph, tp_node_id x)
{
    static const int64_t axes[] = {1, 2, 3, 4, 5, 6, 7};
    const int rank = tp_loss_shape_of(graph, x).rank;
    return rank > 1 ? tp_op_reduce(graph, x, "add", axes, rank - 1) : x;
}

BUILD(dice)
{
    (void)options;
    const overlap o = overlap_of(graph, input, counts);
    const tp_node_id common = sum_example(graph, tp_op_multiply(graph, o.label, o.result));
    const tp_node_id all =
        tp_op_add(graph, sum_example(graph, o.label), sum_example(graph, o.result));
    return rest(graph, tp_op_divide(graph, tp_op_multiply_scalar(graph, common, 2),
                                    tp_op_add_scalar(graph, all, KERAS_EPSILON)));
}

BUILD(tversky)
{
    const overlap o = overlap_of(graph, input, counts);
    const tp_node_id common = sum_example(graph, tp_op_multiply(graph, o.label, o.result));
    const tp_node_id missed =
        sum_example(graph, tp_op_multiply(graph, rest(graph, o.result), o.label));
    const tp_node_id wrong =
        sum_example(graph, tp_op_multiply(graph, o.result, rest(graph, o.label)));
    const tp_node_id weighed =
        tp_op_add(graph, tp_op_multiply_scalar(graph, missed, options->alpha),
                  tp_op_multiply_scalar(graph, wrong, options->beta));
    const tp_node_id all =
        tp_op_add_scalar(graph, tp_op_add(graph, common, weighed), KERAS_EPSILON);
    return rest(graph, tp_op_divide(graph, common, all));
}

/* ---- expressions ---- */

/* tp_loss_read_values has built it. */
BUILD(expression)
{
    (void)graph;
    (void)options;
    (void)counts;
    return input->values;
}

/* ---- the table ---- */

const tp_loss_def *tp_loss_def_of(tp_model_loss kind)
{
    static const tp_loss_def defs[] = {
#define ROW(id, shape, is_sparse, classes, has_accuracy, symbol)                                   \
    [TP_MODEL_LOSS_##id] = {TP_LOSS_##shape, is_sparse, classes, has_accuracy, symbol}
        ROW(SPARSE_CATEGORICAL_CROSSENTROPY, REDUCED, true, 2, true,
            sparse_categorical_crossentropy),
        ROW(CATEGORICAL_CROSSENTROPY, REDUCED, false, 2, true, categorical_crossentropy),
        ROW(BINARY_CROSSENTROPY, MEAN_LAST, false, 1, true, binary_crossentropy),
        ROW(CATEGORICAL_FOCAL_CROSSENTROPY, REDUCED, false, 2, true,
            categorical_focal_crossentropy),
        ROW(BINARY_FOCAL_CROSSENTROPY, MEAN_LAST, false, 1, true, binary_focal_crossentropy),
        ROW(MEAN_SQUARED_ERROR, MEAN_LAST, false, 1, false, mean_squared_error),
        ROW(MEAN_ABSOLUTE_ERROR, MEAN_LAST, false, 1, false, mean_absolute_error),
        ROW(MEAN_ABSOLUTE_PERCENTAGE_ERROR, MEAN_LAST, false, 1, false,
            mean_absolute_percentage_error),
        ROW(MEAN_SQUARED_LOGARITHMIC_ERROR, MEAN_LAST, false, 1, false,
            mean_squared_logarithmic_error),
        ROW(HUBER, MEAN_LAST, false, 1, false, huber),
        ROW(LOG_COSH, MEAN_LAST, false, 1, false, log_cosh),
        ROW(HINGE, MEAN_LAST, false, 1, false, hinge),
        ROW(SQUARED_HINGE, MEAN_LAST, false, 1, false, squared_hinge),
        ROW(CATEGORICAL_HINGE, REDUCED, false, 2, true, categorical_hinge),
        ROW(KL_DIVERGENCE, REDUCED, false, 1, false, kl_divergence),
        ROW(POISSON, MEAN_LAST, false, 1, false, poisson),
        ROW(COSINE_SIMILARITY, REDUCED, false, 1, false, cosine_similarity),
        ROW(DICE, EXAMPLE, false, 1, false, dice),
        ROW(TVERSKY, EXAMPLE, false, 1, false, tversky),
        ROW(EXPRESSION, REDUCED, false, 1, false, expression),
#undef ROW
    };
    return &defs[kind];
}
