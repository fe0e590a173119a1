/* SPDX-License-Identifier: Apache-2.0
 * The MXU's product on the host, sum over k of a[k] * b[k], in the contract's order: chunks of 128
 * (start at +0, one fused multiply-add per k, rising), blocks of 64 chunks (first chunk's sum, then
 * the others added in rising order), blocks combined by the balanced tree, result flushed.
 *
 * Precision is in how often the product is run and on what:
 *
 * - default: once, operands rounded to bf16
 * - high: operands split in bf16 parts a0 + a1; p(a1,b0), + p(a0,b1), + p(a0,b0)
 * - highest: parts a0 + a1 + a2; p(a2,b0), + p(a1,b1), + p(a0,b2), + p(a1,b0), + p(a0,b1), + p(a0,b0)
 * - f32: once, operands as they are (policy float32)
 *
 * Here p is the complete product above; the sums between them are single f32 additions, and the last one is
 * flushed. A part is the bf16 nearest to what the parts before it left over.
 */
#ifndef TP_NUM_MXU_H
#define TP_NUM_MXU_H

#include <stdint.h>
#include "core/status.h"
#include "num/bf16.h"
#include "num/reduce.h"

#define TP_MXU_CHUNK 128
#define TP_MXU_BLOCK_CHUNKS 64
#define TP_MXU_BLOCK (TP_MXU_CHUNK * TP_MXU_BLOCK_CHUNKS)

/* How operands become what the MXU multiplies. DEFAULT, HIGH, HIGHEST: 1, 3, 6 passes over bf16 parts. F32: no
 * rounding, every multiply-add an fma (the float32 policy). */
typedef enum tp_precision {
    TP_PRECISION_DEFAULT,
    TP_PRECISION_HIGH,
    TP_PRECISION_HIGHEST,
    TP_PRECISION_F32,
    TP_PRECISION_COUNT
} tp_precision;

/* "default", "high", "highest", "f32"; "invalid" otherwise. Static storage. */
const char *tp_precision_name(tp_precision precision);
tpucl_status tp_precision_parse(const char *name, tp_precision *out_precision);

/* Passes of the MXU: 1, 3, 6, 1. */
int tp_precision_passes(tp_precision precision);

/* The pass's operand parts, first pass first; part 0 of f32 is the operand itself. */
typedef struct tp_mxu_pass {
    int a_part, b_part;
} tp_mxu_pass;
tp_mxu_pass tp_mxu_pass_parts(tp_precision precision, int pass);

/* Part 0, 1 or 2 of x as a bf16 value in an f32. An infinite or NaN x has parts x, NaN, NaN (inf -
 * inf), so that high and highest give NaN where default may give an infinity. */
float tp_mxu_part(float x, int part);

/* One pass, elements arriving one by one; a and b are already rounded or split. */
typedef struct tp_mxu_sum {
    int64_t in_block;
    float chunk, block;
    tp_tree blocks;
} tp_mxu_sum;

void tp_mxu_sum_begin(tp_mxu_sum *sum);
void tp_mxu_sum_add(tp_mxu_sum *sum, float a, float b);
float tp_mxu_sum_end(tp_mxu_sum *sum); /* not flushed: passes are still to be added */

/* A whole product of one output at any precision, elements arriving one by one as f32 (bf16
 * operands are widened by the caller; rounding them again changes nothing). */
typedef struct tp_mxu_dot {
    tp_precision precision;
    tp_mxu_sum pass[6];
} tp_mxu_dot;

void tp_mxu_dot_begin(tp_mxu_dot *dot, tp_precision precision);
void tp_mxu_dot_add(tp_mxu_dot *dot, float a, float b);
float tp_mxu_dot_end(tp_mxu_dot *dot); /* flushed */

/* c[m,n] = sum over k of a[m,k] * b[k,n]: all f32, row-major, dense; much faster than the calls
 * above, same bits. Returns TPUCL_OUT_OF_MEMORY when scratch for the parts cannot be had. */
tpucl_status tp_mxu_matmul(tp_precision precision, int64_t m, int64_t n, int64_t k, const float *a,
                           const float *b, float *c);

#endif
