/* SPDX-License-Identifier: Apache-2.0
 * Records to examples. A thread reads a record, finds its features, decodes images at their size and keeps
 * what it decoded if there is room; every step of it depends on the record alone. */
#include "data/source_records.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/log.h"
#include "io/example.h"

enum { ARENA_BYTES = 2048, WARNINGS = 10, FIRST_TRIES = 16 };

typedef struct label_range {
    int64_t classes; /* 0: any */
    double ignored;
} label_range;

typedef struct record_source {
    tp_record_source_options options;
    tp_arena *arena; /* names and keys */
    tp_record_index *index;
    tp_feature_spec specs[TP_SOURCE_MAX_FIELDS];
    label_range ranges[TP_SOURCE_MAX_FIELDS];
    uint64_t example_bytes;    /* of all fields */
    _Atomic(uint8_t *) *cache; /* [examples], or NULL */
    atomic_llong cache_left;
    atomic_int warnings;
} record_source;

typedef struct record_worker {
    tp_record_buffer buffer;
    tp_image_reader images;
} record_worker;

/* ---- threads ---- */

static void close_worker(void *worker)
{
    record_worker *w = worker;
    if (!w) return;
    tp_record_buffer_deinit(&w->buffer);
    tp_image_reader_deinit(&w->images);
    tp_free(w);
}

static tpucl_status open_worker(const tp_source *source, void **out_worker)
{
    (void)source;
    record_worker *worker = TP_NEW(record_worker);
    if (!worker) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_image_reader_init(&worker->images);
    if (status != TPUCL_OK) {
        tp_free(worker);
        return status;
    }
    *out_worker = worker;
    return TPUCL_OK;
}

/* ---- one feature ---- */

static tpucl_status check_count(const tp_record_field *field, size_t found, uint64_t wanted)
{
    if (found == wanted) return TPUCL_OK;
    return TP_FAIL(TPUCL_INVALID_ARGUMENT, "feature '%s' has %zu values, expected %llu", field->key,
                   found, (unsigned long long)wanted);
}

static tpucl_status put_ints(const tp_record_field *field, const label_range *range,
                             const tp_feature_values *values, int32_t *out)
{
    for (size_t i = 0; i < values->count; i++) {
        int64_t value;
        if (__builtin_add_overflow(values->ints[i], field->offset, &value) || value < INT32_MIN ||
            value > INT32_MAX)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT, "feature '%s' holds %lld, beyond 32 bits",
                           field->key, (long long)values->ints[i]);
        if (range->classes && (value < 0 || value >= range->classes) &&
            (double)value != range->ignored)
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "the label is %lld (feature '%s' %+lld); the model's result has the "
                           "classes 0 to %lld",
                           (long long)value, field->key, (long long)field->offset,
                           (long long)range->classes - 1);
        out[i] = (int32_t)value;
    }
    return TPUCL_OK;
}

static tpucl_status put_field(const tp_source *source, record_worker *worker,
                              const tp_source_place *place, int32_t index,
                              const tp_feature_values *values, void *out)
{
    const record_source *s = source->state;
    const tp_record_field *field = &s->options.fields[index];
    const uint64_t elems = (uint64_t)tp_shape_elems(&source->fields[index].shape);
    switch (field->kind) {
    case TP_RECORD_IMAGE:
        TP_TRY(check_count(field, values->count, 1));
        return tp_image_reader_read(&worker->images, &s->options.image, place, field->key,
                                    values->bytes[0], out);
    case TP_RECORD_BYTES:
        TP_TRY(check_count(field, values->count, 1));
        TP_TRY(check_count(field, values->bytes[0].length, elems));
        memcpy(out, values->bytes[0].data, elems);
        return TPUCL_OK;
    case TP_RECORD_FLOAT:
        TP_TRY(check_count(field, values->count, elems));
        memcpy(out, values->floats, elems * sizeof(float));
        return TPUCL_OK;
    case TP_RECORD_INT:
    default:
        TP_TRY(check_count(field, values->count, elems));
        return put_ints(field, &s->ranges[index], values, out);
    }
}

/* ---- one record ---- */

/* The message gets the record's place, unless it has one. */
static tpucl_status locate(const record_source *s, int64_t example, tpucl_status status)
{
    char message[1024];
    const char *path;
    uint64_t offset;
    tp_record_index_locate(s->index, example, &path, &offset);
    snprintf(message, sizeof message, "%.1000s", tpucl_last_error()->message);
    return TP_FAIL(status, "'%s', record at offset %llu: %s", path, (unsigned long long)offset,
                   message);
}

static tpucl_status decode(const tp_source *source, record_worker *worker,
                           const tp_source_place *place, tp_view record, void *const *out)
{
    const record_source *s = source->state;
    tp_feature_values values[TP_SOURCE_MAX_FIELDS];
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(ARENA_BYTES, &arena));
    tpucl_status status =
        tp_example_decode(record, s->specs, (size_t)source->field_count, arena, values);
    for (int32_t f = 0; f < source->field_count && status == TPUCL_OK; f++)
        status = put_field(source, worker, place, f, &values[f], out[f]);
    tp_arena_destroy(arena);
    return status;
}

static bool is_damage(tpucl_status status)
{
    return status == TPUCL_CORRUPT_DATA;
}

static tpucl_status read_record(const tp_source *source, record_worker *worker,
                                const tp_source_place *place, void *const *out)
{
    const int64_t example = place->example;
    const record_source *s = source->state;
    tp_view record;
    TP_TRY(tp_record_index_read(s->index, example, &worker->buffer, &record));
    const tpucl_status status = decode(source, worker, place, record, out);
    return status == TPUCL_OK || status == TPUCL_OUT_OF_MEMORY ? status
                                                               : locate(s, example, status);
}

static void warn(record_source *s)
{
    const int before = atomic_fetch_add(&s->warnings, 1);
    if (before < WARNINGS)
        TP_LOG_WARNING("data", "%s; it is left out%s", tpucl_last_error()->message,
                       before + 1 == WARNINGS ? ", as will be others without a word" : "");
    tp_error_clear();
}

/* ---- what was decoded before ---- */

static bool take_cached(const tp_source *source, int64_t example, void *const *out)
{
    const record_source *s = source->state;
    const uint8_t *at =
        s->cache ? atomic_load_explicit(&s->cache[example], memory_order_acquire) : NULL;
    if (!at) return false;
    for (int32_t f = 0; f < source->field_count; f++) {
        memcpy(out[f], at, source->fields[f].bytes);
        at += source->fields[f].bytes;
    }
    return true;
}

/* Without memory it is decoded again the next time. */
static void keep_cached(const tp_source *source, int64_t example, void *const *out)
{
    record_source *s = source->state;
    const long long bytes = (long long)s->example_bytes;
    if (!s->cache) return;
    uint8_t *block = NULL, *none = NULL;
    if (atomic_fetch_sub(&s->cache_left, bytes) >= bytes) block = tp_alloc(s->example_bytes);
    if (!block) {
        atomic_fetch_add(&s->cache_left, bytes);
        return;
    }
    uint8_t *to = block;
    for (int32_t f = 0; f < source->field_count; f++) {
        memcpy(to, out[f], source->fields[f].bytes);
        to += source->fields[f].bytes;
    }
    if (atomic_compare_exchange_strong(&s->cache[example], &none, block)) return;
    tp_free(block); /* another thread was first */
    atomic_fetch_add(&s->cache_left, bytes);
}

static tpucl_status read_example(const tp_source *source, void *worker,
                                 const tp_source_place *place, void *const *out, bool *out_is_there)
{
    record_source *s = source->state;
    *out_is_there = true;
    /* a part drawn by chance is another one the next time */
    const bool is_fixed = s->options.image.resize != TP_RESIZE_AREA || !place->is_training;
    if (is_fixed && take_cached(source, place->example, out)) return TPUCL_OK;
    const tpucl_status status = read_record(source, worker, place, out);
    if (status == TPUCL_OK) {
        if (is_fixed) keep_cached(source, place->example, out);
        return TPUCL_OK;
    }
    if (!is_damage(status) || s->options.index.policy != TP_RECORD_SKIP) return status;
    warn(s);
    *out_is_there = false;
    return TPUCL_OK;
}

static void expect_classes(tp_source *source, int32_t field, int64_t classes, double ignored)
{
    record_source *s = source->state;
    s->ranges[field] = (label_range){classes, ignored};
}

/* ---- opening ---- */

/* Sizes that the options leave open, from the first record that is whole. */
static tpucl_status look_at_image(record_source *s, tp_view record, int32_t field)
{
    tp_feature_values values;
    tp_arena *arena = NULL;
    TP_TRY(tp_arena_create(ARENA_BYTES, &arena));
    tpucl_status status = tp_example_decode(record, &s->specs[field], 1, arena, &values);
    if (status == TPUCL_OK) status = check_count(&s->options.fields[field], values.count, 1);
    if (status == TPUCL_OK)
        status = tp_image_options_complete(&s->options.image, s->options.fields[field].key,
                                           values.bytes[0]);
    tp_arena_destroy(arena);
    return status;
}

/* Bare samples: the preset "raw" says their size in features of its own. */
static tpucl_status look_at_bytes(record_source *s, tp_view record, int32_t field)
{
    const tp_record_preset *preset = NULL;
    tp_record_example example;
    tp_arena *arena = NULL;
    TP_TRY(tp_record_preset_find("raw", &preset));
    TP_TRY(tp_arena_create(ARENA_BYTES, &arena));
    const tpucl_status status = tp_record_preset_decode(preset, record, arena, &example);
    tp_arena_destroy(arena);
    TP_TRY(status);
    const int64_t dims[] = {example.height, example.width, example.channels ? example.channels : 1};
    if (dims[0] < 1 || dims[1] < 1 || dims[2] < 1)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "the record does not say its height and width; name the shape of '%s' in "
                       "data.features",
                       s->options.fields[field].key);
    return tp_shape_init(&s->options.fields[field].shape, 3, dims);
}

static tpucl_status look_at_first(record_source *s, int32_t field)
{
    const bool is_image = s->options.fields[field].kind == TP_RECORD_IMAGE;
    const int64_t count = tp_record_index_count(s->index);
    tp_record_buffer buffer = {0};
    tpucl_status status = TPUCL_OK;
    for (int64_t i = 0; i < count && i < FIRST_TRIES; i++) {
        tp_view record;
        status = tp_record_index_read(s->index, i, &buffer, &record);
        if (status == TPUCL_OK) {
            status = is_image ? look_at_image(s, record, field) : look_at_bytes(s, record, field);
            if (status != TPUCL_OK && status != TPUCL_OUT_OF_MEMORY) status = locate(s, i, status);
        }
        if (!is_damage(status) || s->options.index.policy != TP_RECORD_SKIP) break;
    }
    tp_record_buffer_deinit(&buffer);
    return status;
}

static tpucl_status describe_field(record_source *s, int32_t index, tp_field *out)
{
    static const tp_dtype dtypes[] = {TP_U8, TP_U8, TP_F32, TP_S32};
    tp_record_field *field = &s->options.fields[index];
    const tp_image_options *o = &s->options.image;
    const bool is_image = field->kind == TP_RECORD_IMAGE;
    if ((is_image && (!o->height || !o->width || !o->channels)) ||
        (field->kind == TP_RECORD_BYTES && field->shape.rank == 0))
        TP_TRY(look_at_first(s, index));
    const int64_t dims[] = {o->height, o->width, o->channels};
    if (is_image) TP_TRY(tp_shape_init(&field->shape, 3, dims));
    *out = (tp_field){.name = tp_alloc_strdup(field->name),
                      .dtype = dtypes[field->kind],
                      .shape = field->shape,
                      .bytes = (uint64_t)tp_shape_bytes(&field->shape, dtypes[field->kind])};
    return out->name ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status describe(tp_source *source, record_source *s)
{
    static const tp_feature_kind kinds[] = {TP_FEATURE_BYTES, TP_FEATURE_BYTES, TP_FEATURE_FLOAT,
                                            TP_FEATURE_INT64};
    for (int32_t f = 0; f < s->options.field_count; f++) {
        tp_record_field *field = &s->options.fields[f];
        field->name = tp_arena_strdup(s->arena, field->name);
        field->key = tp_arena_strdup(s->arena, field->key);
        if (!field->name || !field->key) return TPUCL_OUT_OF_MEMORY;
        s->specs[f] = (tp_feature_spec){.key = field->key, .kind = kinds[field->kind], .count = -1};
        TP_TRY(describe_field(s, f, &source->fields[f]));
        source->field_count = f + 1;
        s->example_bytes += source->fields[f].bytes;
    }
    source->label_count = s->options.label_count;
    source->example_count = tp_record_index_count(s->index);
    return TPUCL_OK;
}

static void destroy(void *state)
{
    record_source *s = state;
    if (!s) return;
    for (int64_t i = 0; s->cache && i < tp_record_index_count(s->index); i++)
        tp_free(atomic_load(&s->cache[i]));
    tp_free((void *)s->cache);
    tp_record_index_close(s->index);
    tp_arena_destroy(s->arena);
    tp_free(s);
}

static const tp_source_ops record_ops = {.open_worker = open_worker,
                                         .close_worker = close_worker,
                                         .read = read_example,
                                         .expect_classes = expect_classes,
                                         .destroy = destroy};

static tpucl_status open_state(const tp_record_source_options *options, record_source *s)
{
    s->options = *options;
    atomic_init(&s->warnings, 0);
    atomic_init(&s->cache_left, (long long)options->cache_bytes);
    TP_TRY(tp_arena_create(0, &s->arena));
    TP_TRY(tp_record_index_open(options->paths, options->path_count, &options->index, &s->index));
    if (!options->cache_bytes) return TPUCL_OK;
    s->cache = tp_alloc_array((size_t)tp_record_index_count(s->index), sizeof *s->cache);
    return s->cache ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

tpucl_status tp_source_open_records(const tp_record_source_options *options, tp_source **out_source)
{
    tp_source *source = TP_NEW(tp_source);
    record_source *state = source ? TP_NEW(record_source) : NULL;
    if (!state) {
        tp_free(source);
        return TPUCL_OUT_OF_MEMORY;
    }
    source->ops = &record_ops;
    source->state = state;
    tpucl_status status = open_state(options, state);
    if (status == TPUCL_OK) status = describe(source, state);
    if (status != TPUCL_OK) {
        tp_source_destroy(source);
        return status;
    }
    *out_source = source;
    return TPUCL_OK;
}
