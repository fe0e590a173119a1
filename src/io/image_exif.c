/* SPDX-License-Identifier: Apache-2.0
 * Which way up a photograph is: the tag Orientation of EXIF data (CIPA DC-008-2019, 4.6.4) in a JPEG's APP1
 * segment. Cameras write it, and many programs drop or damage it, so anything odd counts as no tag. */
#include <string.h>
#include "io/image.h"

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY_BYTES = 12 };

typedef struct tiff {
    const uint8_t *bytes;
    size_t length;
    bool is_little;
} tiff;

static uint32_t number(const tiff *t, size_t at, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | t->bytes[at + (size_t)(t->is_little ? count - 1 - i : i)];
    return value;
}

/* In the first image file directory. */
static int find_orientation(const tiff *t)
{
    if (t->length < 10 || number(t, 2, 2) != 42) return 1;
    const size_t at = number(t, 4, 4);
    if (at > t->length - 2) return 1;
    const size_t count = number(t, at, 2);
    for (size_t i = 0; i < count; i++) {
        const size_t entry = at + 2 + i * ENTRY_BYTES;
        if (entry + ENTRY_BYTES > t->length) return 1;
        if (number(t, entry, 2) != TAG_ORIENTATION) continue;
        const uint32_t value = number(t, entry + 8, 2);
        return number(t, entry + 2, 2) == TYPE_SHORT && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

int tp_image_orientation(const void *bytes, size_t length)
{
    const uint8_t *b = bytes;
    size_t at = 2;
    if (tp_image_sniff(bytes, length) != TP_IMAGE_JPEG) return 1;
    while (at + 4 <= length && b[at] == 0xff) {
        const uint8_t marker = b[at + 1];
        if (marker == 0xff) { /* filling */
            at++;
            continue;
        }
        const size_t segment = (size_t)b[at + 2] << 8 | b[at + 3];
        if (marker == 0xda || segment < 2 || segment > length - at - 2) return 1;
        if (marker == 0xe1 && segment >= 8 + 8 && memcmp(b + at + 4, "Exif\0\0", 6) == 0) {
            const tiff t = {b + at + 10, segment - 8, b[at + 10] == 'I'};
            return find_orientation(&t);
        }
        at += 2 + segment;
    }
    return 1;
}

void tp_image_turn(const tp_image *from, int orientation, uint8_t *to)
{
    /* by orientation - 1: whether the result's rows run along columns, and which way each axis runs */
    static const bool swaps[] = {false, false, false, false, true, true, true, true};
    static const bool mirrors_x[] = {false, true, true, false, false, false, true, true};
    static const bool mirrors_y[] = {false, false, true, true, false, true, true, false};
    const int kind = orientation - 1;
    const int32_t width = swaps[kind] ? from->height : from->width;
    const int32_t height = swaps[kind] ? from->width : from->height;
    const size_t pixel = (size_t)from->channels;
    for (int32_t y = 0; y < height; y++)
        for (int32_t x = 0; x < width; x++, to += pixel) {
            int32_t column = swaps[kind] ? y : x, row = swaps[kind] ? x : y;
            if (mirrors_x[kind]) column = from->width - 1 - column;
            if (mirrors_y[kind]) row = from->height - 1 - row;
            const size_t at = (size_t)row * (size_t)from->width + (size_t)column;
            memcpy(to, from->pixels + at * pixel, pixel);
        }
}
