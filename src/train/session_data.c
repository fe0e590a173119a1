/* SPDX-License-Identifier: Apache-2.0
 * Opens the data that a configuration names and says which examples train and which test. */
#include <math.h>
#include <string.h>
#include "core/file.h"
#include "core/log.h"
#include "train/session_internal.h"

/* Files by name, inputs first; a single file of labels is "label" whatever its name, a single file without a
 * name the input "image". */
static tpucl_status open_named(const tp_session *session, const tp_config_files *inputs,
                               const tp_config_files *labels, tp_source **out_source)
{
    tp_source_file files[TP_SOURCE_MAX_FIELDS];
    const size_t count = inputs->count + labels->count;
    if (count > TP_SOURCE_MAX_FIELDS)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "the data have %zu files, expected at most %d", count,
                       TP_SOURCE_MAX_FIELDS);
    for (size_t i = 0; i < count; i++) {
        const bool is_label = i >= inputs->count;
        const tp_config_files *from = is_label ? labels : inputs;
        const size_t at = is_label ? i - inputs->count : i;
        const char *name = is_label && labels->count == 1 ? "label" : from->names[at];
        files[i] = (tp_source_file){
            .path = tp_file_join(session->arena, session->config->data.folder, from->paths[at]),
            .name = name ? name : "image",
            .is_label = is_label};
        if (!files[i].path) return TPUCL_OUT_OF_MEMORY;
    }
    return tp_source_open_npy_files(files, (int32_t)count, out_source);
}

static tpucl_status open_arrays(const tp_session *session, bool is_test, tp_source **out_source)
{
    const tp_config *config = session->config;
    const char *folder = config->data.folder;
    if (config->data.dataset == TP_DATASET_FASHION_MNIST)
        return tp_source_open_fashion_mnist(folder, is_test, out_source);
    if (config->data.dataset == TP_DATASET_RECORDS)
        return tp_session_open_records(session, is_test, out_source);
    if (config->data.dataset == TP_DATASET_IMAGES)
        return tp_session_open_images(session, is_test, out_source);
    const tp_config_files *in = is_test ? &config->data.test.inputs : &config->data.train.inputs;
    const tp_config_files *out = is_test ? &config->data.test.labels : &config->data.train.labels;
    if (in->names[0] || out->names[0]) return open_named(session, in, out, out_source);
    const char *inputs = tp_file_join(session->arena, folder, in->paths[0]);
    const char *labels = tp_file_join(session->arena, folder, out->paths[0]);
    if (!inputs || !labels) return TPUCL_OUT_OF_MEMORY;
    return config->data.dataset == TP_DATASET_IDX ? tp_source_open_idx(inputs, labels, out_source)
                                                  : tp_source_open_npy(inputs, labels, out_source);
}

/* Numbers from 0 on, one for each example, not all 0. */
static tpucl_status check_weights(const tp_source *source, const char *path)
{
    const int32_t field = source->field_count - 1;
    const float *weights = source->arrays[field];
    double sum = 0;
    if (source->fields[field].dtype != TP_F32 || source->fields[field].shape.rank)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "expected one f4 or f8 for each example in '%s'",
                       path);
    for (int64_t i = 0; i < source->example_count; i++) {
        if (!(weights[i] >= 0) || !isfinite(weights[i]))
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "example %lld has the weight %g in '%s', expected 0 or more",
                           (long long)i, (double)weights[i], path);
        sum += (double)weights[i];
    }
    if (sum > 0) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_CONFIG, "all weights in '%s' are 0", path);
}

static tpucl_status add_weights(const tp_session *session, const char *name, tp_source *source)
{
    if (!*name) return TPUCL_OK;
    const tp_source_file file = {
        .path = tp_file_join(session->arena, session->config->data.folder, name),
        .name = "sample_weight",
        .is_label = true};
    if (!file.path) return TPUCL_OUT_OF_MEMORY;
    TP_TRY(tp_source_add_npy(source, &file));
    return check_weights(source, file.path);
}

static tpucl_status open_part(const tp_session *session, bool is_test, tp_source **out_source)
{
    const tp_config *config = session->config;
    TP_TRY(open_arrays(session, is_test, out_source));
    return add_weights(session, is_test ? config->data.test.weights : config->data.train.weights,
                       *out_source);
}

static bool has_test_files(const tp_config *config)
{
    return config->data.dataset == TP_DATASET_FASHION_MNIST || config->data.test.inputs.count > 0;
}

/* Files that are named need not agree; the model is built for the training part. */
static tpucl_status check_same_fields(const tp_source *train, const tp_source *test)
{
    if (train->field_count != test->field_count)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "the training part has %d arrays, the test part %d",
                       train->field_count, test->field_count);
    for (int32_t i = 0; i < train->field_count; i++) {
        const tp_field *a = &train->fields[i], *b = &test->fields[i];
        if (strcmp(a->name, b->name) != 0)
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "array %d of the training part is '%s', of the test part '%s'; expected "
                           "the same order",
                           i, a->name, b->name);
        if (a->dtype == b->dtype && tp_shape_equal(&a->shape, &b->shape)) continue;
        char train_shape[TP_SHAPE_TEXT_MAX], test_shape[TP_SHAPE_TEXT_MAX];
        tp_shape_format(&a->shape, train_shape, sizeof train_shape);
        tp_shape_format(&b->shape, test_shape, sizeof test_shape);
        return TP_FAIL(
            TPUCL_INVALID_CONFIG,
            "the training part's '%s' is %s%s, the test part's is %s%s; expected the same", a->name,
            tp_dtype_name(a->dtype), train_shape, tp_dtype_name(b->dtype), test_shape);
    }
    return TPUCL_OK;
}

static tpucl_status open_cast(const tp_session *session, bool is_test, tp_source **out_source)
{
    TP_TRY(open_part(session, is_test, out_source));
    if (session->config->data.input_dtype == TP_CONFIG_FLOAT32) return TPUCL_OK;
    return tp_source_narrow_inputs(*out_source);
}

static tpucl_status open_sources(tp_session *session)
{
    const tp_config *config = session->config;
    const bool is_given = session->train_source != NULL;
    if (!is_given) TP_TRY(open_cast(session, false, &session->train_source));
    session->train_count = session->train_source->example_count;
    if (is_given) return TPUCL_OK;
    if (config->data.validation_split > 0) {
        double share = config->data.validation_split * (double)session->train_count;
        session->test_count = (int64_t)share;
        if (session->test_count < 1 || session->test_count >= session->train_count)
            return TP_FAIL(
                TPUCL_INVALID_CONFIG,
                "data.validation_split %g of %lld examples leaves %lld to test and %lld to "
                "train; expected at least one of each",
                config->data.validation_split, (long long)session->train_count,
                (long long)session->test_count,
                (long long)(session->train_count - session->test_count));
        session->train_count -= session->test_count;
        session->test_first = session->train_count;
        return TPUCL_OK;
    }
    if (!has_test_files(config)) return TPUCL_OK;
    TP_TRY(open_cast(session, true, &session->test_source));
    session->test_count = session->test_source->example_count;
    return check_same_fields(session->train_source, session->test_source);
}

tpucl_status tp_session_open_data(tp_session *session)
{
    TP_TRY(open_sources(session));
    TP_TRY(tp_session_augment_source(session, &session->train_source));
    return session->test_source ? tp_session_augment_source(session, &session->test_source)
                                : TPUCL_OK;
}

tpucl_status tp_session_open_pipeline(tp_session *session)
{
    const tp_config *config = session->config;
    tp_pipeline_options options = {.batch = config->global_batch,
                                   .first = session->train_first,
                                   .count = session->train_count,
                                   .shuffle = config->data.shuffle,
                                   .shuffle_buffer = config->data.shuffle_buffer,
                                   .seed = (uint64_t)config->seed,
                                   .prefetch = (int32_t)config->data.prefetch,
                                   .threads = (int32_t)config->data.parallelism,
                                   .is_training = true,
                                   .drop_remainder = config->data.drop_remainder,
                                   .start_epoch =
                                       (uint32_t)(session->steps_done / session->steps_per_epoch),
                                   .start_batch = session->steps_done % session->steps_per_epoch};
    if (config->data.enforce_link) {
        options.link_bytes_per_second =
            tp_topology_figure(session->topology, TP_FIGURE_USER_LINK, 0);
        if (options.link_bytes_per_second <= 0)
            return TP_FAIL(
                TPUCL_INVALID_CONFIG,
                "data.enforce_link: topology '%s' does not say how fast its user_link is",
                session->topology->name);
    }
    return tp_pipeline_create(session->train_source, &options, &session->pipeline);
}

void tp_session_close_pipeline(tp_session *session)
{
    if (!session->pipeline) return;
    tp_pipeline_get_stats(session->pipeline, &session->input_stats);
    tp_pipeline_destroy(session->pipeline);
    session->pipeline = NULL;
    const tp_pipeline_stats *stats = &session->input_stats;
    TP_LOG_INFO("train", "input: %d threads, %d batches ahead%s", stats->threads, stats->prefetch,
                stats->is_auto ? ", as found" : "");
    if (stats->missing)
        TP_LOG_WARNING("train", "%lld damaged examples were left out", (long long)stats->missing);
}
