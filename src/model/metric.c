/* SPDX-License-Identifier: Apache-2.0
 * The sums of metrics on the device: see metric.h.
 */
#include "model/metric.h"

#include <math.h>
#include <string.h>
#include "graph/builder.h"
#include "model/activation.h"
#include "model/loss_elements.h"
#include "model/loss_expression.h"

static const char *const names[] = {
#define NAME(id, symbol, name) name,
    TP_METRIC_LIST(NAME)
#undef NAME
};

tp_metric_options tp_metric_defaults(void)
{
    return (tp_metric_options){.k = 5, .threshold = (double)NAN, .num_thresholds = 200};
}

const char *tp_metric_name(tp_metric_kind kind)
{
    return names[kind];
}

bool tp_metric_find(const char *name, tp_metric_kind *out_kind)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out_kind = (tp_metric_kind)i;
        return true;
    }
    return false;
}

/* ---- what metrics are made of ---- */

typedef struct metric_input {
    tp_graph *graph;
    const tp_loss_input *loss;
    const tp_metric_options *options;
    tp_node_id result; /* f32 [batch, inner..., last]: probabilities, or numbers */
    /* f32 of the same shape; TP_NO_NODE when labels are sparse and no one asked */
    tp_node_id label;
    tp_node_id weight; /* f32 [batch, inner...] */
} metric_input;

typedef void metric_builder(const metric_input *in, tp_metric_parts *parts);

static tp_node_id scalar(const metric_input *in, double value)
{
    return tp_op_scalar(in->graph, TP_F32, value);
}

static tp_node_id sum_all(const metric_input *in, tp_node_id value)
{
    return tp_op_reduce(in->graph, value, "add", NULL, 0);
}

static void add_part(tp_metric_parts *parts, tp_node_id node)
{
    parts->nodes[parts->count++] = node;
}

/* Sums of w * value and of w; value: [batch, inner...] */
static void add_mean(const metric_input *in, tp_metric_parts *parts, tp_node_id value)
{
    add_part(parts, tp_loss_weighted_sum(in->graph, in->weight, value));
    add_part(parts, sum_all(in, in->weight));
}

/* Mean over the last axis, which is dropped; a result without one stays. */
static tp_node_id mean_last(const metric_input *in, tp_node_id value)
{
    const tp_shape shape = tp_loss_shape_of(in->graph, value);
    if (shape.rank < 2) return value;
    const double size = (double)shape.dims[shape.rank - 1];
    const tp_node_id sum = tp_loss_drop_last(in->graph, tp_activation_sum_last(in->graph, value));
    return size == 1 ? sum : tp_op_divide(in->graph, sum, scalar(in, size));
}

/* s32 [batch, inner...] */
static tp_node_id label_class(const metric_input *in)
{
    if (tp_loss_has_classes(in->graph, in->loss)) return in->loss->label;
    return tp_loss_first_largest(in->graph, in->label);
}

/* w where `pred` is set, else 0. */
static tp_node_id weight_where(const metric_input *in, tp_node_id pred, tp_node_id weight)
{
    return tp_op_select(in->graph, pred, weight, scalar(in, 0));
}

/* The weights of elements repeated along the last axis of the result. */
static tp_node_id wide_weight(const metric_input *in)
{
    const tp_shape shape = tp_loss_shape_of(in->graph, in->result);
    if (shape.rank < 2) return in->weight;
    return tp_op_broadcast_to(in->graph, tp_loss_add_last(in->graph, in->weight), shape);
}

static tp_node_id is_positive(const metric_input *in)
{
    return tp_op_compare(in->graph, "NE", in->label, scalar(in, 0));
}

static tp_node_id is_above(const metric_input *in)
{
    const double given = in->options->threshold;
    return tp_op_compare(in->graph, "GT", in->result, scalar(in, isnan(given) ? 0.5 : given));
}

/* ---- means ---- */

/* The output "correct" of the graph has it already. */
static void accuracy(const metric_input *in, tp_metric_parts *parts)
{
    (void)in;
    parts->count = 0;
}

static void binary_accuracy(const metric_input *in, tp_metric_parts *parts)
{
    const tp_node_id predicted = tp_op_convert(in->graph, is_above(in), TP_F32);
    const tp_node_id is_same = tp_op_compare(in->graph, "EQ", predicted, in->label);
    add_mean(in, parts, mean_last(in, tp_op_convert(in->graph, is_same, TP_F32)));
}

static void categorical_accuracy(const metric_input *in, tp_metric_parts *parts)
{
    const tp_node_id largest = tp_loss_first_largest(in->graph, in->result);
    const tp_node_id is_same = tp_op_compare(in->graph, "EQ", largest, label_class(in));
    add_mean(in, parts, tp_op_convert(in->graph, is_same, TP_F32));
}

/* Fewer than k results are larger than that of the label. */
static void top_k_accuracy(const metric_input *in, tp_metric_parts *parts)
{
    tp_graph *graph = in->graph;
    const tp_shape shape = tp_loss_shape_of(graph, in->result);
    const tp_node_id zero = scalar(in, 0),
                     is_label = tp_loss_one_hot(graph, label_class(in), shape);
    const tp_node_id target =
        tp_activation_sum_last(graph, tp_op_select(graph, is_label, in->result, zero));
    const tp_node_id is_larger = tp_op_compare(graph, "GT", in->result, target);
    const tp_node_id larger = tp_loss_drop_last(
        graph, tp_activation_sum_last(graph, tp_op_convert(graph, is_larger, TP_F32)));
    const tp_node_id is_in =
        tp_op_and(graph, tp_op_compare(graph, "LT", larger, scalar(in, (double)in->options->k)),
                  tp_op_is_finite(graph, tp_loss_drop_last(graph, target)));
    add_mean(in, parts, tp_op_convert(graph, is_in, TP_F32));
}

static void mean_squared_error(const metric_input *in, tp_metric_parts *parts)
{
    const tp_node_id error = tp_op_subtract(in->graph, in->result, in->label);
    add_mean(in, parts, mean_last(in, tp_op_multiply(in->graph, error, error)));
}

static void root_mean_squared_error(const metric_input *in, tp_metric_parts *parts)
{
    mean_squared_error(in, parts);
}

static void mean_absolute_error(const metric_input *in, tp_metric_parts *parts)
{
    const tp_node_id error = tp_op_subtract(in->graph, in->result, in->label);
    add_mean(in, parts, mean_last(in, tp_op_abs(in->graph, error)));
}

static void cosine_similarity(const metric_input *in, tp_metric_parts *parts)
{
    tp_loss_input input = *in->loss;
    input.label = in->label;
    const tp_loss_options options = tp_loss_defaults(TP_MODEL_LOSS_COSINE_SIMILARITY);
    const tp_node_id loss = tp_loss_def_of(TP_MODEL_LOSS_COSINE_SIMILARITY)
                                ->build(in->graph, &input, &options, TP_NO_NODE);
    add_mean(in, parts, tp_op_negate(in->graph, loss));
}

/* ---- counts ---- */

static void add_positives(const metric_input *in, tp_metric_parts *parts, tp_node_id counted)
{
    const tp_node_id weight = wide_weight(in);
    const tp_node_id both = tp_op_and(in->graph, is_above(in), is_positive(in));
    add_part(parts, sum_all(in, weight_where(in, both, weight)));
    add_part(parts, sum_all(in, weight_where(in, counted, weight)));
}

static void precision(const metric_input *in, tp_metric_parts *parts)
{
    add_positives(in, parts, is_above(in));
}

static void recall(const metric_input *in, tp_metric_parts *parts)
{
    add_positives(in, parts, is_positive(in));
}

/* f32 [count]: Keras' thresholds, evenly over (0, 1), the ends a little outside. */
static tp_node_id thresholds(const metric_input *in, int64_t count)
{
    const double outside = 1e-7;
    float *values = TP_ARENA_NEW_ARRAY(in->graph->arena, float, (size_t)count);
    if (!values) return tp_graph_keep_error(in->graph);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)i / (double)(count - 1));
    values[0] = (float)-outside;
    values[count - 1] = (float)(1 + outside);
    return tp_op_constant(in->graph, TP_F32, (tp_shape){.rank = 1, .dims = {count}}, values);
}

/* tp and fp at each threshold, then all positives and all negatives. */
static void auc(const metric_input *in, tp_metric_parts *parts)
{
    static const int64_t axis = 1;
    tp_graph *graph = in->graph;
    const int64_t count = in->options->num_thresholds;
    const tp_shape shape = tp_loss_shape_of(graph, in->result);
    const tp_shape row = {.rank = 2, .dims = {1, tp_shape_elems(&shape)}};
    const tp_shape all = {.rank = 2, .dims = {count, row.dims[1]}};
    const tp_node_id weight = tp_op_reshape(graph, wide_weight(in), row);
    const tp_node_id labels = tp_op_reshape(graph, is_positive(in), row);
    const tp_node_id positive = weight_where(in, labels, weight);
    const tp_node_id negative = tp_op_subtract(graph, weight, positive);
    const tp_node_id limits =
        tp_op_broadcast_to(graph, tp_loss_add_last(graph, thresholds(in, count)), all);
    const tp_node_id results =
        tp_op_broadcast_to(graph, tp_op_reshape(graph, in->result, row), all);
    const tp_node_id above = tp_op_compare(graph, "GT", results, limits);
    add_part(parts, tp_op_reduce(graph, weight_where(in, above, positive), "add", &axis, 1));
    add_part(parts, tp_op_reduce(graph, weight_where(in, above, negative), "add", &axis, 1));
    add_part(parts, sum_all(in, positive));
    add_part(parts, sum_all(in, negative));
}

/* ---- per class ---- */

/* f32 [classes]: sum of the weights of the elements of each class; is_class: pred [batch, inner..., classes] */
static tp_node_id sum_classes(const metric_input *in, tp_node_id is_class)
{
    static const int64_t axes[] = {0, 1, 2, 3, 4, 5, 6, 7};
    const tp_shape shape = tp_loss_shape_of(in->graph, is_class);
    if (shape.rank < 2) return tp_graph_fail(in->graph, "a metric of classes without classes");
    const tp_node_id weight = tp_loss_add_last(in->graph, in->weight);
    return tp_op_reduce(in->graph, weight_where(in, is_class, weight), "add", axes, shape.rank - 1);
}

static void add_classes(const metric_input *in, tp_metric_parts *parts, tp_node_id predicted,
                        tp_node_id labelled)
{
    add_part(parts, sum_classes(in, tp_op_and(in->graph, predicted, labelled)));
    add_part(parts, sum_classes(in, predicted));
    add_part(parts, sum_classes(in, labelled));
}

static void f1_score(const metric_input *in, tp_metric_parts *parts)
{
    tp_graph *graph = in->graph;
    const int64_t last = tp_loss_shape_of(graph, in->result).rank - 1;
    tp_node_id predicted;
    if (isnan(in->options->threshold)) {
        /* all zeros are of no class */
        const tp_node_id largest =
            tp_loss_add_last(graph, tp_op_reduce(graph, in->result, "max", &last, 1));
        predicted =
            tp_op_and(graph, tp_op_compare(graph, "GE", in->result, largest),
                      tp_op_compare(graph, "GT", tp_op_abs(graph, in->result), scalar(in, 1e-9)));
    } else {
        predicted = is_above(in);
    }
    add_classes(in, parts, predicted, is_positive(in));
}

/* The largest results' classes; of a last axis of 1 the classes 0 and 1, by the threshold. */
static void iou(const metric_input *in, tp_metric_parts *parts)
{
    tp_graph *graph = in->graph;
    tp_shape shape = tp_loss_shape_of(graph, in->result);
    tp_node_id predicted, labelled;
    if (shape.dims[shape.rank - 1] > 1) {
        predicted = tp_loss_first_largest(graph, in->result);
        labelled = label_class(in);
    } else {
        predicted = tp_loss_drop_last(graph, tp_op_convert(graph, is_above(in), TP_S32));
        labelled = tp_loss_drop_last(graph, tp_op_convert(graph, is_positive(in), TP_S32));
        shape.dims[shape.rank - 1] = 2;
    }
    add_classes(in, parts, tp_loss_one_hot(graph, predicted, shape),
                tp_loss_one_hot(graph, labelled, shape));
}

/* ---- the table ---- */

typedef struct metric_def {
    metric_builder *build;
    bool needs_label; /* of the result's shape: sparse labels become one-hot */
    bool is_number;   /* compares numbers: sparse labels are none */
    int64_t classes;  /* least size of the last axis */
} metric_def;

static const metric_def *def_of(tp_metric_kind kind)
{
    static const metric_def defs[] = {
#define ROW(id, needs_label, is_number, classes, symbol)                                           \
    [TP_METRIC_##id] = {symbol, needs_label, is_number, classes}
        ROW(ACCURACY, false, false, 1, accuracy),
        ROW(BINARY_ACCURACY, true, false, 1, binary_accuracy),
        ROW(CATEGORICAL_ACCURACY, false, false, 2, categorical_accuracy),
        ROW(SPARSE_CATEGORICAL_ACCURACY, false, false, 2, categorical_accuracy),
        ROW(TOP_K_CATEGORICAL_ACCURACY, false, false, 2, top_k_accuracy),
        ROW(SPARSE_TOP_K_CATEGORICAL_ACCURACY, false, false, 2, top_k_accuracy),
        ROW(AUC, true, false, 1, auc),
        ROW(PRECISION, true, false, 1, precision),
        ROW(RECALL, true, false, 1, recall),
        ROW(F1_SCORE, true, false, 1, f1_score),
        ROW(MEAN_SQUARED_ERROR, true, true, 1, mean_squared_error),
        ROW(MEAN_ABSOLUTE_ERROR, true, true, 1, mean_absolute_error),
        ROW(ROOT_MEAN_SQUARED_ERROR, true, true, 1, root_mean_squared_error),
        ROW(COSINE_SIMILARITY, true, true, 1, cosine_similarity),
        ROW(IO_U, false, false, 1, iou),
        ROW(MEAN_IO_U, false, false, 1, iou),
        ROW(EXPRESSION, false, false, 1, NULL), /* tp_metric_build_expression */
#undef ROW
    };
    return &defs[kind];
}

/* Metrics of classes see probabilities. */
static tp_node_id probabilities(tp_graph *graph, const tp_loss_input *input)
{
    if (!input->from_logits) return input->result;
    if (tp_loss_least_classes(input->kind) < 2) return tp_op_logistic(graph, input->result);
    return tp_activation_apply(graph, TP_ACTIVATION_SOFTMAX, input->result, TP_F32);
}

/* f32 [batch, inner...]. An expression's loss may have other elements: then its masks say nothing here. */
static tp_node_id element_weight(tp_graph *graph, const tp_loss_input *input,
                                 const tp_loss_weights *weights)
{
    static const int64_t axes[] = {0};
    tp_shape shape = tp_loss_shape_of(graph, input->result);
    const tp_shape own = tp_loss_shape_of(graph, weights->weight);
    if (shape.rank < 2) return weights->weight;
    shape.dims[--shape.rank] = 0;
    if (weights->is_masked && tp_shape_equal(&own, &shape)) return weights->weight;
    const tp_node_id weight = weights->is_masked ? input->sample_weight : weights->weight;
    return tp_op_broadcast_in_dim(graph, weight, shape, axes);
}

/* Labels of EXPRESSION are the data's, of any kind. */
static tpucl_status check_label(const tp_graph *graph, tp_metric_kind kind,
                                const tp_loss_input *input, bool is_sparse)
{
    if (input->kind != TP_MODEL_LOSS_EXPRESSION || is_sparse) return TPUCL_OK;
    const tp_node *label = tp_graph_node(graph, input->label);
    const tp_shape result = tp_loss_shape_of(graph, input->result);
    if (label->dtype == TP_F32 && tp_shape_equal(&label->shape, &result)) return TPUCL_OK;
    char found[TP_SHAPE_TEXT_MAX], wanted[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&label->shape, found, sizeof found);
    tp_shape_format(&result, wanted, sizeof wanted);
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "the metric '%s' takes class numbers (s32), or labels of the result's shape "
                   "f32%s; these are %s%s: write an expression",
                   names[kind], wanted, tp_dtype_name(label->dtype), found);
}

tpucl_status tp_metric_build(tp_graph *graph, tp_metric_kind kind, const tp_metric_options *options,
                             const tp_loss_input *input, const tp_loss_weights *weights,
                             tp_metric_parts *out_parts)
{
    const metric_def *def = def_of(kind);
    if (kind == TP_METRIC_EXPRESSION)
        return tp_metric_build_expression(graph, options, input, weights, out_parts);
    const bool is_sparse = tp_loss_has_classes(graph, input);
    const tp_shape shape = tp_loss_shape_of(graph, input->result);
    const int64_t last = shape.rank > 1 ? shape.dims[shape.rank - 1] : 1;
    *out_parts = (tp_metric_parts){.count = 0};
    TP_TRY(check_label(graph, kind, input, is_sparse));
    if (def->is_number && is_sparse)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the metric '%s' compares numbers, but the loss's labels are classes",
                       names[kind]);
    if (last < def->classes || (shape.rank < 2 && !def->needs_label && kind != TP_METRIC_ACCURACY))
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the metric '%s' needs a result of %lld or more classes, the model's has "
                       "%lld",
                       names[kind], (long long)def->classes, (long long)last);
    for (int64_t i = 0; kind == TP_METRIC_IO_U && i < options->target_count; i++)
        if (options->target_class_ids[i] >= (double)(last > 1 ? last : 2))
            return TP_FAIL(TPUCL_INVALID_CONFIG, "io_u of class %g, the model's result has %lld",
                           options->target_class_ids[i], (long long)last);
    metric_input in = {.graph = graph, .loss = input, .options = options, .label = input->label};
    in.result = def->is_number ? input->result : probabilities(graph, input);
    in.weight = element_weight(graph, input, weights);
    if (def->needs_label && is_sparse)
        in.label = tp_op_convert(graph, tp_loss_one_hot(graph, input->label, shape), TP_F32);
    def->build(&in, out_parts);
    return tp_graph_check(graph);
}
