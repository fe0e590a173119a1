/* SPDX-License-Identifier: Apache-2.0
 * Activations: see activation.h. Formulas of keras/activations; gelu is the exact form, with erf.
 */
#include "model/activation.h"

#include "graph/builder.h"

#define ACTIVATION_NAME(id, name) name,
const char *const tp_activation_names[TP_ACTIVATION_COUNT] = {TP_ACTIVATION_LIST(ACTIVATION_NAME)};
#undef ACTIVATION_NAME

/* Klambauer et al. 2017, section 2.1 */
#define SELU_ALPHA 1.6732632423543772
#define SELU_SCALE 1.0507009873554805
#define LEAKY_SLOPE 0.2 /* Keras 2.x and 3: tf.nn.leaky_relu's and keras.activations' default */
#define SQRT_HALF 0.70710678118654752

static tp_node_id scalar(tp_graph *graph, tp_node_id like, double value)
{
    const tp_dtype dtype = like == TP_NO_NODE ? TP_F32 : tp_graph_node(graph, like)->dtype;
    return tp_op_scalar(graph, dtype, value);
}

/* x where x > 0, else negative. */
static tp_node_id where_positive(tp_graph *graph, tp_node_id x, tp_node_id negative)
{
    const tp_node_id is_positive = tp_op_compare(graph, "GT", x, scalar(graph, x, 0));
    return tp_op_select(graph, is_positive, x, negative);
}

/* exp(x) - 1 without overflow where x > 0, where it is not used. */
static tp_node_id exp_below(tp_graph *graph, tp_node_id x)
{
    return tp_op_exponential_minus_one(graph, tp_op_minimum(graph, x, scalar(graph, x, 0)));
}

/* The last axis' extreme or sum, with that axis kept as 1. */
static tp_node_id reduce_last(tp_graph *graph, tp_node_id z, const char *kind)
{
    if (z == TP_NO_NODE) return z;
    tp_shape shape = tp_graph_node(graph, z)->shape;
    const int64_t axis = shape.rank - 1;
    const tp_node_id reduced = tp_op_reduce(graph, z, kind, &axis, 1);
    shape.dims[axis] = 1;
    return tp_op_reshape(graph, reduced, shape);
}

tp_node_id tp_activation_sum_last(tp_graph *graph, tp_node_id z)
{
    return reduce_last(graph, z, "add");
}

tp_node_id tp_activation_shift(tp_graph *graph, tp_node_id z)
{
    const tp_node_id largest = tp_op_stop_gradient(graph, reduce_last(graph, z, "max"));
    return tp_op_subtract(graph, z, largest);
}

static tp_node_id softmax(tp_graph *graph, tp_node_id z)
{
    const tp_node_id e = tp_op_exponential(graph, tp_activation_shift(graph, z));
    return tp_op_divide(graph, e, tp_activation_sum_last(graph, e));
}

static tp_node_id gelu(tp_graph *graph, tp_node_id z)
{
    const tp_node_id erf = tp_op_erf(graph, tp_op_multiply_scalar(graph, z, SQRT_HALF));
    return tp_op_multiply(graph, tp_op_multiply_scalar(graph, z, 0.5),
                          tp_op_add_scalar(graph, erf, 1));
}

static tp_node_id selu(tp_graph *graph, tp_node_id z)
{
    const tp_node_id negative = tp_op_multiply_scalar(graph, exp_below(graph, z), SELU_ALPHA);
    return tp_op_multiply_scalar(graph, where_positive(graph, z, negative), SELU_SCALE);
}

/* log(1 + e^z) = max(z, 0) + log(1 + e^-|z|) */
static tp_node_id softplus(tp_graph *graph, tp_node_id z)
{
    const tp_node_id small = tp_op_exponential(graph, tp_op_negate(graph, tp_op_abs(graph, z)));
    return tp_op_add(graph, tp_op_maximum(graph, z, scalar(graph, z, 0)),
                     tp_op_log_plus_one(graph, small));
}

static tp_node_id smooth(tp_graph *graph, tp_activation activation, tp_node_id z)
{
    switch (activation) {
    case TP_ACTIVATION_LEAKY_RELU:
        return where_positive(graph, z, tp_op_multiply_scalar(graph, z, LEAKY_SLOPE));
    case TP_ACTIVATION_ELU:
        return where_positive(graph, z, exp_below(graph, z));
    case TP_ACTIVATION_SELU:
        return selu(graph, z);
    case TP_ACTIVATION_GELU:
        return gelu(graph, z);
    case TP_ACTIVATION_SIGMOID:
        return tp_op_logistic(graph, z);
    case TP_ACTIVATION_TANH:
        return tp_op_tanh(graph, z);
    case TP_ACTIVATION_SOFTPLUS:
        return softplus(graph, z);
    case TP_ACTIVATION_SOFTSIGN:
        return tp_op_divide(graph, z, tp_op_add_scalar(graph, tp_op_abs(graph, z), 1));
    case TP_ACTIVATION_SWISH:
    case TP_ACTIVATION_SILU:
        return tp_op_multiply(graph, z, tp_op_logistic(graph, z));
    case TP_ACTIVATION_EXPONENTIAL:
        return tp_op_exponential(graph, z);
    case TP_ACTIVATION_SOFTMAX:
    default:
        return softmax(graph, z);
    }
}

/* linear, relu and relu6 give the same bits whether z is rounded before or after them; before, only the
 * rounded value has to be kept for the gradient. */
tp_node_id tp_activation_apply(tp_graph *graph, tp_activation activation, tp_node_id z,
                               tp_dtype dtype)
{
    if (z == TP_NO_NODE) return z;
    if (activation == TP_ACTIVATION_LINEAR) return tp_op_convert(graph, z, dtype);
    if (activation == TP_ACTIVATION_RELU || activation == TP_ACTIVATION_RELU6) {
        const tp_node_id x = tp_op_convert(graph, z, dtype);
        const tp_node_id y = tp_op_maximum(graph, x, scalar(graph, x, 0));
        return activation == TP_ACTIVATION_RELU ? y : tp_op_minimum(graph, y, scalar(graph, x, 6));
    }
    return tp_op_convert(graph, smooth(graph, activation, z), dtype);
}
