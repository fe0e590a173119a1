/* SPDX-License-Identifier: Apache-2.0
 * `params_sha256`: SHA-256 over variables, each as its name with the terminating zero, its rank as u32, its
 * dims as u64 and its elements as f32, all little-endian. Variables are added in the byte order of their
 * names. Two trainings agree bit for bit exactly when it is equal.
 */
#ifndef TP_EXEC_PARAMS_HASH_H
#define TP_EXEC_PARAMS_HASH_H

#include "core/hash.h"
#include "num/dtype.h"
#include "num/shape.h"

typedef struct tp_params_name {
    const char *name;
    int32_t index; /* the caller's */
} tp_params_name;

/* Into the order in which they are added. */
void tp_params_sort(tp_params_name *names, size_t count);

/* `data`: row-major, in `dtype` (f32, bf16 or s32). */
void tp_params_hash_add(tp_sha256 *hash, const char *name, tp_dtype dtype, const tp_shape *shape,
                        const void *data);

#endif
