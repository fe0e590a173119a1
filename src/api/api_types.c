/* SPDX-License-Identifier: Apache-2.0
 * Conversions between public and internal values. */
#include "api/handles.h"

#include "core/alloc.h"
#include "device/caps.h"

_Static_assert(TPUCL_MAX_RANK == TP_MAX_RANK, "the public header repeats the limit");

tpucl_status tp_api_options(const void *options, void *out, size_t out_bytes, const char *type_name)
{
    memset(out, 0, out_bytes);
    if (options) {
        size_t given_bytes; /* every options struct begins with its own size */
        memcpy(&given_bytes, options, sizeof given_bytes);
        /* A struct that holds a size_t is a multiple of its alignment long; other sizes would cut fields. */
        if (given_bytes < sizeof given_bytes || given_bytes > 65536 ||
            given_bytes % _Alignof(size_t) != 0)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "struct_size of '%s' is %zu, expected %zu: fill the struct with "
                           "%s_default()",
                           type_name, given_bytes, out_bytes, type_name);
        memcpy(out, options, given_bytes < out_bytes ? given_bytes : out_bytes);
    }
    memcpy(out, &out_bytes, sizeof out_bytes);
    return TPUCL_OK;
}

tpucl_status tp_api_dtype(tpucl_dtype dtype, tp_dtype *out_dtype)
{
    switch (dtype) {
    case TPUCL_F32:
        *out_dtype = TP_F32;
        return TPUCL_OK;
    case TPUCL_BF16:
        *out_dtype = TP_BF16;
        return TPUCL_OK;
    case TPUCL_S32:
        *out_dtype = TP_S32;
        return TPUCL_OK;
    case TPUCL_U32:
        *out_dtype = TP_U32;
        return TPUCL_OK;
    case TPUCL_U8:
        *out_dtype = TP_U8;
        return TPUCL_OK;
    case TPUCL_PRED:
        *out_dtype = TP_PRED;
        return TPUCL_OK;
    }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "dtype %d does not exist", (int)dtype);
}

tpucl_dtype tp_api_dtype_public(tp_dtype dtype)
{
    switch (dtype) {
    case TP_F32:
        return TPUCL_F32;
    case TP_BF16:
        return TPUCL_BF16;
    case TP_S32:
        return TPUCL_S32;
    case TP_U32:
        return TPUCL_U32;
    case TP_U8:
        return TPUCL_U8;
    case TP_PRED:
    case TP_DTYPE_COUNT:
        break;
    }
    return TPUCL_PRED;
}

const char *tpucl_dtype_name(tpucl_dtype dtype)
{
    tp_dtype internal = TP_DTYPE_COUNT;
    return tp_api_dtype(dtype, &internal) == TPUCL_OK ? tp_dtype_name(internal) : NULL;
}

size_t tpucl_dtype_bytes(tpucl_dtype dtype)
{
    tp_dtype internal = TP_DTYPE_COUNT;
    return tp_api_dtype(dtype, &internal) == TPUCL_OK ? tp_dtype_size(internal) : 0;
}

tpucl_status tp_api_shape(tpucl_shape shape, tp_shape *out_shape)
{
    if (shape.rank < 0 || shape.rank > TPUCL_MAX_RANK)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "rank of a shape is %d, expected 0 to %d",
                       (int)shape.rank, TPUCL_MAX_RANK);
    TP_TRY(tp_shape_init(out_shape, shape.rank, shape.dims));
    return TPUCL_OK;
}

tpucl_shape tp_api_shape_public(const tp_shape *shape)
{
    tpucl_shape result = {shape->rank, {0}};
    memcpy(result.dims, shape->dims, sizeof result.dims);
    return result;
}

void tpucl_free(void *memory)
{
    tp_free(memory);
}

static void copy_text(char *out, size_t out_bytes, const char *text)
{
    size_t len = strlen(text);
    if (len >= out_bytes) len = out_bytes - 1;
    memcpy(out, text, len);
    out[len] = '\0';
}

void tp_api_device_info(const char *selector, const tp_device_caps *caps, bool usable,
                        const char *reason, tpucl_device_info *out_info)
{
    memset(out_info, 0, sizeof *out_info);
    copy_text(out_info->selector, sizeof out_info->selector, selector);
    copy_text(out_info->name, sizeof out_info->name, caps->name);
    copy_text(out_info->vendor, sizeof out_info->vendor, caps->vendor);
    copy_text(out_info->platform, sizeof out_info->platform, caps->platform);
    copy_text(out_info->driver, sizeof out_info->driver, caps->driver);
    copy_text(out_info->version, sizeof out_info->version, caps->version);
    copy_text(out_info->type, sizeof out_info->type, tp_device_type_name(caps->type));
    copy_text(out_info->reason, sizeof out_info->reason, reason);
    out_info->compute_units = caps->compute_units;
    out_info->memory_bytes = caps->memory_bytes;
    out_info->max_allocation_bytes = caps->max_allocation_bytes;
    out_info->local_memory_bytes = caps->local_memory_bytes;
    out_info->max_sub_devices = caps->max_sub_devices;
    out_info->usable = usable;
    copy_text(out_info->matrix_unit, sizeof out_info->matrix_unit,
              tp_matrix_unit_name(caps->matrix_unit));
}
