/* SPDX-License-Identifier: Apache-2.0
 * Random changes of an image on the host, row by row. */
#include "num/augment.h"

#include <math.h>
#include <string.h>
#include "num/philox.h"

/* What was drawn for one image. */
typedef struct drawn {
    int32_t top, left; /* of the window in the image; negative in the padding */
    bool flip_x, flip_y;
    float contrast, brightness, saturation;
    float mean;
    tp_random_stream noise;
} drawn;

static tp_random_stream stream_of(const tp_augment_place *place, int which)
{
    return tp_random_stream_make((uint32_t)place->seed, (uint32_t)(place->seed >> 32),
                                 (uint32_t)(TP_AUGMENT_STREAM + which), place->core, place->step);
}

static float uniform(const tp_augment_place *place, int which)
{
    return tp_random_uniform(stream_of(place, which), place->row / 4, place->row % 4);
}

static bool flips(const tp_augment_place *place, int which)
{
    return tp_random_bernoulli(stream_of(place, which), place->row / 4, place->row % 4,
                               tp_bernoulli_threshold(0.5f)) != 0;
}

static int32_t draw_start(const tp_augment_place *place, int which, int32_t places, int32_t pad)
{
    const float at = floorf(uniform(place, which) * (float)places);
    return (int32_t)(at < (float)(places - 1) ? at : (float)(places - 1)) - pad;
}

static float draw_factor(const tp_augment_place *place, int which, double range)
{
    return uniform(place, which) * (float)(2 * range) + (float)(1 - range);
}

static drawn draw(const tp_augment *augment, const tp_augment_place *place, int32_t height,
                  int32_t width)
{
    drawn d = {.top = (height - augment->height) / 2, .left = (width - augment->width) / 2};
    if (!place) return d;
    const int32_t pad = augment->pad;
    d.top = draw_start(place, TP_AUGMENT_TOP, height + 2 * pad - augment->height + 1, pad);
    d.left = draw_start(place, TP_AUGMENT_LEFT, width + 2 * pad - augment->width + 1, pad);
    d.flip_x = augment->flips_x && flips(place, TP_AUGMENT_FLIP_X);
    d.flip_y = augment->flips_y && flips(place, TP_AUGMENT_FLIP_Y);
    d.contrast = draw_factor(place, TP_AUGMENT_CONTRAST, augment->contrast);
    d.brightness = uniform(place, TP_AUGMENT_BRIGHTNESS) * (float)(510 * augment->brightness) +
                   (float)(-255 * augment->brightness);
    d.saturation = draw_factor(place, TP_AUGMENT_SATURATION, augment->saturation);
    d.noise = stream_of(place, TP_AUGMENT_NOISE);
    return d;
}

/* ---- places ---- */

static void crop_row(const uint8_t *image, int32_t height, int32_t width, int32_t channels,
                     int32_t row, int32_t left, int32_t out_width, uint8_t *out)
{
    memset(out, 0, (size_t)out_width * (size_t)channels);
    if (row < 0 || row >= height) return;
    const int32_t begin = left < 0 ? -left : 0;
    const int32_t end = width - left < out_width ? width - left : out_width;
    if (end <= begin) return;
    memcpy(out + (size_t)begin * (size_t)channels,
           image + ((size_t)row * (size_t)width + (size_t)(left + begin)) * (size_t)channels,
           (size_t)(end - begin) * (size_t)channels);
}

static void mirror_row(uint8_t *row, int32_t width, int32_t channels)
{
    for (int32_t a = 0, b = width - 1; a < b; a++, b--)
        for (int32_t c = 0; c < channels; c++) {
            const uint8_t other = row[b * channels + c];
            row[b * channels + c] = row[a * channels + c];
            row[a * channels + c] = other;
        }
}

/* ---- values ---- */

static float find_mean(const uint8_t *image, size_t values)
{
    int32_t sum = 0;
    for (size_t i = 0; i < values; i++)
        sum += image[i];
    return (float)sum * (float)(1.0 / (double)values);
}

static void saturate(float *x, int32_t width, float factor)
{
    for (int32_t i = 0; i < width; i++, x += 3) {
        const float grey = (x[0] * 0.299f + x[1] * 0.587f) + x[2] * 0.114f;
        for (int c = 0; c < 3; c++)
            x[c] = grey + (x[c] - grey) * factor;
    }
}

/* `count` values from element `first` on; blocks of four share their random words. */
static void add_noise(float *x, int64_t count, int64_t first, tp_random_stream stream, float factor)
{
    for (int64_t i = first; i < first + count;) {
        uint32_t words[4];
        tp_random_words(stream, (uint32_t)(i / 4), words);
        do {
            const uint32_t lane = (uint32_t)(i % 4);
            const float normal =
                tp_random_normal_from_bits(words[lane & 2u], words[lane | 1u], lane);
            x[i - first] = x[i - first] + normal * factor;
            i++;
        } while (i % 4 && i < first + count);
    }
}

static void change_row(const tp_augment *augment, const drawn *d, int64_t first, int32_t channels,
                       float *x, uint8_t *row)
{
    const int32_t count = augment->width * channels;
    for (int32_t i = 0; i < count; i++)
        x[i] = (float)row[i];
    if (augment->contrast > 0)
        for (int32_t i = 0; i < count; i++)
            x[i] = (x[i] - d->mean) * d->contrast + d->mean;
    if (augment->brightness > 0)
        for (int32_t i = 0; i < count; i++)
            x[i] = x[i] + d->brightness;
    if (augment->noise > 0) add_noise(x, count, first, d->noise, (float)(255 * augment->noise));
    if (augment->saturation > 0 && channels == 3) saturate(x, augment->width, d->saturation);
    for (int32_t i = 0; i < count; i++) {
        const float above = x[i] > 0 ? x[i] : 0;
        row[i] = (uint8_t)((above < 255 ? above : 255) + 0.5f);
    }
}

void tp_augment_apply(const tp_augment *augment, const tp_augment_place *place,
                      const uint8_t *image, int32_t height, int32_t width, int32_t channels,
                      float *scratch, uint8_t *out)
{
    drawn d = draw(augment, place, height, width);
    const size_t row_bytes = (size_t)augment->width * (size_t)channels;
    for (int32_t y = 0; y < augment->height; y++) {
        const int32_t from = d.flip_y ? augment->height - 1 - y : y;
        uint8_t *row = out + (size_t)y * row_bytes;
        crop_row(image, height, width, channels, d.top + from, d.left, augment->width, row);
        if (d.flip_x) mirror_row(row, augment->width, channels);
    }
    if (!place || !tp_augment_colours(augment)) return;
    d.mean = find_mean(out, (size_t)augment->height * row_bytes);
    const int64_t rows = (int64_t)place->row * augment->height;
    for (int32_t y = 0; y < augment->height; y++)
        change_row(augment, &d, (rows + y) * (int64_t)row_bytes, channels, scratch,
                   out + (size_t)y * row_bytes);
}
