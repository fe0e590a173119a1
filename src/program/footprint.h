/* SPDX-License-Identifier: Apache-2.0
 * What one core holds while a program runs, as the executor allocates it: one definition for who counts (plans,
 * the limit of a core's HBM) and for who allocates. Sums stick at the largest number instead of overflowing.
 */
#ifndef TP_PROGRAM_FOOTPRINT_H
#define TP_PROGRAM_FOOTPRINT_H

#include "program/program.h"

enum {
    TP_INFEED_DEPTH = 3,  /* batches in the ring: one computes, one is uploaded, one is filled */
    TP_RESULTS_DEPTH = 64 /* steps whose results are kept until they are asked for */
};

/* Bytes of one core. */
typedef struct tp_footprint {
    uint64_t core;       /* the slab of activations and gradients */
    uint64_t replicated; /* copies of weights, sums over cores */
    uint64_t variables;
    uint64_t infeed, outfeed, results; /* rings */
    uint64_t constants;
} tp_footprint;

void tp_program_footprint(const tp_program *program, int32_t infeed_depth, int32_t results_depth,
                          tp_footprint *out_footprint);
uint64_t tp_footprint_bytes(const tp_footprint *footprint);

/* UINT64_MAX for what is more. */
uint64_t tp_add_bytes(uint64_t a, uint64_t b);
uint64_t tp_multiply_bytes(uint64_t a, uint64_t b);

#endif
