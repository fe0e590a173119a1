/* SPDX-License-Identifier: Apache-2.0
 * Data sets: a source and the pipeline that batches it. */
#include "api/trainer_internal.h"

#include "core/alloc.h"
#include "data/pipeline.h"

struct tpucl_dataset {
    tp_source *source;
    tp_pipeline *pipeline;
    tp_pipeline_options pipeline_options;
    bool drop_remainder;
    bool at_end;                              /* nothing follows the batch handed out last */
    tpucl_array arrays[TP_SOURCE_MAX_FIELDS]; /* of the batch handed out last */
};

/* "name" and the array behind it, one example's shape. */
static tpucl_status memory_field(const tpucl_array *array, const char *role, tp_field *out_field,
                                 int64_t *out_examples)
{
    if (!array->name || !array->data)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "'%s' of a data set in memory has no %s", role,
                       array->name ? "data" : "name");
    tp_shape whole;
    TP_TRY(tp_api_dtype(array->dtype, &out_field->dtype));
    TP_TRY(tp_api_shape(array->shape, &whole));
    if (whole.rank < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'%s' of a data set in memory is a scalar, expected [examples, ...]", role);
    TP_TRY(tp_shape_init(&out_field->shape, whole.rank - 1, whole.dims + 1));
    out_field->name = array->name;
    out_field->bytes = (uint64_t)tp_shape_bytes(&out_field->shape, out_field->dtype);
    *out_examples = whole.dims[0];
    return TPUCL_OK;
}

static tpucl_status open_memory(const tpucl_dataset_options *options, tp_source **out_source)
{
    tp_field fields[2];
    const void *arrays[2] = {options->inputs.data, options->labels.data};
    int64_t examples, labels;
    int32_t count = 1;
    TP_TRY(memory_field(&options->inputs, "inputs", &fields[0], &examples));
    if (options->labels.data) {
        TP_TRY(memory_field(&options->labels, "labels", &fields[1], &labels));
        if (labels != examples)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%lld inputs but %lld labels",
                           (long long)examples, (long long)labels);
        count = 2;
    }
    TP_TRY(tp_source_from_arrays(fields, arrays, count, examples, out_source));
    return TPUCL_OK;
}

static tpucl_status open_files(const tpucl_dataset_options *options, const char *kind,
                               tp_source **out_source)
{
    if (!options->inputs_file || !options->labels_file)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "a data set of kind '%s' needs 'inputs_file' and 'labels_file'", kind);
    if (!strcmp(kind, "idx"))
        TP_TRY(tp_source_open_idx(options->inputs_file, options->labels_file, out_source));
    else
        TP_TRY(tp_source_open_npy(options->inputs_file, options->labels_file, out_source));
    return TPUCL_OK;
}

static tpucl_status open_source(const tpucl_dataset_options *options, tp_source **out_source)
{
    const char *kind = options->kind ? options->kind : "fashion-mnist";
    const char *part = options->part ? options->part : "train";
    if (!strcmp(kind, "memory")) return open_memory(options, out_source);
    if (!strcmp(kind, "idx") || !strcmp(kind, "npy")) return open_files(options, kind, out_source);
    if (strcmp(kind, "fashion-mnist") != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "kind of a data set is '%s', expected 'fashion-mnist', 'idx', 'npy' or "
                       "'memory'",
                       kind);
    if (strcmp(part, "train") != 0 && strcmp(part, "test") != 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "part of a data set is '%s', expected 'train' or 'test'", part);
    TP_TRY(tp_source_open_fashion_mnist(options->folder, !strcmp(part, "test"), out_source));
    return TPUCL_OK;
}

tpucl_status tpucl_dataset_open(const tpucl_dataset_options *options, tpucl_dataset **out_dataset)
{
    TP_API_NEED(out_dataset);
    *out_dataset = NULL;
    tpucl_dataset_options all;
    TP_TRY(TP_API_OPTIONS(options, &all, tpucl_dataset_options));
    if (all.batch_size < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "batch_size is %lld, expected 1 or more",
                       (long long)all.batch_size);
    if (all.prefetch < 0 || all.shuffle_buffer < 0)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "prefetch is %d and shuffle_buffer %lld, expected 0 (the default) or more",
                       (int)all.prefetch, (long long)all.shuffle_buffer);
    tpucl_dataset *dataset = TP_NEW(tpucl_dataset);
    if (!dataset) return TPUCL_OUT_OF_MEMORY;
    dataset->drop_remainder = all.drop_remainder;
    dataset->pipeline_options = (tp_pipeline_options){
        .batch = all.batch_size,
        .shuffle = all.shuffle,
        .shuffle_buffer = all.shuffle_buffer,
        .seed = (uint64_t)all.seed,
        .epochs = all.repeat ? 0 : 1,
        .prefetch = all.prefetch ? all.prefetch : 2,
    };
    tpucl_status status;
    TP_TRY_GOTO(status, open_source(&all, &dataset->source), failed);
    if (all.drop_remainder && dataset->source->example_count < all.batch_size) {
        status = TP_FAIL(TPUCL_INVALID_ARGUMENT,
                         "%lld examples make no whole batch of %lld, and partial ones are dropped",
                         (long long)dataset->source->example_count, (long long)all.batch_size);
        goto failed;
    }
    TP_TRY_GOTO(status, tpucl_dataset_rewind(dataset), failed);
    *out_dataset = dataset;
    return TPUCL_OK;
failed:
    tpucl_dataset_close(dataset);
    return status;
}

void tpucl_dataset_close(tpucl_dataset *dataset)
{
    if (!dataset) return;
    tp_pipeline_destroy(dataset->pipeline);
    tp_source_destroy(dataset->source);
    tp_free(dataset);
}

tpucl_status tpucl_dataset_rewind(tpucl_dataset *dataset)
{
    TP_API_NEED(dataset);
    tp_pipeline_destroy(dataset->pipeline);
    dataset->pipeline = NULL;
    TP_TRY(tp_pipeline_create(dataset->source, &dataset->pipeline_options, &dataset->pipeline));
    return TPUCL_OK;
}

tpucl_status tpucl_dataset_next(tpucl_dataset *dataset, tpucl_batch *out_batch)
{
    TP_API_NEED(dataset);
    TP_API_NEED(out_batch);
    const tp_batch *batch;
    if (!dataset->pipeline) TP_TRY(tpucl_dataset_rewind(dataset)); /* a rewind failed before */
    do
        TP_TRY(tp_pipeline_next(dataset->pipeline, &batch));
    while (dataset->drop_remainder && batch->valid < dataset->pipeline_options.batch);
    const tp_source *source = dataset->source;
    for (int32_t i = 0; i < source->field_count; i++) {
        const tp_field *field = &source->fields[i];
        tpucl_shape shape = {field->shape.rank + 1, {batch->valid}};
        memcpy(shape.dims + 1, field->shape.dims, sizeof shape.dims[0] * (size_t)field->shape.rank);
        dataset->arrays[i] =
            (tpucl_array){field->name, tp_api_dtype_public(field->dtype), shape, batch->arrays[i]};
    }
    int64_t batches = tp_api_dataset_epoch_batches(dataset);
    dataset->at_end = dataset->pipeline_options.epochs == 1 && batch->index + 1 >= batches;
    *out_batch = (tpucl_batch){batch->valid, source->field_count, dataset->arrays};
    return TPUCL_OK;
}

int64_t tpucl_dataset_example_count(const tpucl_dataset *dataset)
{
    return dataset ? dataset->source->example_count : 0;
}

bool tp_api_dataset_at_end(const tpucl_dataset *dataset)
{
    return dataset->at_end;
}

int64_t tp_api_dataset_epoch_batches(const tpucl_dataset *dataset)
{
    int64_t batch = dataset->pipeline_options.batch, count = dataset->source->example_count;
    return count / batch + (!dataset->drop_remainder && count % batch != 0);
}
