/* SPDX-License-Identifier: Apache-2.0
 * Expressions: whatever the bytes are, they give nodes of a sound graph, or a message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "graph/graph.h"
#include "graph/verify.h"
#include "model/expression.h"
#include "ops/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tp_node_id input(tp_graph *graph, const char *name, tp_dtype dtype, int rank)
{
    const tp_shape shape = {.rank = rank, .dims = {2, 3, 4}};
    return tp_graph_add_input(graph, name, dtype, shape);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_graph *graph;
    char *text = tp_alloc_zero(size + 1);
    if (!text || tp_graph_create(tp_ops_registry(), &graph) != TPUCL_OK) abort();
    memcpy(text, data, size);
    const tp_expression_name names[] = {{"x", input(graph, "x", TP_F32, 3)},
                                        {"y", input(graph, "y", TP_BF16, 3)},
                                        {"label", input(graph, "label", TP_S32, 1)},
                                        {"mask", input(graph, "mask", TP_PRED, 2)}};
    tp_node_id node;
    tp_error_clear();
    if (tp_expression_build(graph, "fuzz", text, names, 4, &node) != TPUCL_OK) {
        if (tpucl_last_error()->message[0] == '\0') abort();
    } else {
        tp_graph_add_output(graph, "out", node);
        if (tp_graph_verify(graph) != TPUCL_OK) abort();
    }
    tp_graph_destroy(graph);
    tp_free(text);
    return 0;
}
