/* SPDX-License-Identifier: Apache-2.0
 * What the functions and operators of expressions do. A new one is a row in the table.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "graph/builder.h"
#include "model/activation.h"
#include "model/expression_internal.h"

typedef struct function function;
struct function {
    const char *name;
    int32_t least, most; /* arguments */
    tpucl_status (*apply)(const tp_expression *e, const tp_expression_call *call,
                          const function *row, tp_expression_value *out_value);
    tp_node_id (*unary)(tp_graph *graph, tp_node_id a);
    tp_node_id (*binary)(tp_graph *graph, tp_node_id a, tp_node_id b);
    const char *kind; /* of a reduction, direction of a comparison */
    const char *arguments, *meaning;
};

static const tp_node *node_of(const tp_expression *e, tp_node_id id)
{
    return tp_graph_node(e->graph, id);
}

/* ---- element-wise ---- */

static tpucl_status need_float(const tp_expression *e, const tp_expression_call *call,
                               tp_node_id *inout_node)
{
    const tp_dtype dtype = node_of(e, *inout_node)->dtype;
    tp_expression_value made;
    if (tp_dtype_is_float(dtype)) return TPUCL_OK;
    if (dtype != TP_S32)
        return tp_expression_fail(e, call->at, "'%.*s' takes numbers, found %s; cast(mask, f32)?",
                                  TP_VIEW_ARGS(call->name), tp_dtype_name(dtype));
    TP_TRY(tp_expression_keep(e, call->at, tp_op_convert(e->graph, *inout_node, TP_F32), &made));
    *inout_node = made.node;
    return TPUCL_OK;
}

/* Functions of floats. */
static tpucl_status apply_unary(const tp_expression *e, const tp_expression_call *call,
                                const function *row, tp_expression_value *out_value)
{
    tp_node_id a;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    TP_TRY(need_float(e, call, &a));
    return tp_expression_keep(e, call->at, row->unary(e->graph, a), out_value);
}

/* Those that take integers, too, or masks: the op says which. */
static tpucl_status apply_any(const tp_expression *e, const tp_expression_call *call,
                              const function *row, tp_expression_value *out_value)
{
    tp_node_id a;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    return tp_expression_keep(e, call->at, row->unary(e->graph, a), out_value);
}

static tpucl_status apply_binary(const tp_expression *e, const tp_expression_call *call,
                                 const function *row, tp_expression_value *out_value)
{
    tp_node_id a, b;
    TP_TRY(tp_expression_unify(e, call->at, &call->values[0], &call->values[1], &a, &b));
    if (row->binary == tp_op_divide || row->binary == tp_op_power) {
        TP_TRY(need_float(e, call, &a));
        TP_TRY(need_float(e, call, &b));
    }
    return tp_expression_keep(e, call->at, row->binary(e->graph, a, b), out_value);
}

static tpucl_status apply_compare(const tp_expression *e, const tp_expression_call *call,
                                  const function *row, tp_expression_value *out_value)
{
    tp_node_id a, b;
    TP_TRY(tp_expression_unify(e, call->at, &call->values[0], &call->values[1], &a, &b));
    return tp_expression_keep(e, call->at, tp_op_compare(e->graph, row->kind, a, b), out_value);
}

static tpucl_status apply_where(const tp_expression *e, const tp_expression_call *call,
                                const function *row, tp_expression_value *out_value)
{
    tp_node_id a, b;
    (void)row;
    if (tp_expression_dtype(e, &call->values[0]) != TP_PRED)
        return tp_expression_fail(e, call->values[0].at,
                                  "the first argument of '%.*s' is a mask, found %s; compare it "
                                  "with something",
                                  TP_VIEW_ARGS(call->name),
                                  tp_dtype_name(tp_expression_dtype(e, &call->values[0])));
    TP_TRY(tp_expression_unify(e, call->at, &call->values[1], &call->values[2], &a, &b));
    return tp_expression_keep(e, call->at, tp_op_select(e->graph, call->values[0].node, a, b),
                              out_value);
}

/* min(max(x, low), high) */
static tpucl_status apply_clip(const tp_expression *e, const tp_expression_call *call,
                               const function *row, tp_expression_value *out_value)
{
    tp_node_id x, low, high;
    (void)row;
    TP_TRY(tp_expression_unify(e, call->at, &call->values[0], &call->values[1], &x, &low));
    TP_TRY(tp_expression_keep(e, call->at, tp_op_maximum(e->graph, x, low), out_value));
    const tp_expression_value above = *out_value;
    TP_TRY(tp_expression_unify(e, call->at, &above, &call->values[2], &x, &high));
    return tp_expression_keep(e, call->at, tp_op_minimum(e->graph, x, high), out_value);
}

static tpucl_status apply_cast(const tp_expression *e, const tp_expression_call *call,
                               const function *row, tp_expression_value *out_value)
{
    static const struct {
        const char *name;
        tp_dtype dtype;
    } dtypes[] = {{"f32", TP_F32}, {"float32", TP_F32}, {"bf16", TP_BF16}, {"bfloat16", TP_BF16},
                  {"s32", TP_S32}, {"int32", TP_S32},   {"pred", TP_PRED}, {"bool", TP_PRED}};
    tp_node_id a;
    (void)row;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (tp_view_equal_text(call->word, dtypes[i].name))
            return tp_expression_keep(e, call->at, tp_op_convert(e->graph, a, dtypes[i].dtype),
                                      out_value);
    return tp_expression_fail(e, call->at, "cast(x, dtype) with f32, bf16, s32 or pred");
}

/* ---- reductions ---- */

/* Counts axes from the front; all of them when none is given. */
static tpucl_status resolve_axes(const tp_expression *e, const tp_expression_call *call,
                                 const tp_shape *shape, int64_t *axes, int32_t *out_count)
{
    if (call->axis_count < 0) {
        for (int32_t i = 0; i < shape->rank; i++) {
            TP_TRY(tp_expression_keep_batch(e, call->at, call->name, shape, i));
            axes[i] = i;
        }
        *out_count = shape->rank;
        return TPUCL_OK;
    }
    bool is_used[TP_MAX_RANK] = {false};
    for (int32_t i = 0; i < call->axis_count; i++) {
        const int64_t axis = call->axes[i] + (call->axes[i] < 0 ? shape->rank : 0);
        if (axis < 0 || axis >= shape->rank || is_used[axis])
            return tp_expression_fail(e, call->at, "axis %lld of an array with %d, or given twice",
                                      (long long)call->axes[i], shape->rank);
        TP_TRY(tp_expression_keep_batch(e, call->at, call->name, shape, axis));
        is_used[axis] = true;
    }
    *out_count = 0;
    for (int32_t i = 0; i < shape->rank; i++)
        if (is_used[i]) axes[(*out_count)++] = i;
    return TPUCL_OK;
}

static tpucl_status apply_reduce(const tp_expression *e, const tp_expression_call *call,
                                 const function *row, tp_expression_value *out_value)
{
    tp_node_id a;
    int64_t axes[TP_MAX_RANK];
    int32_t count;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    const bool is_logical = !strcmp(row->kind, "and") || !strcmp(row->kind, "or");
    const bool is_mean = !strcmp(row->name, "mean");
    if (is_logical != (node_of(e, a)->dtype == TP_PRED))
        return tp_expression_fail(e, call->at, "'%s' takes %s, found %s", row->name,
                                  is_logical ? "masks" : "numbers; cast(mask, f32) counts them",
                                  tp_dtype_name(node_of(e, a)->dtype));
    if (is_mean) TP_TRY(need_float(e, call, &a));
    tp_shape shape = node_of(e, a)->shape;
    TP_TRY(resolve_axes(e, call, &shape, axes, &count));
    double elems = 1;
    for (int32_t i = 0; i < count; i++)
        elems *= (double)shape.dims[axes[i]];
    tp_node_id result = count ? tp_op_reduce(e->graph, a, row->kind, axes, count) : a;
    if (is_mean && result != TP_NO_NODE)
        result = tp_op_divide(e->graph, result,
                              tp_op_scalar(e->graph, node_of(e, result)->dtype, elems));
    if (call->keepdims) {
        for (int32_t i = 0; i < count; i++)
            shape.dims[axes[i]] = 1;
        result = tp_op_reshape(e->graph, result, shape);
    }
    return tp_expression_keep(e, call->at, result, out_value);
}

static tpucl_status apply_argument(const tp_expression *e, const tp_expression_call *call,
                                   const function *row, tp_expression_value *out_value)
{
    tp_node_id a;
    int64_t axes[TP_MAX_RANK];
    int32_t count;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    tp_expression_call last = *call;
    if (call->axis_count < 0) last.axes[0] = -1, last.axis_count = 1;
    TP_TRY(resolve_axes(e, &last, &node_of(e, a)->shape, axes, &count));
    if (count != 1) return tp_expression_fail(e, call->at, "'%s' takes one axis", row->name);
    const tp_node_id result = !strcmp(row->name, "argmax") ? tp_op_argmax(e->graph, a, axes[0])
                                                           : tp_op_argmin(e->graph, a, axes[0]);
    return tp_expression_keep(e, call->at, result, out_value);
}

/* ---- shapes, classes ---- */

/* A whole number given as an argument. */
static tpucl_status whole(const tp_expression *e, const tp_expression_value *value, double least,
                          double most, int64_t *out)
{
    if (value->node != TP_NO_NODE || value->number != rint(value->number) ||
        value->number < least || value->number > most)
        return tp_expression_fail(e, value->at, "expected a whole number from %.0f to %.0f", least,
                                  most);
    *out = (int64_t)value->number;
    return TPUCL_OK;
}

/* x with an axis of size 1 put in front of `axis`. */
static tpucl_status apply_expand(const tp_expression *e, const tp_expression_call *call,
                                 const function *row, tp_expression_value *out_value)
{
    tp_node_id a;
    int64_t axis = 0;
    (void)row;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    tp_shape shape = node_of(e, a)->shape;
    if (shape.rank == TP_MAX_RANK)
        return tp_expression_fail(e, call->at, "an array has at most %d axes", TP_MAX_RANK);
    TP_TRY(whole(e, &call->values[1], -shape.rank - 1, shape.rank, &axis));
    if (axis < 0) axis += shape.rank + 1;
    memmove(shape.dims + axis + 1, shape.dims + axis,
            (size_t)(shape.rank - axis) * sizeof *shape.dims);
    shape.dims[axis] = 1;
    shape.rank++;
    return tp_expression_keep(e, call->at, tp_op_reshape(e->graph, a, shape), out_value);
}

/* [batch, rest] */
static tpucl_status apply_flatten(const tp_expression *e, const tp_expression_call *call,
                                  const function *row, tp_expression_value *out_value)
{
    tp_node_id a;
    (void)row;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    const tp_shape shape = node_of(e, a)->shape;
    if (shape.rank < 1) return tp_expression_fail(e, call->at, "a scalar cannot be flattened");
    for (int32_t i = 1; i < shape.rank; i++)
        TP_TRY(tp_expression_keep_batch(e, call->at, call->name, &shape, i));
    const int64_t batch = shape.dims[0];
    const tp_shape flat = {.rank = 2, .dims = {batch, batch ? tp_shape_elems(&shape) / batch : 0}};
    return tp_expression_keep(e, call->at, tp_op_reshape(e->graph, a, flat), out_value);
}

/* f32 [..., n]: 1 where the class is x, all 0 where x is no class. */
static tpucl_status apply_one_hot(const tp_expression *e, const tp_expression_call *call,
                                  const function *row, tp_expression_value *out_value)
{
    enum { MOST_CLASSES = 1 << 20 };
    int64_t classes = 0;
    (void)row;
    if (tp_expression_dtype(e, &call->values[0]) != TP_S32)
        return tp_expression_fail(e, call->values[0].at, "one_hot takes classes (s32), found %s",
                                  tp_dtype_name(tp_expression_dtype(e, &call->values[0])));
    TP_TRY(whole(e, &call->values[1], 1, MOST_CLASSES, &classes));
    const tp_expression_call expand = {.name = call->name,
                                       .at = call->at,
                                       .values = {call->values[0], {TP_NO_NODE, -1, call->at}},
                                       .count = 2,
                                       .axis_count = -1};
    TP_TRY(apply_expand(e, &expand, row, out_value));
    tp_shape shape = node_of(e, out_value->node)->shape;
    shape.dims[shape.rank - 1] = classes;
    const tp_node_id index = tp_op_iota(e->graph, TP_S32, shape, shape.rank - 1);
    const tp_node_id is_class = tp_op_compare(e->graph, "EQ", index, out_value->node);
    return tp_expression_keep(e, call->at, tp_op_convert(e->graph, is_class, TP_F32), out_value);
}

static tp_node_id softmax(tp_graph *graph, tp_node_id z)
{
    return tp_activation_apply(graph, TP_ACTIVATION_SOFTMAX, tp_op_convert(graph, z, TP_F32),
                               TP_F32);
}

static tp_node_id log_softmax(tp_graph *graph, tp_node_id z)
{
    const tp_node_id shifted = tp_activation_shift(graph, tp_op_convert(graph, z, TP_F32));
    const tp_node_id sum = tp_activation_sum_last(graph, tp_op_exponential(graph, shifted));
    return tp_op_subtract(graph, shifted, tp_op_log(graph, sum));
}

/* Over the last axis. */
static tpucl_status apply_softmax(const tp_expression *e, const tp_expression_call *call,
                                  const function *row, tp_expression_value *out_value)
{
    tp_node_id a;
    TP_TRY(tp_expression_node(e, &call->values[0], TP_F32, &a));
    const tp_shape shape = node_of(e, a)->shape;
    if (shape.rank < 1) return tp_expression_fail(e, call->at, "'%s' needs an axis", row->name);
    TP_TRY(tp_expression_keep_batch(e, call->at, call->name, &shape, shape.rank - 1));
    return apply_unary(e, call, row, out_value);
}

static tp_node_id square(tp_graph *graph, tp_node_id a)
{
    return tp_op_multiply(graph, a, a);
}

static tp_node_id softplus(tp_graph *graph, tp_node_id a)
{
    return tp_activation_apply(graph, TP_ACTIVATION_SOFTPLUS, tp_op_convert(graph, a, TP_F32),
                               TP_F32);
}

/* ---- the table ---- */

/* clang-format off */
#define UNARY(name, op, meaning) {name, 1, 1, apply_unary, op, NULL, NULL, "x", meaning}
#define SOFTMAX(name, op, meaning) {name, 1, 1, apply_softmax, op, NULL, NULL, "x", meaning}
#define ANY(name, op, meaning) {name, 1, 1, apply_any, op, NULL, NULL, "x", meaning}
#define BINARY(name, op, meaning) {name, 2, 2, apply_binary, NULL, op, NULL, "x, y", meaning}
#define COMPARE(name, direction, meaning)                                                          \
    {name, 2, 2, apply_compare, NULL, NULL, direction, "x, y", meaning}
#define REDUCE(name, kind, meaning)                                                                \
    {name, 1, 1, apply_reduce, NULL, NULL, kind, "x, axis=, keepdims=", meaning}
#define OTHER(name, count, apply, arguments, meaning)                                              \
    {name, count, count, apply, NULL, NULL, NULL, arguments, meaning}
/* clang-format on */

static const function functions[] = {
    ANY("abs", tp_op_abs, "magnitude"),
    ANY("negate", tp_op_negate, "`-x`"),
    ANY("sign", tp_op_sign, "-1, 0 or 1"),
    ANY("not", tp_op_not, "`!mask`"),
    ANY("square", square, "`x * x`"),
    ANY("stop_gradient", tp_op_stop_gradient, "x, through which no gradient goes"),
    UNARY("exp", tp_op_exponential, "e to the power of x"),
    UNARY("exponential", tp_op_exponential, "the same"),
    UNARY("expm1", tp_op_exponential_minus_one, "`exp(x) - 1`, also near 0"),
    UNARY("exponential_minus_one", tp_op_exponential_minus_one, "the same"),
    UNARY("log", tp_op_log, "natural logarithm"),
    UNARY("log1p", tp_op_log_plus_one, "`log(1 + x)`, also near 0"),
    UNARY("log_plus_one", tp_op_log_plus_one, "the same"),
    UNARY("sqrt", tp_op_sqrt, "square root"),
    UNARY("rsqrt", tp_op_rsqrt, "`1 / sqrt(x)`"),
    UNARY("cbrt", tp_op_cbrt, "cube root"),
    UNARY("tanh", tp_op_tanh, "hyperbolic tangent"),
    UNARY("sigmoid", tp_op_logistic, "`1 / (1 + exp(-x))`"),
    UNARY("logistic", tp_op_logistic, "the same"),
    UNARY("erf", tp_op_erf, "error function"),
    UNARY("sin", tp_op_sine, "sine of radians"),
    UNARY("sine", tp_op_sine, "the same"),
    UNARY("cos", tp_op_cosine, "cosine of radians"),
    UNARY("cosine", tp_op_cosine, "the same"),
    UNARY("floor", tp_op_floor, "whole number below"),
    UNARY("ceil", tp_op_ceil, "whole number above"),
    UNARY("round", tp_op_round_nearest_even, "nearest whole number, halves to the even one"),
    UNARY("round_nearest_even", tp_op_round_nearest_even, "the same"),
    UNARY("is_finite", tp_op_is_finite, "mask: neither infinite nor NaN"),
    UNARY("softplus", softplus, "`log(1 + exp(x))`"),
    SOFTMAX("softmax", softmax, "over the last axis"),
    SOFTMAX("log_softmax", log_softmax, "`log(softmax(x))`, also where that is tiny"),
    BINARY("add", tp_op_add, "`x + y`"),
    BINARY("subtract", tp_op_subtract, "`x - y`"),
    BINARY("multiply", tp_op_multiply, "`x * y`"),
    BINARY("divide", tp_op_divide, "`x / y`, of floats"),
    BINARY("power", tp_op_power, "`x ** y`"),
    BINARY("remainder", tp_op_remainder, "with the sign of x"),
    BINARY("maximum", tp_op_maximum, "the larger one"),
    BINARY("minimum", tp_op_minimum, "the smaller one"),
    BINARY("and", tp_op_and, "`a & b`, of masks or integers"),
    BINARY("or", tp_op_or, "`a \\| b`"),
    BINARY("xor", tp_op_xor, "of masks or integers"),
    COMPARE("equal", "EQ", "`x == y`"),
    COMPARE("not_equal", "NE", "`x != y`"),
    COMPARE("less", "LT", "`x < y`"),
    COMPARE("less_equal", "LE", "`x <= y`"),
    COMPARE("greater", "GT", "`x > y`"),
    COMPARE("greater_equal", "GE", "`x >= y`"),
    REDUCE("sum", "add", "of the axes"),
    REDUCE("mean", "add", "of the axes"),
    REDUCE("max", "max", "of the axes"),
    REDUCE("min", "min", "of the axes"),
    REDUCE("prod", "multiply", "product of the axes"),
    REDUCE("all", "and", "whether all of a mask are set"),
    REDUCE("any", "or", "whether one of a mask is set"),
    OTHER("argmax", 1, apply_argument,
          "x, axis=", "index (s32) of the first largest; one axis, the last when not given"),
    OTHER("argmin", 1, apply_argument, "x, axis=", "of the first smallest"),
    OTHER("where", 3, apply_where, "mask, x, y", "x where the mask is set, else y"),
    OTHER("select", 3, apply_where, "mask, x, y", "the same"),
    OTHER("clip", 3, apply_clip, "x, low, high", "`minimum(maximum(x, low), high)`"),
    OTHER("cast", 1, apply_cast, "x, dtype", "x as f32, bf16, s32 or pred"),
    OTHER("expand_dims", 2, apply_expand, "x, n",
          "x with an axis of size 1 before axis `n`; -1: behind the last"),
    OTHER("flatten", 1, apply_flatten, "x", "[batch, all other elements]"),
    OTHER("one_hot", 2, apply_one_hot, "x, n",
          "classes x (s32) as f32 [..., n]: 1 at the class, all 0 where x is none of 0 to n - 1"),
};
enum { FUNCTION_COUNT = sizeof functions / sizeof *functions };

static tpucl_status unknown(const tp_expression *e, const tp_expression_call *call)
{
    const char *names[FUNCTION_COUNT];
    char text[64];
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        names[i] = functions[i].name;
    snprintf(text, sizeof text, "%.*s", TP_VIEW_ARGS(call->name));
    const char *nearest = tp_str_nearest(text, names, FUNCTION_COUNT);
    return tp_expression_fail(e, call->at, "there is no function '%s'%s%s%s", text,
                              nearest ? ", did you mean '" : "", nearest ? nearest : "",
                              nearest ? "'?" : "");
}

tpucl_status tp_expression_apply(const tp_expression *e, const tp_expression_call *call,
                                 tp_expression_value *out_value)
{
    size_t i = 0;
    while (i < FUNCTION_COUNT && !tp_view_equal_text(call->name, functions[i].name))
        i++;
    if (i == FUNCTION_COUNT) return unknown(e, call);
    const function *row = &functions[i];
    if (call->count < row->least || call->count > row->most)
        return tp_expression_fail(e, call->at, "'%s' takes %d argument%s, found %d", row->name,
                                  row->least, row->least == 1 ? "" : "s", call->count);
    const bool takes_axes = row->apply == apply_reduce || row->apply == apply_argument;
    if (!takes_axes && (call->axis_count >= 0 || call->keepdims))
        return tp_expression_fail(e, call->at, "'%s' takes no axis", row->name);
    if (call->word.length && row->apply != apply_cast)
        return tp_expression_fail(e, call->word.data, "'%s' takes no dtype", row->name);
    return row->apply(e, call, row, out_value);
}

tpucl_status tp_expression_markdown(char **out_text)
{
    tp_str_builder text = {0};
    tp_str_append(&text, "| function | value |\n|---|---|\n");
    for (size_t i = 0; i < FUNCTION_COUNT; i++)
        tp_str_builder_printf(&text, "| `%s(%s)` | %s |\n", functions[i].name,
                              functions[i].arguments, functions[i].meaning);
    return tp_str_builder_finish(&text, out_text, NULL);
}
