/* SPDX-License-Identifier: Apache-2.0
 * From rows to calls: order, shapes, weights that are shared. See model_scope.h.
 */
#include <stdio.h>
#include <string.h>

#include "model/model_scope.h"

/* ---- growing lists in the model's arena ---- */

static void *grown(tp_arena *arena, const void *items, int32_t count, int32_t *inout_capacity,
                   size_t size)
{
    const int32_t capacity = *inout_capacity ? 2 * *inout_capacity : 16;
    void *more = tp_arena_alloc_array(arena, (size_t)capacity, size);
    if (!more) return NULL;
    if (count) memcpy(more, items, (size_t)count * size);
    *inout_capacity = capacity;
    return more;
}

tpucl_status tp_model_add_value(tp_model *model, const tp_shape *shape, int32_t call)
{
    if (model->value_count == model->value_capacity) {
        tp_model_value *more = grown(model->arena, model->values, model->value_count,
                                     &model->value_capacity, sizeof *more);
        if (!more) return TPUCL_OUT_OF_MEMORY;
        model->values = more;
    }
    model->values[model->value_count++] = (tp_model_value){*shape, call};
    return TPUCL_OK;
}

static tpucl_status add_call(tp_model *model, const tp_model_call *call)
{
    if (model->call_count == model->call_capacity) {
        tp_model_call *more = grown(model->arena, model->calls, model->call_count,
                                    &model->call_capacity, sizeof *more);
        if (!more) return TPUCL_OUT_OF_MEMORY;
        model->calls = more;
    }
    model->calls[model->call_count++] = *call;
    return TPUCL_OK;
}

/* ---- shapes ---- */

static void add_where(const tp_model_reader *reader, const tp_model_item *row,
                      const tp_layer *layer, const tp_problems *found)
{
    char where[TP_JSON_WHERE_BYTES];
    if (found->is_out_of_memory) reader->problems->is_out_of_memory = true;
    tp_problems_add(reader->problems, "%s: %s '%s': %s", tp_json_where(row->json, where),
                    layer->type->name, row->name, found->text);
}

static void check_input_count(const tp_layer *layer, tp_problems *found)
{
    const int32_t least = layer->type->min_inputs ? layer->type->min_inputs : 1;
    const int32_t most = layer->type->max_inputs ? layer->type->max_inputs : 1;
    if (layer->input_count >= least && layer->input_count <= most) return;
    if (least == most)
        tp_problems_add(found, "it has %d inputs, expected %d", layer->input_count, least);
    else if (most >= TP_LAYER_ANY_INPUTS)
        tp_problems_add(found, "it has %d inputs, expected %d or more", layer->input_count, least);
    else
        tp_problems_add(found, "it has %d inputs, expected %d to %d", layer->input_count, least,
                        most);
}

static void check_outputs(const tp_layer *layer, tp_problems *found)
{
    for (int32_t i = 0; i < layer->output_count; i++) {
        const tp_shape *shape = tp_layer_output(layer, i);
        if (shape->rank < TP_MAX_RANK && tp_shape_elems(shape) >= 1) continue;
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(shape, text, sizeof text);
        tp_problems_add(found, "the result %s is empty or has too many dimensions", text);
    }
}

/* Layers multiply sizes from the configuration: what comes of it must be a shape. */
static void check_weights(const tp_layer *layer, tp_problems *found)
{
    for (int32_t i = 0; i < layer->weight_count; i++) {
        const tp_layer_weight *weight = &layer->weights[i];
        tp_shape shape;
        if (tp_shape_init(&shape, weight->shape.rank, weight->shape.dims) == TPUCL_OK) continue;
        char text[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&weight->shape, text, sizeof text);
        tp_problems_add(found, "its %s %s has more than %lld elements", weight->name, text,
                        (long long)TP_MAX_ELEMS);
    }
}

/* The layer whose weights it shares must have made the same ones. */
static void check_shared(const tp_layer *layer, const tp_layer *owner, tp_problems *found)
{
    for (int32_t i = 0; i < layer->weight_count && i < owner->weight_count; i++) {
        const tp_shape *own = &layer->weights[i].shape, *other = &owner->weights[i].shape;
        if (tp_shape_equal(own, other)) continue;
        char here[TP_SHAPE_TEXT_MAX], there[TP_SHAPE_TEXT_MAX];
        tp_shape_format(own, here, sizeof here);
        tp_shape_format(other, there, sizeof there);
        tp_problems_add(found,
                        "with these inputs its %s is %s, where it is called as '%s' it is %s",
                        layer->weights[i].name, here, owner->name, there);
    }
}

/* Shapes and weights. False when something is wrong, which was said then. */
static bool infer(const tp_model_reader *reader, const tp_model_item *row, tp_layer *layer,
                  const tp_layer *owner)
{
    tp_problems found = {0};
    check_input_count(layer, &found);
    const bool is_fine = !found.count && layer->type->infer(layer, &found);
    if (layer->is_out_of_memory) tp_problems_add_failed(&found, TPUCL_OUT_OF_MEMORY);
    if (is_fine) check_outputs(layer, &found);
    if (is_fine) check_weights(layer, &found);
    if (is_fine && owner) check_shared(layer, owner, &found);
    if (found.count) add_where(reader, row, layer, &found);
    return is_fine && !found.count;
}

/* ---- one row ---- */

static int32_t find_owner(const tp_model *model, const char *weights_of)
{
    for (int32_t i = 0; i < model->call_count; i++)
        if (strcmp(model->calls[i].weights_of, weights_of) == 0) return model->calls[i].owner;
    return model->call_count;
}

/* The values that a row takes; false when one is not known. */
static bool find_inputs(const tp_model_reader *reader, const tp_model_scope *scope,
                        const tp_model_item *row, const int32_t *inputs, int32_t *out_values)
{
    bool is_known = true;
    for (int32_t i = 0; i < row->input_count; i++) {
        const tp_model_ref ref = row->inputs[i];
        out_values[i] = TP_MODEL_NO_VALUE;
        if (ref.row == TP_MODEL_REF_UNKNOWN) {
            is_known = false;
            continue;
        }
        const tp_model_item *from = ref.row >= 0 ? &scope->rows[ref.row] : NULL;
        const int32_t count = from ? from->output_count : 1;
        if (!from)
            out_values[i] = ref.output == 0 ? inputs[-1 - ref.row] : TP_MODEL_NO_VALUE;
        else if (from->outputs && ref.output < count)
            out_values[i] = from->outputs[ref.output];
        if ((!from || from->outputs) && ref.output >= count) {
            char where[TP_JSON_WHERE_BYTES];
            tp_problems_add(reader->problems, "%s: '%s' takes result %d of '%s', which has %d",
                            tp_json_where(row->json, where), row->name, ref.output,
                            from ? from->name : "an input", count);
        }
        is_known = is_known && out_values[i] != TP_MODEL_NO_VALUE;
    }
    return is_known;
}

/* Another reading of the row's definition: what infer keeps in arguments belongs to one call. Its problems
 * were said when the definition itself was read. */
static tpucl_status read_again(tp_model_reader *reader, tp_model_item *row)
{
    tp_problems said = {0};
    tp_model_reader quiet = *reader;
    quiet.problems = &said;
    const tp_json *type = tp_json_member(row->definition, "type");
    tp_model_item copy = *row;
    if (tp_json_member(row->definition, "layers") && type) {
        copy.nested = TP_ARENA_NEW(reader->model->arena, tp_model_scope);
        if (!copy.nested) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_model_scope_read(&quiet, row->definition, NULL, 0, copy.nested));
        reader->row_count = quiet.row_count;
        if (quiet.is_too_large && !reader->is_too_large)
            tp_problems_add(reader->problems, "%s", said.text);
        reader->is_too_large = quiet.is_too_large;
    } else {
        tp_layer_read(row->definition, reader->model->arena, &said, &copy.layer);
    }
    copy.is_readable = said.count == 0;
    *row = copy;
    return said.is_out_of_memory ? TPUCL_OUT_OF_MEMORY : TPUCL_OK;
}

static tpucl_status link_layer(tp_model_reader *reader, tp_model_item *row, const int32_t *values,
                               const char *name, const char *weights_of,
                               const tp_model_place *place)
{
    tp_model *model = reader->model;
    tp_shape *shapes = TP_ARENA_NEW_ARRAY(model->arena, tp_shape, (size_t)row->input_count + 1);
    if (!shapes) return TPUCL_OUT_OF_MEMORY;
    if (model->call_count == TP_MODEL_MAX_CALLS) {
        reader->is_too_large = true;
        tp_problems_add(reader->problems, "more than %d layers in all", TP_MODEL_MAX_CALLS);
        return TPUCL_OK;
    }
    for (int32_t i = 0; i < row->input_count; i++)
        shapes[i] = model->values[values[i]].shape;
    tp_model_call call = {.layer = row->layer,
                          .weights_of = weights_of,
                          .owner = model->call_count,
                          .inputs = values,
                          .first_output = model->value_count};
    if (place->is_shared) call.owner = find_owner(model, weights_of);
    call.layer.name = name;
    call.layer.trainable = call.layer.trainable && place->trainable;
    call.layer.inputs = shapes;
    call.layer.input_count = row->input_count;
    const bool is_first = call.owner == model->call_count;
    if (!infer(reader, row, &call.layer, is_first ? NULL : &model->calls[call.owner].layer))
        return TPUCL_OK;
    row->output_count = call.layer.output_count;
    row->outputs = TP_ARENA_NEW_ARRAY(model->arena, int32_t, (size_t)row->output_count + 1);
    if (!row->outputs) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < row->output_count; i++) {
        row->outputs[i] = model->value_count;
        TP_TRY(tp_model_add_value(model, tp_layer_output(&call.layer, i), model->call_count));
    }
    return add_call(model, &call);
}

static tpucl_status link_nested(tp_model_reader *reader, tp_model_item *row, const int32_t *values,
                                const tp_model_place *place)
{
    tp_arena *arena = reader->model->arena;
    tp_model_scope *nested = row->nested;
    if (row->input_count != nested->input_count) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(reader->problems, "%s: '%s' has %d inputs, expected %d",
                        tp_json_where(row->json, where), row->name, row->input_count,
                        nested->input_count);
        return TPUCL_OK;
    }
    int32_t *outputs = TP_ARENA_NEW_ARRAY(arena, int32_t, (size_t)nested->output_count + 1);
    if (!outputs) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_model_scope_link(reader, nested, place, values, outputs));
    row->outputs = outputs;
    row->output_count = nested->output_count;
    return TPUCL_OK;
}

static tpucl_status link_row(tp_model_reader *reader, const tp_model_scope *scope,
                             tp_model_item *row, const tp_model_place *place, const int32_t *inputs)
{
    tp_arena *arena = reader->model->arena;
    row->is_linked = true;
    int32_t *values = TP_ARENA_NEW_ARRAY(arena, int32_t, (size_t)row->input_count + 1);
    if (!values) return TPUCL_OUT_OF_MEMORY;
    if (!find_inputs(reader, scope, row, inputs, values) || !row->is_readable || !row->name)
        return TPUCL_OK;
    if (row->again >= 0) TP_TRY(read_again(reader, row));
    if (!row->is_readable || reader->is_too_large) return TPUCL_OK;
    const char *defined = row->again >= 0 ? scope->rows[row->again].name : row->name;
    const char *slash = row->nested ? "/" : "";
    const char *name = tp_arena_printf(arena, "%s%s%s", place->prefix, row->name, slash);
    const char *weights_of =
        tp_arena_printf(arena, "%s%s%s", place->weights_prefix, defined, slash);
    if (!name || !weights_of) return TPUCL_OUT_OF_MEMORY;
    tp_model_place inner = *place;
    inner.is_shared = place->is_shared || row->again >= 0 || row->is_called_again;
    if (!row->nested) return link_layer(reader, row, values, name, weights_of, &inner);
    inner.prefix = name;
    inner.weights_prefix = weights_of;
    inner.trainable = place->trainable && row->nested->trainable;
    return link_nested(reader, row, values, &inner);
}

/* ---- a scope ---- */

static bool is_ready(const tp_model_scope *scope, const tp_model_item *row)
{
    for (int32_t i = 0; i < row->input_count; i++)
        if (row->inputs[i].row >= 0 && !scope->rows[row->inputs[i].row].is_linked) return false;
    return true;
}

/* The first input that waits itself. */
static int32_t waits_for(const tp_model_scope *scope, int32_t index)
{
    const tp_model_item *row = &scope->rows[index];
    for (int32_t i = 0; i < row->input_count; i++)
        if (row->inputs[i].row >= 0 && !scope->rows[row->inputs[i].row].is_linked)
            return row->inputs[i].row;
    return index;
}

/* Every row that is left waits for another one that is left: after as many steps one is on a cycle. */
static void report_cycle(const tp_model_reader *reader, const tp_model_scope *scope)
{
    int32_t at = 0;
    while (scope->rows[at].is_linked)
        at++;
    for (int32_t i = 0; i < scope->row_count; i++)
        at = waits_for(scope, at);
    char where[TP_JSON_WHERE_BYTES], text[400];
    size_t length = 0;
    int32_t next = at;
    do {
        const char *name = scope->rows[next].name;
        const int written =
            snprintf(text + length, sizeof text - length, "'%s' takes ", name ? name : "?");
        length += (size_t)written;
        next = waits_for(scope, next);
    } while (next != at && length < sizeof text);
    tp_problems_add(reader->problems, "%s: the layers form a cycle: %s'%s'",
                    tp_json_where(scope->rows[at].json, where), text,
                    scope->rows[at].name ? scope->rows[at].name : "?");
}

static tpucl_status link_all(tp_model_reader *reader, tp_model_scope *scope,
                             const tp_model_place *place, const int32_t *inputs)
{
    int32_t left = scope->row_count;
    for (bool has_moved = true; left && has_moved;) {
        has_moved = false;
        for (int32_t i = 0; i < scope->row_count; i++) {
            tp_model_item *row = &scope->rows[i];
            if (row->is_linked || !is_ready(scope, row)) continue;
            TP_TRY(link_row(reader, scope, row, place, inputs));
            if (reader->is_too_large) return TPUCL_OK;
            has_moved = true;
            left--;
        }
    }
    if (left) report_cycle(reader, scope);
    return TPUCL_OK;
}

tpucl_status tp_model_scope_link(tp_model_reader *reader, tp_model_scope *scope,
                                 const tp_model_place *place, const int32_t *inputs,
                                 int32_t *out_values)
{
    for (int32_t i = 0; i < scope->output_count; i++)
        out_values[i] = TP_MODEL_NO_VALUE;
    if (!scope->outputs || reader->is_too_large) return TPUCL_OK;
    TP_TRY(link_all(reader, scope, place, inputs));
    const tp_model_item outputs = {.json = scope->json,
                                   .name = "the model",
                                   .inputs = scope->outputs,
                                   .input_count = scope->output_count};
    find_inputs(reader, scope, &outputs, inputs, out_values);
    return TPUCL_OK;
}
