/* SPDX-License-Identifier: Apache-2.0
 * The model's variables to a safetensors file and back. */
#include <stdio.h>
#include <string.h>
#include <tpucl/version.h>
#include "core/alloc.h"
#include "core/problems.h"
#include "io/safetensors.h"
#include "num/bf16.h"
#include "train/param_store.h"
#include "train/params.h"
#include "train/session_internal.h"

/* ---- to a file ---- */

static tpucl_status read_entries(const tp_param_store *store, tp_arena *arena,
                                 tp_tensor_entry *entries, int32_t *out_count)
{
    int32_t count = 0;
    for (int32_t i = 0; i < tp_param_store_count(store); i++) {
        const tp_param info = tp_param_store_param(store, i);
        if (!info.is_model) continue;
        void *data = tp_arena_alloc(arena, info.bytes);
        if (!data) return TPUCL_OUT_OF_MEMORY;
        TP_TRY(tp_param_store_read(store, i, 0, data));
        entries[count++] = (tp_tensor_entry){info.name, info.dtype, info.shape, data, info.bytes};
    }
    *out_count = count;
    return TPUCL_OK;
}

static tpucl_status save(const tp_param_store *store, const char *path, const char *model_name,
                         int64_t steps)
{
    tp_arena *arena = NULL;
    int32_t count = 0;
    char step[24], contract[12];
    TP_TRY(tp_arena_create((size_t)1 << 20, &arena));
    tp_tensor_entry *entries =
        TP_ARENA_NEW_ARRAY(arena, tp_tensor_entry, (size_t)tp_param_store_count(store) + 1);
    tpucl_status status =
        entries ? read_entries(store, arena, entries, &count) : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) {
        snprintf(step, sizeof step, "%lld", (long long)steps);
        snprintf(contract, sizeof contract, "%d", TPUCL_CONTRACT_VERSION);
        const char *keys[] = {"tpucl_version", "contract", "model", "step"};
        const char *values[] = {tpucl_version_string(), contract, model_name, step};
        status = tp_safetensors_write(path, entries, count, keys, values, 4);
    }
    tp_arena_destroy(arena);
    return status;
}

/* ---- from a file ---- */

static void compare_entry(const tp_param *info, const tp_tensor_entry *entry, tp_problems *problems)
{
    char wanted[TP_SHAPE_TEXT_MAX], found[TP_SHAPE_TEXT_MAX];
    if (!entry) {
        tp_problems_add(problems, "'%s' is missing", info->name);
        return;
    }
    const bool are_floats = tp_dtype_is_float(entry->dtype) && tp_dtype_is_float(info->dtype);
    if ((entry->dtype == info->dtype || are_floats) && tp_shape_equal(&entry->shape, &info->shape))
        return;
    tp_shape_format(&info->shape, wanted, sizeof wanted);
    tp_shape_format(&entry->shape, found, sizeof found);
    tp_problems_add(problems, "'%s' is %s%s, the model has %s%s", info->name,
                    tp_dtype_name(entry->dtype), found, tp_dtype_name(info->dtype), wanted);
}

/* The entry's elements in the variable's dtype: f32 and bf16 become each other, to nearest. In `arena` where they
 * are not the entry's own. */
static const void *elements_for(const tp_param *info, const tp_tensor_entry *entry, tp_arena *arena)
{
    const int64_t elems = tp_shape_elems(&info->shape);
    if (entry->dtype == info->dtype) return entry->data;
    void *data = tp_arena_alloc(arena, info->bytes);
    for (int64_t i = 0; data && i < elems; i++) {
        if (info->dtype == TP_BF16)
            ((tp_bf16 *)data)[i] = tp_bf16_from_f32(((const float *)entry->data)[i]);
        else
            ((float *)data)[i] = tp_bf16_to_f32(((const tp_bf16 *)entry->data)[i]);
    }
    return data;
}

static tpucl_status write_entry(const tp_param_store *store, int32_t index, int32_t groups,
                                const tp_tensor_entry *entry)
{
    const tp_param info = tp_param_store_param(store, index);
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(0, &arena));
    const void *data = elements_for(&info, entry, arena);
    tpucl_status status = data ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    for (int32_t g = 0; status == TPUCL_OK && g < groups; g++)
        status = tp_param_store_write(store, index, g, data);
    tp_arena_destroy(arena);
    return status;
}

static tpucl_status load_entries(const tp_param_store *store, int32_t groups, const char *path,
                                 const tp_safetensors *file)
{
    tp_problems problems = {0};
    for (int32_t i = 0; i < tp_param_store_count(store); i++) {
        const tp_param info = tp_param_store_param(store, i);
        if (info.is_model) compare_entry(&info, tp_safetensors_find(file, info.name), &problems);
    }
    for (int32_t i = 0; i < tp_safetensors_count(file); i++) {
        const char *name = tp_safetensors_entry(file, i)->name;
        const int32_t index = tp_param_store_find(store, name);
        if (index < 0 || !tp_param_store_param(store, index).is_model)
            tp_problems_add(&problems, "'%s' is no variable of the model", name);
    }
    tpucl_status status = tp_problems_result(&problems, TPUCL_INVALID_CONFIG, path);
    if (status != TPUCL_OK && problems.count == 1) tp_error_note("'%.300s'", path);
    TP_TRY(status);
    for (int32_t i = 0; i < tp_param_store_count(store); i++) {
        const tp_param info = tp_param_store_param(store, i);
        if (!info.is_model) continue;
        TP_TRY(write_entry(store, i, groups, tp_safetensors_find(file, info.name)));
    }
    return TPUCL_OK;
}

static tpucl_status load(const tp_param_store *store, int32_t groups, const char *path)
{
    tp_safetensors *file = NULL;
    TP_TRY(tp_safetensors_open(path, &file));
    tpucl_status status = load_entries(store, groups, path, file);
    tp_safetensors_close(file);
    return status;
}

/* ---- of trainers and sessions ---- */

tpucl_status tp_params_save(tp_variables *variables, const char *path, const char *model_name,
                            int64_t steps)
{
    const tp_param_store store = {.variables = variables};
    return save(&store, path, model_name, steps);
}

tpucl_status tp_params_load(tp_variables *variables, int32_t groups, const char *path)
{
    const tp_param_store store = {.variables = variables};
    return load(&store, groups, path);
}

tpucl_status tp_session_save_params(tp_session *session, const char *path)
{
    const tp_param_store store = tp_session_params(session);
    return save(&store, path, tp_model_name(session->model), session->steps_done);
}

tpucl_status tp_session_load_params(tp_session *session, const char *path)
{
    const tp_param_store store = tp_session_params(session);
    return load(&store, tp_session_group_count(session), path);
}
