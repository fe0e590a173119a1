/* SPDX-License-Identifier: Apache-2.0
 * Weight constraints: see constraint.h.
 */
#include "model/constraint.h"

#include <string.h>

#include "graph/builder.h"

#define KERAS_EPSILON 1e-7 /* keras.backend.epsilon() */
#define MOST 1e30

/* Keras' names of functions, then of classes, in the order of the enum from MAX_NORM on. */
static const char *const names[] = {"max_norm", "non_neg", "unit_norm", "min_max_norm",
                                    "MaxNorm",  "NonNeg",  "UnitNorm",  "MinMaxNorm"};
enum { NAME_COUNT = sizeof names / sizeof *names, KINDS = 4 };

static bool has_norm(const tp_constraint *constraint)
{
    return constraint->kind != TP_CONSTRAINT_NONE && constraint->kind != TP_CONSTRAINT_NON_NEG;
}

static bool read_axes(const tp_json *value, tp_problems *problems, tp_constraint *out)
{
    const tp_json *items = value->kind == TP_JSON_ARRAY ? value->items : value;
    const size_t count = value->kind == TP_JSON_ARRAY ? value->count : 1;
    if (count < 1 || count > TP_MAX_RANK) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(problems, "%s: %zu axes, expected 1 to %d", tp_json_where(value, where),
                        count, TP_MAX_RANK);
        return false;
    }
    out->axis_count = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        if (!tp_problems_add_failed(problems, tp_json_as_int64(&items[i], -TP_MAX_RANK,
                                                               TP_MAX_RANK - 1, &out->axes[i])))
            return false;
    return true;
}

static bool read_parameters(const tp_json *value, tp_problems *problems, tp_constraint *out)
{
    const char *keys[8] = {"type"};
    size_t count = 1;
    const size_t before = problems->count;
    const bool is_min_max = out->kind == TP_CONSTRAINT_MIN_MAX_NORM;
    const bool has_max = is_min_max || out->kind == TP_CONSTRAINT_MAX_NORM;
    if (has_norm(out)) keys[count++] = "axis";
    if (has_max) keys[count++] = "max_value";
    if (is_min_max) keys[count++] = "min_value";
    if (is_min_max) keys[count++] = "rate";
    tp_problems_add_failed(problems, tp_json_check_keys(value, keys, count));
    const tp_json *axis = has_norm(out) ? tp_json_member(value, "axis") : NULL;
    if (axis) read_axes(axis, problems, out);
    if (has_max)
        tp_problems_add_failed(problems,
                               tp_json_get_double(value, "max_value", 0, MOST, &out->max_value));
    if (is_min_max) {
        tp_problems_add_failed(problems,
                               tp_json_get_double(value, "min_value", 0, MOST, &out->min_value));
        tp_problems_add_failed(problems, tp_json_get_double(value, "rate", 0, 1, &out->rate));
    }
    return problems->count == before;
}

bool tp_constraint_read(const tp_json *value, tp_problems *problems, tp_constraint *out)
{
    const tp_json *type = value;
    *out = (tp_constraint){0};
    if (value->kind == TP_JSON_NULL) return true;
    if (value->kind == TP_JSON_OBJECT &&
        !tp_problems_add_failed(problems, tp_json_require(value, "type", TP_JSON_STRING, &type)))
        return false;
    size_t index;
    if (!tp_problems_add_failed(problems, tp_json_as_choice(type, names, NAME_COUNT, &index)))
        return false;
    out->kind = (tp_constraint_kind)(TP_CONSTRAINT_MAX_NORM + index % KINDS);
    out->max_value = out->kind == TP_CONSTRAINT_MAX_NORM ? 2 : 1;
    out->rate = 1;
    out->axis_count = 1; /* axis 0 */
    return value->kind != TP_JSON_OBJECT || read_parameters(value, problems, out);
}

/* sqrt(sum w^2) along the axes, which stay with size 1. */
static tp_node_id norms_of(tp_graph *graph, const tp_constraint *constraint, tp_node_id w)
{
    tp_shape kept = tp_graph_node(graph, w)->shape;
    int64_t axes[TP_MAX_RANK];
    int32_t count = 0;
    for (int32_t i = 0; i < constraint->axis_count; i++) {
        const int64_t axis = constraint->axes[i] + (constraint->axes[i] < 0 ? kept.rank : 0);
        if (axis < 0 || axis >= kept.rank)
            return tp_graph_fail(graph, "a constraint's axis is %lld, the weight has %d dimensions",
                                 (long long)constraint->axes[i], kept.rank);
        kept.dims[axis] = 1;
    }
    const tp_shape shape = tp_graph_node(graph, w)->shape;
    for (int32_t i = 0; i < kept.rank; i++) {
        bool is_named = false;
        for (int32_t j = 0; j < constraint->axis_count; j++)
            is_named =
                is_named || constraint->axes[j] == i || constraint->axes[j] == i - shape.rank;
        if (is_named) axes[count++] = i;
    }
    const tp_node_id squares = tp_op_multiply(graph, w, w);
    const tp_node_id sum = tp_op_reduce(graph, squares, "add", axes, count);
    return tp_op_reshape(graph, tp_op_sqrt(graph, sum), kept);
}

tp_node_id tp_constraint_apply(tp_graph *graph, const tp_constraint *constraint, tp_node_id w)
{
    if (w == TP_NO_NODE || constraint->kind == TP_CONSTRAINT_NONE) return w;
    const tp_node_id zero = tp_op_scalar(graph, TP_F32, 0);
    if (constraint->kind == TP_CONSTRAINT_NON_NEG) return tp_op_maximum(graph, w, zero);
    const tp_node_id norms = norms_of(graph, constraint, w);
    const tp_node_id divisor = tp_op_add_scalar(graph, norms, KERAS_EPSILON);
    if (constraint->kind == TP_CONSTRAINT_UNIT_NORM) return tp_op_divide(graph, w, divisor);
    const tp_node_id low = tp_op_scalar(graph, TP_F32, constraint->min_value);
    const tp_node_id high = tp_op_scalar(graph, TP_F32, constraint->max_value);
    tp_node_id desired = tp_op_clamp(graph, low, norms, high);
    if (constraint->rate != 1)
        desired = tp_op_add(graph, tp_op_multiply_scalar(graph, desired, constraint->rate),
                            tp_op_multiply_scalar(graph, norms, 1 - constraint->rate));
    return tp_op_multiply(graph, w, tp_op_divide(graph, desired, divisor));
}
