/* SPDX-License-Identifier: Apache-2.0
 * The variable store. */
#include "exec/variables.h"

#include <string.h>
#include "core/alloc.h"
#include "core/array.h"
#include "exec/params_hash.h"
#include "num/flush.h"
#include "num/init.h"

typedef struct stored_variable {
    tp_program_variable info; /* name owned by the store */
    tp_buffer **buffers;      /* [device * group_count + group] */
} stored_variable;
TP_ARRAY_DEFINE(stored_variables, stored_variable)

struct tp_variables {
    const tp_core_map *map;
    int32_t group_count;
    const bool *uses;
    uint64_t seed;
    stored_variables all;
};

tpucl_status tp_variables_create(const tp_core_map *map, int32_t group_count, const bool *uses,
                                 uint64_t seed, tp_variables **out_variables)
{
    tp_variables *variables = TP_NEW(tp_variables);
    if (!variables) return TPUCL_OUT_OF_MEMORY;
    variables->map = map;
    variables->group_count = group_count;
    variables->uses = uses;
    variables->seed = seed;
    *out_variables = variables;
    return TPUCL_OK;
}

static int32_t copy_count(const tp_variables *variables)
{
    return variables->map->device_count * variables->group_count;
}

static void release_variable(const tp_variables *variables, stored_variable *variable)
{
    for (int32_t i = 0; variable->buffers && i < copy_count(variables); i++)
        tp_buffer_release(variable->buffers[i]);
    tp_free(variable->buffers);
    tp_free((char *)variable->info.name);
}

void tp_variables_destroy(tp_variables *variables)
{
    if (!variables) return;
    for (size_t i = 0; i < variables->all.count; i++)
        release_variable(variables, &variables->all.items[i]);
    stored_variables_deinit(&variables->all);
    tp_free(variables);
}

static tpucl_status write_copies(const tp_variables *variables, const stored_variable *variable,
                                 int32_t group, const void *data)
{
    for (int32_t device = 0; device < variables->map->device_count; device++) {
        tp_buffer *buffer = variable->buffers[device * variables->group_count + group];
        if (buffer) TP_TRY(tp_buffer_write(buffer, 0, data, variable->info.bytes));
    }
    return TPUCL_OK;
}

/* On the devices, where nothing is uploaded for it: two thirds of what Adam trains with. */
static tpucl_status zero_copies(const tp_variables *variables, const stored_variable *variable)
{
    static const uint64_t zero[2] = {0, 0};
    const size_t bytes = variable->info.bytes;
    size_t pattern_bytes = sizeof zero;
    while (bytes % pattern_bytes)
        pattern_bytes /= 2;
    for (int32_t i = 0; bytes && i < copy_count(variables); i++)
        if (variable->buffers[i])
            TP_TRY(tp_buffer_fill(variable->buffers[i], 0, bytes, zero, pattern_bytes,
                                  TP_LANE_COMPUTE, NULL, 0, NULL));
    return TPUCL_OK;
}

static tpucl_status create_copies(const tp_variables *variables, stored_variable *variable)
{
    for (int32_t i = 0; i < copy_count(variables); i++)
        if (variables->uses[i])
            TP_TRY(tp_buffer_create(variables->map->devices[i / variables->group_count],
                                    variable->info.bytes, variable->info.name,
                                    &variable->buffers[i]));
    if (variable->info.init == TP_INIT_ZEROS) return zero_copies(variables, variable);
    void *values = tp_alloc(variable->info.bytes);
    if (!values)
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for %llu bytes of variable '%s'",
                       (unsigned long long)variable->info.bytes, variable->info.name);
    tpucl_status status = tp_init_fill(
        (tp_init_kind)variable->info.init, variable->info.init_a, variable->info.init_b,
        variable->info.name, variables->seed, variable->info.dtype,
        (int64_t)(variable->info.bytes / tp_dtype_size(variable->info.dtype)), values);
    for (int32_t group = 0; status == TPUCL_OK && group < variables->group_count; group++)
        status = write_copies(variables, variable, group, values);
    tp_free(values);
    return status;
}

tpucl_status tp_variables_add(tp_variables *variables, const tp_program_variable *info,
                              int32_t *out_index)
{
    *out_index = tp_variables_find(variables, info->name);
    if (*out_index >= 0) {
        const tp_program_variable *old = &variables->all.items[*out_index].info;
        if (old->dtype != info->dtype || !tp_shape_equal(&old->shape, &info->shape))
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "variable '%s' exists as %s with %llu bytes, a program wants %s with "
                           "%llu bytes",
                           info->name, tp_dtype_name(old->dtype), (unsigned long long)old->bytes,
                           tp_dtype_name(info->dtype), (unsigned long long)info->bytes);
        return TPUCL_OK;
    }
    stored_variable variable = {.info = *info};
    variable.info.name = tp_alloc_strdup(info->name);
    variable.buffers = TP_NEW_ARRAY(tp_buffer *, (size_t)copy_count(variables));
    tpucl_status status = variable.info.name && variable.buffers ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK) status = create_copies(variables, &variable);
    if (status == TPUCL_OK) status = stored_variables_push(&variables->all, variable);
    if (status != TPUCL_OK) {
        tp_error_trail(__func__, __FILE__, __LINE__);
        release_variable(variables, &variable);
        return status;
    }
    *out_index = (int32_t)variables->all.count - 1;
    return TPUCL_OK;
}

int32_t tp_variables_count(const tp_variables *variables)
{
    return (int32_t)variables->all.count;
}

const tp_program_variable *tp_variables_info(const tp_variables *variables, int32_t index)
{
    return &variables->all.items[index].info;
}

int32_t tp_variables_find(const tp_variables *variables, const char *name)
{
    for (size_t i = 0; i < variables->all.count; i++)
        if (strcmp(variables->all.items[i].info.name, name) == 0) return (int32_t)i;
    return -1;
}

tp_buffer *tp_variables_buffer(const tp_variables *variables, int32_t index, int32_t device,
                               int32_t group)
{
    return variables->all.items[index].buffers[device * variables->group_count + group];
}

uint64_t tp_variables_bytes(const tp_variables *variables)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < variables->all.count; i++)
        bytes += variables->all.items[i].info.bytes;
    return bytes;
}

tpucl_status tp_variables_read(tp_variables *variables, int32_t index, int32_t group, void *out)
{
    const stored_variable *variable = &variables->all.items[index];
    for (int32_t device = 0; device < variables->map->device_count; device++) {
        tp_buffer *buffer = variable->buffers[device * variables->group_count + group];
        if (buffer) return tp_buffer_read(buffer, 0, out, variable->info.bytes);
    }
    return TP_FAIL(TPUCL_INTERNAL, "no device holds variable '%s' of group %d", variable->info.name,
                   group);
}

tpucl_status tp_variables_write(tp_variables *variables, int32_t index, int32_t group,
                                const void *data)
{
    const stored_variable *variable = &variables->all.items[index];
    void *copy = tp_alloc(variable->info.bytes);
    if (!copy) return TPUCL_OUT_OF_MEMORY;
    memcpy(copy, data, variable->info.bytes);
    tp_flush_array(variable->info.dtype, copy,
                   variable->info.bytes / tp_dtype_size(variable->info.dtype));
    tpucl_status status = write_copies(variables, variable, group, copy);
    tp_free(copy);
    return status;
}

static tpucl_status hash_variable(tp_variables *variables, int32_t index, int32_t group,
                                  tp_sha256 *hash)
{
    const tp_program_variable *info = tp_variables_info(variables, index);
    void *data = tp_alloc(info->bytes);
    if (!data) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_variables_read(variables, index, group, data);
    if (status == TPUCL_OK) {
        tp_params_hash_add(hash, info->name, info->dtype, &info->shape, data);
    }
    tp_free(data);
    return status;
}

tpucl_status tp_variables_sha256(tp_variables *variables, char out_hex[TP_SHA256_HEX_BYTES])
{
    size_t count = 0;
    tp_params_name *order = TP_NEW_ARRAY(tp_params_name, variables->all.count);
    if (!order) return TPUCL_OUT_OF_MEMORY;
    for (size_t i = 0; i < variables->all.count; i++)
        if (variables->all.items[i].info.is_model)
            order[count++] = (tp_params_name){variables->all.items[i].info.name, (int32_t)i};
    tp_params_sort(order, count);
    tp_sha256 hash;
    tp_sha256_init(&hash);
    tpucl_status status = TPUCL_OK;
    for (int32_t group = 0; group < variables->group_count; group++)
        for (size_t i = 0; status == TPUCL_OK && i < count; i++)
            status = hash_variable(variables, order[i].index, group, &hash);
    tp_free(order);
    if (status == TPUCL_OK) tp_sha256_finish_hex(&hash, out_hex);
    return status;
}
