/* SPDX-License-Identifier: Apache-2.0
 * Shapes: see shape.h. The element count is checked once, in tp_shape_init; everything after it may
 * rely on it.
 */
#include "num/shape.h"

#include <stdio.h>
#include <string.h>

bool tp_size_multiply(int64_t a, int64_t b, int64_t *out_product)
{
    if (a < 0 || b < 0 || (b != 0 && a > INT64_MAX / b)) return false;
    *out_product = a * b;
    return true;
}

tpucl_status tp_shape_init(tp_shape *out_shape, int rank, const int64_t *dims)
{
    if (rank < 0 || rank > TP_MAX_RANK)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "rank is %d, expected 0 to %d", rank, TP_MAX_RANK);
    tp_shape shape = {.rank = rank};
    int64_t elems = 1; /* of the non-zero dims, so that strides cannot overflow either */
    for (int i = 0; i < rank; i++) {
        const int64_t dim = dims[i];
        if (dim < 0)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "dim %d of the shape is %lld, expected 0 or more", i, (long long)dim);
        if (dim > TP_MAX_ELEMS || (dim != 0 && elems > TP_MAX_ELEMS / dim))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "the shape has more than %lld elements (dim %d is %lld)",
                           (long long)TP_MAX_ELEMS, i, (long long)dim);
        if (dim != 0) elems *= dim;
        shape.dims[i] = dim;
    }
    *out_shape = shape;
    return TPUCL_OK;
}

int64_t tp_shape_elems(const tp_shape *shape)
{
    int64_t elems = 1;
    for (int i = 0; i < shape->rank; i++)
        elems *= shape->dims[i];
    return elems;
}

int64_t tp_shape_bytes(const tp_shape *shape, tp_dtype dtype)
{
    return tp_shape_elems(shape) * (int64_t)tp_dtype_size(dtype);
}

bool tp_shape_equal(const tp_shape *a, const tp_shape *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

void tp_shape_strides(const tp_shape *shape, int64_t out_strides[TP_MAX_RANK])
{
    int64_t stride = 1;
    for (int i = TP_MAX_RANK - 1; i >= 0; i--) {
        out_strides[i] = i < shape->rank ? stride : 0;
        if (i < shape->rank) stride *= shape->dims[i];
    }
}

tpucl_status tp_shape_broadcast(const tp_shape *a, const tp_shape *b, tp_shape *out_shape)
{
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    int64_t dims[TP_MAX_RANK] = {0};
    for (int i = 0; i < rank; i++) {
        const int ia = a->rank - 1 - i, ib = b->rank - 1 - i;
        const int64_t da = ia >= 0 ? a->dims[ia] : 1, db = ib >= 0 ? b->dims[ib] : 1;
        if (da != db && da != 1 && db != 1) {
            char text_a[TP_SHAPE_TEXT_MAX], text_b[TP_SHAPE_TEXT_MAX];
            tp_shape_format(a, text_a, sizeof text_a);
            tp_shape_format(b, text_b, sizeof text_b);
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "shapes %s and %s do not broadcast: %lld against %lld", text_a, text_b,
                           (long long)da, (long long)db);
        }
        dims[rank - 1 - i] = da == 1 ? db : da;
    }
    TP_TRY(tp_shape_init(out_shape, rank, dims));
    return TPUCL_OK;
}

size_t tp_shape_format(const tp_shape *shape, char *buffer, size_t buffer_bytes)
{
    char text[TP_SHAPE_TEXT_MAX * 2];
    size_t len = 0;
    text[len++] = '[';
    for (int i = 0; i < shape->rank && i < TP_MAX_RANK; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, i ? ",%lld" : "%lld",
                                (long long)shape->dims[i]);
    text[len++] = ']';
    if (buffer_bytes > 0) {
        const size_t copied = len < buffer_bytes - 1 ? len : buffer_bytes - 1;
        memcpy(buffer, text, copied);
        buffer[copied] = '\0';
    }
    return len;
}

/* One decimal number of at most 13 digits (TP_MAX_ELEMS has 13), without sign. */
static bool read_dim(const char **inout_text, int64_t *out_dim)
{
    const char *text = *inout_text;
    int64_t value = 0;
    int digits = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (++digits > 13) return false;
        value = value * 10 + (*text - '0');
    }
    *inout_text = text;
    *out_dim = value;
    return digits > 0;
}

tpucl_status tp_shape_parse(const char *text, tp_shape *out_shape)
{
    const char *at = text;
    int64_t dims[TP_MAX_RANK] = {0};
    int rank = 0;
    if (*at != '[') goto bad;
    at++;
    while (*at != ']') {
        if (rank == TP_MAX_RANK || !read_dim(&at, &dims[rank])) goto bad;
        rank++;
        if (*at == ']') break;
        if (*at != ',') goto bad;
        at++;
        while (*at == ' ')
            at++;
        if (*at == ']') goto bad;
    }
    if (at[1] != '\0') goto bad;
    TP_TRY(tp_shape_init(out_shape, rank, dims));
    return TPUCL_OK;
bad:
    return TP_FAIL(
        TPUCL_INVALID_ARGUMENT,
        "'%.64s' is no shape at character %lld, expected up to %d numbers as in [128,784]", text,
        (long long)(at - text), TP_MAX_RANK);
}
