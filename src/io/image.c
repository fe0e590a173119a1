/* SPDX-License-Identifier: Apache-2.0
 * Heads of image files. */
#include "io/image.h"

#include <string.h>

static const uint8_t png_magic[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

const char *tp_image_format_name(tp_image_format format)
{
    return format == TP_IMAGE_PNG ? "PNG" : format == TP_IMAGE_JPEG ? "JPEG" : "?";
}

tp_image_format tp_image_sniff(const void *bytes, size_t length)
{
    const uint8_t *b = bytes;
    if (length >= sizeof png_magic && memcmp(b, png_magic, sizeof png_magic) == 0)
        return TP_IMAGE_PNG;
    if (length >= 3 && b[0] == 0xff && b[1] == 0xd8 && b[2] == 0xff) return TP_IMAGE_JPEG;
    return TP_IMAGE_OTHER;
}

static tpucl_status corrupt(const char *name, const char *what, size_t offset)
{
    return TP_FAIL(TPUCL_CORRUPT_DATA, "'%s': %s at offset %zu", name, what, offset);
}

static tpucl_status check_sides(const char *name, uint32_t width, uint32_t height,
                                tp_image_header *out)
{
    if (!width || !height || width > TP_IMAGE_MAX_SIDE || height > TP_IMAGE_MAX_SIDE ||
        (uint64_t)width * height > TP_IMAGE_MAX_PIXELS)
        return TP_FAIL(TPUCL_CORRUPT_DATA,
                       "'%s' says that it has %u x %u pixels; expected sides from 1 to %d and at "
                       "most %d pixels",
                       name, width, height, TP_IMAGE_MAX_SIDE, TP_IMAGE_MAX_PIXELS);
    out->width = (int32_t)width;
    out->height = (int32_t)height;
    return TPUCL_OK;
}

static uint32_t big_endian(const uint8_t *b, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | b[i];
    return value;
}

/* The first chunk is IHDR, always. */
static tpucl_status read_png(const uint8_t *b, size_t length, const char *name,
                             tp_image_header *out)
{
    static const int8_t channels[] = {1, -1, 3, 3, 2, -1, 4};
    if (length < 26 || memcmp(b + 12, "IHDR", 4) != 0) return corrupt(name, "expected IHDR", 12);
    if (b[25] > 6 || channels[b[25]] < 0) return corrupt(name, "unknown type of colour", 25);
    out->channels = channels[b[25]];
    return check_sides(name, big_endian(b + 16, 4), big_endian(b + 20, 4), out);
}

/* SOF0 to SOF15 but DHT, JPG and DAC, which share their range (ITU-T T.81, table B.1). */
static bool is_frame(uint8_t marker)
{
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* Segment after segment until the one that begins the frame. */
static tpucl_status read_jpeg(const uint8_t *b, size_t length, const char *name,
                              tp_image_header *out)
{
    size_t at = 2;
    for (;;) {
        if (at + 4 > length || b[at] != 0xff) return corrupt(name, "expected a marker", at);
        const uint8_t marker = b[at + 1];
        if (marker == 0xff) { /* filling */
            at++;
            continue;
        }
        const uint32_t bytes = big_endian(b + at + 2, 2);
        if (marker == 0xd9 || marker == 0xda || bytes < 2)
            return corrupt(name, "expected the header of a frame", at);
        if (is_frame(marker)) {
            if (at + 10 > length || bytes < 8) return corrupt(name, "a header is cut", at);
            out->channels = b[at + 9];
            return check_sides(name, big_endian(b + at + 7, 2), big_endian(b + at + 5, 2), out);
        }
        at += 2 + bytes;
    }
}

tpucl_status tp_image_read_header(const void *bytes, size_t length, const char *name,
                                  tp_image_header *out_header)
{
    *out_header = (tp_image_header){.format = tp_image_sniff(bytes, length)};
    switch (out_header->format) {
    case TP_IMAGE_PNG:
        return read_png(bytes, length, name, out_header);
    case TP_IMAGE_JPEG:
        return read_jpeg(bytes, length, name, out_header);
    default:
        return TP_FAIL(TPUCL_UNSUPPORTED, "'%s' is neither a PNG nor a JPEG file", name);
    }
}
