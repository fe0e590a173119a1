/* SPDX-License-Identifier: Apache-2.0
 * Small graphs that together use everything the code generator writes: element-wise functions over special
 * values, reductions short and long, windows, memory, random numbers, loops, layers in training. */
#ifndef TP_VERIFY_GRAPH_CASES_H
#define TP_VERIFY_GRAPH_CASES_H

#include "graph/graph.h"

typedef struct tp_graph_case {
    const char *name;
    tpucl_status (*build)(tp_graph **out_graph); /* the caller destroys the graph */
    int32_t cores, wave_cores, steps;
    bool with_specials;
    bool is_quick; /* small, and covers the generator: run before a device is first used */
} tp_graph_case;

/* Static. */
const tp_graph_case *tp_graph_cases(size_t *out_count);

#endif
