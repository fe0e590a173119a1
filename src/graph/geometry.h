/* SPDX-License-Identifier: Apache-2.0
 * The attributes of the ops that are more than element-wise, read and checked in one place: the ops
 * infer and evaluate with it, compile/ lowers with it. Functions take the node for its attributes and
 * the shapes of its inputs, so that they work before the node's own shape is known. Every failure is
 * TPUCL_INVALID_ARGUMENT with the shapes in its message.
 *
 * Attributes ("dims" are lists of ints, dimension numbers are rising where not said otherwise):
 *   dot_general               lhs_batching_dimensions, rhs_batching_dimensions,
 *                             lhs_contracting_dimensions, rhs_contracting_dimensions (any order, paired),
 *                             precision
 *   convolution               window_strides [2], padding [4], rhs_dilation [2], feature_group_count,
 *                             precision
 *   convolution_input_grad    the same + input_dims [4]: the shape of the gradient
 *   convolution_filter_grad   the same + filter_dims [4]
 *   reduce                    axes, kind: add max min multiply and or
 *   argmax, argmin            axis (an int)
 *   reduce_window             window_dimensions, window_strides, padding, kind: add max
 *   select_and_scatter        the same without kind
 *   reduce_window_grad    the same without kind + input_dims
 * Absent: strides, dilations and the number of groups are 1, padding is 0, dimension lists are empty, precision is "default".
 * Padding is low, high of each dimension in turn (top, bottom, left, right), never negative.
 */
#ifndef TP_GRAPH_GEOMETRY_H
#define TP_GRAPH_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>
#include "core/status.h"
#include "graph/graph.h"
#include "num/mxu.h"
#include "num/shape.h"

/* From a tuple's row-major number to the offset of an element: the tuple (i0, i1, ...) below sizes
 * has offset sum of i * stride. Count 0: one tuple, offset 0. */
typedef struct tp_index_map {
    int32_t count;
    int64_t sizes[TP_MAX_RANK], strides[TP_MAX_RANK];
} tp_index_map;

int64_t tp_index_map_elems(const tp_index_map *map);
int64_t tp_index_map_offset(const tp_index_map *map, int64_t index);
/* True when the offset is index * stride. A map of one element has stride 0. */
bool tp_index_map_stride(const tp_index_map *map, int64_t *out_stride);

/* result[batch..., lhs free..., rhs free...]; a is lhs [z][m][k], b is rhs [z][k][n]. */
typedef struct tp_dot_geometry {
    int64_t batch, m, n, k;
    tp_index_map a_batch, a_outer, a_inner; /* offsets in lhs by z, m and k */
    tp_index_map b_batch, b_outer, b_inner; /* offsets in rhs by z, n and k */
    tp_shape result;
    /* Dimension numbers by role, in the order of the maps. */
    int32_t batch_count, contract_count, a_free_count, b_free_count;
    int32_t a_batch_dims[TP_MAX_RANK], b_batch_dims[TP_MAX_RANK];
    int32_t a_contract_dims[TP_MAX_RANK], b_contract_dims[TP_MAX_RANK];
    int32_t a_free_dims[TP_MAX_RANK], b_free_dims[TP_MAX_RANK];
    tp_precision precision;
} tp_dot_geometry;

tpucl_status tp_dot_geometry_read(const tp_node *node, const tp_shape *lhs, const tp_shape *rhs,
                                  tp_dot_geometry *out_geometry) TPUCL_MUST_CHECK;

/* A convolution of x [images, in_h, in_w, in_c] with w [kernel_h, kernel_w, in_c / groups, out_c], giving
 * y [images, out_h, out_w, out_c]. Channel co of y is in group co / (out_c / groups), which has channels
 * first .. first + in_c / groups - 1 of x:
 *     y[i][oy][ox][co] = sum over ky, kx, ci of
 *         x[i][oy * stride_h + ky * dilation_h - pad_top][...][first + ci] * w[ky][kx][ci][co]
 * m, n, k are those of kernel/mxu.h for the node's own product. */
typedef struct tp_conv_geometry {
    int64_t images, in_h, in_w, in_c, out_h, out_w, out_c, groups;
    int64_t kernel_h, kernel_w, stride_h, stride_w;
    int64_t pad_top, pad_bottom, pad_left, pad_right, dilation_h, dilation_w;
    int64_t m, n, k;
    tp_shape result;
    tp_precision precision;
} tp_conv_geometry;

typedef enum tp_conv_kind { TP_CONV_FORWARD, TP_CONV_INPUT_GRAD, TP_CONV_FILTER_GRAD } tp_conv_kind;

/* `first`, `second`: x, w; or dy, w; or x, dy. */
tpucl_status tp_conv_geometry_read(const tp_node *node, tp_conv_kind kind, const tp_shape *first,
                                   const tp_shape *second,
                                   tp_conv_geometry *out_geometry) TPUCL_MUST_CHECK;

/* result dims are the kept ones, in order. Element r of result element o is at kept(o) + reduced(r). */
typedef struct tp_reduce_geometry {
    tp_index_map kept, reduced;
    int64_t kept_elems, reduced_elems;
    tp_shape result;
} tp_reduce_geometry;

/* For reduce (`axes`) and for argmax and argmin (`axis`). */
tpucl_status tp_reduce_geometry_read(const tp_node *node, const tp_shape *operand,
                                     tp_reduce_geometry *out_geometry) TPUCL_MUST_CHECK;

/* Windows over `in` with one result each in `out`; the window of out index o covers, in dimension d,
 * in indexes o * stride[d] - pad_low[d] + 0 .. window[d]-1, as far as they exist. */
typedef struct tp_window_geometry {
    int32_t rank;
    int64_t window[TP_MAX_RANK], stride[TP_MAX_RANK], pad_low[TP_MAX_RANK], pad_high[TP_MAX_RANK];
    tp_shape in, out;
} tp_window_geometry;

tpucl_status tp_window_geometry_read(const tp_node *node, const tp_shape *in,
                                     tp_window_geometry *out_geometry) TPUCL_MUST_CHECK;

/* Reads the shape in attribute `name` (input_dims, filter_dims). */
tpucl_status tp_geometry_dims(const tp_node *node, const char *name,
                              tp_shape *out_shape) TPUCL_MUST_CHECK;

/* Padding of one dimension so that ceil(size / stride) windows fit, the odd cell at the end: TF's SAME. */
void tp_geometry_same_padding(int64_t size, int64_t window, int64_t stride, int64_t dilation,
                              int64_t *out_low, int64_t *out_high);

#endif
