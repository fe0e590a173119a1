/* SPDX-License-Identifier: Apache-2.0
 * Calls of layers, and the references to results that they and the ends of a model are made of. Schemas: Keras 3
 * keras/src/ops/node.py and models/functional.py, Keras 2 keras/engine/node.py.
 */
#include <string.h>
#include "keras/map_internal.h"

tpucl_status tp_keras_malformed(const tp_json *value, const char *expected)
{
    char where[TP_JSON_WHERE_BYTES];
    return TP_FAIL(TPUCL_INVALID_CONFIG, "%s: expected %s", tp_json_where(value, where), expected);
}

/* ---- references ---- */

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
        return tp_keras_malformed(value, "[layer, node, tensor] with small numbers");
    return tp_keras_refs_push(refs, ref);
}

tpucl_status tp_keras_read_ends(const tp_json *value, int depth, tp_keras_refs *refs)
{
    if (is_ref(value)) return push_ref(value, refs);
    if ((value->kind != TP_JSON_ARRAY && value->kind != TP_JSON_OBJECT) || depth > 4)
        return tp_keras_malformed(value, "[layer, node, tensor], or a list or an object of such");
    for (size_t i = 0; i < value->count; i++)
        TP_TRY(tp_keras_read_ends(&value->items[i], depth + 1, refs));
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
    if (kwargs->kind != TP_JSON_OBJECT) return tp_keras_malformed(kwargs, "an object of arguments");
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
        if (!args || args->kind != TP_JSON_ARRAY)
            return tp_keras_malformed(node, "a call with 'args'");
        if (reader->row->is_op) return read_function(reader, node);
        TP_TRY(read_argument(reader, args, 0));
        return kwargs ? read_named(reader, kwargs) : TPUCL_OK;
    }
    if (node->kind != TP_JSON_ARRAY) return tp_keras_malformed(node, "a call of the layer");
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

tpucl_status tp_keras_read_call(tp_keras_mapper *mapper, tp_keras_row *row, const char *name,
                                const tp_json *node, tp_keras_call *call)
{
    call_reader reader = {
        .mapper = mapper, .row = row, .name = name, .refs = &call->inputs, .masks = &call->masks};
    return read_node(&reader, node);
}
