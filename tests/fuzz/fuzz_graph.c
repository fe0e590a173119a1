/* SPDX-License-Identifier: Apache-2.0
 * Graph text: whatever the bytes are, parsing gives a graph or a message; a graph prints to text that
 * gives the same text again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "graph/parse.h"
#include "graph/print.h"
#include "ops/registry.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const tp_graph *graph)
{
    tp_str_builder builder = {0};
    char *text;
    tp_graph_print(graph, &builder);
    if (tp_str_builder_finish(&builder, &text, NULL) != TPUCL_OK) abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_graph *graph, *again;
    tp_error_clear();
    if (tp_graph_parse(tp_ops_registry(), (tp_view){(const char *)data, size}, &graph) !=
        TPUCL_OK) {
        if (tpucl_last_error()->message[0] == '\0') abort();
        return 0;
    }
    char *text = print(graph);
    if (tp_graph_parse(tp_ops_registry(), tp_view_of(text), &again) != TPUCL_OK) abort();
    char *second = print(again);
    if (strcmp(text, second) != 0) abort();
    tp_free(text);
    tp_free(second);
    tp_graph_destroy(graph);
    tp_graph_destroy(again);
    return 0;
}
