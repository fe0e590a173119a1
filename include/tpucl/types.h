/* SPDX-License-Identifier: Apache-2.0
 * Values that pass through the API: data types, shapes, tensors of a graph, arrays in host memory.
 * All are plain structs that may be copied. */
#ifndef TPUCL_TYPES_H
#define TPUCL_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tpucl/export.h>
#include <tpucl/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values never change. */
typedef enum tpucl_dtype {
    TPUCL_F32 = 1,
    TPUCL_BF16 = 2, /* the upper 16 bits of an f32 */
    TPUCL_S32 = 3,
    TPUCL_U32 = 4,
    TPUCL_U8 = 5,  /* raw images and labels; converted on the way into a graph */
    TPUCL_PRED = 6 /* one byte, 0 or 1 */
} tpucl_dtype;

#define TPUCL_MAX_RANK 8

/* Row-major: the last dimension is contiguous. Rank 0 is a scalar. */
typedef struct tpucl_shape {
    int32_t rank;
    int64_t dims[TPUCL_MAX_RANK];
} tpucl_shape;

static inline tpucl_shape tpucl_shape4(int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    tpucl_shape shape = {4, {d0, d1, d2, d3}};
    return shape;
}
static inline tpucl_shape tpucl_shape3(int64_t d0, int64_t d1, int64_t d2)
{
    tpucl_shape shape = {3, {d0, d1, d2}};
    return shape;
}
static inline tpucl_shape tpucl_shape2(int64_t d0, int64_t d1)
{
    tpucl_shape shape = {2, {d0, d1}};
    return shape;
}
static inline tpucl_shape tpucl_shape1(int64_t d0)
{
    tpucl_shape shape = {1, {d0}};
    return shape;
}
static inline tpucl_shape tpucl_shape0(void)
{
    tpucl_shape shape = {0, {0}};
    return shape;
}

/* A value in a graph: a number that means something only together with its graph. Nothing to free.
 * Below zero: the builder call that should have made it failed (see graph.h). */
typedef struct tpucl_tensor {
    int32_t id;
} tpucl_tensor;

/* A named array in the caller's or in a data set's memory, row-major. */
typedef struct tpucl_array {
    const char *name; /* of the graph's input that it feeds */
    tpucl_dtype dtype;
    tpucl_shape shape;
    const void *data;
} tpucl_array;

/* "f32" and so on; NULL for a number that is no dtype. */
TPUCL_API const char *tpucl_dtype_name(tpucl_dtype dtype);
/* Bytes of one element; 0 for a number that is no dtype. */
TPUCL_API size_t tpucl_dtype_bytes(tpucl_dtype dtype);

/* Frees text that a call handed over ("caller frees with tpucl_free"). NULL is fine. */
TPUCL_API void tpucl_free(void *memory);

#ifdef __cplusplus
}
#endif
#endif
