/* SPDX-License-Identifier: Apache-2.0
 * What the vector unit does in training, as graphs whose speed is that of memory: normalisations, softmax with
 * loss, optimizers, dropout, residuals. */
#ifndef TP_BENCH_VPU_CASES_H
#define TP_BENCH_VPU_CASES_H

#include "graph/graph.h"

typedef struct tp_vpu_case {
    const char *name;
    /* Tensors of `rows` x `columns` elements; fills in the graph, which the caller checks and destroys. */
    void (*build)(tp_graph *graph, int64_t rows, int64_t columns);
    int64_t columns;
    double
        element_bytes; /* that have to move for each element, if every tensor goes the least ways */
    const char *note;  /* which those are */
} tp_vpu_case;

/* Static. */
const tp_vpu_case *tp_vpu_cases(size_t *out_count);

#endif
