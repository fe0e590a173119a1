/* SPDX-License-Identifier: Apache-2.0
 * Which weight of the file is which variable. tpucl's layers have their weights in Keras' order, so that within a
 * layer the order decides, and shapes are compared. How layers are found depends on the file's layout:
 *
 *   by places   a layer's own weights, then those of the layers inside it (a cell, the directions of a
 *               Bidirectional, the projections of an attention) in the order in which Keras made them
 *   by names    all weights of the outermost layer: trainable ones first, then the others, each in the order
 *               of the layers inside (Keras: Layer.weights)
 */
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/array.h"
#include "core/str.h"
#include "io/keras_file.h"
#include "keras/import.h"
#include "keras/map_internal.h"
#include "num/bf16.h"

TP_ARRAY_DEFINE(indexes, int32_t)

typedef struct binding {
    tp_keras_file *file;
    const tp_graph *graph;
    tp_keras_import *import;
    int32_t *layer_of; /* [variables]: index of mapped.layers */
} binding;

/* ---- which layer a variable belongs to ---- */

/* "encoder/proj/kernel" is of the layer "encoder/proj": the longest name that fits. */
static int32_t find_layer(const tp_keras_model *model, const char *variable)
{
    size_t longest = 0;
    int32_t found = -1;
    for (int32_t i = 0; i < model->layer_count; i++) {
        const size_t length = strlen(model->layers[i].name);
        if (length >= longest && strncmp(variable, model->layers[i].name, length) == 0 &&
            variable[length] == '/') {
            longest = length;
            found = i;
        }
    }
    return found;
}

/* ---- weights by places ---- */

/* The order in which Keras makes the layers inside a layer. */
static int rank_of(const char *part, size_t length)
{
    static const char *const order[] = {"cell",           "layer",       "forward_layer",
                                        "backward_layer", "query_dense", "key_dense",
                                        "gate_dense",     "value_dense", "output_dense"};
    enum { COUNT = sizeof order / sizeof *order };
    if (length && *part == '_') part++, length--;
    for (int i = 0; i < COUNT; i++)
        if (strlen(order[i]) == length && memcmp(order[i], part, length) == 0) return i;
    return COUNT;
}

static int compare_places(const tp_keras_weight *a, const tp_keras_weight *b, size_t prefix)
{
    tp_view x = tp_view_of(a->owner + prefix), y = tp_view_of(b->owner + prefix), p, q;
    while (x.length && y.length) {
        tp_view_next(&x, '/', &p);
        tp_view_next(&y, '/', &q);
        const int ranks = rank_of(p.data, p.length) - rank_of(q.data, q.length);
        if (ranks) return ranks;
        if (!tp_view_equal(p, q)) return strcmp(a->owner, b->owner);
    }
    if (x.length || y.length) return x.length ? 1 : -1;
    return a->index - b->index;
}

/* Weights of a place and of those inside it. State of random generators is none. */
static tpucl_status list_place(const binding *bound, const char *place, indexes *out)
{
    const size_t length = strlen(place);
    for (int32_t i = 0; i < tp_keras_weight_count(bound->file); i++) {
        const tp_keras_weight *weight = tp_keras_weight_at(bound->file, i);
        if (strncmp(weight->owner, place, length) != 0 ||
            (weight->owner[length] && weight->owner[length] != '/') ||
            strstr(weight->owner + length, "seed_generator"))
            continue;
        TP_TRY(indexes_push(out, i));
        for (size_t k = out->count - 1; k > 0; k--) { /* few: insertion */
            const tp_keras_weight *before = tp_keras_weight_at(bound->file, out->items[k - 1]);
            if (compare_places(before, weight, length) <= 0) break;
            out->items[k] = out->items[k - 1];
            out->items[k - 1] = i;
        }
    }
    return TPUCL_OK;
}

/* ---- reading ---- */

static void widen(const uint16_t *halves, float *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = tp_bf16_to_f32(halves[i]);
}

static void narrow(const float *values, uint16_t *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        out[i] = tp_bf16_from_f32(values[i]);
}

/* The elements as the variable has them (tp_free): f32 and bf16 become each other, to nearest. */
static tpucl_status read_elements(binding *bound, const tp_keras_weight *weight,
                                  const tp_variable *variable, void **out_data)
{
    const int64_t count = tp_shape_elems(&weight->shape);
    void *data = tp_alloc((size_t)tp_shape_bytes(&weight->shape, variable->dtype) + 1);
    if (!data) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status;
    if (weight->dtype == variable->dtype) {
        status = tp_keras_read(bound->file, weight, data);
    } else {
        void *given = tp_alloc((size_t)tp_shape_bytes(&weight->shape, weight->dtype) + 1);
        status = given ? tp_keras_read(bound->file, weight, given) : TPUCL_OUT_OF_MEMORY;
        if (status == TPUCL_OK && weight->dtype == TP_BF16) widen(given, data, count);
        if (status == TPUCL_OK && weight->dtype == TP_F32) narrow(given, data, count);
        tp_free(given);
    }
    if (status != TPUCL_OK) {
        tp_free(data);
        return status;
    }
    *out_data = data;
    return TPUCL_OK;
}

static tpucl_status report(binding *bound, int32_t layer, const char *what)
{
    const tp_keras_layer *row = &bound->import->mapped.layers[layer];
    return tp_keras_find(bound->import->arena, &bound->import->mapped.findings, TP_KERAS_WEIGHTS,
                         row->name, row->kind, "save model and weights again together", "%s", what);
}

static tpucl_status bind_one(binding *bound, int32_t index, const tp_keras_weight *weight)
{
    const tp_variable *variable = &bound->graph->variables[index];
    const int32_t layer = bound->layer_of[index];
    char here[TP_SHAPE_TEXT_MAX], there[TP_SHAPE_TEXT_MAX], what[768];
    tp_shape_format(&variable->shape, here, sizeof here);
    tp_shape_format(&weight->shape, there, sizeof there);
    if (!tp_shape_equal(&variable->shape, &weight->shape)) {
        snprintf(what, sizeof what, "'%.120s' is %s, the file's '%.120s' %s", variable->name, here,
                 weight->path, there);
        return report(bound, layer, what);
    }
    const bool are_floats = tp_dtype_is_float(variable->dtype) && tp_dtype_is_float(weight->dtype);
    if (!weight->is_readable || (weight->dtype != variable->dtype && !are_floats)) {
        snprintf(what, sizeof what, "'%.120s' is %s, the file's '%.120s' %s", variable->name,
                 tp_dtype_name(variable->dtype), weight->path,
                 weight->is_readable ? tp_dtype_name(weight->dtype) : "no numbers");
        return report(bound, layer, what);
    }
    void *data;
    TP_TRY(read_elements(bound, weight, variable, &data));
    tp_tensor_entry *tensor = &bound->import->tensors[bound->import->tensor_count];
    *tensor =
        (tp_tensor_entry){.name = tp_arena_strdup(bound->import->arena, variable->name),
                          .dtype = variable->dtype,
                          .shape = variable->shape,
                          .data = data,
                          .bytes = (uint64_t)tp_shape_bytes(&variable->shape, variable->dtype)};
    bound->import->tensor_count++;
    return tensor->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* Pairs variables and weights, which must be equally many. `layer` is for messages. */
static tpucl_status bind_all(binding *bound, int32_t layer, const indexes *variables,
                             const indexes *weights)
{
    char what[256];
    size_t count = weights->count;
    /* Keras counts the batches that a Normalization has seen; nothing reads that number. */
    if (count == variables->count + 1 &&
        strcmp(bound->import->mapped.layers[layer].kind, "Normalization") == 0)
        count--;
    if (count != variables->count) {
        snprintf(what, sizeof what, "it has %zu weights here and %zu in the file", variables->count,
                 weights->count);
        return report(bound, layer, what);
    }
    for (size_t i = 0; i < count; i++)
        TP_TRY(bind_one(bound, variables->items[i],
                        tp_keras_weight_at(bound->file, weights->items[i])));
    return TPUCL_OK;
}

/* ---- by places, by names ---- */

static tpucl_status bind_place(binding *bound, int32_t layer)
{
    indexes variables = {0}, weights = {0};
    const tp_keras_layer *row = &bound->import->mapped.layers[layer];
    tpucl_status status = list_place(bound, row->place, &weights);
    for (int32_t i = 0; i < bound->graph->variable_count && status == TPUCL_OK; i++)
        if (bound->layer_of[i] == layer) status = indexes_push(&variables, i);
    if (status == TPUCL_OK) status = bind_all(bound, layer, &variables, &weights);
    indexes_deinit(&variables);
    indexes_deinit(&weights);
    return status;
}

/* Variables of all layers with the same owner as `first`, in Keras' order of its weights. */
static tpucl_status list_owner(const binding *bound, int32_t first, indexes *variables)
{
    const tp_keras_model *mapped = &bound->import->mapped;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t layer = first; layer < mapped->layer_count; layer++) {
            if (strcmp(mapped->layers[layer].owner, mapped->layers[first].owner) != 0) continue;
            for (int32_t i = 0; i < bound->graph->variable_count; i++)
                if (bound->layer_of[i] == layer &&
                    bound->graph->variables[i].is_trainable == (pass == 0))
                    TP_TRY(indexes_push(variables, i));
        }
    return TPUCL_OK;
}

static tpucl_status bind_owner(binding *bound, int32_t layer)
{
    indexes variables = {0}, weights = {0};
    const tp_keras_model *mapped = &bound->import->mapped;
    for (int32_t i = 0; i < layer; i++)
        if (strcmp(mapped->layers[i].owner, mapped->layers[layer].owner) == 0) return TPUCL_OK;
    int32_t first = 0;
    const int32_t count = tp_keras_owner_weights(bound->file, mapped->layers[layer].owner, &first);
    tpucl_status status = list_owner(bound, layer, &variables);
    for (int32_t i = 0; i < count && status == TPUCL_OK; i++)
        status = indexes_push(&weights, first + i);
    if (status == TPUCL_OK) status = bind_all(bound, layer, &variables, &weights);
    indexes_deinit(&variables);
    indexes_deinit(&weights);
    return status;
}

tpucl_status tp_keras_bind(tp_keras_file *file, const tp_graph *graph, tp_keras_import *import)
{
    binding bound = {.file = file, .graph = graph, .import = import};
    const size_t count = (size_t)graph->variable_count;
    bound.layer_of = TP_ARENA_NEW_ARRAY(import->arena, int32_t, count + 1);
    import->tensors = TP_ARENA_NEW_ARRAY(import->arena, tp_tensor_entry, count + 1);
    if (!bound.layer_of || !import->tensors) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < graph->variable_count; i++) {
        bound.layer_of[i] = find_layer(&import->mapped, graph->variables[i].name);
        if (bound.layer_of[i] < 0)
            return TP_FAIL(TPUCL_INTERNAL, "the variable '%s' belongs to no layer of the file",
                           graph->variables[i].name);
    }
    const bool is_by_names = tp_keras_weight_layout(file) == TP_KERAS_NAMES;
    for (int32_t layer = 0; layer < import->mapped.layer_count; layer++)
        TP_TRY(is_by_names ? bind_owner(&bound, layer) : bind_place(&bound, layer));
    return TPUCL_OK;
}
