/* SPDX-License-Identifier: Apache-2.0
 * Makes records of arrays and of folders of images. */
#include "data/record_make.h"

#include <stdio.h>
#include <string.h>
#include "core/alloc.h"
#include "core/crc32c.h"
#include "core/file.h"
#include "core/json_write.h"
#include "data/image_folder.h"
#include "data/order.h"
#include "data/record_make_internal.h"
#include "data/source.h"
#include "io/example.h"
#include "io/image.h"
#include "io/store.h"

enum { MAX_FEATURES = TP_PARTS };

typedef struct maker {
    const tp_make_options *options;
    tp_source *source;          /* arrays, or: */
    tp_image_folder folder;     /* arena NULL: none */
    int64_t *order;             /* [records]; NULL: as they come */
    tp_str_builder png, record; /* png: or JPEG */
    tp_image_decoder *decoder;
    tp_resize_buffer resize;
    uint8_t *pixels; /* of the size asked for */
} maker;

/* The features of one record, and the values they point to. */
typedef struct features {
    tp_feature list[MAX_FEATURES];
    size_t count;
    int64_t ints[MAX_FEATURES];
    tp_view texts[MAX_FEATURES];
} features;

static void add_int(features *f, const char *key, int64_t value)
{
    if (!key) return;
    f->ints[f->count] = value;
    f->list[f->count] =
        (tp_feature){key, {.kind = TP_FEATURE_INT64, .count = 1, .ints = &f->ints[f->count]}};
    f->count++;
}

static void add_bytes(features *f, const char *key, const void *bytes, size_t length)
{
    if (!key) return;
    f->texts[f->count] = (tp_view){bytes, length};
    f->list[f->count] =
        (tp_feature){key, {.kind = TP_FEATURE_BYTES, .count = 1, .bytes = &f->texts[f->count]}};
    f->count++;
}

static void add_text(features *f, const char *key, const char *text)
{
    add_bytes(f, key, text, strlen(text));
}

static void add_floats(features *f, const char *key, const float *values, size_t count)
{
    f->list[f->count++] =
        (tp_feature){key, {.kind = TP_FEATURE_FLOAT, .count = count, .floats = values}};
}

static void add_size(features *f, const tp_record_preset *preset, int64_t height, int64_t width,
                     int64_t channels)
{
    add_int(f, preset->keys[TP_PART_HEIGHT], height);
    add_int(f, preset->keys[TP_PART_WIDTH], width);
    add_int(f, preset->keys[TP_PART_CHANNELS], channels);
    add_text(f, preset->keys[TP_PART_COLORSPACE], channels < 3 ? "grayscale" : "RGB");
}

/* ---- arrays ---- */

static tpucl_status add_array_image(maker *m, features *f, const tp_field *field,
                                    const uint8_t *bytes)
{
    const tp_record_preset *preset = m->options->preset;
    const int64_t *dims = field->shape.dims;
    const char *key = preset->keys[TP_PART_IMAGE];
    const bool is_image = field->shape.rank == 3 && dims[2] >= 1 && dims[2] <= 4;
    if (field->dtype == TP_F32) {
        add_floats(f, key, (const float *)(const void *)bytes, (size_t)field->bytes / 4);
        return TPUCL_OK;
    }
    if (preset->is_raw) {
        add_bytes(f, key, bytes, (size_t)field->bytes);
    } else if (is_image) {
        m->png.length = 0;
        TP_TRY(tp_png_encode(bytes, (int32_t)dims[1], (int32_t)dims[0], (int32_t)dims[2],
                             m->options->png_level, &m->png));
        add_bytes(f, key, m->png.data, m->png.length);
        add_text(f, preset->keys[TP_PART_FORMAT], "PNG");
    } else {
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'%s' does not hold images of 1 to 4 channels; preset 'raw' takes any bytes",
                       m->options->inputs);
    }
    if (is_image) add_size(f, preset, dims[0], dims[1], dims[2]);
    return TPUCL_OK;
}

static tpucl_status add_array_example(maker *m, features *f, int64_t index)
{
    const tp_record_preset *preset = m->options->preset;
    const tp_field *image = &m->source->fields[0], *label = &m->source->fields[1];
    const char *at = (const char *)m->source->arrays[1] + (uint64_t)index * label->bytes;
    TP_TRY(add_array_image(m, f, image,
                           (const uint8_t *)m->source->arrays[0] + (uint64_t)index * image->bytes));
    if (label->dtype == TP_F32) {
        add_floats(f, preset->keys[TP_PART_LABEL], (const float *)(const void *)at,
                   (size_t)label->bytes / 4);
    } else {
        int32_t value;
        memcpy(&value, at, sizeof value);
        add_int(f, preset->keys[TP_PART_LABEL], value + preset->first_label);
    }
    return TPUCL_OK;
}

/* ---- folders of images ---- */

static bool encodes_again(const tp_make_options *o)
{
    return o->height || o->width || o->jpeg_quality;
}

/* *inout_bytes is another file then, of the maker's, in another size. */
static tpucl_status encode_again(maker *m, const char *path, const char **inout_bytes,
                                 size_t *inout_length)
{
    const tp_make_options *o = m->options;
    tp_image image;
    TP_TRY(
        tp_image_decode(m->decoder, *inout_bytes, *inout_length, path, 0, o->is_upright, &image));
    if (o->jpeg_quality && image.channels != 1 && image.channels != 3) /* alpha has no place */
        TP_TRY(tp_image_decode(m->decoder, *inout_bytes, *inout_length, path,
                               image.channels == 2 ? 1 : 3, o->is_upright, &image));
    if (o->height) {
        TP_TRY(tp_image_resize_bytes(&image, o->resize, true, o->height, o->width, path, &m->resize,
                                     m->pixels));
        image = (tp_image){o->width, o->height, image.channels, m->pixels};
    }
    m->png.length = 0;
    if (o->jpeg_quality)
        TP_TRY(tp_jpeg_encode(image.pixels, image.width, image.height, image.channels,
                              o->jpeg_quality, false, &m->png));
    else
        TP_TRY(tp_png_encode(image.pixels, image.width, image.height, image.channels, o->png_level,
                             &m->png));
    *inout_bytes = m->png.data;
    *inout_length = m->png.length;
    return TPUCL_OK;
}

static tpucl_status add_file_example(maker *m, features *f, int64_t index, char **out_bytes)
{
    const tp_record_preset *preset = m->options->preset;
    const tp_image_file *file = &m->folder.files[index];
    tp_image_header header;
    size_t length = 0;
    TP_TRY(tp_store_read(file->path, TP_IMAGE_MAX_FILE_BYTES, out_bytes, &length));
    const char *bytes = *out_bytes;
    if (encodes_again(m->options)) TP_TRY(encode_again(m, file->path, &bytes, &length));
    TP_TRY(tp_image_read_header(bytes, length, file->path, &header));
    add_bytes(f, preset->keys[TP_PART_IMAGE], bytes, length);
    add_int(f, preset->keys[TP_PART_LABEL], file->class_index + preset->first_label);
    add_text(f, preset->keys[TP_PART_FORMAT], tp_image_format_name(header.format));
    add_size(f, preset, header.height, header.width, header.channels);
    add_text(f, preset->keys[TP_PART_FILENAME], tp_file_base_name(file->path));
    add_text(f, preset->keys[TP_PART_CLASS], m->folder.classes[file->class_index]);
    return TPUCL_OK;
}

static tpucl_status write_classes(const maker *m)
{
    tp_str_builder text = {0}, path = {0};
    char *bytes = NULL, *name = NULL;
    size_t length = 0;
    for (int32_t i = 0; i < m->folder.class_count; i++)
        tp_str_builder_printf(&text, "%lld:%s\n", (long long)(i + m->options->preset->first_label),
                              m->folder.classes[i]);
    tp_str_builder_printf(&path, "%s.labels.txt", m->options->output);
    tpucl_status status = tp_str_builder_finish(&text, &bytes, &length);
    if (status == TPUCL_OK) status = tp_str_builder_finish(&path, &name, NULL);
    if (status == TPUCL_OK) status = tp_store_write(name, bytes, length);
    tp_str_builder_deinit(&path);
    tp_free(bytes);
    tp_free(name);
    return status;
}

/* ---- the work ---- */

/* As tp_shards_write asks for it. */
static tpucl_status next_example(void *user, int64_t at, tp_view *out_record)
{
    maker *m = user;
    features f = {.count = 0};
    char *bytes = NULL;
    const int64_t index = m->order ? m->order[at] : at;
    const tpucl_status status =
        m->source ? add_array_example(m, &f, index) : add_file_example(m, &f, index, &bytes);
    if (status == TPUCL_OK) {
        m->record.length = 0;
        tp_example_encode(&m->record, f.list, f.count);
        *out_record = (tp_view){m->record.data, m->record.length};
    }
    tp_free(bytes);
    return status == TPUCL_OK ? m->record.status : status;
}

static tpucl_status prepare_images(maker *m)
{
    const tp_make_options *o = m->options;
    const bool has_size = o->height || o->width;
    if (!encodes_again(o)) return TPUCL_OK;
    if ((has_size &&
         (o->height < 1 || o->width < 1 || o->height >= TP_IMAGE_MAX_SIDE ||
          o->width >= TP_IMAGE_MAX_SIDE || (int64_t)o->height * o->width > TP_IMAGE_MAX_PIXELS)) ||
        o->jpeg_quality < 0 || o->jpeg_quality > 100)
        return TP_FAIL(
            TPUCL_INVALID_ARGUMENT,
            "images of %d x %d with quality %d; expected sides from 1 to %d and a quality "
            "from 1 to 100",
            o->width, o->height, o->jpeg_quality, TP_IMAGE_MAX_SIDE - 1);
    TP_TRY(tp_image_decoder_create(&m->decoder));
    if (!has_size) return TPUCL_OK;
    m->pixels = tp_alloc_array((size_t)o->height * (size_t)o->width, 4);
    return m->pixels ? TPUCL_OK : TPUCL_OUT_OF_MEMORY;
}

static tpucl_status open_inputs(maker *m)
{
    const tp_make_options *o = m->options;
    if (!o->labels) {
        if (o->preset->is_raw)
            return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                           "preset '%s' holds bare samples, and a folder of images is taken as it "
                           "is; name another preset",
                           o->preset->name);
        TP_TRY(prepare_images(m));
        return tp_image_folder_open(o->inputs, &m->folder);
    }
    if (encodes_again(o))
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "a size and a JPEG quality are for folders of images, '%s' is a file of "
                       "arrays",
                       o->inputs);
    if (tp_str_ends_with(o->inputs, ".npy")) {
        TP_TRY(tp_source_open_npy(o->inputs, o->labels, &m->source));
    } else {
        TP_TRY(tp_source_open_idx(o->inputs, o->labels, &m->source));
    }
    return tp_source_wait(m->source);
}

static tpucl_status shuffle(maker *m, int64_t records)
{
    if (!m->options->shuffle) return TPUCL_OK;
    m->order = TP_NEW_ARRAY(int64_t, (size_t)records);
    if (!m->order) return TPUCL_OUT_OF_MEMORY;
    return tp_order_fill(records, 0, m->options->seed, 0, m->order);
}

/* Of what is made: sums over arrays would cost more than they tell, so sizes and names stand for them. */
static tpucl_status describe(const maker *m, int64_t records, char **out_text)
{
    const tp_make_options *o = m->options;
    uint64_t bytes = 0;
    uint32_t sum = 0;
    if (m->source) TP_TRY(tp_store_size(o->inputs, &bytes));
    for (int64_t i = 0; i < m->folder.file_count; i++)
        sum = tp_crc32c(sum, m->folder.files[i].path, strlen(m->folder.files[i].path) + 1);
    tp_json_writer writer = {0};
    tp_json_begin_object(&writer);
    tp_json_put_string(&writer, "inputs", o->inputs);
    tp_json_put_string(&writer, "labels", o->labels);
    tp_json_put_int(&writer, "input_bytes", (int64_t)bytes);
    tp_json_put_int(&writer, "input_names_crc32c", sum);
    tp_json_put_string(&writer, "preset", o->preset->name);
    tp_json_put_int(&writer, "png_level", o->png_level);
    if (encodes_again(o)) { /* others are described as before */
        tp_json_put_int(&writer, "height", o->height);
        tp_json_put_int(&writer, "width", o->width);
        tp_json_put_int(&writer, "resize", o->resize);
        tp_json_put_int(&writer, "jpeg_quality", o->jpeg_quality);
        tp_json_put_bool(&writer, "upright", o->is_upright);
    }
    tp_json_put_bool(&writer, "shuffle", o->shuffle);
    tp_json_put_int(&writer, "seed", o->shuffle ? (int64_t)o->seed : 0);
    tp_shards_describe(&writer, o, records);
    tp_json_end_object(&writer);
    return tp_json_writer_finish(&writer, out_text);
}

static tpucl_status make(maker *m, tp_make_result *out)
{
    char *description = NULL;
    TP_TRY(open_inputs(m));
    const int64_t records = m->source ? m->source->example_count : m->folder.file_count;
    TP_TRY(shuffle(m, records));
    TP_TRY(describe(m, records, &description));
    const tpucl_status status =
        tp_shards_write(m->options, description, records, next_example, m, out);
    tp_free(description);
    TP_TRY(status);
    out->classes = m->folder.class_count;
    return m->folder.arena ? write_classes(m) : TPUCL_OK;
}

tpucl_status tp_records_make(const tp_make_options *options, tp_make_result *out_result)
{
    maker m = {.options = options};
    *out_result = (tp_make_result){0};
    const tpucl_status status = make(&m, out_result);
    tp_source_destroy(m.source);
    tp_image_folder_close(&m.folder);
    tp_image_decoder_destroy(m.decoder);
    tp_resize_buffer_deinit(&m.resize);
    tp_free(m.pixels);
    tp_str_builder_deinit(&m.png);
    tp_str_builder_deinit(&m.record);
    tp_free(m.order);
    return status;
}
