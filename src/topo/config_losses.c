/* SPDX-License-Identifier: Apache-2.0
 * Files and losses by name: see config_losses.h. */
#include "topo/config_losses.h"

#include <math.h>
#include <string.h>
#include "core/arena.h"
#include "topo/config_choices.h"

#define NAME(id, symbol, name, keys) name,
#define KEYS(id, symbol, name, keys) keys,
static const char *const loss_names[] = {TP_LOSS_LIST(NAME)};
static const char *const loss_keys[] = {TP_LOSS_LIST(KEYS)};
#undef NAME
#undef KEYS
enum { LOSS_COUNT = sizeof loss_names / sizeof *loss_names };

/* ---- files ---- */

tpucl_status tp_config_read_files(tp_config *config, const tp_json *value, tp_problems *problems,
                                  tp_config_files *out)
{
    tp_arena *arena = config->store->arena;
    const bool is_object = value->kind == TP_JSON_OBJECT;
    const tp_json *items = is_object ? value->items : value;
    const size_t count = is_object ? value->count : 1;
    const char **names = TP_ARENA_NEW_ARRAY(arena, const char *, count + 1);
    const char **paths = TP_ARENA_NEW_ARRAY(arena, const char *, count + 1);
    *out = (tp_config_files){0};
    if (!names || !paths) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        const char *path;
        if (!tp_problems_add_failed(problems, tp_json_as_string(&items[i], &path))) return TPUCL_OK;
        paths[i] = tp_arena_strdup(arena, path);
        names[i] = is_object ? tp_arena_strdup(arena, items[i].key) : NULL;
        if (!paths[i] || (is_object && !names[i])) return TPUCL_OUT_OF_MEMORY;
    }
    if (is_object || paths[0][0]) *out = (tp_config_files){names, paths, count};
    return TPUCL_OK;
}

void tp_config_write_files(const tp_config_files *files, tp_json_writer *writer)
{
    if (!files->count || !files->names[0]) {
        tp_json_write_string(writer, files->count ? files->paths[0] : "");
        return;
    }
    tp_json_begin_object(writer);
    for (size_t i = 0; i < files->count; i++)
        tp_json_put_string(writer, files->names[i], files->paths[i]);
    tp_json_end_object(writer);
}

tpucl_status tp_config_write_files_schema(tp_json_writer *writer)
{
    tp_json_key(writer, "type");
    tp_json_begin_inline_array(writer);
    tp_json_write_string(writer, "string");
    tp_json_write_string(writer, "object");
    tp_json_end_array(writer);
    tp_json_key(writer, "additionalProperties");
    tp_json_begin_object(writer);
    tp_json_put_string(writer, "type", "string");
    tp_json_end_object(writer);
    return TPUCL_OK;
}

/* ---- losses ---- */

/* Members that the loss of this name has. */
static void check_keys(const tp_json *value, const tp_config_output_loss *loss,
                       tp_problems *problems)
{
    size_t length;
    char where[TP_JSON_WHERE_BYTES];
    for (size_t i = 0; i < value->count; i++) {
        const char *key = value->items[i].key;
        if (strcmp(key, "name") == 0 || strcmp(key, "weight") == 0 || strcmp(key, "mask") == 0 ||
            (strcmp(key, "class_weight") != 0 &&
             tp_choice_find(loss_keys[loss->name], key, &length)))
            continue;
        tp_problems_add(problems, "%s: the loss '%s' has no argument '%.64s' here",
                        tp_json_where(&value->items[i], where), loss_names[loss->name], key);
    }
}

static bool read_text(tp_arena *arena, const tp_json *value, const char *key, tp_problems *problems,
                      const char **out_text)
{
    const char *text = "";
    if (!tp_problems_add_failed(problems, tp_json_get_string(value, key, &text))) return true;
    *out_text = tp_arena_strdup(arena, text);
    return *out_text != NULL;
}

/* False: memory is out. */
static bool read_loss(tp_arena *arena, const tp_json *value, tp_problems *problems,
                      tp_config_output_loss *loss)
{
    const tp_json *name = value;
    size_t index;
    if (value->kind == TP_JSON_OBJECT &&
        !tp_problems_add_failed(problems, tp_json_require(value, "name", TP_JSON_STRING, &name)))
        return true;
    if (!tp_problems_add_failed(problems, tp_json_as_choice(name, loss_names, LOSS_COUNT, &index)))
        return true;
    loss->name = (int32_t)index;
    const bool is_expression = loss->name == TP_LOSS_EXPRESSION;
    if (is_expression && !tp_json_member(value, "expression")) {
        char where[TP_JSON_WHERE_BYTES];
        tp_problems_add(problems, "%s: the loss 'expression' needs an 'expression'",
                        tp_json_where(value, where));
    }
    if (value->kind != TP_JSON_OBJECT) return true;
    check_keys(value, loss, problems);
    tp_problems_add_failed(problems, tp_json_get_double(value, "weight", 0, 1e30, &loss->weight));
    tp_problems_add_failed(problems, tp_json_get_bool(value, "from_logits", &loss->from_logits));
#define NUMBER(field, low, high, open, meaning)                                                    \
    tp_problems_add_failed(problems, tp_json_get_double(value, #field, low, high, &loss->field));
#define FLAG(field, meaning)                                                                       \
    tp_problems_add_failed(problems, tp_json_get_bool(value, #field, &loss->field));
    TP_LOSS_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
    return read_text(arena, value, "mask", problems, &loss->mask) &&
           read_text(arena, value, "expression", problems, &loss->expression);
}

tpucl_status tp_config_read_losses(tp_config *config, const tp_json *value, tp_problems *problems,
                                   tp_config_losses *out)
{
    tp_arena *arena = config->store->arena;
    if (!tp_problems_add_failed(problems, tp_json_expect(value, TP_JSON_OBJECT))) return TPUCL_OK;
    tp_config_output_loss *items =
        TP_ARENA_NEW_ARRAY(arena, tp_config_output_loss, value->count + 1);
    if (!items) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < value->count; i++) {
        items[i].output = tp_arena_strdup(arena, value->items[i].key);
        if (!items[i].output) return TPUCL_OUT_OF_MEMORY;
        items[i].weight = 1;
        items[i].expression = items[i].mask = "";
#define NUMBER(field, low, high, open, meaning) items[i].field = (double)NAN;
#define FLAG(field, meaning) items[i].field = false;
        TP_LOSS_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
        if (!read_loss(arena, &value->items[i], problems, &items[i])) return TPUCL_OUT_OF_MEMORY;
    }
    *out = (tp_config_losses){items, value->count};
    return TPUCL_OK;
}

void tp_config_write_losses(const tp_config_losses *losses, tp_json_writer *writer)
{
    tp_json_begin_object(writer);
    for (size_t i = 0; i < losses->count; i++) {
        const tp_config_output_loss *loss = &losses->items[i];
        tp_json_key(writer, loss->output);
        tp_json_begin_object(writer);
        tp_json_put_string(writer, "name", loss_names[loss->name]);
        tp_json_put_double(writer, "weight", loss->weight);
        if (loss->from_logits) tp_json_put_bool(writer, "from_logits", true);
#define NUMBER(field, low, high, open, meaning)                                                    \
    if (!isnan(loss->field)) tp_json_put_double(writer, #field, loss->field);
#define FLAG(field, meaning)                                                                       \
    if (loss->field) tp_json_put_bool(writer, #field, true);
        TP_LOSS_KEYS(NUMBER, FLAG)
#undef NUMBER
#undef FLAG
        if (*loss->expression) tp_json_put_string(writer, "expression", loss->expression);
        if (*loss->mask) tp_json_put_string(writer, "mask", loss->mask);
        tp_json_end_object(writer);
    }
    tp_json_end_object(writer);
}

tpucl_status tp_config_write_losses_schema(tp_json_writer *writer)
{
    tp_json_put_string(writer, "type", "object");
    tp_json_key(writer, "additionalProperties");
    tp_json_begin_object(writer);
    tp_json_key(writer, "type");
    tp_json_begin_inline_array(writer);
    tp_json_write_string(writer, "string");
    tp_json_write_string(writer, "object");
    tp_json_end_array(writer);
    tp_json_end_object(writer);
    return TPUCL_OK;
}
