/* SPDX-License-Identifier: Apache-2.0
 * JPEG by TurboJPEG 2.x; the only file that includes its header. tjDecompressHeader3 refuses files whose
 * sampling has no name of TurboJPEG's, which tjDecompress2 decodes all the same, so the size comes from the
 * head that image.c reads. The decompressor is told that size and never writes beyond it, whatever else the
 * file says. */
#include <string.h>
#include <turbojpeg.h>
#include "core/alloc.h"
#include "io/image.h"

struct tp_jpeg_decoder {
    tjhandle handle;
    uint8_t *pixels;
    size_t capacity_bytes;
};

enum { FLAGS = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS };

tpucl_status tp_jpeg_decoder_create(tp_jpeg_decoder **out_decoder)
{
    tp_jpeg_decoder *decoder = TP_NEW(tp_jpeg_decoder);
    if (!decoder) return TPUCL_OUT_OF_MEMORY;
    decoder->handle = tjInitDecompress();
    if (!decoder->handle) {
        tp_free(decoder);
        return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to read JPEG files");
    }
    *out_decoder = decoder;
    return TPUCL_OK;
}

void tp_jpeg_decoder_destroy(tp_jpeg_decoder *decoder)
{
    if (!decoder) return;
    tjDestroy(decoder->handle);
    tp_free(decoder->pixels);
    tp_free(decoder);
}

/* Every block of 8 x 8 takes a bit, and with the oddest sampling factors half a block stands for one. */
static tpucl_status check_length(const tp_image_header *header, size_t length, const char *name)
{
    if ((uint64_t)header->width * (uint64_t)header->height <= 1024 * (uint64_t)length)
        return TPUCL_OK;
    return TP_FAIL(TPUCL_CORRUPT_DATA,
                   "'%s' says that it has %d x %d pixels, which its %zu bytes cannot hold", name,
                   header->width, header->height, length);
}

static tpucl_status reserve(tp_jpeg_decoder *decoder, size_t bytes)
{
    if (bytes <= decoder->capacity_bytes) return TPUCL_OK;
    tp_free(decoder->pixels);
    decoder->capacity_bytes = 0;
    decoder->pixels = tp_alloc(bytes);
    if (!decoder->pixels) return TPUCL_OUT_OF_MEMORY;
    decoder->capacity_bytes = bytes;
    return TPUCL_OK;
}

/* NULL: decoded; else the library's words, "extraneous" among them when nothing else is wrong. */
static const char *decompress(tp_jpeg_decoder *decoder, const void *bytes, size_t length,
                              const tp_image_header *header, int format, int flags)
{
    if (tjDecompress2(decoder->handle, bytes, (unsigned long)length, decoder->pixels, header->width,
                      header->width * tjPixelSize[format], header->height, format,
                      FLAGS | flags) == 0)
        return NULL;
    return tjGetErrorStr2(decoder->handle);
}

/* tjGetErrorCode calls an error a warning when a warning came before, so words tell them apart: bytes
 * between segments, which many collections hold, do no harm if they are the first and the last that there
 * is to complain. */
static tpucl_status decompress_checked(tp_jpeg_decoder *decoder, const void *bytes, size_t length,
                                       const char *name, const tp_image_header *header, int format)
{
    static const char harmless[] = "extraneous bytes before marker";
    const char *found = decompress(decoder, bytes, length, header, format, TJFLAG_STOPONWARNING);
    if (found && strstr(found, harmless))
        found = decompress(decoder, bytes, length, header, format, 0);
    if (!found || strstr(found, harmless)) return TPUCL_OK;
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s' is no good JPEG file: %s", name, found);
}

/* Four bytes a pixel to `channels`, in place; as djpeg does it. */
static void narrow_cmyk(uint8_t *pixels, size_t count, int32_t channels)
{
    uint8_t *to = pixels;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = pixels + 4 * i;
        const unsigned k = p[3];
        uint8_t rgb[3];
        for (int c = 0; c < 3; c++)
            rgb[c] = (uint8_t)((2 * p[c] * k + 255) / 510);
        if (channels >= 3) {
            memcpy(to, rgb, 3);
            to += 3;
        } else {
            *to++ = (uint8_t)((299 * rgb[0] + 587 * rgb[1] + 114 * rgb[2] + 500) / 1000);
        }
        if (channels == 2 || channels == 4) *to++ = 255;
    }
}

/* A byte a pixel gets an opaque alpha, from the end. */
static void add_alpha(uint8_t *pixels, size_t count)
{
    for (size_t i = count; i-- > 0;) {
        pixels[2 * i] = pixels[i];
        pixels[2 * i + 1] = 255;
    }
}

tpucl_status tp_jpeg_decode(tp_jpeg_decoder *decoder, const void *bytes, size_t length,
                            const char *name, int32_t channels, tp_image *out_image)
{
    static const int formats[] = {-1, TJPF_GRAY, TJPF_GRAY, TJPF_RGB, TJPF_RGBA};
    tp_image_header header;
    if (channels < 0 || channels > 4)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT, "%d channels, expected 0 to 4", (int)channels);
    TP_TRY(tp_image_read_header(bytes, length, name, &header));
    if (header.format != TP_IMAGE_JPEG)
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' is no JPEG file", name);
    TP_TRY(check_length(&header, length, name));
    const bool is_cmyk = header.channels == 4;
    if (!channels) channels = header.channels == 1 ? 1 : 3;
    const size_t count = (size_t)header.width * (size_t)header.height;
    TP_TRY(reserve(decoder, count * (size_t)(is_cmyk ? 4 : channels)));
    TP_TRY(decompress_checked(decoder, bytes, length, name, &header,
                              is_cmyk ? TJPF_CMYK : formats[channels]));
    if (is_cmyk)
        narrow_cmyk(decoder->pixels, count, channels);
    else if (channels == 2)
        add_alpha(decoder->pixels, count);
    *out_image = (tp_image){header.width, header.height, channels, decoder->pixels};
    return TPUCL_OK;
}

/* ---- writing ---- */

tpucl_status tp_jpeg_encode(const uint8_t *pixels, int32_t width, int32_t height, int32_t channels,
                            int quality, bool is_fine, tp_str_builder *to)
{
    unsigned char *file = NULL;
    unsigned long length = 0;
    if (width < 1 || height < 1 || (channels != 1 && channels != 3) || quality < 1 ||
        quality > 100 || width >= TP_IMAGE_MAX_SIDE || height >= TP_IMAGE_MAX_SIDE ||
        (int64_t)width * height > TP_IMAGE_MAX_PIXELS)
        return TP_FAIL(TPUCL_INVALID_ARGUMENT,
                       "an image of %d x %d pixels, %d channels, quality %d; a JPEG has sides from "
                       "1 to %d, 1 or 3 channels and a quality from 1 to 100",
                       (int)width, (int)height, (int)channels, quality, TP_IMAGE_MAX_SIDE - 1);
    tjhandle handle = tjInitCompress();
    if (!handle) return TP_FAIL(TPUCL_OUT_OF_MEMORY, "no memory to write a JPEG");
    const int sampling = channels == 1 ? TJSAMP_GRAY : is_fine ? TJSAMP_444 : TJSAMP_420;
    const int code =
        tjCompress2(handle, pixels, width, 0, height, channels == 1 ? TJPF_GRAY : TJPF_RGB, &file,
                    &length, sampling, quality, TJFLAG_ACCURATEDCT);
    tpucl_status status = TPUCL_OK;
    if (code)
        status = TP_FAIL(TPUCL_INTERNAL, "a JPEG could not be written: %s", tjGetErrorStr2(handle));
    else
        tp_str_append_bytes(to, (const char *)file, length);
    tjFree(file);
    tjDestroy(handle);
    return status == TPUCL_OK ? to->status : status;
}
