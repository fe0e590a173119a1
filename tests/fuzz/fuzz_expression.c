/* SPDX-License-Identifier: Apache-2.0
 * Expressions: whatever the bytes are, they give nodes of a sound graph, or a message; as a value of each example,
 * too, and then for every example. */
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

enum { NAMES = 4 };

static void add_names(tp_graph *graph, tp_expression_name names[NAMES])
{
    names[0] = (tp_expression_name){"x", input(graph, "x", TP_F32, 3)};
    names[1] = (tp_expression_name){"y", input(graph, "y", TP_BF16, 3)};
    names[2] = (tp_expression_name){"label", input(graph, "label", TP_S32, 1)};
    names[3] = (tp_expression_name){"mask", input(graph, "mask", TP_PRED, 2)};
}

static void as_values_of_examples(const char *text)
{
    tp_graph *graph;
    tp_expression_name names[NAMES];
    tp_node_id node;
    if (tp_graph_create(tp_ops_registry(), &graph) != TPUCL_OK) abort();
    add_names(graph, names);
    tp_error_clear();
    if (tp_expression_build_batched(graph, "fuzz", text, names, NAMES, &node) != TPUCL_OK) {
        if (tpucl_last_error()->message[0] == '\0') abort();
    } else {
        const tp_shape shape = tp_graph_node(graph, node)->shape;
        if (shape.rank < 1 || shape.dims[0] != 2) abort();
        tp_graph_add_output(graph, "out", node);
        if (tp_graph_verify(graph) != TPUCL_OK) abort();
    }
    tp_graph_destroy(graph);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_graph *graph;
    char *text = tp_alloc_zero(size + 1);
    if (!text || tp_graph_create(tp_ops_registry(), &graph) != TPUCL_OK) abort();
    memcpy(text, data, size);
    tp_expression_name names[NAMES];
    add_names(graph, names);
    tp_node_id node;
    tp_error_clear();
    if (tp_expression_build(graph, "fuzz", text, names, NAMES, &node) != TPUCL_OK) {
        if (tpucl_last_error()->message[0] == '\0') abort();
    } else {
        tp_graph_add_output(graph, "out", node);
        if (tp_graph_verify(graph) != TPUCL_OK) abort();
    }
    tp_graph_destroy(graph);
    as_values_of_examples(text);
    tp_free(text);
    return 0;
}
