/* SPDX-License-Identifier: Apache-2.0
 * Which ops a test really tried, for tools/coverage. With the environment variable TPUCL_COVERAGE each
 * note is a line "column op" at the end of that file; without it, nothing. Columns:
 *     shape      the op's rule gave the size that a golden result has
 *     gradient   gradcheck.h compared its gradient with differences
 *     reference  the interpreter evaluated it in a comparison
 *     device     a device gave the interpreter's bits; oclgrind: the simulator did
 *     golden     a result of the op itself was compared with an independent one
 */
#ifndef TESTS_HARNESS_COVERAGE_H
#define TESTS_HARNESS_COVERAGE_H

#include <stdio.h>
#include <stdlib.h>

#include "graph/opdef.h"
#include "graph/rewrite.h"

static inline void coverage_note(const char *column, const char *op)
{
    const char *path = getenv("TPUCL_COVERAGE");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s %s\n", column, op);
    fclose(file);
}

/* Every op that an output or update of the graph needs. */
static inline void coverage_note_graph(const char *column, const tp_graph *graph)
{
    if (!getenv("TPUCL_COVERAGE")) return;
    bool *is_live = calloc((size_t)graph->node_count + 1, sizeof *is_live);
    tp_graph_mark_live(graph, is_live);
    for (tp_node_id id = 0; id < graph->node_count; ++id)
        if (is_live[id]) coverage_note(column, graph->nodes[id].def->name);
    free(is_live);
}

#endif
