/* SPDX-License-Identifier: Apache-2.0
 * Epochs' records in a checkpoint. */
#include "train/snapshot_epochs.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

typedef struct figure {
    const char *key;
    size_t offset;
} figure;

#define FIGURE(field)                                                                              \
    {                                                                                              \
#field, offsetof(tp_session_epoch, field)                                                  \
    }
static const figure doubles[] = {FIGURE(seconds),   FIGURE(train_loss),    FIGURE(train_accuracy),
                                 FIGURE(eval_loss), FIGURE(eval_accuracy), FIGURE(eval_seconds)};
static const figure integers[] = {FIGURE(epoch), FIGURE(steps), FIGURE(examples)};
enum {
    DOUBLE_COUNT = sizeof doubles / sizeof doubles[0],
    INTEGER_COUNT = sizeof integers / sizeof integers[0]
};

static void write_metrics(tp_json_writer *writer, const char *key, const double *values,
                          int32_t count)
{
    tp_json_key(writer, key);
    tp_json_begin_inline_array(writer);
    for (int32_t i = 0; i < count; i++)
        tp_json_write_double(writer, values[i]);
    tp_json_end_array(writer);
}

void tp_snapshot_write_epochs(tp_json_writer *writer, const tp_session *session)
{
    tp_json_begin_array(writer);
    for (size_t e = 0; e < session->epochs.count; e++) {
        const tp_session_epoch *epoch = &session->epochs.items[e];
        const char *base = (const char *)epoch;
        tp_json_begin_object(writer);
        for (int i = 0; i < INTEGER_COUNT; i++)
            tp_json_put_int(writer, integers[i].key,
                            *(const int64_t *)(const void *)(base + integers[i].offset));
        for (int i = 0; i < DOUBLE_COUNT; i++)
            tp_json_put_double(writer, doubles[i].key,
                               *(const double *)(const void *)(base + doubles[i].offset));
        tp_json_put_bool(writer, "has_eval", epoch->has_eval);
        write_metrics(writer, "train_metrics", epoch->train_metrics, session->metrics.count);
        write_metrics(writer, "eval_metrics", epoch->eval_metrics, session->metrics.count);
        tp_json_end_object(writer);
    }
    tp_json_end_array(writer);
}

static tpucl_status read_double(const tp_json *value, double *out_value)
{
    *out_value = (double)NAN;
    if (value->kind == TP_JSON_NULL) return TPUCL_OK;
    return tp_json_as_double(value, -DBL_MAX, DBL_MAX, out_value);
}

static tpucl_status read_metrics(const tp_json *object, const char *key, int32_t count,
                                 double *out_values)
{
    const tp_json *array = NULL;
    TP_TRY(tp_json_require(object, key, TP_JSON_ARRAY, &array));
    if (array->count != (size_t)count) {
        char where[TP_JSON_WHERE_BYTES];
        return TP_FAIL(TPUCL_INVALID_CONFIG, "%zu figures, the configuration has %d metrics, at %s",
                       array->count, count, tp_json_where(array, where));
    }
    for (int32_t i = 0; i < count; i++)
        TP_TRY(read_double(&array->items[i], &out_values[i]));
    return TPUCL_OK;
}

static tpucl_status read_epoch(const tp_json *object, int32_t metric_count,
                               tp_session_epoch *out_epoch)
{
    char *base = (char *)out_epoch;
    TP_TRY(tp_json_expect(object, TP_JSON_OBJECT));
    for (int i = 0; i < INTEGER_COUNT; i++)
        TP_TRY(tp_json_get_int64(object, integers[i].key, 0, INT64_MAX,
                                 (int64_t *)(void *)(base + integers[i].offset)));
    for (int i = 0; i < DOUBLE_COUNT; i++) {
        const tp_json *value = tp_json_member(object, doubles[i].key);
        if (value) TP_TRY(read_double(value, (double *)(void *)(base + doubles[i].offset)));
    }
    TP_TRY(tp_json_get_bool(object, "has_eval", &out_epoch->has_eval));
    TP_TRY(read_metrics(object, "train_metrics", metric_count, out_epoch->train_metrics));
    return read_metrics(object, "eval_metrics", metric_count, out_epoch->eval_metrics);
}

tpucl_status tp_snapshot_read_epochs(const tp_json *array, int32_t metric_count,
                                     tp_session_epoch_list *out_epochs)
{
    for (size_t i = 0; i < array->count; i++) {
        tp_session_epoch epoch = {0};
        TP_TRY(read_epoch(&array->items[i], metric_count, &epoch));
        TP_TRY(tp_session_epoch_list_push(out_epochs, epoch));
    }
    return TPUCL_OK;
}
