/* SPDX-License-Identifier: Apache-2.0
 * What all sources share, and arrays of the caller. */
#include "data/source_internal.h"

#include <string.h>
#include "core/alloc.h"
#include "num/bf16.h"

int32_t tp_source_find_field(const tp_source *source, const char *name)
{
    for (int32_t i = 0; i < source->field_count; i++)
        if (strcmp(source->fields[i].name, name) == 0) return i;
    return -1;
}

tpucl_status tp_source_load_in_background(tp_source *source, tpucl_status (*run)(void *work),
                                          void *work)
{
    tp_source_loader *loader = TP_NEW(tp_source_loader);
    if (!loader) return TPUCL_OUT_OF_MEMORY;
    tpucl_status status = tp_mutex_init(&loader->mutex);
    if (status != TPUCL_OK) {
        tp_free(loader);
        return status;
    }
    status = tp_thread_create("tpucl read", run, work, &loader->thread);
    if (status != TPUCL_OK) {
        tp_mutex_deinit(&loader->mutex);
        tp_free(loader);
        return status;
    }
    source->loader = loader;
    return TPUCL_OK;
}

tpucl_status tp_source_wait(const tp_source *source)
{
    tp_source_loader *loader = source->loader;
    if (source->ops && source->ops->wait) TP_TRY(source->ops->wait(source));
    if (!loader) return TPUCL_OK;
    tp_mutex_lock(&loader->mutex);
    if (loader->thread) {
        loader->status = tp_thread_join(loader->thread);
        loader->thread = NULL;
        tp_error_capture(&loader->error);
    } else if (loader->status != TPUCL_OK) {
        tp_error_restore(&loader->error);
    }
    tpucl_status status = loader->status;
    tp_mutex_unlock(&loader->mutex);
    return status;
}

tpucl_status tp_source_narrow_inputs(tp_source *source)
{
    TP_TRY(tp_source_wait(source));
    for (int32_t i = 0; i < source->field_count - source->label_count; i++) {
        tp_field *field = &source->fields[i];
        if (field->dtype != TP_F32) continue;
        if (source->ops)
            return TP_FAIL(TPUCL_UNSUPPORTED,
                           "'%s' is read as float32: inputs are rounded to bfloat16 for data sets "
                           "in memory only",
                           field->name);
        const int64_t count = source->example_count * tp_shape_elems(&field->shape);
        const float *wide = source->arrays[i];
        tp_bf16 *narrow = TP_NEW_ARRAY(tp_bf16, (size_t)count);
        if (!narrow) return TPUCL_OUT_OF_MEMORY;
        for (int64_t j = 0; j < count; j++)
            narrow[j] = tp_bf16_from_f32(wide[j]);
        tp_free(source->arrays[i]);
        source->arrays[i] = narrow;
        field->dtype = TP_BF16;
        field->bytes /= 2;
    }
    return TPUCL_OK;
}

static void destroy_loader(tp_source *source)
{
    tpucl_error error; /* what the thread met must not replace the caller's record */
    if (!source->loader) return;
    tp_error_capture(&error);
    tpucl_status ignored = tp_source_wait(source);
    (void)ignored;
    tp_error_restore(&error);
    tp_mutex_deinit(&source->loader->mutex);
    tp_free(source->loader);
}

void tp_source_destroy(tp_source *source)
{
    if (!source) return;
    destroy_loader(source);
    if (source->ops) source->ops->destroy(source->state);
    for (int32_t i = 0; i < source->field_count; i++) {
        tp_free((char *)source->fields[i].name);
        if (!source->is_borrowed) tp_free(source->arrays[i]);
    }
    tp_free(source);
}

tpucl_status tp_source_from_arrays(const tp_field *fields, const void *const *arrays,
                                   int32_t field_count, int64_t example_count,
                                   tp_source **out_source)
{
    if (field_count < 1 || field_count > TP_SOURCE_MAX_FIELDS || example_count < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "a source of %d fields with %lld examples; expected 1 to %d fields and at "
                       "least one example",
                       field_count, (long long)example_count, TP_SOURCE_MAX_FIELDS);
    tp_source *source = TP_NEW(tp_source);
    if (!source) return TPUCL_OUT_OF_MEMORY;
    source->is_borrowed = true;
    source->example_count = example_count;
    source->label_count = field_count > 1;
    for (int32_t i = 0; i < field_count; i++) {
        source->fields[i] = fields[i];
        source->fields[i].name = tp_alloc_strdup(fields[i].name);
        source->fields[i].bytes = (uint64_t)tp_shape_bytes(&fields[i].shape, fields[i].dtype);
        source->arrays[i] = (void *)arrays[i];
        source->field_count = i + 1;
        if (!source->fields[i].name) {
            tp_source_destroy(source);
            return TPUCL_OUT_OF_MEMORY;
        }
    }
    *out_source = source;
    return TPUCL_OK;
}
