/* SPDX-License-Identifier: Apache-2.0
 * Names of dtypes in safetensors files. */
#ifndef TP_IO_SAFETENSORS_DTYPE_H
#define TP_IO_SAFETENSORS_DTYPE_H

#include <stddef.h>
#include <string.h>
#include "num/dtype.h"

/* NULL: the format has no name for it. */
static inline const char *tp_safetensors_dtype_name(tp_dtype dtype)
{
    switch (dtype) {
    case TP_F32:
        return "F32";
    case TP_BF16:
        return "BF16";
    case TP_S32:
        return "I32";
    case TP_U32:
        return "U32";
    case TP_U8:
        return "U8";
    default:
        return NULL;
    }
}

static inline bool tp_safetensors_dtype_parse(const char *name, tp_dtype *out_dtype)
{
    static const tp_dtype all[] = {TP_F32, TP_BF16, TP_S32, TP_U32, TP_U8};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(name, tp_safetensors_dtype_name(all[i])) == 0) {
            *out_dtype = all[i];
            return true;
        }
    return false;
}

#endif
