/* SPDX-License-Identifier: Apache-2.0
 * The source around a source. */
#include "data/source_augment.h"

#include <string.h>
#include "core/alloc.h"

enum { MAX_VALUES = 1 << 23 }; /* sums of bytes stay below 2^31 */

typedef struct augment_source {
    tp_source *inner;
    tp_source_augment_options options;
    int32_t field;
} augment_source;

typedef struct augment_worker {
    const tp_source *inner;
    void *worker;
    uint8_t *image; /* as `inner` has it */
    float *scratch;
} augment_worker;

/* ---- threads ---- */

static void close_worker(void *worker)
{
    augment_worker *w = worker;
    if (!w) return;
    if (w->inner->ops) w->inner->ops->close_worker(w->worker);
    tp_free(w->image);
    tp_free(w->scratch);
    tp_free(w);
}

static tpucl_status open_worker(const tp_source *source, void **out_worker)
{
    const augment_source *s = source->state;
    const tp_field *field = &s->inner->fields[s->field];
    augment_worker *w = TP_NEW(augment_worker);
    if (!w) return TPUCL_OUT_OF_MEMORY;
    w->inner = s->inner;
    w->image = tp_alloc(field->bytes);
    w->scratch = tp_alloc_array((size_t)s->options.augment.width * (size_t)field->shape.dims[2],
                                sizeof *w->scratch);
    tpucl_status status = w->image && w->scratch ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
    if (status == TPUCL_OK && s->inner->ops)
        status = s->inner->ops->open_worker(s->inner, &w->worker);
    if (status != TPUCL_OK) {
        close_worker(w);
        return status;
    }
    *out_worker = w;
    return TPUCL_OK;
}

/* ---- an example ---- */

/* Fields as `inner` has them; *out_image points to the one that is changed. */
static tpucl_status read_inner(const augment_source *s, augment_worker *w,
                               const tp_source_place *place, void *const *out,
                               const uint8_t **out_image, bool *out_is_there)
{
    const tp_source *inner = s->inner;
    void *to[TP_SOURCE_MAX_FIELDS];
    if (inner->ops) {
        memcpy(to, out, (size_t)inner->field_count * sizeof *to);
        to[s->field] = w->image;
        *out_image = w->image;
        return inner->ops->read(inner, w->worker, place, to, out_is_there);
    }
    *out_is_there = true;
    for (int32_t f = 0; f < inner->field_count; f++) {
        const char *from =
            (const char *)inner->arrays[f] + (uint64_t)place->example * inner->fields[f].bytes;
        if (f == s->field)
            *out_image = (const uint8_t *)from;
        else
            memcpy(out[f], from, inner->fields[f].bytes);
    }
    return TPUCL_OK;
}

static tpucl_status read_example(const tp_source *source, void *worker,
                                 const tp_source_place *place, void *const *out, bool *out_is_there)
{
    const augment_source *s = source->state;
    augment_worker *w = worker;
    const tp_source_augment_options *o = &s->options;
    const int64_t *dims = s->inner->fields[s->field].shape.dims;
    const uint8_t *image = NULL;
    TP_TRY(read_inner(s, w, place, out, &image, out_is_there));
    if (!*out_is_there) return TPUCL_OK;
    const tp_augment_place drawn = {.seed = o->seed,
                                    .step = place->step,
                                    .core = (uint32_t)(place->row / o->per_core_batch),
                                    .row = (uint32_t)(place->row % o->per_core_batch)};
    tp_augment_apply(&o->augment, o->is_random && place->is_training ? &drawn : NULL, image,
                     (int32_t)dims[0], (int32_t)dims[1], (int32_t)dims[2], w->scratch,
                     out[s->field]);
    return TPUCL_OK;
}

static void expect_classes(tp_source *source, int32_t field, int64_t classes, double ignored)
{
    const augment_source *s = source->state;
    if (s->inner->ops) s->inner->ops->expect_classes(s->inner, field, classes, ignored);
}

static tpucl_status wait_for(const tp_source *source)
{
    return tp_source_wait(((const augment_source *)source->state)->inner);
}

static void destroy(void *state)
{
    augment_source *s = state;
    if (!s) return;
    tp_source_destroy(s->inner);
    tp_free(s);
}

static const tp_source_ops augment_ops = {.open_worker = open_worker,
                                          .close_worker = close_worker,
                                          .read = read_example,
                                          .expect_classes = expect_classes,
                                          .wait = wait_for,
                                          .destroy = destroy};

/* ---- making one ---- */

tpucl_status tp_source_find_image(const tp_source *source, const tp_augment *augment,
                                  int32_t *out_field)
{
    for (int32_t f = 0; f < source->field_count - source->label_count; f++) {
        const tp_field *field = &source->fields[f];
        const int64_t *dims = field->shape.dims;
        if (field->dtype != TP_U8 || field->shape.rank != 3 || dims[2] > 4) continue;
        *out_field = f;
        if (augment->height > dims[0] || augment->width > dims[1] || field->bytes > MAX_VALUES)
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "data.augment: images of %lld x %lld have no window of %d x %d, or more "
                           "than %d values",
                           (long long)dims[1], (long long)dims[0], augment->width, augment->height,
                           MAX_VALUES);
        return TPUCL_OK;
    }
    return TP_FAIL(TPUCL_INVALID_CONFIG,
                   "data.augment is for images of bytes [height, width, 1 to 4 channels]; these "
                   "data have none");
}

static tpucl_status copy_fields(const augment_source *s, tp_source *source)
{
    const int64_t *dims = s->inner->fields[s->field].shape.dims;
    const int64_t window[] = {s->options.augment.height, s->options.augment.width, dims[2]};
    source->example_count = s->inner->example_count;
    source->label_count = s->inner->label_count;
    source->is_borrowed = true;
    for (int32_t f = 0; f < s->inner->field_count; f++) {
        tp_field *field = &source->fields[f];
        *field = s->inner->fields[f];
        field->name = tp_alloc_strdup(field->name);
        source->field_count = f + 1;
        if (!field->name) return TPUCL_OUT_OF_MEMORY;
        if (f != s->field) source->arrays[f] = s->inner->arrays[f];
    }
    tp_field *image = &source->fields[s->field];
    image->bytes = (uint64_t)(window[0] * window[1] * window[2]);
    return tp_shape_init(&image->shape, 3, window);
}

tpucl_status tp_source_augment(tp_source *inner, const tp_source_augment_options *options,
                               tp_source **out_source)
{
    int32_t field = 0;
    TP_TRY(tp_source_find_image(inner, &options->augment, &field));
    tp_source *source = TP_NEW(tp_source);
    augment_source *state = source ? TP_NEW(augment_source) : NULL;
    if (!state) {
        tp_free(source);
        return TPUCL_OUT_OF_MEMORY;
    }
    *state = (augment_source){.options = *options, .field = field, .inner = inner};
    const int64_t *dims = inner->fields[field].shape.dims;
    if (!state->options.augment.height) {
        state->options.augment.height = (int32_t)dims[0];
        state->options.augment.width = (int32_t)dims[1];
    }
    source->ops = &augment_ops;
    source->state = state;
    const tpucl_status status = copy_fields(state, source);
    if (status != TPUCL_OK) {
        state->inner = NULL; /* stays the caller's */
        tp_source_destroy(source);
        return status;
    }
    *out_source = source;
    return TPUCL_OK;
}
