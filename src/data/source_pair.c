/* SPDX-License-Identifier: Apache-2.0
 * Inputs and labels from two files become one source. */
#include "core/alloc.h"
#include "data/source_internal.h"

tpucl_status tp_source_add_field(tp_source *source, const char *name, tp_file_array *array)
{
    tp_field *field = &source->fields[source->field_count];
    field->dtype = array->dtype;
    TP_TRY(tp_shape_init(&field->shape, array->shape.rank - 1, array->shape.dims + 1));
    field->name = tp_alloc_strdup(name);
    if (!field->name) return TPUCL_OUT_OF_MEMORY;
    field->bytes = (uint64_t)tp_shape_bytes(&field->shape, field->dtype);
    source->arrays[source->field_count++] = array->data;
    array->data = NULL;
    return TPUCL_OK;
}

static tpucl_status make_pair(const char *inputs_path, tp_file_array *inputs,
                              const char *labels_path, tp_file_array *labels, tp_source *source)
{
    if (inputs->shape.rank < 2 || inputs->shape.rank > TP_MAX_RANK - 1)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' has rank %d; inputs have an example axis and at least one more",
                       inputs_path, inputs->shape.rank);
    if (labels->shape.rank < 1)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' is a scalar; expected one label per example",
                       labels_path);
    if (inputs->shape.dims[0] != labels->shape.dims[0])
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' has %lld examples and '%s' has %lld; expected equal numbers",
                       inputs_path, (long long)inputs->shape.dims[0], labels_path,
                       (long long)labels->shape.dims[0]);
    if (inputs->shape.dims[0] < 1)
        return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' holds no example", inputs_path);
    if (inputs->shape.rank == 3) inputs->shape.dims[inputs->shape.rank++] = 1;
    source->example_count = inputs->shape.dims[0];
    source->label_count = 1;
    TP_TRY(tp_source_add_field(source, "image", inputs));
    return tp_source_add_field(source, "label", labels);
}

tpucl_status tp_source_adopt_pair(const char *inputs_path, tp_file_array *inputs,
                                  const char *labels_path, tp_file_array *labels,
                                  tp_source **out_source)
{
    tp_source *source = TP_NEW(tp_source);
    tpucl_status status =
        source ? make_pair(inputs_path, inputs, labels_path, labels, source) : TPUCL_OUT_OF_MEMORY;
    tp_free(inputs->data);
    tp_free(labels->data);
    if (status != TPUCL_OK) {
        tp_source_destroy(source);
        return status;
    }
    *out_source = source;
    return TPUCL_OK;
}
