/* SPDX-License-Identifier: Apache-2.0
 * PNG files there and back with every number of channels, files cut and changed everywhere, impossible sizes; heads
 * of JPEG files. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/image.h"

static uint8_t pixels[4 * 13 * 7];

static tp_str_builder encode(int32_t channels)
{
    tp_str_builder to = {0};
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)(i * 37 + i / 9);
    cr_assert(tp_png_encode(pixels, 13, 7, channels, 0, &to) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    return to;
}

Test(png, comes_back)
{
    for (int32_t channels = 1; channels <= 4; channels++) {
        tp_str_builder file = encode(channels);
        tp_image_header header;
        tp_image image;
        cr_assert(tp_image_read_header(file.data, file.length, "x", &header) == TPUCL_OK);
        cr_assert(header.format == TP_IMAGE_PNG && header.width == 13 && header.height == 7 &&
                  header.channels == channels);
        cr_assert(tp_png_decode(file.data, file.length, "x", 0, &image) == TPUCL_OK);
        cr_assert(image.width == 13 && image.height == 7 && image.channels == channels);
        cr_assert_arr_eq(image.pixels, pixels, (size_t)(13 * 7 * channels));
        tp_free(image.pixels);
        tp_str_builder_deinit(&file);
    }
}

Test(png, channels_are_changed_as_asked)
{
    tp_str_builder file = encode(4);
    tp_image image;
    cr_assert(tp_png_decode(file.data, file.length, "x", 3, &image) == TPUCL_OK);
    for (int i = 0; i < 13 * 7; i++)
        cr_assert_arr_eq(image.pixels + 3 * i, pixels + 4 * i, 3);
    tp_free(image.pixels);
    cr_assert(tp_png_decode(file.data, file.length, "x", 1, &image) == TPUCL_OK);
    for (int i = 0; i < 13 * 7; i++) {
        const uint8_t *p = pixels + 4 * i;
        cr_assert_float_eq(image.pixels[i], 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2], 0.51);
    }
    tp_free(image.pixels);
    tp_str_builder_deinit(&file);
    file = encode(1);
    cr_assert(tp_png_decode(file.data, file.length, "x", 4, &image) == TPUCL_OK);
    for (int i = 0; i < 13 * 7; i++) {
        const uint8_t expected[4] = {pixels[i], pixels[i], pixels[i], 255};
        cr_assert_arr_eq(image.pixels + 4 * i, expected, 4);
    }
    tp_free(image.pixels);
    tp_str_builder_deinit(&file);
}

Test(png, a_cut_or_changed_file_is_refused)
{
    tp_str_builder file = encode(3);
    /* The last chunk's sum, 4 bytes, says nothing about the image. */
    for (size_t length = 0; length + 4 < file.length; length++) {
        tp_image image = {0};
        const tpucl_status status = tp_png_decode(file.data, length, "cut", 0, &image);
        cr_assert_eq(status, TPUCL_CORRUPT_DATA, "%zu", length);
        cr_assert(strstr(tpucl_last_error()->message, "'cut'"));
    }
    for (size_t i = 0; i + 4 < file.length; i++) {
        tp_image image = {0};
        file.data[i] ^= 4;
        cr_assert_eq(tp_png_decode(file.data, file.length, "bad", 0, &image), TPUCL_CORRUPT_DATA,
                     "%zu", i);
        file.data[i] ^= 4;
    }
    tp_str_builder_deinit(&file);
}

Test(png, impossible_sizes_are_refused_before_memory)
{
    static const uint8_t huge[] =
        "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x06\0\0\0";
    tp_image_header header;
    tp_image image;
    cr_assert_eq(tp_image_read_header(huge, sizeof huge, "huge", &header), TPUCL_CORRUPT_DATA);
    cr_assert_eq(tp_png_decode(huge, sizeof huge, "huge", 0, &image), TPUCL_CORRUPT_DATA);
    tp_str_builder to = {0};
    cr_assert_eq(tp_png_encode(huge, 0, 5, 1, 0, &to), TPUCL_INVALID_ARGUMENT);
    cr_assert_eq(tp_png_encode(huge, 5, 5, 5, 0, &to), TPUCL_INVALID_ARGUMENT);
}

Test(image, heads_of_jpeg_files)
{
    static const uint8_t jpeg[] = {0xff, 0xd8, 0xff, 0xe0, 0,  4, 9, 9, 0xff, 0xff, 0xc2,
                                   0,    17,   8,    0,    30, 1, 4, 3, 0,    0,    0};
    tp_image_header header;
    cr_assert(tp_image_read_header(jpeg, sizeof jpeg, "j", &header) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    cr_assert(header.format == TP_IMAGE_JPEG && header.width == 260 && header.height == 30 &&
              header.channels == 3);
    for (size_t length = 0; length < 19; length++)
        cr_assert_neq(tp_image_read_header(jpeg, length, "j", &header), TPUCL_OK, "%zu", length);
    cr_assert_eq(tp_image_read_header("GIF89a", 6, "g", &header), TPUCL_UNSUPPORTED);
}
