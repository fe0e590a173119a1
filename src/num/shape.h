/* SPDX-License-Identifier: Apache-2.0
 * Static shapes, row-major. A tp_shape that passed tp_shape_init (or was made by another function
 * here) is valid: 0 <= rank <= TP_MAX_RANK, every dim >= 0, the product of the dims and of the
 * non-zero dims fits TP_MAX_ELEMS; dims beyond the rank are 0, so that shapes may be compared and
 * hashed as bytes. Rank 0 is a scalar with one element.
 */
#ifndef TP_NUM_SHAPE_H
#define TP_NUM_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/status.h"
#include "num/dtype.h"

#define TP_MAX_RANK 8
/* Elements of one tensor. Four bytes each stay well inside int64_t, and products of two strides
 * too. */
#define TP_MAX_ELEMS ((int64_t)1 << 40)
/* Enough for every valid shape in text: "[" + 8 * (13 digits + ",") + "]" + NUL. */
#define TP_SHAPE_TEXT_MAX 128

typedef struct tp_shape {
    int rank;
    int64_t dims[TP_MAX_RANK];
} tp_shape;

/* Checks and stores. TPUCL_INVALID_ARGUMENT: bad rank, negative dim, too many elements. */
tpucl_status tp_shape_init(tp_shape *out_shape, int rank, const int64_t *dims);

/* The product of the dims of a valid shape; 1 for a scalar, 0 if a dim is 0. */
int64_t tp_shape_elems(const tp_shape *shape);

/* Elements times element size. */
int64_t tp_shape_bytes(const tp_shape *shape, tp_dtype dtype);

/* Same rank and same dims. */
bool tp_shape_equal(const tp_shape *a, const tp_shape *b);

/* Row-major strides in elements: the last dim has stride 1. Strides of dims beyond the rank are 0.
 */
void tp_shape_strides(const tp_shape *shape, int64_t out_strides[TP_MAX_RANK]);

/* The common shape of two operands by the rule of NumPy: aligned at the last dim, dims equal or one
 * of them 1. TPUCL_INVALID_ARGUMENT names both shapes. */
tpucl_status tp_shape_broadcast(const tp_shape *a, const tp_shape *b, tp_shape *out_shape);

/* "[128,784]", "[]" for a scalar. Always NUL-terminated; returns the full length like snprintf. */
size_t tp_shape_format(const tp_shape *shape, char *buffer, size_t buffer_bytes);

/* The reverse; accepts blanks after the commas, nothing else. */
tpucl_status tp_shape_parse(const char *text, tp_shape *out_shape);

/* a * b for non-negative sizes; false on overflow, and then *out is untouched. */
bool tp_size_multiply(int64_t a, int64_t b, int64_t *out_product);

#endif
