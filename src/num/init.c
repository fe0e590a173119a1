/* SPDX-License-Identifier: Apache-2.0
 * Initial values of variables; the scheme stands in init.h. */
#include "num/init.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/hash.h"
#include "num/bf16.h"
#include "num/philox.h"

static const char *const kind_names[TP_INIT_KIND_COUNT] = {
    "zeros",      "ones",        "constant", "uniform", "normal", "truncated_normal",
    "orthogonal", "ones_between"};

const char *tp_init_kind_name(tp_init_kind kind)
{
    return (unsigned)kind < TP_INIT_KIND_COUNT ? kind_names[kind] : "invalid";
}

tpucl_status tp_init_kind_parse(const char *name, tp_init_kind *out_kind)
{
    for (int i = 0; i < TP_INIT_KIND_COUNT; ++i)
        if (strcmp(name, kind_names[i]) == 0) {
            *out_kind = (tp_init_kind)i;
            return TPUCL_OK;
        }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "initialiser '%s', expected zeros, ones, constant, uniform, normal, "
                   "truncated_normal, orthogonal or ones_between",
                   name);
}

static void store(tp_dtype dtype, void *out, int64_t index, float value)
{
    if (dtype == TP_BF16)
        ((tp_bf16 *)out)[index] = tp_bf16_from_f32(value);
    else
        ((float *)out)[index] = tp_flush(value);
}

static tpucl_status fill_constant(double value, const char *name, tp_dtype dtype, int64_t elems,
                                  void *out)
{
    if (tp_dtype_is_float(dtype)) {
        for (int64_t i = 0; i < elems; ++i)
            store(dtype, out, i, (float)value);
        return TPUCL_OK;
    }
    const double low = dtype == TP_S32 ? INT32_MIN : 0;
    const double high = dtype == TP_S32   ? INT32_MAX
                        : dtype == TP_U32 ? UINT32_MAX
                        : dtype == TP_U8  ? UINT8_MAX
                                          : 1;
    if (!(value >= low && value <= high) || floor(value) != value)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "initial value %.17g of '%s' is no %s", value, name,
                       tp_dtype_name(dtype));
    const uint32_t bits = value < 0 ? (uint32_t)(int32_t)value : (uint32_t)value;
    for (int64_t i = 0; i < elems; ++i) {
        if (tp_dtype_size(dtype) == 1)
            ((uint8_t *)out)[i] = (uint8_t)bits;
        else
            ((uint32_t *)out)[i] = bits;
    }
    return TPUCL_OK;
}

/* A standard normal within two standard deviations: one in 22 draws is refused, so 64 in a row are
 * as good as impossible; then the mean is as good as any. */
static float draw_truncated(tp_random_stream stream, uint32_t block, uint32_t lane)
{
    for (uint32_t refused = 0; refused < 64; ++refused) {
        stream.step = refused;
        const float z = tp_random_normal(stream, block, lane);
        if (z >= -2.0f && z <= 2.0f) return z;
    }
    return 0.0f;
}

/* ---- orthogonal ---- */

static double dot(const double *a, const double *b, int64_t count)
{
    double lanes[8] = {0}, sum = 0;
    for (int64_t i = 0; i < count; ++i)
        lanes[i % 8] += a[i] * b[i];
    for (int lane = 0; lane < 8; ++lane)
        sum += lanes[lane];
    return sum;
}

/* vectors[count][length]: each is made orthogonal to those before it, and of length 1. */
static void orthonormalise(double *vectors, int64_t count, int64_t length)
{
    for (int64_t i = 0; i < count; ++i) {
        double *own = vectors + i * length;
        for (int64_t j = 0; j < i; ++j) {
            const double *other = vectors + j * length;
            const double part = dot(own, other, length);
            for (int64_t k = 0; k < length; ++k)
                own[k] -= part * other[k];
        }
        const double norm = sqrt(dot(own, own, length));
        for (int64_t k = 0; k < length; ++k)
            own[k] = norm > 0 ? own[k] / norm : 0;
    }
}

static tpucl_status fill_orthogonal(double gain, double columns_value, const char *name,
                                    tp_random_stream stream, tp_dtype dtype, int64_t elems,
                                    void *out)
{
    const int64_t columns =
        columns_value >= 1 && columns_value <= (double)elems ? (int64_t)columns_value : 0;
    if (elems == 0) return TPUCL_OK;
    if (columns == 0 || (double)columns != columns_value || elems % columns != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'%s' has %lld elements, which are no matrix of %g columns", name,
                       (long long)elems, columns_value);
    const int64_t rows = elems / columns;
    const int64_t count = rows < columns ? rows : columns, length = elems / count;
    double *vectors = TP_NEW_ARRAY(double, (size_t)elems);
    if (!vectors) return TPUCL_OUT_OF_MEMORY;
    for (int64_t i = 0; i < elems; ++i) /* element [row i / count][column i % count] */
        vectors[i % count * length + i / count] =
            tp_random_normal(stream, (uint32_t)(i / 4), (uint32_t)(i % 4));
    orthonormalise(vectors, count, length);
    for (int64_t i = 0; i < elems; ++i) {
        const int64_t row = i / columns, column = i % columns;
        const double value =
            rows < columns ? vectors[row * length + column] : vectors[column * length + row];
        store(dtype, out, i, (float)(gain * value));
    }
    tp_free(vectors);
    return TPUCL_OK;
}

tpucl_status tp_init_fill(tp_init_kind kind, double a, double b, const char *name, uint64_t seed,
                          tp_dtype dtype, int64_t elems, void *out)
{
    if (kind == TP_INIT_ZEROS || kind == TP_INIT_ONES || kind == TP_INIT_CONSTANT)
        return fill_constant(kind == TP_INIT_CONSTANT ? a : kind == TP_INIT_ONES, name, dtype,
                             elems, out);
    if ((unsigned)kind >= TP_INIT_KIND_COUNT)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "initialiser %d of '%s' does not exist", (int)kind,
                       name);
    if (!tp_dtype_is_float(dtype))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "initialiser %s of '%s' makes f32 or bf16, not %s",
                       kind_names[kind], name, tp_dtype_name(dtype));

    if (kind == TP_INIT_ONES_BETWEEN) {
        for (int64_t i = 0; i < elems; ++i)
            store(dtype, out, i, (double)i >= a && (double)i < b);
        return TPUCL_OK;
    }

    tp_sha256 hash;
    uint8_t digest[TP_SHA256_BYTES];
    tp_sha256_init(&hash);
    tp_sha256_update(&hash, name, strlen(name));
    tp_sha256_finish(&hash, digest);
    const uint32_t op = (uint32_t)digest[0] | (uint32_t)digest[1] << 8 | (uint32_t)digest[2] << 16 |
                        (uint32_t)digest[3] << 24;
    const tp_random_stream stream =
        tp_random_stream_make((uint32_t)seed, (uint32_t)(seed >> 32), op, 0xffffffffu, 0);
    if (kind == TP_INIT_ORTHOGONAL) return fill_orthogonal(a, b, name, stream, dtype, elems, out);
    const float offset = (float)a, scale = kind == TP_INIT_UNIFORM ? (float)(b - a) : (float)b;
    for (int64_t i = 0; i < elems; ++i) {
        const uint32_t block = (uint32_t)(i / 4), lane = (uint32_t)(i % 4);
        const float draw = kind == TP_INIT_UNIFORM  ? tp_random_uniform(stream, block, lane)
                           : kind == TP_INIT_NORMAL ? tp_random_normal(stream, block, lane)
                                                    : draw_truncated(stream, block, lane);
        store(dtype, out, i, offset + tp_flush(scale * draw));
    }
    return TPUCL_OK;
}
