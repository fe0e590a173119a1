/* SPDX-License-Identifier: Apache-2.0
 * JPEG files there and back, the kinds that the corpus of the fuzz target holds, every length of a file
 * that is cut, sizes that no file of that length has, and turned photographs. Which bits djpeg decodes:
 * tests/peers/test_jpeg.sh. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/alloc.h"
#include "core/file.h"
#include "io/image.h"

enum { WIDTH = 40, HEIGHT = 24 };

static uint8_t pixels[3 * WIDTH * HEIGHT];

static tp_str_builder encode(int32_t channels, bool is_fine)
{
    tp_str_builder to = {0};
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < channels; c++)
                pixels[(y * WIDTH + x) * channels + c] = (uint8_t)(3 * x + 2 * y + 40 * c);
    cr_assert(tp_jpeg_encode(pixels, WIDTH, HEIGHT, channels, 95, is_fine, &to) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    return to;
}

static char *read_corpus(const char *name, size_t *out_length)
{
    char path[512], *bytes = NULL;
    snprintf(path, sizeof path, "%s/tests/fuzz/corpus/jpeg/%s", TPUCL_SOURCE_DIR, name);
    cr_assert(tp_file_read(path, 1 << 16, &bytes, out_length) == TPUCL_OK, "%s", path);
    return bytes;
}

static tp_jpeg_decoder *decoder;
static tp_image_decoder *any;

static void open_decoders(void)
{
    cr_assert(tp_jpeg_decoder_create(&decoder) == TPUCL_OK);
    cr_assert(tp_image_decoder_create(&any) == TPUCL_OK);
}

static void close_decoders(void)
{
    tp_jpeg_decoder_destroy(decoder);
    tp_image_decoder_destroy(any);
}

TestSuite(jpeg, .init = open_decoders, .fini = close_decoders);

Test(jpeg, comes_back_nearly)
{
    for (int kind = 0; kind < 3; kind++) {
        const int32_t channels = kind == 0 ? 1 : 3;
        tp_str_builder file = encode(channels, kind == 2);
        tp_image image;
        cr_assert(tp_jpeg_decode(decoder, file.data, file.length, "x", 0, &image) == TPUCL_OK);
        cr_assert(image.width == WIDTH && image.height == HEIGHT && image.channels == channels);
        for (int i = 0; i < WIDTH * HEIGHT * channels; i++)
            cr_assert_leq(abs(image.pixels[i] - pixels[i]), 6, "kind %d, sample %d", kind, i);
        tp_str_builder_deinit(&file);
    }
}

Test(jpeg, channels_are_changed_as_asked)
{
    static const char *const names[] = {
        "grey", "c420", "cmyk", "rgb", "odd_sampling", "c422_restart", "c444_progressive"};
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        size_t length;
        char *bytes = read_corpus(names[f], &length);
        uint8_t *rgb = NULL, *grey = NULL;
        for (int32_t channels = 4; channels >= 1; channels--) {
            tp_image image;
            cr_assert(tp_jpeg_decode(decoder, bytes, length, names[f], channels, &image) ==
                          TPUCL_OK,
                      "%s", tpucl_last_error()->message);
            const size_t count = (size_t)image.width * (size_t)image.height;
            cr_assert_eq(image.channels, channels);
            for (size_t i = 0; i < count && (channels == 4 || channels == 2); i++)
                cr_assert_eq(image.pixels[i * (size_t)channels + (size_t)channels - 1], 255);
            if (channels == 4) {
                rgb = malloc(3 * count);
                for (size_t i = 0; i < count; i++)
                    memcpy(rgb + 3 * i, image.pixels + 4 * i, 3);
            } else if (channels == 3) {
                cr_assert_arr_eq(rgb, image.pixels, 3 * count);
            } else if (channels == 2) {
                grey = malloc(count);
                for (size_t i = 0; i < count; i++)
                    grey[i] = image.pixels[2 * i];
            } else {
                cr_assert_arr_eq(grey, image.pixels, count);
            }
        }
        free(rgb);
        free(grey);
        tp_free(bytes);
    }
}

/* Neither the library's picture of the missing rest nor a crash. */
Test(jpeg, a_cut_file_is_refused)
{
    static const char *const names[] = {"c420", "c444_progressive", "cmyk"};
    for (size_t f = 0; f < 3; f++) {
        size_t length;
        char *bytes = read_corpus(names[f], &length);
        for (size_t cut = 0; cut + 2 < length; cut++) {
            tp_image image;
            char *copy = malloc(cut + 1); /* of its own, for the sanitizer */
            memcpy(copy, bytes, cut);
            const tpucl_status status = tp_image_decode(any, copy, cut, "cut", 3, true, &image);
            cr_assert(status == TPUCL_CORRUPT_DATA || (cut < 3 && status == TPUCL_UNSUPPORTED),
                      "%s of %zu bytes: %d", names[f], cut, (int)status);
            free(copy);
        }
        tp_free(bytes);
    }
}

/* As some files of ImageNet have them; changed data in the middle are another matter. */
Test(jpeg, bytes_between_segments_pass)
{
    size_t length;
    tp_image image;
    char *bytes = read_corpus("c420", &length);
    char *longer = malloc(length + 3);
    memcpy(longer, bytes, length - 2);
    memcpy(longer + length - 2, "abc", 3);
    memcpy(longer + length + 1, bytes + length - 2, 2);
    cr_assert(tp_jpeg_decode(decoder, longer, length + 3, "x", 3, &image) == TPUCL_OK, "%s",
              tpucl_last_error()->message);
    memset(longer + length - 30, 0xff, 20); /* fill bytes in the place of data */
    cr_assert_eq(tp_jpeg_decode(decoder, longer, length + 3, "x", 3, &image), TPUCL_CORRUPT_DATA);
    free(longer);
    tp_free(bytes);
}

Test(jpeg, impossible_sizes_are_refused_before_memory)
{
    tp_str_builder file = encode(3, false), to = {0};
    tp_image image;
    size_t at = 2;
    while ((uint8_t)file.data[at + 1] != 0xc0) /* SOF0 */
        at += 2 + ((size_t)(uint8_t)file.data[at + 2] << 8 | (uint8_t)file.data[at + 3]);
    memcpy(file.data + at + 5, "\x20\x00\x20\x00", 4); /* 8192 x 8192 */
    cr_assert_eq(tp_jpeg_decode(decoder, file.data, file.length, "x", 0, &image),
                 TPUCL_CORRUPT_DATA);
    cr_assert(strstr(tpucl_last_error()->message, "cannot hold"), "%s",
              tpucl_last_error()->message);
    cr_assert_eq(tp_jpeg_encode(pixels, 0, 5, 1, 90, false, &to), TPUCL_INVALID_ARGUMENT);
    cr_assert_eq(tp_jpeg_encode(pixels, 5, 5, 2, 90, false, &to), TPUCL_INVALID_ARGUMENT);
    cr_assert_eq(tp_jpeg_encode(pixels, 5, 5, 3, 0, false, &to), TPUCL_INVALID_ARGUMENT);
    tp_str_builder_deinit(&file);
}

Test(jpeg, photographs_are_turned)
{
    size_t length;
    tp_image as_it_is, upright;
    uint8_t copy[4096];
    char *bytes = read_corpus("turned", &length); /* orientation 6: a quarter turn clockwise */
    cr_assert_eq(tp_image_orientation(bytes, length), 6);
    cr_assert(tp_image_decode(any, bytes, length, "x", 3, false, &as_it_is) == TPUCL_OK);
    cr_assert(as_it_is.width == 21 && as_it_is.height == 13);
    memcpy(copy, as_it_is.pixels, 21 * 13 * 3);
    cr_assert(tp_image_decode(any, bytes, length, "x", 3, true, &upright) == TPUCL_OK);
    cr_assert(upright.width == 13 && upright.height == 21);
    for (int y = 0; y < 21; y++)
        for (int x = 0; x < 13; x++)
            cr_assert_arr_eq(upright.pixels + 3 * (y * 13 + x), copy + 3 * ((12 - x) * 21 + y), 3);
    tp_free(bytes);
}

/* Numbers of the pixels of a picture of 3 x 2 as each orientation shows them. */
Test(jpeg, all_orientations)
{
    static const uint8_t wanted[8][6] = {{0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0},
                                         {3, 4, 5, 0, 1, 2}, {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2},
                                         {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
    uint8_t from[6] = {0, 1, 2, 3, 4, 5}, to[6];
    const tp_image image = {.width = 3, .height = 2, .channels = 1, .pixels = from};
    for (int orientation = 1; orientation <= 8; orientation++) {
        tp_image_turn(&image, orientation, to);
        cr_assert_arr_eq(to, wanted[orientation - 1], 6, "orientation %d", orientation);
    }
}
