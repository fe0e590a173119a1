/* SPDX-License-Identifier: Apache-2.0
 * The table behind dtype.h.
 */
#include "num/dtype.h"

#include <string.h>

static const struct {
    const char *name;
    size_t size_bytes;
} table[TP_DTYPE_COUNT] = {
    [TP_F32] = {"f32", 4}, [TP_BF16] = {"bf16", 2}, [TP_S32] = {"s32", 4},
    [TP_U32] = {"u32", 4}, [TP_U8] = {"u8", 1},     [TP_PRED] = {"pred", 1},
};

static bool in_range(tp_dtype dtype)
{
    return (unsigned)dtype < TP_DTYPE_COUNT;
}

size_t tp_dtype_size(tp_dtype dtype)
{
    return in_range(dtype) ? table[dtype].size_bytes : 0;
}

const char *tp_dtype_name(tp_dtype dtype)
{
    return in_range(dtype) ? table[dtype].name : "invalid";
}

tpucl_status tp_dtype_parse(const char *name, tp_dtype *out_dtype)
{
    for (int i = 0; i < TP_DTYPE_COUNT; i++) {
        if (strcmp(name, table[i].name) == 0) {
            *out_dtype = (tp_dtype)i;
            return TPUCL_OK;
        }
    }
    return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                   "'%.32s' is no element type, expected f32, bf16, s32, u32, u8 or pred", name);
}

bool tp_dtype_is_float(tp_dtype dtype)
{
    return dtype == TP_F32 || dtype == TP_BF16;
}

bool tp_dtype_is_integer(tp_dtype dtype)
{
    return dtype == TP_S32 || dtype == TP_U32 || dtype == TP_U8;
}
