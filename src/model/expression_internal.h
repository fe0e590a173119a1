/* SPDX-License-Identifier: Apache-2.0
 * Between the grammar (expression.c) and the functions (expression_functions.c).
 */
#ifndef TP_MODEL_EXPRESSION_INTERNAL_H
#define TP_MODEL_EXPRESSION_INTERNAL_H

#include "core/str.h"
#include "model/expression.h"

/* A value while it is read: a number stays one until it meets a tensor. */
typedef struct tp_expression_value {
    tp_node_id node; /* TP_NO_NODE: `number` it is */
    double number;
    const char *at; /* where it begins in the text */
} tp_expression_value;

typedef struct tp_expression {
    tp_graph *graph;
    const char *what, *text, *next; /* `next`: the first character that is not read yet */
    const tp_expression_name *names;
    int32_t name_count, depth;
    int64_t batch; /* the axis of this size holds examples, which must not meet; 0: there is none */
} tp_expression;

/* Arguments of a call, in order; named ones apart. */
enum { TP_EXPRESSION_MAX_ARGUMENTS = 4 };
typedef struct tp_expression_call {
    tp_view name;
    const char *at;
    tp_expression_value values[TP_EXPRESSION_MAX_ARGUMENTS];
    tp_view word; /* a second argument that is a dtype: cast(x, f32) */
    int32_t count;
    int64_t axes[TP_MAX_RANK];
    int32_t axis_count; /* -1: no axis was given */
    bool keepdims;
} tp_expression_call;

/* A mistake at a place of the text: TPUCL_INVALID_CONFIG. */
tpucl_status tp_expression_fail(const tp_expression *e, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reads all of the text. */
tpucl_status tp_expression_parse(tp_expression *e, tp_node_id *out_node);

/* TPUCL_INVALID_CONFIG when the axis holds the examples of a batch. */
tpucl_status tp_expression_keep_batch(const tp_expression *e, const char *at, tp_view function,
                                      const tp_shape *shape, int64_t axis);

/* What a node that was just added came to: an op's own complaint gets its place. */
tpucl_status tp_expression_keep(const tp_expression *e, const char *at, tp_node_id node,
                                tp_expression_value *out_value);

/* The value as a node: a number as a scalar of `dtype`. */
tpucl_status tp_expression_node(const tp_expression *e, const tp_expression_value *value,
                                tp_dtype dtype, tp_node_id *out_node);
/* Both as nodes of one dtype: numbers take the other's, s32 meets f32 as f32, bf16 meets f32 as f32. Two
 * numbers become f32. */
tpucl_status tp_expression_unify(const tp_expression *e, const char *at,
                                 const tp_expression_value *a, const tp_expression_value *b,
                                 tp_node_id *out_a, tp_node_id *out_b);
/* TP_F32 for a number. */
tp_dtype tp_expression_dtype(const tp_expression *e, const tp_expression_value *value);

/* Does what the call says; TPUCL_INVALID_CONFIG with the nearest name when there is no such function. */
tpucl_status tp_expression_apply(const tp_expression *e, const tp_expression_call *call,
                                 tp_expression_value *out_value);

#endif
