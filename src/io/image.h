/* SPDX-License-Identifier: Apache-2.0
 * Encoded images: what they are, how large they are, their pixels. Files come from anywhere: sizes are checked
 * before memory is asked for. Thread-safe: nothing is kept between calls. */
#ifndef TP_IO_IMAGE_H
#define TP_IO_IMAGE_H

#include "core/str.h"

/* Of one image, in either direction. */
enum { TP_IMAGE_MAX_PIXELS = 1 << 28, TP_IMAGE_MAX_SIDE = 1 << 16 };

typedef enum tp_image_format { TP_IMAGE_OTHER, TP_IMAGE_PNG, TP_IMAGE_JPEG } tp_image_format;

const char *
tp_image_format_name(tp_image_format format); /* "PNG", "JPEG", "?", as in image/format */

/* By the first bytes, never by a name: collections hold PNGs that are called .JPEG. */
tp_image_format tp_image_sniff(const void *bytes, size_t length);

typedef struct tp_image_header {
    tp_image_format format;
    int32_t width, height;
    int32_t
        channels; /* in the file: grey 1, grey and alpha 2, colour or palette 3, with alpha 4; CMYK 4 */
} tp_image_header;

/* From the head of a PNG or JPEG file, without decoding it. `name` is for messages. TPUCL_CORRUPT_DATA,
 * TPUCL_UNSUPPORTED for other formats. */
tpucl_status tp_image_read_header(const void *bytes, size_t length, const char *name,
                                  tp_image_header *out_header) TPUCL_MUST_CHECK;

typedef struct tp_image {
    int32_t width, height, channels;
    uint8_t *pixels; /* [height, width, channels]; tp_free */
} tp_image;

/* ---- PNG (W3C, "Portable Network Graphics", third edition) ---- */
/* TPUCL_UNSUPPORTED in a build without libspng. */

/* 8 bits, 1 to 4 channels: grey, grey and alpha, colour, colour and alpha. Level 1 to 9; 0: the default. Appended
 * to `to`. */
tpucl_status tp_png_encode(const uint8_t *pixels, int32_t width, int32_t height, int32_t channels,
                           int level, tp_str_builder *to) TPUCL_MUST_CHECK;

/* `channels` 1 to 4, or 0: the file's. Deeper samples lose their low bits, palettes are looked up, colour becomes
 * grey by ITU-R BT.601's weights, alpha is cut off or opaque; gamma and profiles are ignored. */
tpucl_status tp_png_decode(const void *bytes, size_t length, const char *name, int32_t channels,
                           tp_image *out_image) TPUCL_MUST_CHECK;

#endif
