/* SPDX-License-Identifier: Apache-2.0
 * Masks that Keras hands on by itself. In the files of Functional models (since Keras 3.9) they are arguments of calls,
 * made by functions that nobody wrote: NotEqual for an Embedding with mask_zero, Any of it for Masking, LogicalOr
 * where branches meet (compute_mask of keras/src/layers). Layers here hand them on, too, so such an argument says
 * nothing new, and the functions are needed by no output. Any other mask is a finding.
 */
#include <string.h>
#include "keras/map_internal.h"

enum { MAX_DEPTH = 64 }; /* of branches within branches */

static const tp_keras_row *row_of(const tp_keras_graph *graph, const tp_keras_call *call)
{
    return &graph->rows.items[call->layer];
}

static bool is_function(const tp_keras_graph *graph, const tp_keras_call *call, const char *kind)
{
    const tp_keras_row *row = row_of(graph, call);
    return row->is_op && strcmp(row->kind, kind) == 0;
}

static bool is_same(const tp_keras_ref *a, const tp_keras_ref *b)
{
    return a->node == b->node && a->tensor == b->tensor && strcmp(a->layer, b->layer) == 0;
}

static const tp_keras_call *producer(const tp_keras_graph *graph, const tp_keras_refs *refs,
                                     size_t index)
{
    return index < refs->count ? tp_keras_graph_call(graph, &refs->items[index]) : NULL;
}

/* Whether the call is NotEqual(ref, value). */
static bool differs_from(const tp_keras_graph *graph, const tp_keras_call *call,
                         const tp_keras_ref *ref, double value)
{
    const tp_json *nodes = tp_keras_member(row_of(graph, call)->json, "inbound_nodes");
    if (!is_function(graph, call, "NotEqual") || call->inputs.count != 1 ||
        !is_same(&call->inputs.items[0], ref))
        return false;
    const tp_json *args = nodes && call->node < (int64_t)nodes->count
                              ? tp_keras_member(&nodes->items[call->node], "args")
                              : NULL;
    double found;
    return args && args->kind == TP_JSON_ARRAY && args->count == 2 &&
           tp_json_as_double(&args->items[1], -1e300, 1e300, &found) == TPUCL_OK && found == value;
}

/* Whether a layer makes `mask` of its own input: Embedding and Masking. */
static bool makes_mask(const tp_keras_graph *graph, const tp_keras_call *layer,
                       const tp_keras_call *mask)
{
    const tp_keras_row *row = row_of(graph, layer);
    double value = 0;
    if (row->is_op || layer->inputs.count != 1) return false;
    if (strcmp(row->kind, "Embedding") == 0) {
        const tp_json *mask_zero = tp_keras_member(row->config, "mask_zero");
        return mask_zero && mask_zero->kind == TP_JSON_BOOL && mask_zero->boolean &&
               differs_from(graph, mask, &layer->inputs.items[0], 0);
    }
    if (strcmp(row->kind, "Masking") != 0 || !is_function(graph, mask, "Any")) return false;
    const tp_json *given = tp_keras_member(row->config, "mask_value");
    const tp_keras_call *compare = producer(graph, &mask->inputs, 0);
    if (given && tp_json_as_double(given, -1e300, 1e300, &value) != TPUCL_OK) return false;
    return compare && differs_from(graph, compare, &layer->inputs.items[0], value);
}

static bool is_made(const tp_keras_graph *graph, const tp_keras_call *mask)
{
    for (size_t i = 0; i < graph->calls.count; i++)
        if (makes_mask(graph, &graph->calls.items[i], mask)) return true;
    return false;
}

/* Of a Concatenate Keras makes a longer expression (ExpandDims, OnesLike, Concatenate, Any): every compare in it must
 * be some layer's mask. */
static bool is_made_of_masks(const tp_keras_graph *graph, const tp_keras_call *mask, int depth)
{
    static const char *const functions[] = {"Any",      "All",       "LogicalOr",  "Concatenate",
                                            "OnesLike", "ZerosLike", "ExpandDims", "NotEqual"};
    bool is_known = false;
    if (!mask || depth > MAX_DEPTH) return false;
    if (is_made(graph, mask)) return true;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        is_known = is_known || is_function(graph, mask, functions[i]);
    if (is_function(graph, mask, "OnesLike") || is_function(graph, mask, "ZerosLike")) return true;
    if (!is_known) return false;
    if (is_function(graph, mask, "NotEqual")) { /* inside Masking's Any */
        for (size_t i = 0; i < graph->calls.count; i++) {
            const tp_keras_call *call = &graph->calls.items[i];
            if (is_function(graph, call, "Any") && producer(graph, &call->inputs, 0) == mask)
                return is_made(graph, call);
        }
        return false;
    }
    for (size_t i = 0; i < mask->inputs.count; i++)
        if (!is_made_of_masks(graph, producer(graph, &mask->inputs, i), depth + 1)) return false;
    return mask->inputs.count > 0;
}

/* Whether `value` comes with `mask` here without anybody saying so. */
static bool is_implied(const tp_keras_graph *graph, const tp_keras_call *value,
                       const tp_keras_call *mask, int depth)
{
    static const char *const merging[] = {"Add",     "Subtract", "Multiply",
                                          "Average", "Maximum",  "Minimum"};
    for (size_t steps = 0; value && mask && steps <= graph->calls.count; steps++) {
        const tp_keras_row *row = row_of(graph, value);
        const size_t count = value->inputs.count;
        bool is_merging = false;
        if (makes_mask(graph, value, mask)) return true;
        for (size_t i = 0; i < sizeof merging / sizeof *merging; i++)
            is_merging = is_merging || (!row->is_op && strcmp(row->kind, merging[i]) == 0);
        if (strcmp(row->kind, "Concatenate") == 0) return is_made_of_masks(graph, mask, 0);
        if (is_merging) {
            /* ((first or second) or third) ... */
            for (size_t i = count; i-- > 1; mask = producer(graph, &mask->inputs, 0)) {
                if (depth > MAX_DEPTH || !mask || !is_function(graph, mask, "LogicalOr") ||
                    !is_implied(graph, producer(graph, &value->inputs, i),
                                producer(graph, &mask->inputs, 1), depth + 1))
                    return false;
            }
        } else if (row->is_input || row->is_op || !tp_keras_passes_mask(row->kind)) {
            return false;
        }
        value = producer(graph, &value->inputs, 0);
    }
    return false;
}

tpucl_status tp_keras_check_masks(tp_keras_mapper *mapper, const tp_keras_graph *graph,
                                  const char *prefix)
{
    for (size_t i = 0; i < graph->calls.count; i++) {
        const tp_keras_call *call = &graph->calls.items[i];
        const tp_keras_row *row = row_of(graph, call);
        for (size_t k = 0; k < call->masks.count; k++) {
            const size_t input = (size_t)call->masks.items[k].input;
            const size_t last = call->inputs.count ? call->inputs.count - 1 : 0;
            const tp_keras_call *value =
                producer(graph, &call->inputs, input < last ? input : last);
            const tp_keras_call *mask = tp_keras_graph_call(graph, &call->masks.items[k].ref);
            if (is_implied(graph, value, mask, 0)) continue;
            const char *name = tp_arena_printf(mapper->arena, "%s%s", prefix, row->name);
            if (!name) return TPUCL_OUT_OF_MEMORY;
            TP_TRY(
                tp_keras_find(mapper->arena, mapper->findings, TP_KERAS_ARGUMENT, name, row->kind,
                              "let an Embedding (mask_zero) or Masking make the mask, which then "
                              "goes from layer to layer; an attention takes attention_mask",
                              "it is called with a mask that its input does not come with"));
            break;
        }
    }
    return TPUCL_OK;
}
