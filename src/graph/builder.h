/* SPDX-License-Identifier: Apache-2.0
 * The ops as C functions, one per op, so that models and optimizers read as mathematics:
 *     tp_node_id y = tp_op_add(g, tp_op_matmul(g, x, w, "default"), bias);
 *
 * Every call appends a node and returns its id, or records the mistake (see graph.h) and returns
 * TP_NO_NODE. Arrays are borrowed for the call.
 *
 * Convenience that the ops themselves do not have: binary wrappers, tp_op_compare and tp_op_select
 * broadcast their operands by NumPy's rule with explicit broadcast_in_dim nodes. Nothing converts
 * dtypes silently: operands of different dtype are a mistake.
 *
 * Kinds of reductions, directions and precisions are the texts that the ops take:
 *     kind       add max min multiply and or
 *     direction  EQ NE LT LE GT GE
 *     precision  default high highest f32
 */
#ifndef TP_GRAPH_BUILDER_H
#define TP_GRAPH_BUILDER_H

#include "graph/graph.h"
#include "graph/indexing.h"

/* ---- sources ---- */
tp_node_id tp_op_constant(tp_graph *graph, tp_dtype dtype, tp_shape shape, const void *data);
/* A scalar; `value` is rounded to the dtype (integers must be exact). */
tp_node_id tp_op_scalar(tp_graph *graph, tp_dtype dtype, double value);
/* A scalar broadcast to `shape`. */
tp_node_id tp_op_fill(tp_graph *graph, tp_dtype dtype, tp_shape shape, double value);
tp_node_id tp_op_iota(tp_graph *graph, tp_dtype dtype, tp_shape shape, int64_t axis);
/* s32 scalar: number of the training step, from 0. */
tp_node_id tp_op_step(tp_graph *graph);

/* Values that differ from core to core and from step to step. `stream` tells one random op of a
 * graph from another: equal streams give equal numbers. */
tp_node_id tp_op_uniform(tp_graph *graph, tp_dtype dtype, tp_shape shape,
                         int64_t stream); /* [0, 1) */
tp_node_id tp_op_normal(tp_graph *graph, tp_dtype dtype, tp_shape shape,
                        int64_t stream); /* N(0, 1) */
/* pred: true with `probability`. */
tp_node_id tp_op_bernoulli(tp_graph *graph, tp_shape shape, double probability, int64_t stream);
/* u32: the same words on every core. */
tp_node_id tp_op_random_bits(tp_graph *graph, tp_shape shape, int64_t stream);

/* ---- element-wise, one operand ---- */
/* clang-format off */
#define TP_UNARY_OPS(X)                                                                            \
    X(abs) X(negate) X(sign) X(exponential) X(exponential_minus_one) X(log) X(log_plus_one)        \
    X(sqrt) X(rsqrt) X(cbrt) X(tanh) X(logistic) X(erf) X(sine) X(cosine) X(floor) X(ceil)         \
    X(round_nearest_even) X(not) X(is_finite)
/* clang-format on */
#define TP_DECLARE_UNARY(name) tp_node_id tp_op_##name(tp_graph *graph, tp_node_id a);
TP_UNARY_OPS(TP_DECLARE_UNARY)
#undef TP_DECLARE_UNARY

/* The same value in another dtype; returns `a` itself when it has that dtype. */
tp_node_id tp_op_convert(tp_graph *graph, tp_node_id a, tp_dtype dtype);
/* f32 and u32 words of its shape: bf16, up or down by chance. */
tp_node_id tp_op_stochastic_round(tp_graph *graph, tp_node_id a, tp_node_id bits);
/* `a` itself, taken as a constant when differentiating. */
tp_node_id tp_op_stop_gradient(tp_graph *graph, tp_node_id a);

/* ---- element-wise, two operands of one dtype, broadcast by NumPy's rule ---- */
/* clang-format off */
#define TP_BINARY_OPS(X)                                                                           \
    X(add) X(subtract) X(multiply) X(divide) X(maximum) X(minimum) X(power) X(remainder)           \
    X(and) X(or) X(xor)
/* clang-format on */
#define TP_DECLARE_BINARY(name)                                                                    \
    tp_node_id tp_op_##name(tp_graph *graph, tp_node_id a, tp_node_id b);
TP_BINARY_OPS(TP_DECLARE_BINARY)
#undef TP_DECLARE_BINARY

/* pred */
tp_node_id tp_op_compare(tp_graph *graph, const char *direction, tp_node_id a, tp_node_id b);
/* on_true where pred is set, else on_false. */
tp_node_id tp_op_select(tp_graph *graph, tp_node_id pred, tp_node_id on_true, tp_node_id on_false);
/* min(max(a, low), high); low and high are scalars or of a's shape. */
tp_node_id tp_op_clamp(tp_graph *graph, tp_node_id low, tp_node_id a, tp_node_id high);

/* With a scalar constant of a's dtype and shape as second operand. */
tp_node_id tp_op_add_scalar(tp_graph *graph, tp_node_id a, double value);
tp_node_id tp_op_multiply_scalar(tp_graph *graph, tp_node_id a, double value);

/* ---- shape ---- */
/* axes[i]: the result's axis for axis i of `a`, rising; a dim of 1 is repeated. */
tp_node_id tp_op_broadcast_in_dim(tp_graph *graph, tp_node_id a, tp_shape shape,
                                  const int64_t *axes);
/* NumPy's rule: aligned at the last axis. Returns `a` itself when it has that shape. */
tp_node_id tp_op_broadcast_to(tp_graph *graph, tp_node_id a, tp_shape shape);
tp_node_id tp_op_reshape(tp_graph *graph, tp_node_id a, tp_shape shape);
/* Axis i of the result is axis axes[i] of `a`. */
tp_node_id tp_op_transpose(tp_graph *graph, tp_node_id a, const int64_t *axes);
/* [start, limit) with stride in every axis. strides NULL: all 1. */
tp_node_id tp_op_slice(tp_graph *graph, tp_node_id a, const int64_t *start, const int64_t *limit,
                       const int64_t *strides);
/* low, high: elements of `value` (scalar) before and after each axis, may be negative (cut);
 * interior: between neighbours, NULL: none. */
tp_node_id tp_op_pad(tp_graph *graph, tp_node_id a, tp_node_id value, const int64_t *low,
                     const int64_t *high, const int64_t *interior);
/* Any number of parts: chained where a node takes no more. */
tp_node_id tp_op_concatenate(tp_graph *graph, const tp_node_id *parts, int32_t count, int64_t axis);
tp_node_id tp_op_reverse(tp_graph *graph, tp_node_id a, const int64_t *axes, int32_t count);

/* ---- reductions and windows ---- */
/* Drops the axes. count 0: all axes, giving a scalar. */
tp_node_id tp_op_reduce(tp_graph *graph, tp_node_id a, const char *kind, const int64_t *axes,
                        int32_t count);

/* s32 position of the first largest (smallest) element along the axis, which is dropped. */
tp_node_id tp_op_argmax(tp_graph *graph, tp_node_id a, int64_t axis);
tp_node_id tp_op_argmin(tp_graph *graph, tp_node_id a, int64_t axis);

/* Windows over the two middle axes of an NHWC image. */
typedef struct tp_window {
    int64_t size[2]; /* height, width; not used by convolutions, whose filter says it */
    int64_t strides[2];
    int64_t padding[4];  /* top, bottom, left, right */
    int64_t dilation[2]; /* convolutions only; 0 reads as 1 */
    int64_t groups;      /* the same */
} tp_window;

/* kind add or max; padding takes no part. */
tp_node_id tp_op_reduce_window(tp_graph *graph, tp_node_id a, const char *kind,
                               const tp_window *window);
/* Gradient of the max window: each d goes to the first maximum of its window in `a`. */
tp_node_id tp_op_select_and_scatter(tp_graph *graph, tp_node_id a, tp_node_id d,
                                    const tp_window *window);
/* Gradient of the add window: each d goes to all of its window. */
tp_node_id tp_op_reduce_window_grad(tp_graph *graph, tp_node_id d, tp_shape input_shape,
                                    const tp_window *window);

/* ---- memory and order; indices are s32 or u32 ---- */
/* StableHLO's gather; slice_sizes: one per dim of the operand; out_of_range "clamp" or "zero". */
tp_node_id tp_op_gather(tp_graph *graph, tp_node_id operand, tp_node_id indices,
                        const tp_index_dims *dims, const int64_t *slice_sizes,
                        const char *out_of_range);
/* StableHLO's scatter; kind "add", "max", "min" or "replace"; out_of_range "skip" or "clamp". */
tp_node_id tp_op_scatter(tp_graph *graph, tp_node_id operand, tp_node_id indices,
                         tp_node_id updates, const tp_index_dims *dims, const char *kind,
                         const char *out_of_range);
/* Slices of size 1 along `axis`, which the shape of `indices` takes the place of: embedding look-up
 * with axis 0. Indices are clamped. */
tp_node_id tp_op_take(tp_graph *graph, tp_node_id a, tp_node_id indices, int64_t axis);
/* Element [.., i, ..] of the result is element [.., indices[.., i, ..], ..] of `a`: indices have a's
 * rank and its dims but for `axis`. Indices are clamped. */
tp_node_id tp_op_take_along_axis(tp_graph *graph, tp_node_id a, tp_node_id indices, int64_t axis);
/* The reverse of take_along_axis: updates, of the shape of the indices, go into `a`; indices outside
 * are skipped. */
tp_node_id tp_op_put_along_axis(tp_graph *graph, tp_node_id a, tp_node_id indices,
                                tp_node_id updates, int64_t axis, const char *kind);
/* The box of `slice_sizes` (one per axis) that begins at `start`, a vector with a number per axis, clamped
 * so that it fits. */
tp_node_id tp_op_dynamic_slice(tp_graph *graph, tp_node_id a, tp_node_id start,
                               const int64_t *slice_sizes);
/* `a` with `update` in place of that box. */
tp_node_id tp_op_dynamic_update_slice(tp_graph *graph, tp_node_id a, tp_node_id update,
                                      tp_node_id start);
/* Running add, multiply, max or min along the axis; exclusive: without the element itself; reverse: from the
 * last to the first. */
tp_node_id tp_op_cumulative(tp_graph *graph, tp_node_id a, const char *kind, int64_t axis,
                            bool exclusive, bool reverse);
/* Stable, NaN last in both directions. argsort: s32, where the elements were; operands that are carried along
 * are taken by it with tp_op_take_along_axis. */
tp_node_id tp_op_sort(tp_graph *graph, tp_node_id a, int64_t axis, bool descending);
tp_node_id tp_op_argsort(tp_graph *graph, tp_node_id a, int64_t axis, bool descending);
/* The k largest along the last axis, in falling order, of equal ones the first; NaN is the largest.
 * out_indices (s32, may be NULL): where they are. */
tp_node_id tp_op_top_k(tp_graph *graph, tp_node_id a, int64_t k, tp_node_id *out_indices);
tp_node_id tp_op_top_k_indices(tp_graph *graph, tp_node_id a, int64_t k);
/* [..., depth]: 1 where the last index is that of `indices`, else 0; all 0 for an index outside. */
tp_node_id tp_op_one_hot(tp_graph *graph, tp_node_id indices, int64_t depth, tp_dtype dtype);

/* ---- MXU; results are f32 ---- */
typedef struct tp_dot_dims {
    int64_t lhs_batch[TP_MAX_RANK], rhs_batch[TP_MAX_RANK];
    int64_t lhs_contract[TP_MAX_RANK], rhs_contract[TP_MAX_RANK];
    int32_t batch_count, contract_count;
} tp_dot_dims;

/* Result: batch dims, then what is left of lhs, then what is left of rhs. */
tp_node_id tp_op_dot_general(tp_graph *graph, tp_node_id lhs, tp_node_id rhs,
                             const tp_dot_dims *dims, const char *precision);
typedef struct tp_attention_options {
    double scale;   /* of the scores */
    bool is_causal; /* query i sees keys up to i */
    int64_t window; /* query i sees keys nearer than this; 0: all */
    double dropout; /* share of the probabilities that are dropped */
    int64_t stream; /* of its random numbers */
} tp_attention_options;

/* f32 [batch, queries, heads, width]: softmax(scale query . key) . value of query [batch, queries, heads,
 * depth], key [batch, keys, shared, depth], value [batch, keys, shared, width] without a matrix of
 * queries x keys; `shared` divides `heads`, neighbours share. mask: pred, broadcasts to [batch, heads,
 * queries, keys] (the last as it is), TP_NO_NODE: all. A query that may see nothing sees zeros. */
tp_node_id tp_op_attention(tp_graph *graph, tp_node_id query, tp_node_id key, tp_node_id value,
                           tp_node_id mask, const tp_attention_options *options,
                           const char *precision);
/* [..., k] x [k, n]: contracts the last axis of lhs with the first of rhs. */
tp_node_id tp_op_matmul(tp_graph *graph, tp_node_id lhs, tp_node_id rhs, const char *precision);
/* x [images, h, w, ci] with w [kh, kw, ci / groups, co] gives [images, oh, ow, co]. */
tp_node_id tp_op_convolution(tp_graph *graph, tp_node_id x, tp_node_id w, const tp_window *window,
                             const char *precision);
/* d [images, oh, ow, co] with w gives the gradient of x, which has `input_shape`. */
tp_node_id tp_op_convolution_input_grad(tp_graph *graph, tp_node_id d, tp_node_id w,
                                        tp_shape input_shape, const tp_window *window,
                                        const char *precision);
/* x with d gives the gradient of w, which has `filter_shape`. */
tp_node_id tp_op_convolution_filter_grad(tp_graph *graph, tp_node_id x, tp_node_id d,
                                         tp_shape filter_shape, const tp_window *window,
                                         const char *precision);

/* ---- loops: see graph/loop.h ---- */
/* A number for a new loop. */
int32_t tp_op_loop_new(tp_graph *graph);
/* In the loop, whose length is xs's first dim: xs[turn], or with `reverse` xs[length - 1 - turn]. */
tp_node_id tp_op_loop_slice(tp_graph *graph, int32_t loop, tp_node_id xs, bool reverse);
/* In the loop: `init` in the first turn, then what tp_op_loop_last() says. */
tp_node_id tp_op_loop_carry(tp_graph *graph, int32_t loop, int64_t length, tp_node_id init);
/* `next`, of the carry's type, is the carry in the next turn. Gives what it is after the last one. */
tp_node_id tp_op_loop_last(tp_graph *graph, tp_node_id carry, tp_node_id next);
/* [length, ...]: the values of all turns in their order, or with `reverse` from the last to the first.
 * What is not computed in the loop is repeated. */
tp_node_id tp_op_loop_stack(tp_graph *graph, int32_t loop, tp_node_id value, bool reverse);

/* A whole loop. In each turn `body` gets the carries and the turn's slices of xs, and says what the
 * carries become and what is stacked: all arrays are of the counts in tp_scan. With `reverse` the
 * turns go from the last slice to the first, and the stacks have the order of xs all the same. */
#define TP_SCAN_MAX 32 /* carries, xs and stacks each */
typedef void (*tp_scan_body)(void *user, tp_graph *graph, const tp_node_id *carries,
                             const tp_node_id *slices, tp_node_id *out_next,
                             tp_node_id *out_stacked);
typedef struct tp_scan {
    int64_t length;
    bool reverse;
    const tp_node_id *init, *xs; /* xs[i]: [length, ...] */
    int32_t carry_count, xs_count, stack_count;
    tp_scan_body body;
    void *user;
} tp_scan;
/* out_last[carry_count], out_stacks[stack_count]: may be NULL when the count is 0. */
void tp_op_scan(tp_graph *graph, const tp_scan *scan, tp_node_id *out_last, tp_node_id *out_stacks);

/* One of two results by a pred scalar. Both branches are computed and one is selected, as on any
 * machine without jumps; so a NaN in the other one does no harm, and neither does its gradient
 * unless it is infinite. `branch` fills out_results[result_count]; both make the same types. */
typedef void (*tp_branch)(void *user, tp_graph *graph, tp_node_id *out_results);
void tp_op_conditional(tp_graph *graph, tp_node_id pred, tp_branch on_true, tp_branch on_false,
                       void *user, int32_t result_count, tp_node_id *out_results);

/* ---- cross-core ---- */
/* Sum over the cores of the replica group; f32 only. The result is replicated. */
tp_node_id tp_op_all_reduce(tp_graph *graph, tp_node_id a);
/* These hold for replica groups of `cores` cores; a group of another size is refused when it is run. */
/* The cores' operands (f32, bf16) one after the other along the axis. The result is replicated. */
tp_node_id tp_op_all_gather(tp_graph *graph, tp_node_id a, int64_t axis, int64_t cores);
/* Each core's part, along the axis, of the sum over cores; f32 only. */
tp_node_id tp_op_reduce_scatter(tp_graph *graph, tp_node_id a, int64_t axis, int64_t cores);
/* The operand of another core: pairs[2 * i] gives to pairs[2 * i + 1]; zeros where nobody gives. */
tp_node_id tp_op_collective_permute(tp_graph *graph, tp_node_id a, const int64_t *pairs,
                                    int32_t pair_count, int64_t cores);
/* Sum over the `group` neighbouring cores that the core is one of; f32 only. Differentiable. */
tp_node_id tp_op_cross_replica_sum(tp_graph *graph, tp_node_id a, int64_t group, int64_t cores);
/* u32 scalar: position of the core in its group. */
tp_node_id tp_op_replica_id(tp_graph *graph, int64_t cores);

#endif
