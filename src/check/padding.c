/* SPDX-License-Identifier: Apache-2.0
 * See padding.h.
 */
#include "check/padding.h"

#include <math.h>

enum { LANES = 128, SUBLANES = 8, SUBLANES_OF_BYTES = 32 };

static double round_up(double value, double step)
{
    return ceil(value / step) * step;
}

static double element_bytes(tp_dtype dtype)
{
    return dtype == TP_PRED ? 4 : (double)tp_dtype_size(dtype);
}

static double tile_rows(tp_dtype dtype, int64_t second)
{
    const double bytes = element_bytes(dtype);
    if (bytes == 1) return SUBLANES_OF_BYTES;
    if (bytes == 4 && second <= 2) return 2;
    if (bytes == 4 && second <= 4) return 4;
    return SUBLANES;
}

double tp_unpadded_bytes(const tp_shape *shape, tp_dtype dtype)
{
    return (double)tp_shape_elems(shape) * element_bytes(dtype);
}

double tp_padded_bytes(const tp_shape *shape, tp_dtype dtype, int32_t second, int32_t minor)
{
    if (shape->rank < 2) return tp_unpadded_bytes(shape, dtype);
    double elements = 1;
    for (int32_t i = 0; i < shape->rank; i++) {
        const double size = (double)shape->dims[i];
        if (i == minor)
            elements *= round_up(size, LANES);
        else if (i == second)
            elements *= round_up(size, tile_rows(dtype, shape->dims[i]));
        else
            elements *= size;
    }
    return elements * element_bytes(dtype);
}

tp_best_layout tp_find_best_layout(const tp_shape *shape, tp_dtype dtype)
{
    tp_best_layout best = {.second = shape->rank - 2, .minor = shape->rank - 1};
    best.bytes = tp_padded_bytes(shape, dtype, best.second, best.minor);
    for (int32_t minor = shape->rank - 1; minor >= 0; minor--)
        for (int32_t second = shape->rank - 1; second >= 0; second--) {
            if (second == minor) continue;
            const double bytes = tp_padded_bytes(shape, dtype, second, minor);
            if (bytes < best.bytes) best = (tp_best_layout){bytes, second, minor};
        }
    return best;
}

double tp_mxu_work(double m, double n, double k, double rows, double columns)
{
    const double deep = round_up(k, rows);
    const double b_stays = round_up(m, SUBLANES) * deep * round_up(n, columns);
    const double a_stays = round_up(n, SUBLANES) * deep * round_up(m, columns);
    return a_stays < b_stays ? a_stays : b_stays;
}
