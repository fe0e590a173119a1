/* SPDX-License-Identifier: Apache-2.0
 * The element types of the graph. Storage is little-endian on every device that tpucl accepts.
 *
 *   f32, bf16   floats; bf16 is a uint16_t on the host and a ushort in kernels
 *   s32, u32    integers; arithmetic wraps
 *   u8          bytes as read from images
 *   pred        one byte, 0 or 1, nothing else
 */
#ifndef TP_NUM_DTYPE_H
#define TP_NUM_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include "core/status.h"

typedef enum tp_dtype {
    TP_F32,
    TP_BF16,
    TP_S32,
    TP_U32,
    TP_U8,
    TP_PRED,
    TP_DTYPE_COUNT /* how many there are; not a type */
} tp_dtype;

/* Bytes of one element; 0 for a value outside the enum. */
size_t tp_dtype_size(tp_dtype dtype);

/* "f32", "bf16", "s32", "u32", "u8", "pred"; "invalid" for a value outside the enum. Static
 * storage. */
const char *tp_dtype_name(tp_dtype dtype);

/* The reverse, exact spelling; TPUCL_INVALID_ARGUMENT names what it expected. */
tpucl_status tp_dtype_parse(const char *name, tp_dtype *out_dtype);

/* f32 and bf16; s32, u32 and u8. pred is neither. */
bool tp_dtype_is_float(tp_dtype dtype);
bool tp_dtype_is_integer(tp_dtype dtype);

#endif
