/* SPDX-License-Identifier: Apache-2.0
 * The innermost axis is a plain loop per element size; the outer ones count like an odometer. */
#include "ops/op_view.h"

#define COPY_ROW(type)                                                                             \
    for (int64_t i = 0; i < count; ++i)                                                            \
    ((type *)dst)[i * dst_stride] = ((const type *)src)[i * src_stride]

static void copy_row(size_t size, int64_t count, const void *src, int64_t src_stride, void *dst,
                     int64_t dst_stride)
{
    if (size == 4)
        COPY_ROW(uint32_t);
    else if (size == 2)
        COPY_ROW(uint16_t);
    else
        COPY_ROW(uint8_t);
}

void tp_view_copy(const tp_shape *shape, size_t size, const void *src, const int64_t *src_strides,
                  void *dst, const int64_t *dst_strides)
{
    if (tp_shape_elems(shape) == 0) return;
    const int outer = shape->rank > 0 ? shape->rank - 1 : 0;
    const int64_t row = shape->rank > 0 ? shape->dims[outer] : 1;
    const int64_t src_step = shape->rank > 0 ? src_strides[outer] : 0;
    const int64_t dst_step = shape->rank > 0 ? dst_strides[outer] : 0;
    int64_t index[TP_MAX_RANK] = {0}, src_at = 0, dst_at = 0;
    for (;;) {
        copy_row(size, row, (const char *)src + src_at * (int64_t)size, src_step,
                 (char *)dst + dst_at * (int64_t)size, dst_step);
        int axis = outer - 1;
        for (; axis >= 0; --axis) {
            src_at += src_strides[axis];
            dst_at += dst_strides[axis];
            if (++index[axis] < shape->dims[axis]) break;
            src_at -= src_strides[axis] * shape->dims[axis];
            dst_at -= dst_strides[axis] * shape->dims[axis];
            index[axis] = 0;
        }
        if (axis < 0) return;
    }
}

void tp_view_gather(const tp_shape *shape, size_t size, const void *src, const int64_t *src_strides,
                    void *dst)
{
    int64_t dense[TP_MAX_RANK];
    tp_shape_strides(shape, dense);
    tp_view_copy(shape, size, src, src_strides, dst, dense);
}
