/* SPDX-License-Identifier: Apache-2.0
 * Strided copies between host tensors: what all ops that move elements come down to. */
#ifndef TP_OPS_OP_VIEW_H
#define TP_OPS_OP_VIEW_H

#include <stddef.h>
#include <stdint.h>
#include "num/shape.h"

/* For every index i of `shape`: dst[sum i * dst_strides] = src[sum i * src_strides]. Strides in
 * elements of `size` bytes (1, 2 or 4), may be zero or negative. */
void tp_view_copy(const tp_shape *shape, size_t size, const void *src, const int64_t *src_strides,
                  void *dst, const int64_t *dst_strides);

/* The same into a dense row-major dst. */
void tp_view_gather(const tp_shape *shape, size_t size, const void *src, const int64_t *src_strides,
                    void *dst);

#endif
