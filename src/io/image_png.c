/* SPDX-License-Identifier: Apache-2.0
 * PNG by libspng; the only file that includes its header. Everything is decoded to RGBA, the one form that
 * libspng makes of every file, and narrowed from there. */
#include <spng.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "io/image.h"

/* Of one chunk, and of all that are kept: texts and profiles are ignored anyway. */
enum { CHUNK_BYTES = 1 << 20, CACHE_BYTES = 1 << 22 };

static tpucl_status fail(int code, const char *name)
{
    if (code == SPNG_EMEM) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory for PNG '%s'", name);
    return TP_FAIL_CODE(TPUCL_CORRUPT_DATA, code, "'%s' is no good PNG file: %s", name,
                        spng_strerror(code));
}

/* ---- writing ---- */

static int encode(spng_ctx *ctx, const uint8_t *pixels, int32_t width, int32_t height,
                  int32_t channels, int level)
{
    static const uint8_t types[] = {SPNG_COLOR_TYPE_GRAYSCALE, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                    SPNG_COLOR_TYPE_TRUECOLOR, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
    struct spng_ihdr ihdr = {.width = (uint32_t)width,
                             .height = (uint32_t)height,
                             .bit_depth = 8,
                             .color_type = types[channels - 1]};
    int code = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    if (!code) code = spng_set_ihdr(ctx, &ihdr);
    if (!code && level) code = spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, level);
    if (!code)
        code = spng_encode_image(ctx, pixels, (size_t)width * (size_t)height * (size_t)channels,
                                 SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    return code;
}

tpucl_status tp_png_encode(const uint8_t *pixels, int32_t width, int32_t height, int32_t channels,
                           int level, tp_str_builder *to)
{
    size_t length = 0;
    if (width < 1 || height < 1 || channels < 1 || channels > 4 || width > TP_IMAGE_MAX_SIDE ||
        height > TP_IMAGE_MAX_SIDE || (int64_t)width * height > TP_IMAGE_MAX_PIXELS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "an image of %d x %d pixels and %d channels; a PNG has sides from 1 to %d "
                       "and 1 to 4 channels",
                       (int)width, (int)height, (int)channels, TP_IMAGE_MAX_SIDE);
    spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!ctx) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to write a PNG");
    int code = encode(ctx, pixels, width, height, channels, level);
    void *bytes = code ? NULL : spng_get_png_buffer(ctx, &length, &code);
    if (bytes) tp_str_append_bytes(to, bytes, length);
    spng_ctx_free(ctx);
    free(bytes); /* the caller's, from libspng's allocator, which is the C library's */
    return code ? fail(code, "to be written") : to->status;
}

/* ---- reading ---- */

/* `rgba` to the channels that are wanted, in place: an image never grows. */
static void narrow(uint8_t *rgba, size_t pixels, int32_t channels, bool is_grey)
{
    uint8_t *to = rgba;
    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *p = rgba + 4 * i;
        const uint8_t alpha = p[3];
        const int grey = is_grey ? p[0] : (299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000;
        if (channels <= 2) {
            *to++ = (uint8_t)grey;
        } else {
            const uint8_t rgb[3] = {p[0], p[1], p[2]};
            memcpy(to, rgb, 3);
            to += 3;
        }
        if (channels == 2 || channels == 4) *to++ = alpha;
    }
}

static int32_t channels_of(spng_ctx *ctx, const struct spng_ihdr *ihdr)
{
    struct spng_trns trns;
    switch (ihdr->color_type) {
    case SPNG_COLOR_TYPE_GRAYSCALE:
        return 1;
    case SPNG_COLOR_TYPE_GRAYSCALE_ALPHA:
        return 2;
    case SPNG_COLOR_TYPE_INDEXED:
        return spng_get_trns(ctx, &trns) ? 3 : 4;
    case SPNG_COLOR_TYPE_TRUECOLOR_ALPHA:
        return 4;
    default:
        return 3;
    }
}

static tpucl_status decode(spng_ctx *ctx, const char *name, int32_t channels, tp_image *out)
{
    struct spng_ihdr ihdr;
    size_t bytes = 0;
    int code = spng_get_ihdr(ctx, &ihdr);
    if (!code) code = spng_decoded_image_size(ctx, SPNG_FMT_RGBA8, &bytes);
    if (code) return fail(code, name);
    if ((uint64_t)ihdr.width * ihdr.height > TP_IMAGE_MAX_PIXELS)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' says that it has %u x %u pixels; at most %d are read", name,
                       ihdr.width, ihdr.height, TP_IMAGE_MAX_PIXELS);
    uint8_t *pixels = tp_alloc(bytes);
    if (!pixels) return TPUCL_OUT_OF_MEMORY;
    code = spng_decode_image(ctx, pixels, bytes, SPNG_FMT_RGBA8, SPNG_DECODE_TRNS);
    if (!code) code = spng_decode_chunks(ctx); /* the last sum and the end */
    if (code) {
        tp_free(pixels);
        return fail(code, name);
    }
    const bool is_grey = ihdr.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
                         ihdr.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
    if (!channels) channels = channels_of(ctx, &ihdr);
    narrow(pixels, bytes / 4, channels, is_grey);
    *out = (tp_image){(int32_t)ihdr.width, (int32_t)ihdr.height, channels, pixels};
    return TPUCL_OK;
}

tpucl_status tp_png_decode(const void *bytes, size_t length, const char *name, int32_t channels,
                           tp_image *out_image)
{
    if (channels < 0 || channels > 4)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%d channels, expected 0 to 4", (int)channels);
    spng_ctx *ctx = spng_ctx_new(0);
    if (!ctx) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to read PNG '%s'", name);
    int code = spng_set_image_limits(ctx, TP_IMAGE_MAX_SIDE, TP_IMAGE_MAX_SIDE);
    if (!code) code = spng_set_chunk_limits(ctx, CHUNK_BYTES, CACHE_BYTES);
    if (!code) code = spng_set_png_buffer(ctx, bytes, length);
    const tpucl_status status = code ? fail(code, name) : decode(ctx, name, channels, out_image);
    spng_ctx_free(ctx);
    return status;
}
