/* SPDX-License-Identifier: Apache-2.0
 * Files of a folder to examples, each read when it is wanted. */
#include "data/source_images.h"

#include <stdatomic.h>
#include <string.h>
#include "core/alloc.h"
#include "core/log.h"
#include "data/image_folder.h"
#include "io/store.h"

enum { WARNINGS = 10, FIRST_TRIES = 16 };

typedef struct image_source {
    tp_image_source_options options;
    tp_image_folder folder;
    atomic_int warnings;
} image_source;

static void close_worker(void *worker)
{
    tp_image_reader *reader = worker;
    if (!reader) return;
    tp_image_reader_deinit(reader);
    tp_free(reader);
}

static tpucl_status open_worker(const tp_source *source, void **out_worker)
{
    (void)source;
    tp_image_reader *reader = TP_NEW(tp_image_reader);
    if (!reader) return TPUCL_OUT_OF_MEMORY;
    const tpucl_status status = tp_image_reader_init(reader);
    if (status != TPUCL_OK) {
        tp_free(reader);
        return status;
    }
    *out_worker = reader;
    return TPUCL_OK;
}

static bool is_damage(tpucl_status status)
{
    return status == TPUCL_CORRUPT_DATA || status == TPUCL_UNSUPPORTED;
}

static void warn(image_source *s)
{
    const int before = atomic_fetch_add(&s->warnings, 1);
    if (before < WARNINGS)
        TP_LOG_WARNING("data", "%s; it is left out%s", tpucl_last_error()->message,
                       before + 1 == WARNINGS ? ", as will be others without a word" : "");
    tp_error_clear();
}

static tpucl_status read_example(const tp_source *source, void *worker,
                                 const tp_source_place *place, void *const *out, bool *out_is_there)
{
    image_source *s = source->state;
    const tp_image_file *file = &s->folder.files[place->example];
    char *bytes = NULL;
    size_t length = 0;
    *out_is_there = true;
    TP_TRY(tp_store_read(file->path, TP_IMAGE_MAX_FILE_BYTES, &bytes, &length));
    const tpucl_status status = tp_image_reader_read(worker, &s->options.image, place, file->path,
                                                     (tp_view){bytes, length}, out[0]);
    tp_free(bytes);
    memcpy(out[1], &file->class_index, sizeof file->class_index);
    if (!is_damage(status) || !s->options.skips) return status;
    warn(s);
    *out_is_there = false;
    return TPUCL_OK;
}

static void destroy(void *state)
{
    image_source *s = state;
    if (!s) return;
    tp_image_folder_close(&s->folder);
    tp_free(s);
}

static void expect_classes(tp_source *source, int32_t field, int64_t classes, double ignored)
{
    (void)source, (void)field, (void)classes, (void)ignored; /* the labels are in an array */
}

static const tp_source_ops image_ops = {.open_worker = open_worker,
                                        .close_worker = close_worker,
                                        .read = read_example,
                                        .expect_classes = expect_classes,
                                        .destroy = destroy};

/* The first file that has a size says what the options leave open. */
static tpucl_status complete_options(image_source *s)
{
    tp_image_options *o = &s->options.image;
    tpucl_status status = TPUCL_OK;
    if (o->height && o->channels) return TPUCL_OK;
    for (int64_t i = 0; i < s->folder.file_count && i < FIRST_TRIES; i++) {
        char *bytes = NULL;
        size_t length = 0;
        const char *path = s->folder.files[i].path;
        TP_TRY(tp_store_read(path, TP_IMAGE_MAX_FILE_BYTES, &bytes, &length));
        status = tp_image_options_complete(o, path, (tp_view){bytes, length});
        tp_free(bytes);
        if (!is_damage(status) || !s->options.skips) break;
    }
    return status;
}

/* Labels stand in an array, so that they are checked before the training begins. */
static tpucl_status describe(image_source *s, tp_source *source)
{
    const tp_image_options *o = &s->options.image;
    const int64_t dims[] = {o->height, o->width, o->channels};
    const int64_t files = s->folder.file_count;
    source->example_count = files;
    source->label_count = 1;
    source->fields[0] = (tp_field){.name = tp_alloc_strdup("image"),
                                   .dtype = TP_U8,
                                   .bytes = (uint64_t)(dims[0] * dims[1] * dims[2])};
    source->fields[1] =
        (tp_field){.name = tp_alloc_strdup("label"), .dtype = TP_S32, .bytes = sizeof(int32_t)};
    source->field_count = 2;
    int32_t *labels = TP_NEW_ARRAY(int32_t, (size_t)files);
    source->arrays[1] = labels;
    if (!source->fields[0].name || !source->fields[1].name || !labels) return TPUCL_OUT_OF_MEMORY;
    for (int64_t i = 0; i < files; i++)
        labels[i] = s->folder.files[i].class_index;
    TP_TRY(tp_shape_init(&source->fields[1].shape, 0, NULL));
    return tp_shape_init(&source->fields[0].shape, 3, dims);
}

tpucl_status tp_source_open_images(const tp_image_source_options *options, tp_source **out_source)
{
    tp_source *source = TP_NEW(tp_source);
    image_source *state = source ? TP_NEW(image_source) : NULL;
    if (!state) {
        tp_free(source);
        return TPUCL_OUT_OF_MEMORY;
    }
    source->ops = &image_ops;
    source->state = state;
    state->options = *options;
    atomic_init(&state->warnings, 0);
    tpucl_status status = tp_image_folder_open(options->folder, &state->folder);
    if (status == TPUCL_OK) status = complete_options(state);
    if (status == TPUCL_OK) status = describe(state, source);
    if (status != TPUCL_OK) {
        tp_source_destroy(source);
        return status;
    }
    *out_source = source;
    return TPUCL_OK;
}

tpucl_status tp_source_check_same_classes(const tp_source *source, const tp_source *other)
{
    const image_source *a = source->state, *b = other->state;
    if (a->folder.class_count != b->folder.class_count)
        return TP_FAIL(TPUCL_INVALID_CONFIG, "'%s' has %d classes and '%s' has %d",
                       a->options.folder, a->folder.class_count, b->options.folder,
                       b->folder.class_count);
    for (int32_t i = 0; i < a->folder.class_count; i++)
        if (strcmp(a->folder.classes[i], b->folder.classes[i]) != 0)
            return TP_FAIL(TPUCL_INVALID_CONFIG,
                           "class %d is '%s' in '%s' and '%s' in '%s'; expected the same folders",
                           i, a->folder.classes[i], a->options.folder, b->folder.classes[i],
                           b->options.folder);
    return TPUCL_OK;
}
