/* SPDX-License-Identifier: Apache-2.0
 * The graph of one model: its layers and their calls (map_call.c), in an order in which they can be written down
 * (map_order.c). Schemas: Keras 3 keras/src/models/functional.py, Keras 2 keras/engine/functional.py.
 */
#include <string.h>
#include "core/str.h"
#include "keras/map_internal.h"

/* ---- calls ---- */

static tpucl_status add_call(tp_keras_mapper *mapper, tp_keras_graph *graph, int32_t layer,
                             const tp_json *node, const char *prefix)
{
    tp_keras_row *row = &graph->rows.items[layer];
    tp_keras_call call = {.layer = layer, .node = row->call_count};
    if (++mapper->row_count > TP_KERAS_MAX_LAYERS)
        return TP_FAIL(TPUCL_INVALID_CONFIG,
                       "the model has more than %d layers and calls of layers",
                       TP_KERAS_MAX_LAYERS);
    if (row->call_count++ == 0) row->first_call = (int32_t)graph->calls.count;
    TP_TRY(tp_keras_calls_push(&graph->calls, call));
    if (!node) return TPUCL_OK;
    const char *name = tp_arena_printf(mapper->arena, "%s%s", prefix, row->name);
    if (!name) return TPUCL_OUT_OF_MEMORY;
    return tp_keras_read_call(mapper, row, name, node, &graph->calls.items[graph->calls.count - 1]);
}

static tpucl_status read_calls(tp_keras_mapper *mapper, tp_keras_graph *graph, const char *prefix)
{
    for (int32_t i = 0; i < (int32_t)graph->rows.count; i++) {
        const tp_json *nodes = tp_keras_member(graph->rows.items[i].json, "inbound_nodes");
        if (!nodes || nodes->kind != TP_JSON_ARRAY)
            return tp_keras_malformed(graph->rows.items[i].json, "a layer with 'inbound_nodes'");
        if (graph->rows.items[i].is_input && nodes->count == 0)
            TP_TRY(add_call(mapper, graph, i, NULL, prefix));
        for (size_t k = 0; k < nodes->count; k++)
            TP_TRY(add_call(mapper, graph, i, &nodes->items[k], prefix));
    }
    return TPUCL_OK;
}

/* ---- rows ---- */

static bool is_model_class(const char *kind)
{
    return strcmp(kind, "Functional") == 0 || strcmp(kind, "Model") == 0 ||
           strcmp(kind, "Sequential") == 0;
}

/* Operations of keras.ops in a Functional model are no layers: they have no place among weights. */
static bool is_operation(const tp_json *json)
{
    const tp_json *module = tp_keras_member(json, "module");
    return module && module->kind == TP_JSON_STRING &&
           (strstr(module->string, ".ops.") || tp_str_ends_with(module->string, ".ops"));
}

/* tpucl's names stand between slashes. */
static tpucl_status own_name(tp_keras_mapper *mapper, const tp_keras_graph *graph,
                             tp_keras_row *row)
{
    char *name = tp_arena_strdup(mapper->arena, row->file_name);
    if (!name) return TPUCL_OUT_OF_MEMORY;
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
    row->name = name;
    for (int number = 1; strchr(row->file_name, '/') && number < 1000; number++) {
        bool is_taken = false;
        for (size_t i = 0; i < graph->rows.count; i++)
            is_taken = is_taken || strcmp(graph->rows.items[i].name, row->name) == 0;
        if (!is_taken) break;
        row->name = tp_arena_printf(mapper->arena, "%s_%d", name, number);
        if (!row->name) return TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

static tpucl_status add_row(tp_keras_mapper *mapper, tp_keras_graph *graph, const tp_json *json)
{
    tp_keras_row row = {.json = json, .definition = -1};
    const tp_json *name = NULL;
    TP_TRY(tp_json_expect(json, TP_JSON_OBJECT));
    row.kind = tp_keras_class(json);
    row.config = tp_keras_member(json, "config");
    if (!*row.kind || !row.config) return tp_keras_malformed(json, "'class_name' and 'config'");
    name = tp_keras_member(json, "name");
    if (!name && row.config->kind == TP_JSON_OBJECT) name = tp_keras_member(row.config, "name");
    if (name && (name->kind != TP_JSON_STRING || !*name->string || name->string_length > 200))
        return tp_keras_malformed(name, "the name of a layer");
    row.is_input = strcmp(row.kind, "InputLayer") == 0;
    row.is_model = is_model_class(row.kind);
    row.is_op = is_operation(json);
    row.file_name =
        name ? name->string
             : tp_arena_printf(mapper->arena, "%s_%zu", tp_keras_snake(mapper->arena, row.kind),
                               graph->rows.count);
    if (!row.file_name) return TPUCL_OUT_OF_MEMORY;
    if (tp_map_find(&graph->row_names, row.file_name, NULL))
        return tp_keras_malformed(json, "a layer whose name no other layer has");
    TP_TRY(own_name(mapper, graph, &row));
    TP_TRY(tp_map_add(&graph->row_names, row.file_name, graph->rows.count));
    return tp_keras_rows_push(&graph->rows, row);
}

/* ---- Sequential ---- */

/* A Sequential model without an InputLayer has its input's shape with its first layer, or with itself. */
static tpucl_status add_sequential_input(tp_keras_mapper *mapper, tp_keras_graph *graph,
                                         const tp_json *first, const tp_json *config)
{
    const tp_json *own = first ? tp_keras_member(first, "config") : NULL;
    tp_keras_row row = {.kind = "InputLayer",
                        .file_name = "input",
                        .name = "input",
                        .is_input = true,
                        .definition = -1,
                        .config = config};
    if (own && (tp_keras_member(own, "batch_input_shape") || tp_keras_member(own, "batch_shape")))
        row.config = own;
    else if (config->kind != TP_JSON_OBJECT || !tp_keras_member(config, "build_input_shape"))
        row.config = first ? tp_keras_member(first, "build_config") : NULL;
    TP_TRY(tp_map_add(&graph->row_names, row.file_name, graph->rows.count));
    TP_TRY(tp_keras_rows_push(&graph->rows, row));
    return add_call(mapper, graph, 0, NULL, "");
}

static tpucl_status read_sequential(tp_keras_mapper *mapper, const tp_json *config,
                                    const tp_json *layers, const char *prefix,
                                    tp_keras_graph *graph)
{
    const tp_json *first = layers->count ? &layers->items[0] : NULL;
    if (!first || strcmp(tp_keras_class(first), "InputLayer") != 0)
        TP_TRY(add_sequential_input(mapper, graph, first, config));
    for (size_t i = 0; i < layers->count; i++) {
        TP_TRY(add_row(mapper, graph, &layers->items[i]));
        const int32_t index = (int32_t)graph->rows.count - 1;
        TP_TRY(add_call(mapper, graph, index, NULL, prefix));
        if (index == 0) continue;
        if (graph->rows.items[index].is_input)
            return tp_keras_malformed(&layers->items[i], "no InputLayer but the first");
        const tp_keras_ref before = {.layer = graph->rows.items[index - 1].file_name};
        TP_TRY(tp_keras_refs_push(&graph->calls.items[index].inputs, before));
    }
    const size_t last = graph->rows.count - 1;
    if (last == 0) return tp_keras_malformed(layers, "at least one layer");
    TP_TRY(tp_keras_refs_push(&graph->inputs,
                              (tp_keras_ref){.layer = graph->rows.items[0].file_name}));
    return tp_keras_refs_push(&graph->outputs,
                              (tp_keras_ref){.layer = graph->rows.items[last].file_name});
}

/* ---- the whole ---- */

static tpucl_status read_functional(tp_keras_mapper *mapper, const tp_json *config,
                                    const tp_json *layers, const char *prefix,
                                    tp_keras_graph *graph)
{
    const tp_json *inputs = tp_keras_member(config, "input_layers");
    const tp_json *outputs = tp_keras_member(config, "output_layers");
    if (!inputs || !outputs)
        return tp_keras_malformed(config, "'input_layers' and 'output_layers'");
    for (size_t i = 0; i < layers->count; i++)
        TP_TRY(add_row(mapper, graph, &layers->items[i]));
    TP_TRY(read_calls(mapper, graph, prefix));
    TP_TRY(tp_keras_read_ends(inputs, 0, &graph->inputs));
    TP_TRY(tp_keras_read_ends(outputs, 0, &graph->outputs));
    if (graph->inputs.count < 1 || graph->outputs.count < 1)
        return tp_keras_malformed(config, "at least one input and one output");
    return TPUCL_OK;
}

tpucl_status tp_keras_graph_read(tp_keras_mapper *mapper, const tp_json *config, const char *prefix,
                                 tp_keras_graph *out_graph)
{
    const tp_json *inner = tp_keras_member(config, "config");
    const tp_json *layers = inner && inner->kind == TP_JSON_ARRAY
                                ? inner /* Keras 1 */
                                : tp_keras_member(inner, "layers");
    *out_graph = (tp_keras_graph){
        .json = config, .is_sequential = strcmp(tp_keras_class(config), "Sequential") == 0};
    if (!layers || layers->kind != TP_JSON_ARRAY)
        return tp_keras_malformed(config, "a model with 'config' and, in it, 'layers'");
    if (layers->count > TP_KERAS_MAX_LAYERS)
        return tp_keras_malformed(layers, "at most 10000 layers");
    TP_TRY(out_graph->is_sequential ? read_sequential(mapper, inner, layers, prefix, out_graph)
                                    : read_functional(mapper, inner, layers, prefix, out_graph));
    TP_TRY(tp_keras_graph_order(mapper, out_graph));
    return tp_keras_check_masks(mapper, out_graph, prefix);
}

void tp_keras_graph_deinit(tp_keras_graph *graph)
{
    for (size_t i = 0; i < graph->calls.count; i++) {
        tp_keras_refs_deinit(&graph->calls.items[i].inputs);
        tp_keras_masks_deinit(&graph->calls.items[i].masks);
    }
    tp_keras_calls_deinit(&graph->calls);
    tp_keras_rows_deinit(&graph->rows);
    tp_keras_refs_deinit(&graph->inputs);
    tp_keras_refs_deinit(&graph->outputs);
    tp_map_deinit(&graph->row_names);
}
