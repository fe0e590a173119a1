/* SPDX-License-Identifier: Apache-2.0
 * Activations: see activation.h. Formulas of keras/src/activations/activations.py and of jax.nn, which it
 * calls; gelu is the exact form, with erf.
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
#define SQRT_2_OVER_PI 0.79788456080286536
#define SHRINK 0.5 /* Keras' default threshold of both */

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

static tp_node_id clip(tp_graph *graph, tp_node_id z, double low, double high)
{
    return tp_op_minimum(graph, tp_op_maximum(graph, z, scalar(graph, z, low)),
                         scalar(graph, z, high));
}

/* ---- over rows ---- */

static tp_node_id log_softmax(tp_graph *graph, tp_node_id z)
{
    const tp_node_id shifted = tp_activation_shift(graph, z);
    const tp_node_id sum = tp_activation_sum_last(graph, tp_op_exponential(graph, shifted));
    return tp_op_subtract(graph, shifted, tp_op_log(graph, sum));
}

/* max(z - tau, 0), where tau makes the sum 1 (Martins & Astudillo 2016, algorithm 1). An element belongs to
 * the support when 1 + k z > S, k and S being number and sum of the elements that are not smaller. Both come
 * from comparing all pairs instead of sorting: [..., i, j] is "element j is not smaller than element i". */
static tp_node_id sparsemax(tp_graph *graph, tp_node_id z)
{
    if (z == TP_NO_NODE) return z;
    const tp_shape row = tp_graph_node(graph, z)->shape;
    tp_shape own = row, other = row;
    const int last = row.rank - 1;
    if (row.rank == TP_MAX_RANK)
        return tp_graph_fail(graph, "sparsemax of rank %d, expected at most %d", row.rank,
                             TP_MAX_RANK - 1);
    own.rank = other.rank = row.rank + 1;
    own.dims[last + 1] = 1;
    other.dims[last] = 1;
    other.dims[last + 1] = row.dims[last];
    const tp_node_id x = tp_op_stop_gradient(graph, z), zero = scalar(graph, z, 0);
    const tp_node_id xj = tp_op_reshape(graph, x, other);
    const tp_node_id at_least = tp_op_compare(graph, "GE", xj, tp_op_reshape(graph, x, own));
    const int64_t axis = row.rank;
    const tp_node_id k =
        tp_op_reduce(graph, tp_op_convert(graph, at_least, TP_F32), "add", &axis, 1);
    const tp_node_id sum =
        tp_op_reduce(graph, tp_op_select(graph, at_least, xj, zero), "add", &axis, 1);
    const tp_node_id left = tp_op_add_scalar(graph, tp_op_multiply(graph, k, x), 1);
    const tp_node_id support = tp_op_compare(graph, "GT", left, sum);
    const tp_node_id count = tp_activation_sum_last(graph, tp_op_convert(graph, support, TP_F32));
    const tp_node_id total = tp_activation_sum_last(graph, tp_op_select(graph, support, z, zero));
    const tp_node_id tau = tp_op_divide(graph, tp_op_add_scalar(graph, total, -1), count);
    return tp_op_select(graph, support, tp_op_subtract(graph, z, tau), zero);
}

/* ---- by element ---- */

/* z / 2 * (1 + tanh(sqrt(2 / pi) * (z + 0.044715 z^3))), Hendrycks & Gimpel 2016 */
static tp_node_id gelu_approximate(tp_graph *graph, tp_node_id z)
{
    const tp_node_id cube = tp_op_multiply(graph, tp_op_multiply(graph, z, z), z);
    const tp_node_id inner = tp_op_add(graph, z, tp_op_multiply_scalar(graph, cube, 0.044715));
    const tp_node_id tanh = tp_op_tanh(graph, tp_op_multiply_scalar(graph, inner, SQRT_2_OVER_PI));
    return tp_op_multiply(graph, tp_op_multiply_scalar(graph, z, 0.5),
                          tp_op_add_scalar(graph, tanh, 1));
}

static tp_node_id hard_sigmoid(tp_graph *graph, tp_node_id z)
{
    return tp_op_multiply_scalar(graph, clip(graph, tp_op_add_scalar(graph, z, 3), 0, 6), 1.0 / 6);
}

/* z moved towards 0 by SHRINK, or where it is nearer than that: 0 */
static tp_node_id soft_shrink(tp_graph *graph, tp_node_id z)
{
    return tp_op_subtract(graph, z, clip(graph, z, -SHRINK, SHRINK));
}

static tp_node_id hard_shrink(tp_graph *graph, tp_node_id z)
{
    const tp_node_id is_large =
        tp_op_compare(graph, "GT", tp_op_abs(graph, z), scalar(graph, z, SHRINK));
    return tp_op_select(graph, is_large, z, scalar(graph, z, 0));
}

/* (z + sqrt(z^2 + 4)) / 2 */
static tp_node_id squareplus(tp_graph *graph, tp_node_id z)
{
    const tp_node_id square = tp_op_add_scalar(graph, tp_op_multiply(graph, z, z), 4);
    return tp_op_multiply_scalar(graph, tp_op_add(graph, z, tp_op_sqrt(graph, square)), 0.5);
}

/* 0 below -1, z above 1, (z + 1)^2 / 4 between */
static tp_node_id sparse_plus(tp_graph *graph, tp_node_id z)
{
    const tp_node_id inner = tp_op_add_scalar(graph, clip(graph, z, -1, 1), 1);
    const tp_node_id square =
        tp_op_multiply_scalar(graph, tp_op_multiply(graph, inner, inner), 0.25);
    const tp_node_id one = scalar(graph, z, 1);
    return tp_op_select(graph, tp_op_compare(graph, "GE", z, one), z, square);
}

static tp_node_id hard(tp_graph *graph, tp_activation activation, tp_node_id z)
{
    switch (activation) {
    case TP_ACTIVATION_HARD_SIGMOID:
        return hard_sigmoid(graph, z);
    case TP_ACTIVATION_SPARSE_SIGMOID:
        return tp_op_multiply_scalar(graph, tp_op_add_scalar(graph, clip(graph, z, -1, 1), 1), 0.5);
    case TP_ACTIVATION_HARD_SILU:
    case TP_ACTIVATION_HARD_SWISH:
        return tp_op_multiply(graph, z, hard_sigmoid(graph, z));
    case TP_ACTIVATION_HARD_TANH:
        return clip(graph, z, -1, 1);
    case TP_ACTIVATION_SOFT_SHRINK:
        return soft_shrink(graph, z);
    case TP_ACTIVATION_HARD_SHRINK:
        return hard_shrink(graph, z);
    case TP_ACTIVATION_SQUAREPLUS:
        return squareplus(graph, z);
    case TP_ACTIVATION_SPARSE_PLUS:
    default:
        return sparse_plus(graph, z);
    }
}

static tp_node_id smooth(tp_graph *graph, tp_activation activation, tp_node_id z)
{
    switch (activation) {
    case TP_ACTIVATION_LEAKY_RELU:
        return where_positive(graph, z, tp_op_multiply_scalar(graph, z, LEAKY_SLOPE));
    case TP_ACTIVATION_ELU:
    case TP_ACTIVATION_CELU: /* with alpha 1 the same */
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
        return softmax(graph, z);
    case TP_ACTIVATION_LOG_SOFTMAX:
        return log_softmax(graph, z);
    case TP_ACTIVATION_SPARSEMAX:
        return sparsemax(graph, z);
    case TP_ACTIVATION_GELU_APPROXIMATE:
        return gelu_approximate(graph, z);
    case TP_ACTIVATION_MISH:
        return tp_op_multiply(graph, z, tp_op_tanh(graph, softplus(graph, z)));
    case TP_ACTIVATION_LOG_SIGMOID:
        return tp_op_negate(graph, softplus(graph, tp_op_negate(graph, z)));
    case TP_ACTIVATION_TANH_SHRINK:
        return tp_op_subtract(graph, z, tp_op_tanh(graph, z));
    default:
        return hard(graph, activation, z);
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
