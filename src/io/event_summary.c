/* SPDX-License-Identifier: Apache-2.0
 * Summaries for TensorBoard. Field numbers: tensorboard/compat/proto/{summary,tensor,tensor_shape,types}.proto,
 * plugins/hparams/{plugin_data,api}.proto, google/protobuf/struct.proto. */
#include "io/event_summary.h"

#include <math.h>
#include <stdio.h>
#include "io/proto.h"

enum { SUMMARY_VALUE = 1 };
enum { VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN = 1, METADATA_CLASS = 4, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum {
    TENSOR_DTYPE = 1,
    TENSOR_SHAPE = 2,
    TENSOR_CONTENT = 4,
    TENSOR_FLOATS = 5,
    TENSOR_STRINGS = 8
};
enum { SHAPE_DIM = 2, DIM_SIZE = 1 };
typedef enum data_type { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 } data_type;
typedef enum data_class {
    CLASS_NONE = 0,
    CLASS_SCALAR = 1,
    CLASS_TENSOR = 2,
    CLASS_BLOBS = 3
} data_class;

/* ---- parts ---- */

/* A value up to its tensor: what is appended next is in it, until end_value. */
static size_t begin_value(tp_str_builder *to, const char *tag, const char *plugin, tp_view content,
                          data_class class)
{
    const size_t value = tp_proto_begin(to, SUMMARY_VALUE);
    tp_proto_put_text(to, VALUE_TAG, tag);
    const size_t metadata = tp_proto_begin(to, VALUE_METADATA);
    const size_t data = tp_proto_begin(to, METADATA_PLUGIN);
    tp_proto_put_text(to, PLUGIN_NAME, plugin);
    if (content.length) tp_proto_put_bytes(to, PLUGIN_CONTENT, content.data, content.length);
    tp_proto_end(to, data);
    if (class != CLASS_NONE) tp_proto_put_uint(to, METADATA_CLASS, class);
    tp_proto_end(to, metadata);
    return value;
}

static size_t begin_tensor(tp_str_builder *to, data_type dtype, const int64_t *dims, int rank)
{
    const size_t tensor = tp_proto_begin(to, VALUE_TENSOR);
    tp_proto_put_uint(to, TENSOR_DTYPE, dtype);
    const size_t shape = tp_proto_begin(to, TENSOR_SHAPE);
    for (int i = 0; i < rank; i++) {
        const size_t dim = tp_proto_begin(to, SHAPE_DIM);
        if (dims[i]) tp_proto_put_uint(to, DIM_SIZE, (uint64_t)dims[i]);
        tp_proto_end(to, dim);
    }
    tp_proto_end(to, shape);
    return tensor;
}

static const tp_view no_content = {"", 0};

void tp_summary_scalar(tp_str_builder *to, const char *tag, float value)
{
    const size_t begin = begin_value(to, tag, "scalars", no_content, CLASS_SCALAR);
    const size_t tensor = begin_tensor(to, DT_FLOAT, NULL, 0);
    tp_proto_put_floats(to, TENSOR_FLOATS, &value, 1);
    tp_proto_end(to, tensor);
    tp_proto_end(to, begin);
}

/* A vector of strings: width and height as decimal numbers, then the files. */
void tp_summary_images(tp_str_builder *to, const char *tag, uint32_t width, uint32_t height,
                       const tp_view *encoded, size_t count)
{
    char number[16];
    const int64_t dim = (int64_t)count + 2;
    const size_t begin = begin_value(to, tag, "images", no_content, CLASS_BLOBS);
    const size_t tensor = begin_tensor(to, DT_STRING, &dim, 1);
    snprintf(number, sizeof number, "%u", (unsigned)width);
    tp_proto_put_text(to, TENSOR_STRINGS, number);
    snprintf(number, sizeof number, "%u", (unsigned)height);
    tp_proto_put_text(to, TENSOR_STRINGS, number);
    for (size_t i = 0; i < count; i++)
        tp_proto_put_bytes(to, TENSOR_STRINGS, encoded[i].data, encoded[i].length);
    tp_proto_end(to, tensor);
    tp_proto_end(to, begin);
}

void tp_summary_text(tp_str_builder *to, const char *tag, const char *text)
{
    const size_t begin = begin_value(to, tag, "text", no_content, CLASS_TENSOR);
    const size_t tensor = begin_tensor(to, DT_STRING, NULL, 0);
    tp_proto_put_text(to, TENSOR_STRINGS, text);
    tp_proto_end(to, tensor);
    tp_proto_end(to, begin);
}

/* ---- histograms ---- */

void tp_histogram_of(const float *values, size_t count, tp_histogram *out)
{
    double low = INFINITY, high = -INFINITY;
    size_t finite = 0;
    *out = (tp_histogram){0};
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            low = fmin(low, values[i]);
            high = fmax(high, values[i]);
            finite++;
        }
    if (!finite) return;
    const double width = (high - low) / TP_HISTOGRAM_BUCKETS;
    for (int i = 0; i < TP_HISTOGRAM_BUCKETS; i++)
        out->edges[i] = low + i * width;
    out->edges[TP_HISTOGRAM_BUCKETS] = high;
    const int last = TP_HISTOGRAM_BUCKETS - 1;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        const int bucket = width > 0 ? (int)floor((values[i] - low) / width) : last;
        out->counts[bucket > last ? last : bucket] += 1;
    }
}

void tp_summary_histogram(tp_str_builder *to, const char *tag, const tp_histogram *histogram)
{
    const int64_t dims[2] = {TP_HISTOGRAM_BUCKETS, 3};
    double rows[TP_HISTOGRAM_BUCKETS * 3]; /* left edge, right edge, count */
    for (int i = 0; i < TP_HISTOGRAM_BUCKETS; i++) {
        rows[3 * i] = histogram->edges[i];
        rows[3 * i + 1] = histogram->edges[i + 1];
        rows[3 * i + 2] = histogram->counts[i];
    }
    const size_t begin = begin_value(to, tag, "histograms", no_content, CLASS_TENSOR);
    const size_t tensor = begin_tensor(to, DT_DOUBLE, dims, 2);
    tp_proto_put_doubles(to, TENSOR_CONTENT, rows, 3 * TP_HISTOGRAM_BUCKETS);
    tp_proto_end(to, tensor);
    tp_proto_end(to, begin);
}

/* ---- hyperparameters ---- */

enum { HPARAMS_EXPERIMENT = 2, HPARAMS_START = 3, HPARAMS_END = 4 };
enum { EXPERIMENT_HPARAM = 4, EXPERIMENT_METRIC = 5, HPARAM_NAME = 1, HPARAM_TYPE = 4 };
enum { METRIC_NAME = 1, METRIC_TAG = 2, TYPE_STRING = 1, TYPE_NUMBER = 3 };
enum { START_HPARAMS = 1, START_GROUP = 4, START_SECONDS = 5, END_STATUS = 1, END_SECONDS = 2 };
enum {
    MAP_KEY = 1,
    MAP_VALUE = 2,
    JSON_NUMBER = 2,
    JSON_TEXT = 3,
    STATUS_SUCCESS = 1,
    STATUS_FAILURE = 2
};

/* The plugin reads its message from the metadata; the tensor is empty. */
static void put_hparams(tp_str_builder *to, const char *tag, tp_str_builder *content)
{
    const int64_t none = 0;
    if (content->status != TPUCL_OK && to->status == TPUCL_OK) to->status = content->status;
    const tp_view message = {content->data ? content->data : "", content->length};
    const size_t begin = begin_value(to, tag, "hparams", message, CLASS_NONE);
    tp_proto_end(to, begin_tensor(to, DT_FLOAT, &none, 1));
    tp_proto_end(to, begin);
    tp_str_builder_deinit(content);
}

void tp_summary_hparams_experiment(tp_str_builder *to, const tp_hparam *hparams, size_t count,
                                   const char *const *metric_tags, size_t metric_count)
{
    tp_str_builder content = {0};
    const size_t experiment = tp_proto_begin(&content, HPARAMS_EXPERIMENT);
    for (size_t i = 0; i < count; i++) {
        const size_t info = tp_proto_begin(&content, EXPERIMENT_HPARAM);
        tp_proto_put_text(&content, HPARAM_NAME, hparams[i].name);
        tp_proto_put_uint(&content, HPARAM_TYPE, hparams[i].text ? TYPE_STRING : TYPE_NUMBER);
        tp_proto_end(&content, info);
    }
    for (size_t i = 0; i < metric_count; i++) {
        const size_t info = tp_proto_begin(&content, EXPERIMENT_METRIC);
        const size_t name = tp_proto_begin(&content, METRIC_NAME);
        tp_proto_put_text(&content, METRIC_TAG, metric_tags[i]);
        tp_proto_end(&content, name);
        tp_proto_end(&content, info);
    }
    tp_proto_end(&content, experiment);
    put_hparams(to, "_hparams_/experiment", &content);
}

void tp_summary_hparams_start(tp_str_builder *to, const tp_hparam *hparams, size_t count,
                              const char *group, double start_seconds)
{
    tp_str_builder content = {0};
    const size_t session = tp_proto_begin(&content, HPARAMS_START);
    for (size_t i = 0; i < count; i++) {
        const size_t entry = tp_proto_begin(&content, START_HPARAMS);
        tp_proto_put_text(&content, MAP_KEY, hparams[i].name);
        const size_t value = tp_proto_begin(&content, MAP_VALUE);
        if (hparams[i].text)
            tp_proto_put_text(&content, JSON_TEXT, hparams[i].text);
        else
            tp_proto_put_double(&content, JSON_NUMBER, hparams[i].number);
        tp_proto_end(&content, value);
        tp_proto_end(&content, entry);
    }
    tp_proto_put_text(&content, START_GROUP, group);
    tp_proto_put_double(&content, START_SECONDS, start_seconds);
    tp_proto_end(&content, session);
    put_hparams(to, "_hparams_/session_start_info", &content);
}

void tp_summary_hparams_end(tp_str_builder *to, bool is_success, double end_seconds)
{
    tp_str_builder content = {0};
    const size_t session = tp_proto_begin(&content, HPARAMS_END);
    tp_proto_put_uint(&content, END_STATUS, is_success ? STATUS_SUCCESS : STATUS_FAILURE);
    tp_proto_put_double(&content, END_SECONDS, end_seconds);
    tp_proto_end(&content, session);
    put_hparams(to, "_hparams_/session_end_info", &content);
}
