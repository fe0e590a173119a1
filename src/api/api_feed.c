/* SPDX-License-Identifier: Apache-2.0
 * A batch of the caller's, cut into one infeed record per core. */
#include "api/trainer_internal.h"

#include "train/shard.h"

static const tpucl_array *find_array(const tpucl_batch *batch, const char *name)
{
    for (int32_t i = 0; i < batch->array_count; i++)
        if (batch->arrays[i].name && !strcmp(batch->arrays[i].name, name)) return &batch->arrays[i];
    return NULL;
}

static bool is_filled_in(const char *name)
{
    return !strcmp(name, "weight") || !strcmp(name, "denominator");
}

/* The buffer is [per-core batch, ...], the array [examples, ...]. */
static tpucl_status check_array(const tp_program_buffer *buffer, const tpucl_array *array,
                                const char *name, int64_t examples)
{
    tp_shape wanted = buffer->shape, found;
    tp_dtype dtype;
    wanted.dims[0] = examples;
    TP_TRY(tp_api_dtype(array->dtype, &dtype));
    TP_TRY(tp_api_shape(array->shape, &found));
    if (dtype == buffer->dtype && tp_shape_equal(&wanted, &found) && array->data) return TPUCL_OK;
    char a[TP_SHAPE_TEXT_MAX], b[TP_SHAPE_TEXT_MAX];
    tp_shape_format(&wanted, a, sizeof a);
    tp_shape_format(&found, b, sizeof b);
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the batch brings input '%s' as %s%s%s, expected %s%s",
                   name, tp_dtype_name(dtype), b, array->data ? "" : " without data",
                   tp_dtype_name(buffer->dtype), a);
}

tpucl_status tp_api_feed_check(const tpucl_program *program, const tp_program *inner,
                               const tpucl_batch *batch)
{
    int64_t global = program->batch * program->runtime->map->core_count;
    if (batch->example_count < 1 || batch->example_count > global)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "a batch of %lld examples, expected 1 to %lld: %lld for each of %d cores",
                       (long long)batch->example_count, (long long)global,
                       (long long)program->batch, (int)program->runtime->map->core_count);
    if (batch->array_count > 0 && !batch->arrays)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "a batch of %d arrays, and 'arrays' is NULL",
                       (int)batch->array_count);
    for (int32_t i = 0; i < inner->input_count; i++) {
        const tp_program_port *port = &inner->inputs[i];
        if (is_filled_in(port->name)) continue;
        const tpucl_array *array = find_array(batch, port->name);
        if (!array)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "the batch brings no array for input '%s'",
                           port->name);
        TP_TRY(check_array(&inner->buffers[port->buffer], array, port->name, batch->example_count));
    }
    return TPUCL_OK;
}

static void fill_rows(char *to, const tp_program_buffer *buffer, const tpucl_array *array,
                      int64_t first, int64_t rows)
{
    uint64_t row_bytes = buffer->bytes / (uint64_t)buffer->shape.dims[0];
    uint64_t bytes = row_bytes * (uint64_t)rows;
    if (rows) memcpy(to, (const char *)array->data + row_bytes * (uint64_t)first, bytes);
    memset(to + bytes, 0, buffer->bytes - bytes);
}

void tp_api_feed_fill(const tpucl_program *program, const tp_program *inner,
                      const tpucl_batch *batch, const tp_feed *feed)
{
    for (int32_t core = 0; core < program->runtime->map->core_count; core++) {
        char *record = tp_feed_record(feed, core);
        int64_t rows = tp_shard_rows(core, program->batch, batch->example_count);
        for (int32_t i = 0; i < inner->input_count; i++) {
            const tp_program_port *port = &inner->inputs[i];
            const tp_program_buffer *buffer = &inner->buffers[port->buffer];
            char *to = record + buffer->offset_bytes;
            if (!strcmp(port->name, "weight")) {
                tp_shard_fill_weights((float *)(void *)to, program->batch, rows);
            } else if (!strcmp(port->name, "denominator")) {
                float weight = tp_shard_group_weight(program->group_cores, program->group_size,
                                                     program->runtime->map->core_count, core,
                                                     program->batch, batch->example_count);
                memcpy(to, &weight, sizeof weight);
            } else {
                fill_rows(to, buffer, find_array(batch, port->name), core * program->batch, rows);
            }
        }
    }
}
