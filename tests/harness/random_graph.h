/* SPDX-License-Identifier: Apache-2.0
 * Random graphs: element-wise ops of all dtypes, moves, reductions, products, loops, sums over cores,
 * updates.
 * The same seed gives the same graph.
 */
#ifndef TESTS_HARNESS_RANDOM_GRAPH_H
#define TESTS_HARNESS_RANDOM_GRAPH_H

#include "graph/graph.h"

typedef struct random_graph_options {
    uint32_t seed;
    int32_t ops;        /* about how many nodes */
    bool has_random;    /* random ops among them */
    bool has_loops;     /* two loops of some ops each */
    bool has_gradients; /* of some values with respect to inputs and variables */
    bool has_sums;      /* all_reduce, updates of variables, and per-core work behind a sum */
} random_graph_options;

/* Verified. The caller destroys it; fails the running test on a mistake. */
tp_graph *random_graph_create(const random_graph_options *options);

#endif
