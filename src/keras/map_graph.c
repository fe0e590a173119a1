/* SPDX-License-Identifier: Apache-2.0
 * The graph of one model: its layers, their calls, what these take from each other, in an order in which they can
 * be written down. Schemas: Keras 3 keras/src/models/functional.py, Keras 2 keras/engine/functional.py.
 */
#include <string.h>
#include "core/str.h"
#include "keras/map_internal.h"

/* ---- references ---- */

static tpucl_status malformed(const tp_json *value, const char *expected)
{
    char where[TP_JSON_WHERE_BYTES];
    return TP_FAIL(TPUCL_INVALID_CONFIG, "%s: expected %s", tp_json_where(value, where), expected);
}

/* [layer, node, tensor] or [layer, node, tensor, kwargs] */
static bool is_ref(const tp_json *value)
{
    return value->kind == TP_JSON_ARRAY && value->count >= 3 && value->count <= 4 &&
           value->items[0].kind == TP_JSON_STRING && value->items[1].kind == TP_JSON_INTEGER &&
           value->items[2].kind == TP_JSON_INTEGER;
}

static tpucl_status push_ref(const tp_json *value, tp_keras_refs *refs)
{
    const tp_keras_ref ref = {value->items[0].string, value->items[1].integer,
                              value->items[2].integer};
    if (ref.node < 0 || ref.tensor < 0 || ref.tensor > 64)
        return malformed(value, "[layer, node, tensor] with small numbers");
    return tp_keras_refs_push(refs, ref);
}

/* input_layers and output_layers: one reference, a list of them, or an object of them; and lists in lists. */
static tpucl_status read_ends(const tp_json *value, int depth, tp_keras_refs *refs)
{
    if (is_ref(value)) return push_ref(value, refs);
    if ((value->kind != TP_JSON_ARRAY && value->kind != TP_JSON_OBJECT) || depth > 4)
        return malformed(value, "[layer, node, tensor], or a list or an object of such");
    for (size_t i = 0; i < value->count; i++)
        TP_TRY(read_ends(&value->items[i], depth + 1, refs));
    return TPUCL_OK;
}

/* ---- calls ---- */

typedef struct call_reader {
    tp_keras_mapper *mapper;
    tp_keras_row *row;
    const char *name; /* for findings */
    tp_keras_refs *refs;
    tp_keras_masks *masks;
    bool is_old; /* the schema of Keras 1 and 2 */
    bool is_odd; /* an argument that is no tensor was found: said once a call */
} call_reader;

/* {"class_name": "__keras_tensor__", "config": {"keras_history": [...]}}; NULL for another value. */
static const tp_json *history_of(const tp_json *value)
{
    if (value->kind != TP_JSON_OBJECT || strcmp(tp_keras_class(value), "__keras_tensor__") != 0)
        return NULL;
    const tp_json *history = tp_keras_member(tp_keras_member(value, "config"), "keras_history");
    return history && is_ref(history) ? history : NULL;
}

/* What a call may say without changing anything: nothing, false, or that this is training as usual. */
static bool is_neutral_argument(const tp_json *value)
{
    return value->kind == TP_JSON_NULL || (value->kind == TP_JSON_BOOL && !value->boolean) ||
           ((value->kind == TP_JSON_ARRAY || value->kind == TP_JSON_OBJECT) && value->count == 0);
}

static tpucl_status report_argument(call_reader *reader, const tp_json *value)
{
    char found[TP_JSON_FOUND_BYTES];
    if (reader->is_odd) return TPUCL_OK;
    reader->is_odd = true;
    return tp_keras_find(
        reader->mapper->arena, reader->mapper->findings, TP_KERAS_ARGUMENT, reader->name,
        reader->row->kind,
        "give the layer tensors alone, and other things as arguments of its constructor",
        "it is called with %s%s%s, which is no tensor", value->key ? value->key : "",
        value->key ? " = " : "", tp_json_found(value, found));
}

/* A function takes numbers and slices, too, which map_op.c reads; only tensors are of the graph. */
static tpucl_status read_tensors(call_reader *reader, const tp_json *value, int depth)
{
    const tp_json *history = history_of(value);
    if (history) return push_ref(history, reader->refs);
    if ((value->kind != TP_JSON_ARRAY && value->kind != TP_JSON_OBJECT) || depth > 4)
        return TPUCL_OK;
    for (size_t i = 0; i < value->count; i++)
        TP_TRY(read_tensors(reader, &value->items[i], depth + 1));
    return TPUCL_OK;
}

static tpucl_status read_function(call_reader *reader, const tp_json *node)
{
    TP_TRY(read_tensors(reader, node, 0));
    if (strcmp(reader->row->kind, "Square") == 0 && reader->refs->count == 1) {
        const tp_keras_ref value = reader->refs->items[0];
        return tp_keras_refs_push(reader->refs, value); /* x * x */
    }
    return TPUCL_OK;
}

static tpucl_status read_argument(call_reader *reader, const tp_json *value, int depth)
{
    const tp_json *history = history_of(value);
    if (history) return push_ref(history, reader->refs);
    if (is_ref(value)) return push_ref(value, reader->refs);
    if (is_neutral_argument(value)) return TPUCL_OK;
    if (value->kind != TP_JSON_ARRAY || depth > 4) return report_argument(reader, value);
    for (size_t i = 0; i < value->count; i++)
        TP_TRY(read_argument(reader, &value->items[i], depth + 1));
    return TPUCL_OK;
}

/* A mask is the fourth tensor of an attention here; Keras takes the value for the key when that is missing. */
static tpucl_status read_attention_mask(call_reader *reader, const tp_json *mask)
{
    if (!mask || is_neutral_argument(mask)) return TPUCL_OK;
    if (reader->refs->count == 2) {
        const tp_keras_ref value = reader->refs->items[1];
        TP_TRY(tp_keras_refs_push(reader->refs, value));
    }
    return read_argument(reader, mask, 0);
}

/* Whether a layer that behaves otherwise in training is one of these: a class whose name begins with one of `kinds`. */
static bool holds_kind(const tp_json *json, const char *const *kinds, int kind_count, int depth)
{
    const char *kind = tp_keras_class(json);
    const tp_json *config = tp_keras_member(json, "config");
    const tp_json *layers = tp_keras_member(config, "layers");
    for (int i = 0; i < kind_count; i++)
        if (strncmp(kind, kinds[i], strlen(kinds[i])) == 0) return true;
    for (size_t i = 0; layers && depth < TP_KERAS_MAX_NESTING && i < layers->count; i++)
        if (holds_kind(&layers->items[i], kinds, kind_count, depth + 1)) return true;
    return false;
}

/* In Keras 2 training=False or True in the call decides for a layer what the step decides here; in Keras 3 the step
 * decides, too (functional.py, operation_fn), whatever the file has, which is there for every Dropout. Frozen
 * BatchNormalization takes its moving statistics in Keras and here, so that False changes nothing there. */
static tpucl_status read_training(call_reader *reader, const tp_json *training)
{
    static const char *const noise[] = {"Dropout",      "SpatialDropout", "GaussianDropout",
                                        "AlphaDropout", "GaussianNoise",  "Random"};
    static const char *const norm[] = {"BatchNormalization"};
    if (!reader->is_old || !training || training->kind != TP_JSON_BOOL) return TPUCL_OK;
    const tp_json *trainable = tp_keras_member(reader->row->config, "trainable");
    const bool is_frozen = trainable && trainable->kind == TP_JSON_BOOL && !trainable->boolean;
    const bool has_noise = holds_kind(reader->row->json, noise, 6, 0);
    const bool has_norm = holds_kind(reader->row->json, norm, 1, 0);
    if (!has_noise && (!has_norm || (is_frozen && !training->boolean))) return TPUCL_OK;
    return tp_keras_find(
        reader->mapper->arena, reader->mapper->findings, TP_KERAS_ARGUMENT, reader->name,
        reader->row->kind,
        training->boolean ? "leave the argument out: the layer is active while training"
        : has_noise ? "build the model without its dropout and noise, and without the argument"
                    : "freeze it (trainable = False), which makes it use its moving statistics",
        "it is called with training=%s: here the step says what is training",
        training->boolean ? "True" : "False");
}

/* The masks of inputs: one tensor for the first, or a list with one for each. */
static tpucl_status read_mask(call_reader *reader, const tp_json *value, int32_t input)
{
    const tp_json *history = value ? history_of(value) : NULL;
    if (!value || is_neutral_argument(value)) return TPUCL_OK;
    if (history) {
        tp_keras_refs refs = {0};
        tpucl_status status = push_ref(history, &refs);
        if (status == TPUCL_OK)
            status = tp_keras_masks_push(reader->masks, (tp_keras_mask){refs.items[0], input});
        tp_keras_refs_deinit(&refs);
        return status;
    }
    if (value->kind != TP_JSON_ARRAY || input) return report_argument(reader, value);
    for (size_t i = 0; i < value->count; i++)
        TP_TRY(value->items[i].kind == TP_JSON_ARRAY
                   ? report_argument(reader, value)
                   : read_mask(reader, &value->items[i], (int32_t)i));
    return TPUCL_OK;
}

static tpucl_status read_masks(call_reader *reader, const tp_json *kwargs)
{
    TP_TRY(read_mask(reader, tp_keras_member(kwargs, "mask"), 0));
    TP_TRY(read_mask(reader, tp_keras_member(kwargs, "query_mask"), 0));
    TP_TRY(read_mask(reader, tp_keras_member(kwargs, "value_mask"), 1));
    return read_mask(reader, tp_keras_member(kwargs, "key_mask"), 2);
}

static bool is_read_elsewhere(const char *key)
{
    static const char *const keys[] = {"training",   "attention_mask", "use_causal_mask", "mask",
                                       "query_mask", "value_mask",     "key_mask"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(key, keys[i]) == 0) return true;
    return false;
}

/* Which positions see each other is an argument of the layer here, so that all of its calls must say the same. */
static tpucl_status read_causal(call_reader *reader, const tp_json *causal)
{
    const bool is_causal = causal && causal->kind == TP_JSON_BOOL && causal->boolean;
    if (reader->row->call_count > 1 && is_causal != reader->row->is_causal)
        return tp_keras_find(reader->mapper->arena, reader->mapper->findings, TP_KERAS_ARGUMENT,
                             reader->name, reader->row->kind,
                             "make two layers, or give all calls the same",
                             "it is called with use_causal_mask and without");
    reader->row->is_causal = is_causal;
    return TPUCL_OK;
}

/* Named arguments that are tensors come in the order of the signatures of MultiHeadAttention, merging and recurrent
 * layers. */
static tpucl_status read_named(call_reader *reader, const tp_json *kwargs)
{
    static const char *const order[] = {"inputs", "x",     "x1",  "x2",
                                        "query",  "value", "key", "initial_state"};
    enum { COUNT = sizeof order / sizeof *order };
    if (kwargs->kind != TP_JSON_OBJECT) return malformed(kwargs, "an object of arguments");
    for (size_t i = 0; i < COUNT; i++) {
        const tp_json *value = tp_keras_member(kwargs, order[i]);
        if (value) TP_TRY(read_argument(reader, value, 0));
    }
    TP_TRY(read_attention_mask(reader, tp_keras_member(kwargs, "attention_mask")));
    TP_TRY(read_masks(reader, kwargs));
    TP_TRY(read_causal(reader, tp_keras_member(kwargs, "use_causal_mask")));
    TP_TRY(read_training(reader, tp_keras_member(kwargs, "training")));
    for (size_t i = 0; i < kwargs->count; i++) {
        bool is_read = false;
        for (size_t k = 0; k < COUNT; k++)
            is_read = is_read || strcmp(kwargs->items[i].key, order[k]) == 0;
        if (is_read || is_neutral_argument(&kwargs->items[i])) continue;
        if (!is_read_elsewhere(kwargs->items[i].key))
            TP_TRY(report_argument(reader, &kwargs->items[i]));
    }
    return TPUCL_OK;
}

/* Keras 3: {"args", "kwargs"}. Before: a list of references, each with the call's kwargs, or one alone. */
static tpucl_status read_node(call_reader *reader, const tp_json *node)
{
    if (node->kind == TP_JSON_OBJECT) {
        const tp_json *args = tp_keras_member(node, "args");
        const tp_json *kwargs = tp_keras_member(node, "kwargs");
        if (!args || args->kind != TP_JSON_ARRAY) return malformed(node, "a call with 'args'");
        if (reader->row->is_op) return read_function(reader, node);
        TP_TRY(read_argument(reader, args, 0));
        return kwargs ? read_named(reader, kwargs) : TPUCL_OK;
    }
    if (node->kind != TP_JSON_ARRAY) return malformed(node, "a call of the layer");
    const bool is_one = is_ref(node);
    reader->is_old = true;
    for (size_t i = 0; i < (is_one ? 1 : node->count); i++) {
        const tp_json *item = is_one ? node : &node->items[i];
        TP_TRY(read_argument(reader, item, 0));
        if (is_ref(item) && item->count == 4 && item->items[3].kind == TP_JSON_OBJECT)
            TP_TRY(read_named(reader, &item->items[3]));
    }
    return TPUCL_OK;
}

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
    call_reader reader = {.mapper = mapper,
                          .row = row,
                          .name = tp_arena_printf(mapper->arena, "%s%s", prefix, row->name),
                          .refs = &graph->calls.items[graph->calls.count - 1].inputs,
                          .masks = &graph->calls.items[graph->calls.count - 1].masks};
    if (!reader.name) return TPUCL_OUT_OF_MEMORY;
    return read_node(&reader, node);
}

static tpucl_status read_calls(tp_keras_mapper *mapper, tp_keras_graph *graph, const char *prefix)
{
    for (int32_t i = 0; i < (int32_t)graph->rows.count; i++) {
        const tp_json *nodes = tp_keras_member(graph->rows.items[i].json, "inbound_nodes");
        if (!nodes || nodes->kind != TP_JSON_ARRAY)
            return malformed(graph->rows.items[i].json, "a layer with 'inbound_nodes'");
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
    if (!*row.kind || !row.config) return malformed(json, "'class_name' and 'config'");
    name = tp_keras_member(json, "name");
    if (!name && row.config->kind == TP_JSON_OBJECT) name = tp_keras_member(row.config, "name");
    if (name && (name->kind != TP_JSON_STRING || !*name->string || name->string_length > 200))
        return malformed(name, "the name of a layer");
    row.is_input = strcmp(row.kind, "InputLayer") == 0;
    row.is_model = is_model_class(row.kind);
    row.is_op = is_operation(json);
    row.file_name =
        name ? name->string
             : tp_arena_printf(mapper->arena, "%s_%zu", tp_keras_snake(mapper->arena, row.kind),
                               graph->rows.count);
    if (!row.file_name) return TPUCL_OUT_OF_MEMORY;
    if (tp_map_find(&graph->row_names, row.file_name, NULL))
        return malformed(json, "a layer whose name no other layer has");
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
            return malformed(&layers->items[i], "no InputLayer but the first");
        const tp_keras_ref before = {.layer = graph->rows.items[index - 1].file_name};
        TP_TRY(tp_keras_refs_push(&graph->calls.items[index].inputs, before));
    }
    const size_t last = graph->rows.count - 1;
    if (last == 0) return malformed(layers, "at least one layer");
    TP_TRY(tp_keras_refs_push(&graph->inputs,
                              (tp_keras_ref){.layer = graph->rows.items[0].file_name}));
    return tp_keras_refs_push(&graph->outputs,
                              (tp_keras_ref){.layer = graph->rows.items[last].file_name});
}

/* ---- order ---- */

tp_keras_call *tp_keras_graph_call(const tp_keras_graph *graph, const tp_keras_ref *ref)
{
    size_t index;
    if (!tp_map_find(&graph->row_names, ref->layer, &index)) return NULL;
    const tp_keras_row *row = &graph->rows.items[index];
    if (ref->node < 0 || ref->node >= row->call_count) return NULL;
    return &graph->calls.items[row->first_call + ref->node];
}

/* Which node numbers references to each row have. */
typedef struct node_range {
    int64_t least, most; /* -1: no reference */
} node_range;

static void extend(const tp_keras_graph *graph, const tp_keras_refs *refs, node_range *ranges)
{
    for (size_t i = 0; i < refs->count; i++) {
        size_t row;
        if (!tp_map_find(&graph->row_names, refs->items[i].layer, &row)) continue;
        node_range *range = &ranges[row];
        if (range->least < 0 || refs->items[i].node < range->least)
            range->least = refs->items[i].node;
        if (refs->items[i].node > range->most) range->most = refs->items[i].node;
    }
}

/* The call with which a nested model was made is its node 0 in many files, so that the first call of the outer
 * model is node 1: in lists of inbound nodes always, in Keras 3 in the ends of Functional models, in its calls in
 * some versions. */
static int64_t base_of(const tp_keras_row *row, const node_range *range, bool is_end)
{
    const tp_json *nodes = tp_keras_member(row->json, "inbound_nodes");
    const bool is_new = nodes && nodes->count && nodes->items[0].kind == TP_JSON_OBJECT;
    if (!row->is_model || range->least <= 0) return 0;
    if (!is_new || range->most >= row->call_count) return 1;
    return is_end && strcmp(row->kind, "Sequential") != 0;
}

static void shift(const tp_keras_graph *graph, tp_keras_refs *refs, const node_range *ranges,
                  bool is_end)
{
    for (size_t i = 0; i < refs->count; i++) {
        size_t row;
        if (tp_map_find(&graph->row_names, refs->items[i].layer, &row))
            refs->items[i].node -= base_of(&graph->rows.items[row], &ranges[row], is_end);
    }
}

/* Afterwards node numbers of nested models count from 0, too. */
static tpucl_status count_nodes_from_zero(tp_keras_mapper *mapper, tp_keras_graph *graph)
{
    const size_t count = graph->rows.count;
    node_range *ranges = TP_ARENA_NEW_ARRAY(mapper->arena, node_range, 2 * count + 1);
    if (!ranges) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < 2 * count; i++)
        ranges[i] = (node_range){-1, -1};
    for (size_t i = 0; i < graph->calls.count; i++)
        extend(graph, &graph->calls.items[i].inputs, ranges);
    extend(graph, &graph->outputs, ranges + count);
    for (size_t i = 0; i < graph->calls.count; i++)
        shift(graph, &graph->calls.items[i].inputs, ranges, false);
    shift(graph, &graph->outputs, ranges + count, true);
    return TPUCL_OK;
}

static tpucl_status check_refs(const tp_keras_graph *graph, const tp_keras_refs *refs)
{
    for (size_t i = 0; i < refs->count; i++) {
        const tp_keras_ref *ref = &refs->items[i];
        if (!tp_keras_graph_call(graph, ref)) {
            char where[TP_JSON_WHERE_BYTES];
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "%s: something takes result %lld of call %lld of '%.100s', which is not "
                           "there",
                           tp_json_where(graph->json, where), (long long)ref->tensor,
                           (long long)ref->node, ref->layer);
        }
    }
    return TPUCL_OK;
}

typedef struct visit {
    int32_t call;
    size_t next; /* of its inputs */
} visit;

TP_ARRAY_DEFINE(visits, visit)

/* Depth first from one call, each after its inputs; `state`: 0 new, 1 begun, 2 done. */
static tpucl_status place(tp_keras_graph *graph, int32_t from, char *state, visits *stack)
{
    TP_TRY(visits_push(stack, (visit){from, 0}));
    while (stack->count) {
        visit *top = &stack->items[stack->count - 1];
        const tp_keras_call *call = &graph->calls.items[top->call];
        state[top->call] = 1;
        if (top->next < call->inputs.count) {
            const tp_keras_call *input =
                tp_keras_graph_call(graph, &call->inputs.items[top->next++]);
            const int32_t index = (int32_t)(input - graph->calls.items);
            if (state[index] == 1) return malformed(graph->json, "a model without circles");
            if (state[index] == 0) TP_TRY(visits_push(stack, (visit){index, 0}));
            continue;
        }
        state[top->call] = 2;
        graph->calls.items[top->call].is_needed = true;
        stack->count--;
    }
    return TPUCL_OK;
}

/* The calls that the outputs need; then all of them in the file's order, where that is possible. */
static tpucl_status sort(tp_keras_mapper *mapper, tp_keras_graph *graph)
{
    const size_t count = graph->calls.count;
    visits stack = {0};
    tpucl_status status = TPUCL_OK;
    char *state = tp_arena_alloc(mapper->arena, count + 1);
    graph->order = TP_ARENA_NEW_ARRAY(mapper->arena, int32_t, count + 1);
    if (!state || !graph->order) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->outputs.count && status == TPUCL_OK; i++) {
        const tp_keras_call *call = tp_keras_graph_call(graph, &graph->outputs.items[i]);
        const int32_t index = (int32_t)(call - graph->calls.items);
        if (state[index] == 0) status = place(graph, index, state, &stack);
    }
    visits_deinit(&stack);
    TP_TRY(status);
    /* Almost always one sweep does; each further one places at least one call. */
    memset(state, 0, count);
    for (bool is_moving = true; is_moving;) {
        is_moving = false;
        for (size_t i = 0; i < count; i++) {
            const tp_keras_call *call = &graph->calls.items[i];
            bool is_ready = call->is_needed && !state[i];
            for (size_t k = 0; is_ready && k < call->inputs.count; k++)
                is_ready =
                    state[tp_keras_graph_call(graph, &call->inputs.items[k]) - graph->calls.items];
            if (!is_ready) continue;
            state[i] = is_moving = true;
            if (!graph->rows.items[call->layer].is_input)
                graph->order[graph->order_count++] = (int32_t)i;
        }
    }
    return TPUCL_OK;
}

/* ---- the whole ---- */

static tpucl_status read_functional(tp_keras_mapper *mapper, const tp_json *config,
                                    const tp_json *layers, const char *prefix,
                                    tp_keras_graph *graph)
{
    const tp_json *inputs = tp_keras_member(config, "input_layers");
    const tp_json *outputs = tp_keras_member(config, "output_layers");
    if (!inputs || !outputs) return malformed(config, "'input_layers' and 'output_layers'");
    for (size_t i = 0; i < layers->count; i++)
        TP_TRY(add_row(mapper, graph, &layers->items[i]));
    TP_TRY(read_calls(mapper, graph, prefix));
    TP_TRY(read_ends(inputs, 0, &graph->inputs));
    TP_TRY(read_ends(outputs, 0, &graph->outputs));
    if (graph->inputs.count < 1 || graph->outputs.count < 1)
        return malformed(config, "at least one input and one output");
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
        return malformed(config, "a model with 'config' and, in it, 'layers'");
    if (layers->count > TP_KERAS_MAX_LAYERS) return malformed(layers, "at most 10000 layers");
    TP_TRY(out_graph->is_sequential ? read_sequential(mapper, inner, layers, prefix, out_graph)
                                    : read_functional(mapper, inner, layers, prefix, out_graph));
    TP_TRY(count_nodes_from_zero(mapper, out_graph));
    for (size_t i = 0; i < out_graph->calls.count; i++)
        TP_TRY(check_refs(out_graph, &out_graph->calls.items[i].inputs));
    TP_TRY(check_refs(out_graph, &out_graph->inputs));
    TP_TRY(check_refs(out_graph, &out_graph->outputs));
    TP_TRY(sort(mapper, out_graph));
    return tp_keras_check_masks(mapper, out_graph, prefix);
}

void tp_keras_graph_deinit(tp_keras_graph *graph)
{
    for (size_t i = 0; i < graph->calls.count; i++)
        tp_keras_refs_deinit(&graph->calls.items[i].inputs),
            tp_keras_masks_deinit(&graph->calls.items[i].masks);
    tp_keras_calls_deinit(&graph->calls);
    tp_keras_rows_deinit(&graph->rows);
    tp_keras_refs_deinit(&graph->inputs);
    tp_keras_refs_deinit(&graph->outputs);
    tp_map_deinit(&graph->row_names);
}
