/* SPDX-License-Identifier: Apache-2.0
 * Rows of a "layers" list, their names, and what their inputs name. See model_scope.h.
 */
#include "model/model_scope.h"

#include <stdio.h>
#include <string.h>

#include "core/str.h"

/* Keras' classes of models. */
static const char *const model_types[] = {"Model", "Functional", "Sequential"};

static bool is_model_type(const tp_json *row)
{
    const tp_json *type = tp_json_member(row, "type");
    for (size_t i = 0; type && type->kind == TP_JSON_STRING && i < 3; i++)
        if (strcmp(type->string, model_types[i]) == 0) return true;
    return false;
}

/* {"layer": "c1"}: a wrapper's "layer" is an object, and it has a "type". */
static bool is_call(const tp_json *row)
{
    return !tp_json_member(row, "type") && tp_json_member(row, "layer");
}

/* ---- names ---- */

/* Index of an input in scope->names; those of layers are their rows. */
enum { FIRST_INPUT = TP_MODEL_MAX_CALLS };

/* Puts a name into scope->names; false in *out_is_new when it is there already. */
static tpucl_status add_name(tp_model_scope *scope, const char *name, size_t index,
                             bool *out_is_new)
{
    *out_is_new = !tp_map_find(scope->names, name, NULL);
    return *out_is_new ? tp_map_add(scope->names, name, index) : TPUCL_OK;
}

static const char *base_name(const tp_model_scope *scope, const tp_model_item *row)
{
    if (row->again >= 0) return scope->rows[row->again].name;
    if (row->nested)
        return strcmp(tp_json_member(row->json, "type")->string, "Sequential") == 0 ? "sequential"
                                                                                    : "functional";
    return row->layer.type ? row->layer.type->snake : NULL;
}

/* How often each name was numbered. */
typedef struct numbering {
    tp_map bases;
    int32_t *next; /* [rows] */
} numbering;

/* Keras' numbering: dense, dense_1, dense_2, passing over what the user took. */
static tpucl_status give_name(tp_model_reader *reader, tp_model_scope *scope, int32_t index,
                              numbering *numbers)
{
    tp_model_item *row = &scope->rows[index];
    const char *base = row->name ? NULL : base_name(scope, row);
    const char *candidate = base;
    bool is_new = false;
    size_t at = 0;
    if (!base) return TPUCL_OK;
    if (!tp_map_find(&numbers->bases, base, &at)) {
        at = numbers->bases.count;
        TP_TRY(tp_map_add(&numbers->bases, base, at));
    }
    for (int32_t *number = &numbers->next[at]; !is_new; (*number)++) {
        if (*number > 0) candidate = tp_arena_printf(reader->model->arena, "%s_%d", base, *number);
        if (!candidate) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(add_name(scope, candidate, (size_t)index, &is_new));
    }
    row->name = candidate;
    return TPUCL_OK;
}

static tpucl_status give_names(tp_model_reader *reader, tp_model_scope *scope)
{
    numbering numbers = {
        .next = TP_ARENA_NEW_ARRAY(reader->model->arena, int32_t, (size_t)scope->row_count + 1)};
    tpucl_status status = numbers.next ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < scope->row_count && status == TPUCL_OK; i++)
        status = give_name(reader, scope, i, &numbers);
    tp_map_deinit(&numbers.bases);
    return status;
}

/* The names that the user gave. */
static tpucl_status collect_names(const tp_model_reader *reader, tp_model_scope *scope)
{
    char where[TP_JSON_WHERE_BYTES];
    bool is_new;
    for (int32_t i = 0; i < scope->input_count; i++)
        TP_TRY(add_name(scope, scope->input_names[i], FIRST_INPUT + (size_t)i, &is_new));
    for (int32_t i = 0; i < scope->row_count; i++) {
        const tp_model_item *row = &scope->rows[i];
        size_t other = 0;
        if (!row->name) continue;
        TP_TRY(add_name(scope, row->name, (size_t)i, &is_new));
        if (is_new) continue;
        tp_map_find(scope->names, row->name, &other);
        if (other >= FIRST_INPUT)
            tp_problems_add(reader->problems, "%s: an input is named '%s', too",
                            tp_json_where(row->json, where), row->name);
        else
            tp_problems_add(reader->problems, "%s: layer %d is named '%s', too",
                            tp_json_where(row->json, where), (int)other, row->name);
    }
    return TPUCL_OK;
}

/* Of calls and nested models; layers read their own. */
static tpucl_status read_name(const tp_model_reader *reader, tp_model_item *row)
{
    const char *name = NULL;
    if (!tp_problems_add_failed(reader->problems, tp_json_get_string(row->json, "name", &name)) ||
        !name)
        return TPUCL_OK;
    if (name[0] == '\0' || strchr(name, '/')) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(reader->problems, "%s: the name is '%.64s', expected a text without '/'",
                        tp_json_where(tp_json_member(row->json, "name"), where), name);
        row->is_readable = false;
        return TPUCL_OK;
    }
    row->name = tp_arena_strdup(reader->model->arena, name);
    return row->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

/* ---- references ---- */

static int32_t find(const tp_model_scope *scope, const char *name)
{
    size_t index;
    if (!tp_map_find(scope->names, name, &index)) return TP_MODEL_REF_UNKNOWN;
    return index >= FIRST_INPUT ? -1 - (int32_t)(index - FIRST_INPUT) : (int32_t)index;
}

static void report_unknown(const tp_model_reader *reader, const tp_model_scope *scope,
                           const tp_json *value)
{
    const char **names = TP_ARENA_NEW_ARRAY(reader->model->arena, const char *,
                                            (size_t)(scope->row_count + scope->input_count));
    size_t count = 0;
    char where[TP_JSON_WHERE_BYTES];
    for (int32_t i = 0; names && i < scope->input_count; i++)
        names[count++] = scope->input_names[i];
    for (int32_t i = 0; names && i < scope->row_count; i++)
        if (scope->rows[i].name) names[count++] = scope->rows[i].name;
    const char *nearest = tp_str_nearest(value->string, names, count);
    tp_problems_add(reader->problems, "%s: there is no layer or input '%.64s'%s%s%s",
                    tp_json_where(value, where), value->string, nearest ? ", did you mean '" : "",
                    nearest ? nearest : "", nearest ? "'?" : "");
}

/* "name", or "name:1" for a second result. */
static tp_model_ref read_ref(const tp_model_reader *reader, const tp_model_scope *scope,
                             const tp_json *value)
{
    tp_model_ref ref = {.row = TP_MODEL_REF_UNKNOWN};
    if (!tp_problems_add_failed(reader->problems, tp_json_expect(value, TP_JSON_STRING)))
        return ref;
    ref.row = find(scope, value->string);
    const char *colon = strrchr(value->string, ':');
    int64_t output = 0;
    if (ref.row == TP_MODEL_REF_UNKNOWN && colon) {
        const size_t length = (size_t)(colon - value->string);
        const tp_view number = {colon + 1, value->string_length - length - 1};
        const char *name = tp_arena_strndup(reader->model->arena, value->string, length);
        if (!name) tp_problems_add_failed(reader->problems, TPUCL_OUT_OF_MEMORY);
        if (name && tp_str_parse_int64(number, &output) == TPUCL_OK && output >= 0 &&
            output < TP_MODEL_MAX_CALLS)
            ref = (tp_model_ref){find(scope, name), (int32_t)output};
    }
    if (ref.row == TP_MODEL_REF_UNKNOWN) report_unknown(reader, scope, value);
    return ref;
}

/* A name or a list of names. out_names: may be NULL. */
static tpucl_status read_refs(const tp_model_reader *reader, const tp_model_scope *scope,
                              const tp_json *value, tp_model_ref **out_refs, int32_t *out_count)
{
    const bool is_list = value->kind == TP_JSON_ARRAY;
    const tp_json *items = is_list ? value->items : value;
    const size_t count = is_list ? value->count : 1;
    if (count > TP_MODEL_MAX_CALLS) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(reader->problems, "%s: %zu names, expected at most %d",
                        tp_json_where(value, where), count, TP_MODEL_MAX_CALLS);
        return TPUCL_OK;
    }
    *out_refs = TP_ARENA_NEW_ARRAY(reader->model->arena, tp_model_ref, count + 1);
    if (!*out_refs) return TPUCL_OUT_OF_MEMORY;
    *out_count = (int32_t)count;
    for (size_t i = 0; i < count; i++)
        (*out_refs)[i] = read_ref(reader, scope, &items[i]);
    return TPUCL_OK;
}

/* Without "inputs" a layer takes what the one before it gives, the first one the scope's input. */
static tpucl_status read_inputs(const tp_model_reader *reader, tp_model_scope *scope, int32_t index)
{
    tp_model_item *row = &scope->rows[index];
    const tp_json *value = tp_json_member(row->json, "inputs");
    if (value) return read_refs(reader, scope, value, &row->inputs, &row->input_count);
    row->inputs = TP_ARENA_NEW(reader->model->arena, tp_model_ref);
    if (!row->inputs) return TPUCL_OUT_OF_MEMORY;
    row->input_count = 1;
    row->inputs->row = index - 1;
    if (index == 0 && scope->input_count != 1) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(reader->problems, "%s: '%s' needs \"inputs\": there are %d to choose from",
                        tp_json_where(row->json, where), row->name ? row->name : "the first layer",
                        scope->input_count);
        row->inputs->row = TP_MODEL_REF_UNKNOWN;
    }
    return TPUCL_OK;
}

static tpucl_status read_outputs(const tp_model_reader *reader, tp_model_scope *scope)
{
    const tp_json *value = tp_json_member(scope->json, "outputs");
    tp_arena *arena = reader->model->arena;
    if (value && value->kind == TP_JSON_ARRAY && value->count == 0) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(reader->problems, "%s: no outputs, expected at least one",
                        tp_json_where(value, where));
        return TPUCL_OK;
    }
    if (value) {
        TP_TRY(read_refs(reader, scope, value, &scope->outputs, &scope->output_count));
    } else {
        scope->outputs = TP_ARENA_NEW(arena, tp_model_ref);
        if (!scope->outputs) return TPUCL_OUT_OF_MEMORY;
        scope->outputs->row = scope->row_count - 1;
        scope->output_count = 1;
    }
    scope->output_names = TP_ARENA_NEW_ARRAY(arena, const char *, (size_t)scope->output_count);
    if (!scope->output_names) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < scope->output_count; i++) {
        const tp_model_ref *ref = &scope->outputs[i];
        const char *name = ref->row >= 0                      ? scope->rows[ref->row].name
                           : ref->row == TP_MODEL_REF_UNKNOWN ? NULL
                                                              : scope->input_names[-1 - ref->row];
        if (!name) name = "";
        scope->output_names[i] =
            ref->output ? tp_arena_printf(arena, "%s:%d", name, ref->output) : name;
        if (!scope->output_names[i]) return TPUCL_OUT_OF_MEMORY;
    }
    return TPUCL_OK;
}

/* Rows and inputs from which no output can be reached. */
static tpucl_status report_unused(const tp_model_reader *reader, const tp_model_scope *scope)
{
    const size_t rows = (size_t)scope->row_count, inputs = (size_t)scope->input_count;
    bool *is_used = TP_ARENA_NEW_ARRAY(reader->model->arena, bool, rows + inputs + 1);
    if (!is_used) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < scope->output_count; i++) {
        const int32_t row = scope->outputs[i].row;
        if (row == TP_MODEL_REF_UNKNOWN) return TPUCL_OK;
        is_used[row >= 0 ? (size_t)row : rows + (size_t)(-1 - row)] = true;
    }
    for (bool has_changed = true; has_changed;) {
        has_changed = false;
        for (int32_t i = scope->row_count - 1; i >= 0; i--)
            for (int32_t j = 0; is_used[i] && j < scope->rows[i].input_count; j++) {
                const int32_t row = scope->rows[i].inputs[j].row;
                if (row == TP_MODEL_REF_UNKNOWN) return TPUCL_OK;
                bool *used = &is_used[row >= 0 ? (size_t)row : rows + (size_t)(-1 - row)];
                has_changed = has_changed || !*used;
                *used = true;
            }
    }
    char where[TP_JSON_WHERE_BYTES];
    for (size_t i = 0; i < rows; i++)
        if (!is_used[i] && scope->rows[i].name)
            tp_problems_add(reader->problems, "%s: no output needs '%s'",
                            tp_json_where(scope->rows[i].json, where), scope->rows[i].name);
    for (size_t i = 0; i < inputs; i++)
        if (!is_used[rows + i])
            tp_problems_add(reader->problems, "%s: no output needs the input '%s'",
                            tp_json_where(scope->json, where), scope->input_names[i]);
    return TPUCL_OK;
}

/* ---- rows ---- */

static tpucl_status read_nested(tp_model_reader *reader, tp_model_item *row)
{
    TP_TRY(read_name(reader, row));
    row->nested = TP_ARENA_NEW(reader->model->arena, tp_model_scope);
    if (!row->nested) return TPUCL_OUT_OF_MEMORY;
    return tp_model_scope_read(reader, row->json, NULL, 0, row->nested);
}

static tpucl_status read_row(tp_model_reader *reader, tp_model_item *row)
{
    static const char *const call_keys[] = {"layer", "inputs", "name"};
    row->again = -1;
    row->definition = row->json;
    row->is_readable = true;
    if (is_model_type(row->json)) return read_nested(reader, row);
    if (is_call(row->json)) {
        row->is_readable =
            tp_problems_add_failed(reader->problems, tp_json_check_keys(row->json, call_keys, 3));
        return read_name(reader, row);
    }
    row->is_readable =
        tp_layer_read(row->json, reader->model->arena, reader->problems, &row->layer);
    row->name = row->layer.name;
    return TPUCL_OK;
}

/* {"layer": name}: the row that is called again. */
static void read_call(const tp_model_reader *reader, tp_model_scope *scope, int32_t index)
{
    tp_model_item *row = &scope->rows[index];
    if (!is_call(row->json)) return;
    const tp_json *value = tp_json_member(row->json, "layer");
    const tp_model_ref ref = read_ref(reader, scope, value);
    char where[TP_JSON_WHERE_BYTES];
    if (ref.row < 0 || ref.output != 0 || is_call(scope->rows[ref.row].json)) {
        if (ref.row != TP_MODEL_REF_UNKNOWN)
            tp_problems_add(reader->problems, "%s: '%.64s' is not a layer's definition",
                            tp_json_where(value, where), value->string);
        row->is_readable = false;
        return;
    }
    row->again = ref.row;
    row->definition = scope->rows[ref.row].json;
    scope->rows[ref.row].is_called_again = true;
}

/* What names mean. Calls are numbered after what they call. */
static tpucl_status resolve(tp_model_reader *reader, tp_model_scope *scope)
{
    TP_TRY(collect_names(reader, scope));
    TP_TRY(give_names(reader, scope));
    for (int32_t i = 0; i < scope->row_count; i++)
        read_call(reader, scope, i);
    TP_TRY(give_names(reader, scope));
    for (int32_t i = 0; i < scope->row_count; i++)
        TP_TRY(read_inputs(reader, scope, i));
    TP_TRY(read_outputs(reader, scope));
    return report_unused(reader, scope);
}

static tpucl_status read_rows(tp_model_reader *reader, const tp_json *layers, tp_model_scope *scope)
{
    char where[TP_JSON_WHERE_BYTES];
    if (layers->count < 1 || layers->count > (size_t)(TP_MODEL_MAX_CALLS - reader->row_count)) {
        reader->is_too_large = layers->count > 0;
        tp_problems_add(reader->problems, "%s: %zu layers, expected 1 to %d in all",
                        tp_json_where(layers, where), layers->count, TP_MODEL_MAX_CALLS);
        return TPUCL_OK;
    }
    scope->rows = TP_ARENA_NEW_ARRAY(reader->model->arena, tp_model_item, layers->count);
    if (!scope->rows) return TPUCL_OUT_OF_MEMORY;
    reader->row_count += (int32_t)layers->count;
    for (size_t i = 0; i < layers->count && !reader->is_too_large; i++) {
        scope->rows[i].json = &layers->items[i];
        TP_TRY(read_row(reader, &scope->rows[i]));
        scope->row_count++;
    }
    tp_map names = {0};
    scope->names = &names;
    const tpucl_status status = resolve(reader, scope);
    scope->names = NULL;
    tp_map_deinit(&names);
    return status;
}

/* ---- scopes ---- */

/* "model_inputs": names; one called "input" when it is not there. */
static tpucl_status read_nested_inputs(const tp_model_reader *reader, tp_model_scope *scope)
{
    const tp_json *value = tp_json_member(scope->json, "model_inputs");
    tp_arena *arena = reader->model->arena;
    const bool is_list = value && value->kind == TP_JSON_ARRAY;
    const size_t count = is_list ? value->count : 1;
    scope->input_names = TP_ARENA_NEW_ARRAY(arena, const char *, count + 1);
    if (!scope->input_names) return TPUCL_OUT_OF_MEMORY;
    if (!value) scope->input_names[scope->input_count++] = "input";
    if (value && !tp_problems_add_failed(reader->problems, tp_json_expect(value, TP_JSON_ARRAY)))
        return TPUCL_OK;
    for (size_t i = 0; is_list && i < count; i++) {
        const char *name;
        if (!tp_problems_add_failed(reader->problems, tp_json_as_string(&value->items[i], &name)))
            continue;
        char where[TP_JSON_WHERE_BYTES];
        bool is_taken = false;
        for (int32_t j = 0; j < scope->input_count; j++)
            is_taken = is_taken || strcmp(scope->input_names[j], name) == 0;
        if (is_taken)
            tp_problems_add(reader->problems, "%s: there is another input '%.64s'",
                            tp_json_where(&value->items[i], where), name);
        const char *copy = tp_arena_strdup(arena, name);
        if (!copy) return TPUCL_OUT_OF_MEMORY;
        scope->input_names[scope->input_count++] = copy;
    }
    return TPUCL_OK;
}

tpucl_status tp_model_scope_read(tp_model_reader *reader, const tp_json *json,
                                 const char *const *input_names, int32_t input_count,
                                 tp_model_scope *out_scope)
{
    static const char *const top_keys[] = {"name", "inputs", "layers", "outputs"};
    static const char *const nested_keys[] = {"type",         "name",   "trainable", "inputs",
                                              "model_inputs", "layers", "outputs"};
    *out_scope = (tp_model_scope){.json = json, .trainable = true};
    if (input_names) {
        tp_problems_add_failed(reader->problems, tp_json_check_keys(json, top_keys, 4));
        out_scope->input_names = (const char **)input_names;
        out_scope->input_count = input_count;
    } else {
        tp_problems_add_failed(reader->problems, tp_json_check_keys(json, nested_keys, 7));
        tp_problems_add_failed(reader->problems,
                               tp_json_get_bool(json, "trainable", &out_scope->trainable));
        TP_TRY(read_nested_inputs(reader, out_scope));
    }
    const tp_json *layers;
    if (!tp_problems_add_failed(reader->problems,
                                tp_json_require(json, "layers", TP_JSON_ARRAY, &layers)))
        return TPUCL_OK;
    return read_rows(reader, layers, out_scope);
}
