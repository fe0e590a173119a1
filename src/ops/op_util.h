/* SPDX-License-Identifier: Apache-2.0
 * What op families share: shape rules, sentences about dtypes and shapes, and reading and writing
 * host tensors as f32, chunk by chunk. Writing is where the numeric contract rounds: f32 is
 * flushed, bf16 is rounded and flushed, and nothing else ever is. */
#ifndef TP_OPS_OP_UTIL_H
#define TP_OPS_OP_UTIL_H

#include "graph/opdef.h"

/* Elements handled at a time: three chunks stay within the first-level cache. */
#define TP_OP_CHUNK 1024

/* Sets of dtypes, as bits. */
#define TP_DTYPE_BIT(dtype) (1u << (dtype))
#define TP_DTYPES_FLOAT (TP_DTYPE_BIT(TP_F32) | TP_DTYPE_BIT(TP_BF16))
#define TP_DTYPES_INT (TP_DTYPE_BIT(TP_S32) | TP_DTYPE_BIT(TP_U32))
#define TP_DTYPES_PRED TP_DTYPE_BIT(TP_PRED)
#define TP_DTYPES_ALL ((1u << TP_DTYPE_COUNT) - 1)

/* The node of input `index`. */
static inline const tp_node *tp_op_input(const tp_graph *graph, const tp_node *node, int32_t index)
{
    return &graph->nodes[node->inputs[index]];
}

/* Fails unless input `index` has one of `dtypes`; the sentence lists them. */
tpucl_status tp_op_check_dtype(const tp_graph *graph, const tp_node *node, int32_t index,
                               uint32_t dtypes);

/* Fails unless inputs `a` and `b` have the same shape (and dtype). */
tpucl_status tp_op_check_same_shape(const tp_graph *graph, const tp_node *node, int32_t a,
                                    int32_t b);
tpucl_status tp_op_check_same_type(const tp_graph *graph, const tp_node *node, int32_t a,
                                   int32_t b);

/* All inputs of one type among `dtypes`, which is the result's. */
tpucl_status tp_op_infer_same(const tp_graph *graph, const tp_node *node, uint32_t dtypes,
                              tp_dtype *out_dtype, tp_shape *out_shape);

/* Elements first .. first+count-1 of an f32 or bf16 tensor as f32: in place when it is f32, else
 * widened into `buffer` (count of it). */
const float *tp_op_read(const tp_host_tensor *tensor, int64_t first, int64_t count, float *buffer);
/* Flushes (f32) or rounds (bf16) `values` into the tensor. */
void tp_op_write(tp_host_tensor *tensor, int64_t first, int64_t count, const float *values);

/* y = f(x) and y = f(a, b) over tensors of f32 or bf16. */
typedef void (*tp_op_unary_fn)(const float *x, float *y, int64_t count);
typedef void (*tp_op_binary_fn)(const float *a, const float *b, float *y, int64_t count);
void tp_op_map_unary(tp_op_unary_fn function, const tp_host_tensor *x, tp_host_tensor *out);
void tp_op_map_binary(tp_op_binary_fn function, const tp_host_tensor *a, const tp_host_tensor *b,
                      tp_host_tensor *out);

/* The error of an expression that was asked for a dtype the op does not have; returns NULL. */
const char *tp_op_no_expression(const tp_node *node, tp_dtype dtype);

#endif
