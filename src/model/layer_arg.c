/* SPDX-License-Identifier: Apache-2.0
 * Reading a layer's arguments from JSON: see layer_arg.h.
 */
#include "model/layer_arg.h"

#include "model/layer.h"

const char *const tp_padding_names[2] = {"valid", "same"};
const char *const tp_data_format_names[1] = {"channels_last"};

static tpucl_status read_int(const tp_json *value, const tp_layer_arg *arg, int64_t *out)
{
    return tp_json_as_int64(value, (int64_t)arg->min, (int64_t)arg->max, out);
}

/* What is wrong with the number of items in a list. */
static tpucl_status fail_count(const tp_json *value, const char *expected, int32_t count)
{
    char where[TP_JSON_WHERE_BYTES];
    return TP_FAIL(TPUCL_INVALID_CONFIG, "%s: expected %s %d, found %zu",
                   tp_json_where(value, where), expected, count, value->count);
}

static tpucl_status read_tuple(const tp_json *value, const tp_layer_arg *arg, int64_t *out)
{
    if (value->kind != TP_JSON_ARRAY) {
        TP_TRY(read_int(value, arg, &out[0]));
        for (int32_t i = 1; i < arg->count; i++)
            out[i] = out[0];
        return TPUCL_OK;
    }
    if (value->count != (size_t)arg->count)
        return fail_count(value, "a number or a list of", arg->count);
    for (int32_t i = 0; i < arg->count; i++)
        TP_TRY(read_int(&value->items[i], arg, &out[i]));
    return TPUCL_OK;
}

/* A number for both sides, or a list of two. */
static tpucl_status read_pair(const tp_json *value, const tp_layer_arg *arg, int64_t out[2])
{
    tp_layer_arg pair = *arg;
    pair.count = 2;
    return read_tuple(value, &pair, out);
}

static tpucl_status read_pairs(const tp_json *value, const tp_layer_arg *arg, int64_t (*out)[2])
{
    if (arg->count == 1) return read_pair(value, arg, out[0]);
    if (value->kind != TP_JSON_ARRAY) {
        for (int32_t i = 0; i < arg->count; i++)
            TP_TRY(read_pair(value, arg, out[i]));
        return TPUCL_OK;
    }
    if (value->count != (size_t)arg->count)
        return fail_count(value, "a number or a list of numbers or pairs, in all", arg->count);
    for (int32_t i = 0; i < arg->count; i++)
        TP_TRY(read_pair(&value->items[i], arg, out[i]));
    return TPUCL_OK;
}

/* The items of a list, or the value alone. */
static tpucl_status list_of(const tp_json *value, const tp_layer_arg *arg,
                            const tp_json **out_items, int32_t *out_count)
{
    const bool is_list = value->kind == TP_JSON_ARRAY;
    const size_t most = arg->count ? (size_t)arg->count : INT32_MAX;
    if (is_list && value->count > most) return fail_count(value, "a list of at most", arg->count);
    *out_items = is_list ? value->items : value;
    *out_count = is_list ? (int32_t)value->count : 1;
    return TPUCL_OK;
}

static tpucl_status read_ints(const tp_json *value, const tp_layer_arg *arg, tp_arena *arena,
                              tp_layer_ints *out)
{
    const tp_json *items = NULL;
    int32_t count = 0;
    TP_TRY(list_of(value, arg, &items, &count));
    int64_t *ints = TP_ARENA_NEW_ARRAY(arena, int64_t, (size_t)count + 1);
    if (!ints) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; i++)
        if (items[i].kind == TP_JSON_NULL && arg->min <= -1)
            ints[i] = -1;
        else
            TP_TRY(read_int(&items[i], arg, &ints[i]));
    *out = (tp_layer_ints){ints, count};
    return TPUCL_OK;
}

static tpucl_status read_numbers(const tp_json *value, const tp_layer_arg *arg, tp_arena *arena,
                                 tp_layer_numbers *out)
{
    const tp_json *items = NULL;
    int32_t count = 0;
    TP_TRY(list_of(value, arg, &items, &count));
    double *numbers = TP_ARENA_NEW_ARRAY(arena, double, (size_t)count + 1);
    if (!numbers) return TPUCL_OUT_OF_MEMORY;
    for (int32_t i = 0; i < count; i++)
        TP_TRY(tp_json_as_double(&items[i], arg->min, arg->max, &numbers[i]));
    *out = (tp_layer_numbers){numbers, count};
    return TPUCL_OK;
}

static tpucl_status read_index(const tp_json *value, const char *const *names, size_t count,
                               int32_t *out)
{
    size_t index;
    TP_TRY(tp_json_as_choice(value, names, count, &index));
    *out = (int32_t)index;
    return TPUCL_OK;
}

static tpucl_status read_text(const tp_json *value, tp_arena *arena, const char **out)
{
    const char *text;
    TP_TRY(tp_json_as_string(value, &text));
    *out = tp_arena_strdup(arena, text);
    return *out ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status read_nested(const tp_json *value, tp_arena *arena, tp_problems *problems,
                                tp_layer **out)
{
    *out = TP_ARENA_NEW(arena, tp_layer);
    if (!*out) return TPUCL_OUT_OF_MEMORY;
    tp_layer_read(value, arena, problems, *out); /* adds its problems itself */
    return TPUCL_OK;
}

/* What null stands for; false where it is a mistake. */
static bool read_null(const tp_layer_arg *arg, void *field)
{
    switch (arg->kind) {
    case TP_LAYER_ACTIVATION:
        *(int32_t *)field = TP_ACTIVATION_LINEAR;
        return true;
    case TP_LAYER_REGULARIZER:
        *(tp_regularizer *)field = (tp_regularizer){0};
        return true;
    case TP_LAYER_CONSTRAINT:
        *(tp_constraint *)field = (tp_constraint){0};
        return true;
    case TP_LAYER_INTS:
        *(tp_layer_ints *)field = (tp_layer_ints){0};
        return true;
    case TP_LAYER_NUMBERS:
        *(tp_layer_numbers *)field = (tp_layer_numbers){0};
        return true;
    case TP_LAYER_TEXT:
        *(const char **)field = NULL;
        return true;
    case TP_LAYER_NESTED:
        *(tp_layer **)field = NULL;
        return true;
    default:
        return false;
    }
}

void tp_layer_arg_read(const tp_json *value, const tp_layer_arg *arg, tp_arena *arena, void *args,
                       tp_problems *problems)
{
    void *field = (char *)args + arg->offset;
    tpucl_status status = TPUCL_OK;
    if (value->kind == TP_JSON_NULL && !arg->is_required &&
        (arg->may_be_null || read_null(arg, field)))
        return;
    switch (arg->kind) {
    case TP_LAYER_INT:
        status = read_int(value, arg, field);
        break;
    case TP_LAYER_NUMBER:
        status = tp_json_as_double(value, arg->min, arg->max, field);
        break;
    case TP_LAYER_BOOL:
        status = tp_json_as_bool(value, field);
        break;
    case TP_LAYER_CHOICE:
        status = read_index(value, arg->choices, arg->choice_count, field);
        break;
    case TP_LAYER_ACTIVATION:
        status = read_index(value, tp_activation_names, TP_ACTIVATION_COUNT, field);
        break;
    case TP_LAYER_TUPLE:
        status = read_tuple(value, arg, field);
        break;
    case TP_LAYER_PAIRS:
        status = read_pairs(value, arg, field);
        break;
    case TP_LAYER_INTS:
        status = read_ints(value, arg, arena, field);
        break;
    case TP_LAYER_NUMBERS:
        status = read_numbers(value, arg, arena, field);
        break;
    case TP_LAYER_TEXT:
        status = read_text(value, arena, field);
        break;
    case TP_LAYER_INITIALIZER:
        tp_initializer_read(value, problems, field);
        break;
    case TP_LAYER_REGULARIZER:
        tp_regularizer_read(value, problems, field);
        break;
    case TP_LAYER_CONSTRAINT:
        tp_constraint_read(value, problems, field);
        break;
    case TP_LAYER_NESTED:
        status = read_nested(value, arena, problems, field);
        break;
    }
    tp_problems_add_failed(problems, status);
}
