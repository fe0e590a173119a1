/* SPDX-License-Identifier: Apache-2.0
 * The hash of parameters. */
#include "exec/params_hash.h"

#include <stdlib.h>
#include <string.h>
#include "num/bf16.h"

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const tp_params_name *)a)->name, ((const tp_params_name *)b)->name);
}

void tp_params_sort(tp_params_name *names, size_t count)
{
    if (count) qsort(names, count, sizeof *names, compare_names);
}

static void add_little_endian(tp_sha256 *hash, uint64_t value, int bytes)
{
    unsigned char little[8];
    for (int i = 0; i < bytes; i++)
        little[i] = (unsigned char)(value >> (8 * i));
    tp_sha256_update(hash, little, (size_t)bytes);
}

static float element(tp_dtype dtype, const void *data, int64_t index)
{
    if (dtype == TP_BF16) return tp_bf16_to_f32(((const tp_bf16 *)data)[index]);
    if (dtype == TP_S32) return (float)((const int32_t *)data)[index];
    return ((const float *)data)[index];
}

void tp_params_hash_add(tp_sha256 *hash, const char *name, tp_dtype dtype, const tp_shape *shape,
                        const void *data)
{
    tp_sha256_update_text(hash, name);
    add_little_endian(hash, (uint64_t)shape->rank, 4);
    for (int32_t i = 0; i < shape->rank; i++)
        add_little_endian(hash, (uint64_t)shape->dims[i], 8);
    for (int64_t i = 0; i < tp_shape_elems(shape); i++) {
        float value = element(dtype, data, i);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        if (value != value) bits = 0x7fc00000u; /* which NaN is not defined (docs/precision.md) */
        add_little_endian(hash, bits, 4);
    }
}
