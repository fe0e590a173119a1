/* SPDX-License-Identifier: Apache-2.0
 * What tiles cost on a TPU: arrays in HBM are padded to tiles of their two minor dimensions, products
 * to the size of the MXU's array. Plain arithmetic on shapes.
 *
 * Tiles (openxla/xla, docs/tiled_layout.md; jax-ml/jax, jax/_src/pallas/mosaic/tpu_info.py)
 *     32-bit and pred   8 x 128; 2 x 128 and 4 x 128 where the second-minor dimension is at most 2, 4
 *     bf16              8 x 128
 *     8-bit             32 x 128
 *     rank 0 and 1      not padded here: linear
 * A pred takes four bytes there.
 */
#ifndef TP_CHECK_PADDING_H
#define TP_CHECK_PADDING_H

#include <stdint.h>
#include "num/dtype.h"
#include "num/shape.h"

/* Bytes of an array in HBM with `minor` running fastest and `second` next to it (dimension numbers;
 * ignored below rank 2). */
double tp_padded_bytes(const tp_shape *shape, tp_dtype dtype, int32_t second, int32_t minor);

/* Without any padding; a pred counts four bytes here, too. */
double tp_unpadded_bytes(const tp_shape *shape, tp_dtype dtype);

/* The layout that pads least; of equals the one nearest to row-major. */
typedef struct tp_best_layout {
    double bytes;
    int32_t second, minor;
} tp_best_layout;
tp_best_layout tp_find_best_layout(const tp_shape *shape, tp_dtype dtype);

/* Multiply-adds that an array of `rows` x `columns` spends on a product of m x k with k x n: the
 * stationary operand is padded to whole arrays, the one that streams to 8 rows; whichever of the two
 * operands costs less to hold. */
double tp_mxu_work(double m, double n, double k, double rows, double columns);

#endif
