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

/* ---- JPEG (ITU-T T.81), by TurboJPEG ---- */
/* TPUCL_UNSUPPORTED in a build without it. */

typedef struct tp_jpeg_decoder tp_jpeg_decoder; /* thread-compatible: one for each thread */

tpucl_status tp_jpeg_decoder_create(tp_jpeg_decoder **out_decoder) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_jpeg_decoder_destroy(tp_jpeg_decoder *decoder);

/* `channels` as for PNG. out_image->pixels are the decoder's, until its next call. Decodes as libjpeg-turbo's djpeg
 * does (slow integer DCT, smooth upsampling); grey of YCbCr is its Y, CMYK becomes RGB by C * K / 255 of Adobe's
 * inverted samples. Whatever the library warns of is TPUCL_CORRUPT_DATA, but bytes between segments. No file makes it
 * ask for more than a kilopixel for each of its bytes. */
tpucl_status tp_jpeg_decode(tp_jpeg_decoder *decoder, const void *bytes, size_t length,
                            const char *name, int32_t channels,
                            tp_image *out_image) TPUCL_MUST_CHECK;

/* 1 channel or 3; quality 1 to 100; colour in 4:2:0, or 4:4:4 when is_fine. Appended to `to`. */
tpucl_status tp_jpeg_encode(const uint8_t *pixels, int32_t width, int32_t height, int32_t channels,
                            int quality, bool is_fine, tp_str_builder *to) TPUCL_MUST_CHECK;

/* ---- either ---- */

typedef struct tp_image_decoder tp_image_decoder; /* thread-compatible */

tpucl_status tp_image_decoder_create(tp_image_decoder **out_decoder) TPUCL_MUST_CHECK;
/* Accepts NULL. */
void tp_image_decoder_destroy(tp_image_decoder *decoder);
/* Whatever the bytes are. With `is_upright` the image is turned as its EXIF data say. out_image->pixels are the
 * decoder's, until its next call. */
tpucl_status tp_image_decode(tp_image_decoder *decoder, const void *bytes, size_t length,
                             const char *name, int32_t channels, bool is_upright,
                             tp_image *out_image) TPUCL_MUST_CHECK;

/* How a JPEG file's EXIF data say that it is to be turned: 1 (as it is) to 8 (CIPA DC-008, tag 0x0112); 1 when it says
 * nothing that can be read. */
int tp_image_orientation(const void *bytes, size_t length);
/* Turns `from` so that orientation `orientation` is upright; sides are swapped from 5 on. `to` has as many bytes. */
void tp_image_turn(const tp_image *from, int orientation, uint8_t *to);

#endif
