/* SPDX-License-Identifier: Apache-2.0
 * Resizing by a separable triangle filter, and the parts of images that Inception's training takes. */
#include "data/image_resize.h"

#include <math.h>
#include <string.h>
#include "core/alloc.h"
#include "num/philox.h"

enum { AREA_TRIES = 10 };
static const float log_ratio = 0.2876820724f; /* log(4 / 3) */

/* Rows lie `stride` bytes apart. */
typedef struct view {
    const uint8_t *pixels;
    size_t stride;
    int32_t height, width, channels;
} view;

/* A part of an image, and where in the result it goes. */
typedef struct region {
    double y, x, height, width; /* of the image */
    int32_t to_y, to_x, to_height, to_width;
} region;

static tpucl_status reserve(void **inout_memory, size_t *inout_bytes, size_t wanted)
{
    if (wanted <= *inout_bytes) return TPUCL_OK;
    tp_free(*inout_memory);
    *inout_bytes = 0;
    *inout_memory = tp_alloc(wanted);
    if (!*inout_memory) return TPUCL_OUT_OF_MEMORY;
    *inout_bytes = wanted;
    return TPUCL_OK;
}

/* Weights of the samples that each position of one axis is made of: `taps` each, from starts[i] on. They
 * sum up to 1; samples outside of the image count as its border. */
typedef struct axis {
    const int32_t *starts;
    const float *weights;
    int32_t taps;
} axis;

static double triangle(double distance)
{
    return distance < 1 ? 1 - distance : 0;
}

static int32_t taps_of(double scale, bool antialias)
{
    const double support = antialias && scale > 1 ? scale : 1;
    return (int32_t)ceil(2 * support) + 1;
}

static axis make_axis(double begin, double length, int32_t in, int32_t out, bool antialias,
                      int32_t *starts, float *weights)
{
    const double scale = length / out, support = antialias && scale > 1 ? scale : 1;
    const axis made = {starts, weights, taps_of(scale, antialias)};
    for (int32_t i = 0; i < out; i++, weights += made.taps) {
        const double centre = begin + (i + 0.5) * scale - 0.5;
        double sum =
            0; /* above 0: the centre lies between two samples, or half a one beyond the border */
        int32_t first = (int32_t)floor(centre - support) + 1;
        if (first > in - made.taps) first = in - made.taps;
        if (first < 0) first = 0;
        starts[i] = first;
        for (int32_t k = 0; k < made.taps; k++) {
            const double weight = first + k < in ? triangle(fabs(first + k - centre) / support) : 0;
            weights[k] = (float)weight;
            sum += weight;
        }
        for (int32_t k = 0; k < made.taps; k++)
            weights[k] = (float)(weights[k] / sum);
    }
    return made;
}

/* f32 [out width, channels] of one row of bytes. */
static void resize_row(const uint8_t *row, const axis *columns, int32_t width, int32_t channels,
                       int32_t in, float *out)
{
    for (int32_t x = 0; x < width; x++) {
        const float *weights = columns->weights + (size_t)x * (size_t)columns->taps;
        const int32_t first = columns->starts[x];
        const int32_t taps = columns->taps < in - first ? columns->taps : in - first;
        const uint8_t *from = row + (size_t)first * (size_t)channels;
        for (int32_t c = 0; c < channels; c++) {
            float sum = 0;
            for (int32_t k = 0; k < taps; k++)
                sum += weights[k] * (float)from[k * channels + c];
            *out++ = sum;
        }
    }
}

static uint8_t to_byte(float value)
{
    return (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : value + 0.5f);
}

/* Rows come as they are needed, in a ring of as many as one position takes. */
static void resize_region(const view *image, const region *r, const axis *columns, const axis *rows,
                          float *ring, uint8_t *out, size_t out_stride)
{
    const size_t row_elems = (size_t)r->to_width * (size_t)image->channels;
    float *sums = ring + (size_t)rows->taps * row_elems;
    int32_t made = 0; /* rows of the image that were resized, from the first on */
    for (int32_t y = 0; y < r->to_height; y++) {
        const float *weights = rows->weights + (size_t)y * (size_t)rows->taps;
        const int32_t first = rows->starts[y];
        const int32_t taps =
            rows->taps < image->height - first ? rows->taps : image->height - first;
        if (made < first) made = first;
        for (; made < first + taps; made++)
            resize_row(image->pixels + (size_t)made * image->stride, columns, r->to_width,
                       image->channels, image->width,
                       ring + (size_t)(made % rows->taps) * row_elems);
        uint8_t *to =
            out + (size_t)(r->to_y + y) * out_stride + (size_t)r->to_x * (size_t)image->channels;
        memset(sums, 0, row_elems * sizeof *sums);
        for (int32_t k = 0; k < taps; k++) {
            const float *from = ring + (size_t)((first + k) % rows->taps) * row_elems;
            for (size_t x = 0; x < row_elems; x++)
                sums[x] += weights[k] * from[x];
        }
        for (size_t x = 0; x < row_elems; x++)
            to[x] = to_byte(sums[x]);
    }
}

static region choose_region(const view *image, tp_resize_mode mode, int32_t height, int32_t width)
{
    region r = {0, 0, image->height, image->width, 0, 0, height, width};
    const double scale_y = (double)height / image->height, scale_x = (double)width / image->width;
    if (mode == TP_RESIZE_CROP || mode == TP_RESIZE_AREA) {
        const double scale = scale_y > scale_x ? scale_y : scale_x;
        r.height = height / scale;
        r.width = width / scale;
        r.y = (image->height - r.height) / 2;
        r.x = (image->width - r.width) / 2;
    } else if (mode == TP_RESIZE_PAD) {
        const double scale = scale_y < scale_x ? scale_y : scale_x;
        r.to_height = (int32_t)fmin(fmax(1, floor(image->height * scale + 0.5)), height);
        r.to_width = (int32_t)fmin(fmax(1, floor(image->width * scale + 0.5)), width);
        r.to_y = (height - r.to_height) / 2;
        r.to_x = (width - r.to_width) / 2;
    }
    return r;
}

static tpucl_status resize_view(const view *image, const region *r, bool antialias,
                                tp_resize_buffer *buffer, uint8_t *out, size_t stride)
{
    const size_t taps_x = (size_t)taps_of(r->width / r->to_width, antialias);
    const size_t taps_y = (size_t)taps_of(r->height / r->to_height, antialias);
    const size_t weights_x = taps_x * (size_t)r->to_width;
    const size_t weights_y = taps_y * (size_t)r->to_height;
    TP_TRY(reserve(&buffer->rows, &buffer->rows_bytes,
                   (taps_y + 1) * (size_t)r->to_width * (size_t)image->channels * sizeof(float)));
    TP_TRY(
        reserve(&buffer->weights, &buffer->weights_bytes, (weights_x + weights_y) * sizeof(float)));
    TP_TRY(reserve(&buffer->starts, &buffer->starts_bytes,
                   ((size_t)r->to_width + (size_t)r->to_height) * sizeof(int32_t)));
    const axis columns = make_axis(r->x, r->width, image->width, r->to_width, antialias,
                                   buffer->starts, buffer->weights);
    const axis rows =
        make_axis(r->y, r->height, image->height, r->to_height, antialias,
                  (int32_t *)buffer->starts + r->to_width, (float *)buffer->weights + weights_x);
    resize_region(image, r, &columns, &rows, buffer->rows, out, stride);
    return TPUCL_OK;
}

static view view_of(const tp_image *image)
{
    return (view){image->pixels, (size_t)image->width * (size_t)image->channels, image->height,
                  image->width, image->channels};
}

tpucl_status tp_image_resize_bytes(const tp_image *image, tp_resize_mode mode, bool antialias,
                                   int32_t height, int32_t width, const char *name,
                                   tp_resize_buffer *buffer, uint8_t *out)
{
    const view whole = view_of(image);
    const size_t stride = (size_t)width * (size_t)image->channels;
    if (image->height == height && image->width == width) {
        memcpy(out, image->pixels, (size_t)height * stride);
        return TPUCL_OK;
    }
    if (mode == TP_RESIZE_NONE)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "'%s' has %d x %d pixels, expected %d x %d; set data.image.resize", name,
                       image->width, image->height, width, height);
    const region r = choose_region(&whole, mode, height, width);
    if (mode == TP_RESIZE_PAD) memset(out, 0, (size_t)height * stride);
    return resize_view(&whole, &r, antialias, buffer, out, stride);
}

tpucl_status tp_image_resize_area(const tp_image *image, const tp_image_area *area, bool antialias,
                                  int32_t height, int32_t width, tp_resize_buffer *buffer,
                                  uint8_t *out)
{
    view part = view_of(image);
    part.pixels += (size_t)area->top * part.stride + (size_t)area->left * (size_t)part.channels;
    part.height = area->height;
    part.width = area->width;
    const region r = {0, 0, area->height, area->width, 0, 0, height, width};
    return resize_view(&part, &r, antialias, buffer, out, (size_t)width * (size_t)image->channels);
}

/* ---- areas by chance ---- */

static bool draw_once(const tp_augment_place *place, uint32_t attempt, float least, int32_t height,
                      int32_t width, tp_image_area *out)
{
    const tp_random_stream stream =
        tp_random_stream_make((uint32_t)place->seed, (uint32_t)(place->seed >> 32),
                              TP_AUGMENT_STREAM + TP_AUGMENT_AREA, place->core, place->step);
    uint32_t words[4];
    float u[4];
    tp_random_words(stream, place->row * AREA_TRIES + attempt, words);
    for (int i = 0; i < 4; i++)
        u[i] = tp_random_uniform_from_bits(words[i]);
    const float size = (least + (1 - least) * u[0]) * ((float)height * (float)width);
    const float ratio = tp_math_exp((2 * u[1] - 1) * log_ratio);
    const float w = floorf(tp_math_sqrt(size * ratio) + 0.5f);
    const float h = floorf(tp_math_sqrt(tp_math_divide(size, ratio)) + 0.5f);
    if (!(w >= 1 && w <= (float)width && h >= 1 && h <= (float)height)) return false;
    out->height = (int32_t)h;
    out->width = (int32_t)w;
    out->top = (int32_t)fminf(floorf(u[2] * ((float)height - h + 1)), (float)height - h);
    out->left = (int32_t)fminf(floorf(u[3] * ((float)width - w + 1)), (float)width - w);
    return true;
}

tp_image_area tp_image_draw_area(const tp_augment_place *place, double least, int32_t height,
                                 int32_t width)
{
    tp_image_area area = {0, 0, height, width};
    for (uint32_t attempt = 0; attempt < AREA_TRIES; attempt++)
        if (draw_once(place, attempt, (float)least, height, width, &area)) return area;
    if (3 * (int64_t)width > 4 * (int64_t)height)
        area.width = (int32_t)(4 * (int64_t)height / 3);
    else if (3 * (int64_t)height > 4 * (int64_t)width)
        area.height = (int32_t)(4 * (int64_t)width / 3);
    area.top = (height - area.height) / 2;
    area.left = (width - area.width) / 2;
    return area;
}

void tp_resize_buffer_deinit(tp_resize_buffer *buffer)
{
    tp_free(buffer->rows);
    tp_free(buffer->weights);
    tp_free(buffer->starts);
    *buffer = (tp_resize_buffer){0};
}
