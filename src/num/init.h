/* SPDX-License-Identifier: Apache-2.0
 * How a variable starts. The values depend on the run's seed and the variable's name alone, so
 * that every run, on any devices, starts from the same bits. The stream (num/philox.h) of a
 * variable has op = the first four bytes of the SHA-256 of its name, little-endian, and core =
 * 0xffffffff, which no core has; step is 0, and for TRUNCATED_NORMAL the number of draws that were
 * refused before. Arithmetic is f32: a + (b - a) * u and a + b * z, every step rounded and
 * flushed, then the dtype.
 *
 * ORTHOGONAL (Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
 * networks", 2014; as Keras has it): of a matrix of standard normals, numbered row-major with as many
 * rows as the longer side has, the columns are made orthonormal by modified Gram-Schmidt from the first
 * to the last, in f64, sums in 8 lanes (element i in lane i mod 8, lanes added from the first to the
 * last). Rows become columns where there are more columns than rows. Then times a, rounded to f32. */
#ifndef TP_NUM_INIT_H
#define TP_NUM_INIT_H

#include <stdint.h>
#include "core/status.h"
#include "num/dtype.h"

typedef enum tp_init_kind {
    TP_INIT_ZEROS,
    TP_INIT_ONES,
    TP_INIT_CONSTANT,         /* a */
    TP_INIT_UNIFORM,          /* from a to b, which only rounding can reach */
    TP_INIT_NORMAL,           /* mean a, standard deviation b */
    TP_INIT_TRUNCATED_NORMAL, /* mean a, stddev b; draws beyond two stddevs are drawn again */
    TP_INIT_ORTHOGONAL,       /* a matrix of b columns: see below, times a */
    TP_INIT_ONES_BETWEEN,     /* elements a to b - 1 are 1, the others 0 */
    TP_INIT_KIND_COUNT        /* how many there are; not a kind */
} tp_init_kind;

/* "zeros", "ones", "constant", "uniform", "normal", "truncated_normal", "orthogonal", "ones_between".
 * Static. */
const char *tp_init_kind_name(tp_init_kind kind);
tpucl_status tp_init_kind_parse(const char *name, tp_init_kind *out_kind);

/* Fills `out` (elems elements of dtype, caller's). Random kinds, ORTHOGONAL among
 * them, and ONES_BETWEEN need f32 or bf16; CONSTANT must be
 * a value of the dtype for integers. TPUCL_INVALID_ARGUMENT otherwise. */
tpucl_status tp_init_fill(tp_init_kind kind, double a, double b, const char *name, uint64_t seed,
                          tp_dtype dtype, int64_t elems, void *out);

#endif
